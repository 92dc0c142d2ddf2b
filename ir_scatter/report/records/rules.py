"""Typed records of the JSON that `ir-scatter rules --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Pattern, SchemaNumber, Versions


class RuleRecord(TypedDict):
    """A rule or a reason for a refusal."""

    code: Annotated[Annotated[str, Pattern("^(SCT|CVT)[0-9]{3}$")], "The code."]
    name: Annotated[str, "The name; every option that accepts the code accepts it too."]
    severity: Annotated[
        Literal["error", "warning", "note", "refusal"],
        'The severity; "refusal" for a reason why `convert` refuses a node.',
    ]
    summary: Annotated[str, "What is wrong, in one sentence."]
    warns_for: Annotated[list[str], "The operators for which a rule of severity error only warns."]


class RulesDocument(TypedDict):
    """All rules."""

    schema: SchemaNumber
    versions: Versions
    rules: Annotated[list[RuleRecord], "All rules, then all reasons for refusals."]


DOCUMENTS = {"rules": (RulesDocument, "ir-scatter rules --format json")}
"""(record, title) of each whole document, by the name of its schema."""
