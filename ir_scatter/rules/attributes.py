"""What is written as an attribute."""

from dataclasses import replace

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.suggestions import close_words
from ir_scatter.core.tensors import Constant
from ir_scatter.core.words import with_article
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Attribute, Kind, OpSpec, Reduction
from ir_scatter.rules.base import Finding, Findings, Rule, attribute, to_opset

_BOOLEANS = frozenset({"true", "false", "1", "0"})
_NO = frozenset({"", "no", "n", "off", "f", "none", "-0", "0.0", "disable", "disabled"})
_TYPES = {Kind.INT: (int, "an int"), Kind.WORD: (str, "a string"), Kind.BOOLEAN: (bool, "a boolean")}
_SHOWN = {int, float, str, list, Constant}


@Rule("SCT103", "unknown-attribute", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def unknown_attribute(scatter: ScatterNode) -> Findings:
    """An attribute is written that no version of the operator has.

    Why: an IR's reader drops it in silence, so what it asks for does not happen; ONNX runtimes refuse
    it.
    Applies to: every operator.
    Runtimes: OpenVINO ignores it in an IR. onnx.checker and onnxruntime: "Unrecognized attribute".
    Example: <data axis="1"/> on ScatterUpdate, whose axis is an input.
    Fix: remove it, or say the same in the way the document has for it.
    """
    names = [row.name for row in scatter.spec.attributes]
    for name in scatter.node.attributes:
        if any(spec.attribute(name) for spec in scatter.lookup.family):
            continue
        close = close_words(name, names, 1)
        index = next((at for at, port in enumerate(scatter.spec.ports) if port.name == name), None)
        if index is not None:
            help = f"remove it; {name} is input {index} of {scatter.spec.key.type}"
        else:
            help = f"did you mean {close[0]}?" if close else f"remove {name}"
        message = f"attribute {name} is not documented, expected {', '.join(names) or 'none'}"
        yield Finding(message, part=attribute(name), help=help)


@Rule("SCT104", "attribute-not-in-version", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_in_version(scatter: ScatterNode) -> Findings:
    """An attribute is written that another version of the operator has, but not this one.

    Why: an IR's reader drops it in silence and the mathematics change: a sum becomes a replacement.
    Applies to: every operator. A warning in an IR if the value is the later version's default, as
    nothing is lost then.
    Runtimes: OpenVINO drops `reduction` on ScatterElementsUpdate below opset12 and on ScatterNDUpdate
    below opset15. onnxruntime refuses it below opset 16, OpenVINO's ONNX frontend honours it on
    ScatterElements and refuses it on ScatterND.
    Example: <layer type="ScatterElementsUpdate" version="opset3"><data reduction="sum"/>.
    Fix: use the version that has the attribute, version="opset12" here.
    """
    for name, written in scatter.node.attributes.items():
        if scatter.spec.attribute(name):
            continue
        others = [(spec, row) for spec in scatter.lookup.family if (row := spec.attribute(name))]
        for spec, row in others[:1]:
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
    """An attribute's word is none that this version documents.

    Why: runtimes disagree on what an unknown word means; one of them computes something else.
    Applies to: every attribute with documented words (reduction, mode). A warning for words that the
    version does not document and runtimes take as meant: max and min at ONNX opset 16 and 17, and an
    IR's words in another case.
    Runtimes: onnxruntime and the reference evaluator run an unknown reduction as "none" without a
    word; OpenVINO refuses it.
    Example: reduction="add" in an IR, where the word is sum; reduction="sum" in ONNX, where it is
    add.
    Fix: write the word of this dialect and version.
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is not Kind.WORD or not isinstance(written, str) or written in row.choices:
            continue
        is_tolerated = scatter.attribute(row.name) in {*row.choices, *row.undocumented}
        message, mended_by = f"{row.name} is {written!r}, expected {', '.join(row.choices)}", None
        domain, meant = scatter.spec.key.domain, _meant(written, row, scatter.spec)
        rows = (*scatter.lookup.family, *(spec for key, spec in SPECS.items() if key.domain == domain))
        has_it = [spec for spec in rows if _has(spec, row, written)]
        if meant is not None:
            help = f'did you mean {row.name}="{meant}"?'
        elif has_it and has_it[0].key.type == scatter.spec.key.type:
            help, mended_by = to_opset(has_it[0].opsets[0]), f"--opset {has_it[0].opsets[0]}"
        else:
            help = f"choose another {row.name}"
            help += f", or {has_it[0].key.type}, which has {written}" if has_it else ""
        mended_by = mended_by if is_tolerated else None
        found = Finding(message, is_tolerated=is_tolerated, part=attribute(row.name))
        yield replace(found, help=help, mended_by=mended_by)


def _has(spec: OpSpec, row: Attribute, word: str) -> bool:
    other = spec.attribute(row.name)
    return other is not None and word in other.choices


def _meant(written: str, row: Attribute, spec: OpSpec) -> str | None:
    """Return the word of an attribute that somebody who wrote another one may have meant."""
    word = written.strip().lower()
    meanings = {one.reductions[word] for one in SPECS.values() if word in one.reductions}
    if word not in row.choices and row.name == "reduction" and meanings:
        return next((own for own, meaning in spec.reductions.items() if meaning in meanings), None)
    longer = [choice for choice in row.choices if word.startswith(choice)]
    return next(iter((*longer, *close_words(word, row.choices, 1))), None)


@Rule("SCT106", "attribute-not-boolean", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_not_boolean(scatter: ScatterNode) -> Findings:
    """The text of a boolean attribute is no boolean.

    Why: OpenVINO reads every text but "false" and "0" as true, so "no" and "off" mean yes.
    Applies to: attributes of an IR that are documented as boolean (use_init_val).
    Runtimes: OpenVINO takes true, false, 1 and 0 in any case; anything else is true.
    Example: <data use_init_val="off"/>: the initial values are used.
    Fix: write "true" or "false".
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        if row.kind is Kind.BOOLEAN and isinstance(written, str) and written.lower() not in _BOOLEANS:
            message = f"{row.name} is {written!r}, which is read as true, expected true or false"
            meant = "false" if written.strip().lower() in _NO else "true"
            help = f'write {row.name}="{meant}" if that is meant'
            yield Finding(message, part=attribute(row.name), help=help)


@Rule("SCT107", "attribute-type", reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_type(scatter: ScatterNode) -> Findings:
    """An attribute holds another kind of value than documented.

    Why: runtimes refuse the model, or read the default in its place.
    Applies to: attributes of ONNX nodes, which carry a type: axis is an int, reduction and mode are
    strings.
    Runtimes: onnx.checker and onnxruntime refuse the model.
    Example: axis = 1.0.
    Fix: write the attribute with its documented type.
    """
    for row in scatter.spec.attributes:
        written = scatter.node.attributes.get(row.name)
        expected, name = _TYPES[row.kind]
        if written is None or scatter.spec.drops_attributes or isinstance(written, expected):
            continue
        kind = type(written)
        shown = with_article(kind.__name__) if kind in _SHOWN else "neither number nor text"
        is_whole = row.kind is Kind.INT and isinstance(written, float) and written.is_integer()
        help = f"write {row.name} as the int {written:g}" if is_whole else f"write {row.name} as {name}"
        yield Finding(f"{row.name} is {shown}, expected {name}", part=attribute(row.name), help=help)


@Rule("SCT108", "attribute-without-effect", Severity.NOTE, reads={Fact.OPERATOR, Fact.ATTRIBUTES})
def attribute_without_effect(scatter: ScatterNode) -> Findings:
    """An attribute changes nothing because of what another one says.

    Why: whoever wrote it expected an effect; without a reduction no initial value takes part in
    anything.
    Applies to: use_init_val = false with reduction none (ScatterElementsUpdate-12).
    Runtimes: all ignore it.
    Example: <data reduction="none" use_init_val="false"/>.
    Fix: remove use_init_val, or name the reduction that was meant.
    """
    if scatter.spec.attribute("use_init_val") is None or scatter.spec.attribute("reduction") is None:
        return
    if scatter.attribute("use_init_val") is False and scatter.reduction is Reduction.NONE:
        message = "use_init_val is false, which changes nothing with reduction none"
        yield Finding(message, part=attribute("use_init_val"))
