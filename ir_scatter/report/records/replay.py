"""Typed records of the JSON that `ir-scatter fuzz --replay --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions


class ReplayedFindingRecord(TypedDict):
    """The outcome of running a finding again."""

    signature: Annotated[str, "The identity of the finding."]
    outcome: Annotated[
        Literal["still there", "gone", "changed", "cannot run"], "The outcome of running the finding again."
    ]
    message: Annotated[str, "The result in words: what is wrong now, or why the finding cannot be run."]


class FuzzReplayDocument(TypedDict):
    """Findings that were run again."""

    schema: SchemaNumber
    versions: Versions
    findings: Annotated[list[ReplayedFindingRecord], "The findings of the folder."]


DOCUMENTS = {"fuzz-replay": (FuzzReplayDocument, "ir-scatter fuzz --replay DIR --format json")}
"""(record, title) of each whole document, by the name of its schema."""
