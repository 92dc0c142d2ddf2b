"""What a conversion changes, as text: a unified diff of an IR, a list of nodes of an ONNX model."""

from collections.abc import Iterator, Mapping
from typing import Any

from ir_scatter.convert.output import Changes
from ir_scatter.core.fragment import NewConstant, Patch
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import show
from ir_scatter.formats import IR

_SHORT = 16
"""Numbers of a new constant that a list of nodes shows."""


def difference(changes: Changes, path: str) -> str:
    """Return the changes of the model at a path; "" if there are none."""
    if changes.model.format == IR:
        return "".join(_ir_lines(changes, path)) if changes.patches else ""
    return "".join(f"{line}\n" for line in _onnx_lines(changes))


def _ir_lines(changes: Changes, path: str) -> Iterator[str]:
    from ir_scatter.formats.edits import Edit
    from ir_scatter.formats.line_diff import unified_diff
    from ir_scatter.formats.openvino.writer import write_ir

    source = changes.model.source
    shift = len(source.mark)
    edits = write_ir(changes.model, changes.patches).edits
    moved = [Edit(edit.start + shift, edit.end + shift, edit.text) for edit in edits]
    return unified_diff(source.mark + source.data, moved, path, path)


def _onnx_lines(changes: Changes) -> Iterator[str]:
    move = changes.move
    if move is not None:
        yield f"-opset {changes.model.opset_imports.get('')}"
        yield f"+opset {move.opset}"
    for patch in changes.patches:
        yield from _node_lines(patch)
    if move is not None and move.changed:
        yield f"~{move.changed} other nodes written as opset {move.opset} has them"


def _node_lines(patch: Patch) -> Iterator[str]:
    from ir_scatter.formats.onnx.references import attribute_references

    node, news = patch.node, patch.fragment.news
    names = [port.value.name if port.value is not None else "" for port in node.inputs]
    result = node.outputs[0].name if node.outputs else node.name
    references = attribute_references(node)
    yield f"@@ {node.location.scope}"
    yield f"-{_line(result, node.type, {**node.attributes, **references}, names)}"
    for new in news:
        inputs = [_name(patch, names, value) for value in new.inputs]
        output = result if new is patch.fragment.result else f"{node.name}/{new.label}"
        kept = references if len(news) == 1 else {}
        attributes = {name: kept.get(name, value) for name, value in new.attributes.items()}
        yield f"+{_line(output, new.type, attributes, inputs)}"


def _line(output: str, type: str, attributes: Mapping[str, Any], inputs: list[str]) -> str:
    shown = ", ".join(f"{name}={value}" for name, value in attributes.items())
    return f"{output} = {type}{f'<{shown}>' if shown else ''}({', '.join(inputs)})"


def _name(patch: Patch, names: list[str], value: Value | None) -> str:
    if value is None:
        return ""
    number = patch.fragment.number_given(value)
    if number is not None:
        return names[number]
    if isinstance(value.constant, NewConstant):
        array = value.constant.array
        return str(array.tolist()) if array.size <= _SHORT else f"{array.dtype.name}{show(array.shape)}"
    return f"{patch.node.name}/{value.name}"
