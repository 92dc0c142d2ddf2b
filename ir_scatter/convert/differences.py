"""What a conversion changes, as text: a unified diff of an IR, a list of nodes of an ONNX model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ir_scatter.core.fragment import NewConstant
from ir_scatter.core.shapes import show
from ir_scatter.formats.base import IR

if TYPE_CHECKING:
    from ir_scatter.convert.conversion import Conversion, Converted
    from ir_scatter.core.fragment import Patch
    from ir_scatter.core.model import Value


_SHORT = 16
"""Numbers of a new constant that a list of nodes shows."""


def difference(conversion: "Conversion") -> str:
    """Return the changes; "" if there are none. See `Conversion.diff`."""
    if conversion.model.format == IR:
        return "".join(_ir_lines(conversion))
    return "".join(f"{line}\n" for line in _onnx_lines(conversion))


def _ir_lines(conversion: "Conversion") -> Iterator[str]:
    from ir_scatter.formats.openvino.writer import write_ir
    from ir_scatter.formats.text_edits import Edit, unified_diff

    if not conversion.patches:
        return
    source, path = conversion.model.source, conversion.origin or conversion.model.path
    text = write_ir(conversion.model, conversion.patches)
    shift = len(source.mark)
    edits = [Edit(edit.start + shift, edit.end + shift, edit.text) for edit in text.edits]
    yield from unified_diff(source.mark + source.data, edits, path, path)


def _onnx_lines(conversion: "Conversion") -> Iterator[str]:
    if conversion.opset is not None:
        before = conversion.model.opset_imports.get("")
        yield f"-opset {before}"
        yield f"+opset {conversion.opset}"
    for one in conversion.converted:
        yield from _node_lines(one)
    if conversion.move is not None and conversion.move.changed:
        yield f"~{conversion.move.changed} other nodes written as opset {conversion.opset} has them"


def _node_lines(one: "Converted") -> Iterator[str]:
    from ir_scatter.formats.onnx.references import attribute_references

    patch = one.patch
    if patch is None:
        return
    node = patch.node
    names = [port.value.name if port.value is not None else "" for port in node.inputs]
    output = node.outputs[0].name if node.outputs else node.name
    references = attribute_references(node)
    yield f"@@ {one.location.scope}"
    yield f"-{output} = {node.type}{_attributes({**node.attributes, **references})}({', '.join(names)})"
    news = patch.fragment.news
    for new in news:
        is_result = new is patch.fragment.result
        inputs = [_name(patch, names, value) for value in new.inputs]
        label = output if is_result else f"{node.name}/{new.label}"
        kept = references if len(news) == 1 else {}
        attributes = {name: kept.get(name, value) for name, value in new.attributes.items()}
        yield f"+{label} = {new.type}{_attributes(attributes)}({', '.join(inputs)})"


def _name(patch: "Patch", names: list[str], value: "Value | None") -> str:
    if value is None:
        return ""
    number = patch.fragment.number_given(value)
    if number is not None:
        return names[number]
    if isinstance(value.constant, NewConstant):
        array = value.constant.array
        return str(array.tolist()) if array.size <= _SHORT else f"{array.dtype.name}{show(array.shape)}"
    return f"{patch.node.name}/{value.name}"


def _attributes(attributes: Any) -> str:
    shown = ", ".join(f"{name}={value}" for name, value in attributes.items())
    return f"<{shown}>" if shown else ""
