"""The tables of the README, from the table of operators and the rules."""

from collections.abc import Iterator

from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import Attribute, OpSpec
from ir_scatter.rules import all_rules
from ir_scatter.rules.base import Rule


def operators() -> str:
    """Return one row for each version of each operator."""
    return "\n".join(_operators())


def rules() -> str:
    """Return one row for each rule."""
    return "\n".join(_rules())


def _operators() -> Iterator[str]:
    yield "| operator | valid in | inputs | shape of updates | index values | attributes |"
    yield "|---|---|---|---|---|---|"
    for spec in SPECS.values():
        attributes = "; ".join(map(_attribute, spec.attributes)) or "none"
        cells = [
            f"[{spec.key}]({spec.url})",
            _opsets(spec),
            spec.input_names(),
            f"`{spec.updates_formula}`",
            f"`{spec.index_range}`",
            attributes,
        ]
        yield f"| {' | '.join(cells)} |"


def _attribute(row: Attribute) -> str:
    return f"{row.name}: {', '.join(row.choices)}" if row.choices else row.name


def _opsets(spec: OpSpec) -> str:
    first, last = spec.opsets[0], spec.opsets[-1]
    if isinstance(first, str):
        return f"{first} to {last}"
    span = f"opset {first} and above" if last == LATEST_OPSET else f"opset {first} to {last}"
    return f"{span}, deprecated" if spec.is_removed else span


def _rules() -> Iterator[str]:
    yield "| code | name | severity | what is wrong |"
    yield "|---|---|---|---|"
    for rule in all_rules():
        yield f"| {rule.code} | {rule.name} | {_severity(rule)} | {_first_sentence(rule.documentation)} |"


def _severity(rule: Rule) -> str:
    is_lowered = any(rule.code in spec.tolerated for spec in SPECS.values())
    return "error or warning" if rule.severity is Severity.ERROR and is_lowered else str(rule.severity)


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".") + "."
