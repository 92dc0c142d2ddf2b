"""A rule or an operator in words."""

import difflib
from collections.abc import Iterator

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UsageError
from ir_scatter.ops.lookup import SPECS, by_text
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rewrites.refusals import MEANINGS, Reason
from ir_scatter.rules import all_rules, by_code, by_name
from ir_scatter.rules.base import Rule


def explain(topic: str) -> str:
    """Explain a rule ("SCT203", "updates-shape-mismatch") or an operator ("ScatterNDUpdate-15").

    An operator without a version stands for all of its versions.

    Raises:
        UsageError: there is no such rule or operator.
    """
    text = topic.strip()
    rule = by_code().get(text.upper()) or by_name().get(text.lower())
    if rule is not None:
        return "\n".join(_rule(rule)) + "\n"
    if text.upper() in set(Reason):
        reason = Reason(text.upper())
        name = reason.name.lower().replace("_", "-")
        return f"{reason} {name} (refused conversion)\n\n{MEANINGS[reason]}\n"
    spec = by_text(text)
    specs = [spec] if spec else [row for row in SPECS.values() if row.key.type.lower() == text.lower()]
    if not specs:
        raise UsageError(_unknown(text))
    return "\n\n".join("\n".join(_operator(row)) for row in specs) + "\n"


def _unknown(text: str) -> str:
    names = [rule.code for rule in all_rules()] + [rule.name for rule in all_rules()]
    names += [str(key) for key in SPECS] + list(Reason)
    lowered = {name.lower(): name for name in names}
    swapped = [name for name in names if sorted(name.lower()) == sorted(text.lower())]
    close = [lowered[name] for name in difflib.get_close_matches(text.lower(), lowered, 3)]
    near = list(dict.fromkeys(swapped + close))[:3]
    hint = f"did you mean {', '.join(near)}?" if near else "expected SCT203 or ScatterNDUpdate-15"
    return f"there is no rule and no operator {text!r}; {hint}"


def _rule(rule: Rule) -> Iterator[str]:
    yield f"{rule.code} {rule.name} ({rule.severity})"
    yield ""
    yield rule.documentation
    lowered = [str(spec.key) for spec in SPECS.values() if rule.code in spec.tolerated]
    if rule.severity is Severity.ERROR and lowered:
        yield ""
        yield f"A warning for {', '.join(lowered)}, where runtimes take it as meant."


def _operator(spec: OpSpec) -> Iterator[str]:
    dialect = "OpenVINO" if spec.drops_attributes else "ONNX"
    yield f"{spec.key} ({dialect})"
    yield ""
    yield spec.summary
    yield ""
    yield "Inputs"
    for index, port in enumerate(spec.ports):
        rank = f", rank {port.min_rank} at least" if port.min_rank else ""
        optional = ", optional" if port.is_optional else ""
        yield f"  {index} {port.name}: {spec.show_types(port)}{rank}{optional}"
    yield "Output"
    yield f"  {spec.output}: the shape and type of {spec.ports[0].name}"
    yield from _shapes(spec)
    if spec.attributes:
        yield "Attributes"
        for row in spec.attributes:
            choices = f" ({', '.join(row.choices)})" if row.choices else ""
            default = str(row.default).lower()
            yield f"  {row.name} = {default}{choices}: {row.meaning}"
    yield "Valid in"
    yield f"  {spec.opsets[0]} to {spec.opsets[-1]}" if len(spec.opsets) > 1 else f"  {spec.opsets[0]}"
    if spec.deprecated_by:
        yield f"  deprecated by {spec.deprecated_by}"
    if spec.errata:
        yield "Errata"
        for erratum in spec.errata:
            yield f"  {erratum}"
    yield "Document"
    yield f"  {spec.url}"


def _shapes(spec: OpSpec) -> Iterator[str]:
    yield "Rules"
    yield f"  updates = {spec.updates_formula}"
    if spec.scalar_updates:
        yield "  where that is 0-D, one element of any rank is also allowed"
    yield f"  indices in {spec.index_range} on a dimension of size s"
    if spec.indices_limit != "nowhere":
        yield f"  indices are not longer than data {spec.indices_limit}"
    if spec.axis is not None:
        source = spec.axis.attribute or "input axis"
        yield f"  axis ({source}) in [-r, r-1] for data of rank r"
    if spec.reductions:
        yield "  targets named twice: reduced; with reduction none the order is undefined"
    else:
        yield "  targets named twice: the order of writing is undefined"
    if spec.tolerated:
        codes = ", ".join(sorted(spec.tolerated))
        yield f"  forbidden by the text and taken as meant by runtimes (warnings): {codes}"
