"""Rules about attributes of scatter nodes."""

from dataclasses import replace

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.suggestions import close_words
from ir_scatter.core.tensors import Constant
from ir_scatter.core.words import with_article
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Attribute, Kind, OpSpec, Reduction
from ir_scatter.rules.base import Finding, Findings, Rule, attribute, to_opset

_BOOLEANS = frozenset({"true", "false", "1", "0"})
_NO = frozenset({"", "no", "n", "off", "f", "none", "-0", "0.0", "disable", "disabled"})
"""Texts that probably stand for false, in lower case."""
_TYPES = {Kind.INT: (int, "an int"), Kind.WORD: (str, "a string"), Kind.BOOLEAN: (bool, "a boolean")}
_NAMED_TYPES = {int, float, str, list, Constant}
"""Types whose name is clear to users; a message calls others "neither number nor text"."""


@Rule("SCT103", "unknown-attribute", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def unknown_attribute(scatter: ScatterNode) -> Findings:
    """Unknown attribute: no version of the operator has it.

    Why: OpenVINO silently ignores it in an IR, so it has no effect; ONNX runtimes refuse it.
    Applies to: every operator.
    Runtimes: OpenVINO ignores it in an IR. onnx.checker and onnxruntime: "Unrecognized attribute".
    Example: <data axis="1"/> on ScatterUpdate, whose axis is an input.
    Fix: remove it, or express it as the specification does, here with the axis input.
    """
    expected_names = [row.name for row in scatter.spec.attributes]
    for name in scatter.node.attributes:
        if any(spec.attribute(name) for spec in scatter.lookup.family):
            continue
        close = close_words(name, expected_names, 1)
        index = next((at for at, port in enumerate(scatter.spec.ports) if port.name == name), None)
        if index is not None:
            help = f"remove it; {name} is input {index} of {scatter.spec.key.type}"
        else:
            help = f"did you mean {close[0]}?" if close else f"remove {name}"
        message = (
            f"attribute {name} is not in the specification, expected {', '.join(expected_names) or 'none'}"
        )
        yield Finding(message, part=attribute(name), help=help)


@Rule("SCT104", "attribute-not-in-version", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_in_version(scatter: ScatterNode) -> Findings:
    """This version of the operator does not have the attribute; another version does.

    Why: OpenVINO silently ignores it in an IR, and the result changes: updates replace data where a sum was
    intended.
    Applies to: every operator. A warning in an IR if the value is the other version's default, because
    the result is the same then.
    Runtimes: OpenVINO ignores `reduction` on ScatterElementsUpdate below opset12 and on ScatterNDUpdate
    below opset15. onnxruntime refuses it below opset 16; OpenVINO's ONNX frontend applies it on
    ScatterElements and refuses it on ScatterND.
    Example: <layer type="ScatterElementsUpdate" version="opset3"><data reduction="sum"/>.
    Fix: use the version that has the attribute, version="opset12" here.
    """
    for name, written in scatter.node.attributes.items():
        if scatter.spec.attribute(name):
            continue
        versions = [(spec, row) for spec in scatter.lookup.family if (row := spec.attribute(name))]
        for spec, row in versions[:1]:
            is_default = str(written).lower() == str(row.default).lower()
            message = (
                f"attribute {name} is {written!r}, but {scatter.spec.key} has no {name}: "
                f"expected {spec.key} or no attribute"
            )
            change = to_opset(spec.opsets[0])
            help = f"remove {name}, or {change}" if is_default else f"{change}, or remove {name}"
            is_harmless = is_default and scatter.spec.drops_attributes
            yield Finding(message, is_tolerated=is_harmless, part=attribute(name), help=help)


@Rule("SCT105", "attribute-value", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_value(scatter: ScatterNode) -> Findings:
    """Invalid attribute value: this version of the operator does not define it.

    Why: runtimes disagree on an unknown value; some silently compute something else.
    Applies to: attributes with a fixed list of values (reduction, mode). A warning for values that the
    specification of the version lacks but runtimes compute as intended: max and min at ONNX opset 16 and 17,
    and upper or mixed case in an IR.
    Runtimes: onnxruntime and the reference evaluator silently run an unknown reduction as "none";
    OpenVINO refuses it.
    Example: reduction="add" in an IR, where the value is sum; reduction="sum" in ONNX, where it is
    add.
    Fix: write a value that this operator version defines, in the spelling of the file format.
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is not Kind.WORD or not isinstance(written, str) or written in row.choices:
            continue
        is_tolerated = scatter.attribute(row.name) in {*row.choices, *row.undocumented}
        message, fixed_by = f"{row.name} is {written!r}, expected {', '.join(row.choices)}", None
        domain, intended = scatter.spec.key.domain, _intended_word(written, row, scatter.spec)
        rows = (*scatter.lookup.family, *(spec for key, spec in SPECS.items() if key.domain == domain))
        defining = [spec for spec in rows if _defines(spec, row, written)]
        if intended is not None:
            help = f'did you mean {row.name}="{intended}"?'
        elif defining and defining[0].key.type == scatter.spec.key.type:
            opset = defining[0].opsets[0]
            help, fixed_by = to_opset(opset), (Parameter("opset", opset),)
        else:
            help = f"choose another {row.name}"
            help += f", or use {defining[0].key.type}, which has {written}" if defining else ""
        fixed_by = fixed_by if is_tolerated else None
        finding = Finding(message, is_tolerated=is_tolerated, part=attribute(row.name))
        yield replace(finding, help=help, fixed_by=fixed_by)


def _defines(spec: OpSpec, row: Attribute, word: str) -> bool:
    """Return whether an operator version defines a value of an attribute."""
    attribute_there = spec.attribute(row.name)
    return attribute_there is not None and word in attribute_there.choices


def _intended_word(written: str, row: Attribute, spec: OpSpec) -> str | None:
    """Guess the valid value that the author of an invalid one intended; None without a guess."""
    word = written.strip().lower()
    reductions = {spec.reductions[word] for spec in SPECS.values() if word in spec.reductions}
    if word not in row.choices and row.name == "reduction" and reductions:
        return next((word for word, reduction in spec.reductions.items() if reduction in reductions), None)
    longer = [choice for choice in row.choices if word.startswith(choice)]
    return next(iter((*longer, *close_words(word, row.choices, 1))), None)


@Rule("SCT106", "attribute-not-boolean", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_boolean(scatter: ScatterNode) -> Findings:
    """The value of a boolean attribute is not a boolean.

    Why: OpenVINO reads every text except "false" and "0" as true, so "no" and "off" mean true.
    Applies to: boolean attributes of an IR (use_init_val).
    Runtimes: OpenVINO accepts true, false, 1 and 0 in any case; any other text is true.
    Example: <data use_init_val="off"/>: the initial values are used.
    Fix: write "true" or "false".
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is Kind.BOOLEAN and isinstance(written, str) and written.lower() not in _BOOLEANS:
            message = f"{row.name} is {written!r}, which is read as true, expected true or false"
            intended = "false" if written.strip().lower() in _NO else "true"
            help = f'write {row.name}="{intended}" if that is intended'
            yield Finding(message, part=attribute(row.name), help=help)


@Rule("SCT107", "attribute-type", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_type(scatter: ScatterNode) -> Findings:
    """Wrong attribute type: the specification requires another one.

    Why: runtimes refuse the model, or use the default instead.
    Applies to: attributes of ONNX nodes, which carry a type: axis is an int, reduction and mode are
    strings.
    Runtimes: onnx.checker and onnxruntime refuse the model.
    Example: axis = 1.0.
    Fix: write the attribute with the type that the specification gives.
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        expected, expected_name = _TYPES[row.kind]
        if written is None or scatter.spec.drops_attributes or isinstance(written, expected):
            continue
        kind = type(written)
        actual = with_article(kind.__name__) if kind in _NAMED_TYPES else "neither number nor text"
        is_whole = row.kind is Kind.INT and isinstance(written, float) and written.is_integer()
        help = (
            f"write {row.name} as the int {written:g}" if is_whole else f"write {row.name} as {expected_name}"
        )
        yield Finding(
            f"{row.name} is {actual}, expected {expected_name}", part=attribute(row.name), help=help
        )


@Rule("SCT108", "attribute-without-effect", Severity.NOTE, reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_without_effect(scatter: ScatterNode) -> Findings:
    """The attribute has no effect because of another attribute's value.

    Why: it was probably written for an effect; without a reduction the initial values are not used.
    Applies to: use_init_val = false with reduction none (ScatterElementsUpdate-12).
    Runtimes: all ignore it.
    Example: <data reduction="none" use_init_val="false"/>.
    Fix: remove use_init_val, or set the reduction you intend.
    """
    if scatter.spec.attribute("use_init_val") is None or scatter.spec.attribute("reduction") is None:
        return
    if scatter.attribute("use_init_val") is False and scatter.reduction is Reduction.NONE:
        message = "use_init_val is false, which changes nothing with reduction none"
        yield Finding(message, part=attribute("use_init_val"))
