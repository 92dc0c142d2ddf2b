"""What `ir-scatter rules --format json` writes."""

from typing import Annotated, Literal, TypedDict

from ir_scatter.report.records.fields import Pattern, SchemaNumber, Versions


class RuleRecord(TypedDict):
    """A rule or a reason for a refusal."""

    code: Annotated[Annotated[str, Pattern("^(SCT|CVT)[0-9]{3}$")], "The code."]
    name: Annotated[str, "The name; it is accepted wherever the code is."]
    severity: Annotated[
        Literal["error", "warning", "note", "refusal"],
        'How bad it is; "refusal" for why a conversion does not take place.',
    ]
    summary: Annotated[str, "What is wrong, in one sentence."]
    warns_for: Annotated[list[str], "The operators for which an error is a warning."]


class RulesDocument(TypedDict):
    """All rules."""

    schema: SchemaNumber
    versions: Versions
    rules: Annotated[list[RuleRecord], "Everything that has a code, rules first."]


DOCUMENTS = {"rules": (RulesDocument, "ir-scatter rules --format json")}
"""Records of whole documents by the name of their schema, with its title."""
