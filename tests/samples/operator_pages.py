"""The page of each operator: its facts, and a picture of what it does, which our own kernels compute."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

import ir_scatter
from ir_scatter.explain import explain
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.rewrites import all_rewrites

Array = np.ndarray[Any, np.dtype[Any]]
CELL, GAP, TOP, LEFT, BELOW, LETTER = 34, 40, 34, 12, 30, 7.5
INK, LINE, PLAIN, PAPER = "#1f2328", "#8c959f", "#f3f4f6", "#ffffff"
COLORS = ("#ffd166", "#8ecae6", "#b5e48c", "#ffadad", "#cdb4db", "#f4a261", "#9bf6ff", "#d4a373")


@dataclass(frozen=True)
class Example:
    """What is drawn: the values of the inputs by role, and what else the operator is told."""

    data: Array
    indices: Array
    updates: Array
    more: Mapping[str, Any]
    text: str


def numbers(*shape: int, start: int = 1, step: int = 1) -> Array:
    return np.arange(start, start + step * int(np.prod(shape)), step).reshape(shape)


EXAMPLES = {
    "ScatterUpdate": Example(
        numbers(5, 3), np.array([3, 1]), numbers(2, 3, start=100, step=10), {"axis": 0},
        "An index names a slice of data on the axis, here a row; the update of the index takes its place.",
    ),
    "ScatterElementsUpdate": Example(
        numbers(5, 3), np.array([[1, 0, 4], [3, 2, 0]]), numbers(2, 3, start=100, step=10), {"axis": 0},
        "An index names a position on the axis; on the other axes the position of the index itself counts.",
    ),
    "ScatterNDUpdate": Example(
        numbers(5, 3), np.array([[1, 2], [4, 0], [3, 1]]), numbers(3, start=100, step=10), {},
        "The last dimension of indices holds the coordinates of what an update replaces, here of an element.",
    ),
    "Scatter": Example(
        numbers(3, 5), np.array([[4, 0], [1, 3], [2, 4]]), numbers(3, 2, start=100, step=10), {"axis": 1},
        "An index names a position on the axis; on the other axes the position of the index itself counts.",
    ),
    "ScatterElements": Example(
        numbers(3, 5), np.array([[4, 0], [1, 3], [2, -1]]), numbers(3, 2, start=100, step=10), {"axis": 1},
        "An index names a position on the axis, a negative one from the end; on the other axes the position of "
        "the index itself counts.",
    ),
    "ScatterND": Example(
        numbers(5, 3), np.array([[3], [-5]]), numbers(2, 3, start=100, step=10), {},
        "The last dimension of indices holds the coordinates of what an update replaces, here of a row; a "
        "negative one counts from the end.",
    ),
    "TensorScatter": Example(
        numbers(2, 5, 2), np.array([1, 3]), numbers(2, 2, 2, start=100, step=10), {},
        "The updates of a sequence are written one after another from where its index says.",
    ),
}  # fmt: skip


def versions(name: str) -> list[OpSpec]:
    return [spec for spec in SPECS.values() if spec.key.type == name]


def computed(name: str, example: Example) -> Array:
    return _evaluate(name, example.data, example.updates, example)


def groups(name: str, example: Example) -> Array:
    """Return for each update the number of what is written at once: a slice, an element, a row."""
    layout, shape, indices = versions(name)[-1].layout, example.updates.shape, example.indices
    if layout is Layout.ELEMENTS:
        return numbers(*shape)
    if layout is Layout.TUPLES:
        count = indices.shape[:-1]
        return np.broadcast_to(numbers(*count).reshape(*count, *[1] * (len(shape) - len(count))), shape)
    if layout is Layout.SLICES:
        axis = example.more["axis"]
        along = [1] * axis + [indices.size] + [1] * (len(shape) - axis - 1)
        return np.broadcast_to(numbers(indices.size).reshape(along), shape)
    return np.broadcast_to(numbers(*shape[:2])[..., None], shape)


def _evaluate(name: str, data: Array, updates: Array, example: Example) -> Array:
    operator: Any = str(versions(name)[-1].key)
    return ir_scatter.evaluate(operator, data=data, indices=example.indices, updates=updates, **example.more)


def picture(name: str) -> str:
    """Return an SVG: each update in a color of its own, and in the output where it went."""
    example, spec = EXAMPLES[name], versions(name)[-1]
    group = groups(name, example)
    source = _evaluate(name, np.zeros_like(example.data), group.astype(example.data.dtype), example)
    drawn = {
        Role.DATA: (example.data, np.zeros_like(example.data)),
        Role.INDICES: (example.indices, _of_indices(name, example, group)),
        Role.UPDATES: (example.updates, group),
    }
    tensors = [(port.name, *drawn[port.role]) for port in spec.ports if port.role in drawn]
    tensors.append((spec.output, computed(name, example), source))
    parts, x, bottom = list[str](), float(LEFT), 0.0
    for number, (title, values, colors) in enumerate(tensors):
        if number == len(tensors) - 1:
            parts.append(_text(x - GAP / 2, TOP + CELL, "→", 18))
        grid, height = _extent(values.shape)
        label = f"{title} {list(values.shape)}"
        width = max(grid, len(label) * LETTER)
        parts += [_text(x + width / 2, TOP - 12, label, 12), *_grid(x + (width - grid) / 2, values, colors)]
        x, bottom = x + width + GAP, max(bottom, height)
    more = "".join(f", {key} = {value}" for key, value in example.more.items())
    width, height = x - GAP + LEFT, TOP + bottom + BELOW
    call = f"{spec.key.type}({', '.join(title for title, *_ in tensors[:3])}{more})"
    parts.append(_text(width / 2, height - 10, call, 12))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" font-family="ui-monospace, Menlo, Consolas, monospace">'
    )
    lines = [head, f"<title>{escape(call)}</title>", _rect(0, 0, width, height, PAPER), *parts, "</svg>", ""]
    return "\n".join(lines)


def _of_indices(name: str, example: Example, group: Array) -> Array:
    layout, indices = versions(name)[-1].layout, example.indices
    if layout is Layout.ELEMENTS:
        return group
    if layout is Layout.TUPLES:
        return np.broadcast_to(numbers(*indices.shape[:-1])[..., None], indices.shape)
    if layout is Layout.SLICES:
        return numbers(*indices.shape)
    return group[:, 0].reshape(indices.shape[0], -1)[:, 0]


def _extent(shape: tuple[int, ...]) -> tuple[float, float]:
    rows, columns = ((1, *shape) if len(shape) == 1 else shape)[-2:]
    blocks = int(np.prod(shape[:-2]))
    return columns * CELL, blocks * rows * CELL + (blocks - 1) * CELL / 2


def _grid(x: float, values: Array, colors: Array) -> Iterator[str]:
    shape = (1, *values.shape) if values.ndim == 1 else values.shape
    for place in np.ndindex(*shape):
        block = int(np.ravel_multi_index(place[:-2], shape[:-2])) if len(shape) > 2 else 0
        left = x + place[-1] * CELL
        top = TOP + place[-2] * CELL + block * (shape[-2] + 0.5) * CELL
        number = int(colors.reshape(shape)[place])
        color = COLORS[(number - 1) % len(COLORS)] if number else PLAIN
        yield _rect(left, top, CELL, CELL, color, LINE)
        yield _text(left + CELL / 2, top + CELL / 2 + 5, str(values.reshape(shape)[place]), 13)


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none") -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{stroke}"/>'
    )


def _text(x: float, y: float, text: str, size: int) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{INK}" text-anchor="middle">{escape(text)}</text>'


def page(name: str) -> str:
    """Return the page of an operator, with all of its versions."""
    example, specs = EXAMPLES[name], versions(name)
    arguments = [
        f"data={example.data.tolist()}",
        f"indices={example.indices.tolist()}",
        f"updates={example.updates.tolist()}",
        *(f"{key}={value}" for key, value in example.more.items()),
    ]
    lines = [
        f"# {name}",
        "",
        *textwrap.wrap(example.text, 110),
        "",
        f"![{name}: data, indices, updates and output, each update in a color of its own]({name}.svg)",
        "",
        "<!-- file: example.py -->",
        "```python",
        "import ir_scatter",
        "",
        "print(",
        "    ir_scatter.evaluate(",
        f'        "{specs[-1].key}",',
        *(f"        {argument}," for argument in arguments),
        "    )",
        ")",
        "```",
        "",
        "```console",
        "$ python example.py",
        str(computed(name, example)),
        "```",
        "",
    ]
    for spec in specs:
        facts = explain(str(spec.key)).partition("\n\n")[2]
        lines += [f"## {spec.key}", "", "```text", facts.rstrip(), "```", ""]
    lines += _rewrites(name)
    return "\n".join(lines)


def _rewrites(name: str) -> list[str]:
    found = {
        (one.source.key.type, one.target.key.type, one.conditions)
        for one in all_rewrites()
        if name in (one.source.key.type, one.target.key.type)
    }
    rows = [f"| {' | '.join(row)} |" for row in sorted(found)]
    return ["## Rewrites", "", "| from | to | conditions |", "|---|---|---|", *rows, ""]
