"""What `ir-scatter fuzz --replay --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import SchemaNumber, Versions


class ReplayedFinding(TypedDict):
    """What became of a finding."""

    signature: Annotated[str, "Which one."]
    outcome: Annotated[Literal["still there", "gone", "changed", "cannot run"], "What came of it."]
    message: Annotated[str, "What goes wrong now."]


class FuzzReplayDocument(TypedDict):
    """Findings that were run again."""

    schema: SchemaNumber
    versions: Versions
    findings: Annotated[list[ReplayedFinding], "The findings of the folder."]


DOCUMENTS = {"fuzz-replay": (FuzzReplayDocument, "ir-scatter fuzz --replay DIR --format json")}
"""Records of whole documents by the name of their schema, with its title."""
