"""What a conversion changes, as text: a unified diff of an IR, a list of nodes of an ONNX model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ir_scatter.formats import IR
from ir_scatter.fragment import NewConstant

if TYPE_CHECKING:
    from ir_scatter.convert.conversion import Conversion, Converted
    from ir_scatter.fragment import Patch
    from ir_scatter.model import Value


def difference(conversion: "Conversion") -> str:
    """Return the changes; "" if there are none. See `Conversion.diff`."""
    if conversion.model.format == IR:
        return "".join(_ir_lines(conversion))
    return "".join(f"{line}\n" for line in _onnx_lines(conversion))


def _ir_lines(conversion: "Conversion") -> Iterator[str]:
    from ir_scatter.formats.line_diff import unified_diff
    from ir_scatter.formats.openvino_ir_writer import write_ir

    if not conversion.patches:
        return
    text = write_ir(conversion.model, conversion.patches)
    path = conversion.model.path
    yield from unified_diff(conversion.model.source.data, text.edits, path, path)


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
    patch = one.patch
    if patch is None:
        return
    node = patch.node
    names = [port.value.name if port.value is not None else "" for port in node.inputs]
    output = node.outputs[0].name if node.outputs else node.name
    yield f"@@ {one.location.scope}"
    yield f"-{output} = {node.type}{_attributes(node.attributes)}({', '.join(names)})"
    for new in patch.fragment.news:
        is_result = new is patch.fragment.result
        inputs = [_name(patch, names, value) for value in new.inputs]
        label = output if is_result else f"{node.name}/{new.label}"
        yield f"+{label} = {new.type}{_attributes(new.attributes)}({', '.join(inputs)})"


def _name(patch: "Patch", names: list[str], value: "Value | None") -> str:
    if value is None:
        return ""
    number = patch.fragment.number_given(value)
    if number is not None:
        return names[number]
    if isinstance(value.constant, NewConstant):
        return str(value.constant.array.tolist())
    return f"{patch.node.name}/{value.name}"


def _attributes(attributes: Any) -> str:
    shown = ", ".join(f"{name}={value}" for name, value in attributes.items())
    return f"<{shown}>" if shown else ""
