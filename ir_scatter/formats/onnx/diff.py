"""What patches change in an ONNX model, as a list of nodes."""

from collections.abc import Iterator, Mapping
from typing import Any

from ir_scatter.core.fragment import NewConstant, Patch
from ir_scatter.core.model import Value
from ir_scatter.core.shapes import show
from ir_scatter.formats.onnx.functions import attribute_references

_SHORT = 16
"""Numbers of a new constant that are shown."""


def node_lines(patch: Patch) -> Iterator[str]:
    """Yield the lines of one node and of those that come instead."""
    node, news = patch.node, patch.fragment.news
    names = [port.value.name if port.value is not None else "" for port in node.inputs]
    result = node.outputs[0].name if node.outputs else node.name
    references = attribute_references(node)
    yield f"@@ {node.location.scope}\n"
    yield f"-{_line(result, node.type, {**node.attributes, **references}, names)}\n"
    for new in news:
        inputs = [_name(patch, names, value) for value in new.inputs]
        output = result if new is patch.fragment.result else f"{node.name}/{new.label}"
        kept = references if len(news) == 1 else {}
        attributes = {name: kept.get(name, value) for name, value in new.attributes.items()}
        yield f"+{_line(output, new.type, attributes, inputs)}\n"


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
