"""One difference in full: how much, where, with which inputs, and how to see it again."""

import shlex
from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.compare.measure import Verdict, distances, plain
from ir_scatter.compare.pairing import pair_text
from ir_scatter.compare.result import SAVED, Compared, Comparison, Level, Settings
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.ops.lookup import SPECS
from ir_scatter.report.comparison_html.pictures import Slice, heat_map, histogram
from ir_scatter.report.matrices import tensor_of
from ir_scatter.runners.openvino.runner import PREFIX

_KNOWN = Settings()


def repeat_command(
    found: Compared, one: Comparison, inputs: str | None = None, against: str | None = None
) -> str:
    """Return the command that repeats one case of a comparison."""
    settings = found.settings
    words = ["ir-scatter", "compare", *(_path(path) for path in (found.model, found.other) if path)]
    for runner in dict.fromkeys((one.reference, one.subject)):
        if not runner.startswith(SAVED):
            words += ["--on", runner.removeprefix(PREFIX)]
    if against is not None:
        words += ["--against", _path(against)]
    elif inputs is not None and one.case == 0:
        words += ["--inputs", _path(inputs)]
    else:
        words += ["--seed", str(settings.seed + one.case)]
        if settings.values != _KNOWN.values:
            words += ["--values", settings.values]
        for name, shape in settings.input_shapes.items():
            words += ["--input-shape", f"{name}={show(shape)[1:-1].replace(' ', '')}"]
    for option, pairs in (("--map-input", settings.map_inputs), ("--map-output", settings.map_outputs)):
        words += [word for pair in pairs for word in (option, pair_text(pair))]
    if not settings.reference:
        words.append("--no-reference")
    if settings.precision != _KNOWN.precision:
        words += ["--precision", settings.precision]
    for name, tolerance in settings.tolerances.named.items():
        numbers = f"{tolerance.absolute:g},{tolerance.relative:g}"
        words += ["--tolerance", f"{name}={numbers}" if name else numbers]
    if one.measure.verdict is Verdict.NONDETERMINISTIC:
        words += ["--repeat", str(settings.repeat)]
    return shlex.join(words)


def _path(path: str) -> str:
    """Return a path that no command line takes for an option."""
    return f"./{path}" if path.startswith("-") else path


_PORTS = {str(spec.key): [port.name for port in spec.ports] for spec in SPECS.values()}
_FEW_VALUES = 16
_LONGEST = 60
_MOST_CASES = 10
_LEAST_SPREAD = 20
"""Of fewer errors a histogram says less than the table of the worst."""


def group(found: Sequence[Comparison]) -> list[list[Comparison]]:
    """Return what differs: of each tensor on each runner all cases and iterations, the worst first.

    Nodes come before outputs: an output may only pass on what a node did.
    """
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for one in found:
        if one.measure.verdict.is_difference:
            groups.setdefault(_cell_of(one), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: group[0].level is Level.MODEL)

    def severity(one: Comparison) -> tuple[bool, bool, int]:
        found = one.measure
        return found.verdict is Verdict.MISMATCH, bool(found.remark), found.mismatched

    return [sorted(group, key=severity, reverse=True) for group in ordered]


def _cell_of(one: Comparison) -> tuple[object, ...]:
    """What the cell of the table is found by that leads to a difference."""
    models = one.subject_model, one.reference_model
    return one.level, tensor_of(one), *models, one.subject, one.reference


def describe(found: Compared, alike: Sequence[Comparison], anchor: str, command: str) -> dict[str, Any]:
    """All there is to say of a tensor in the cases and iterations in which it differs, the worst first."""
    one = alike[0]
    parts: dict[str, Any] = {
        "anchor": anchor,
        "cell": _cell_of(one),
        "comparison": one,
        "where": _where(found, alike),
        "kind": "" if one.expected is None else kind_of(one.expected),
        "operands": list(_operands(one)),
        "elements": [],
        "has_sizes": False,
        "histogram": None,
        "heat_map": None,
        "command": command,
    }
    apart = differences(one)
    if apart is None or one.expected is None:
        return parts
    is_double = one.expected.dtype.itemsize >= 8
    parts["elements"] = [
        {
            "position": show_numbers(element.position),
            "got": _show_element(element.got, is_double),
            "expected": _show_element(element.expected, is_double),
            "difference": "" if isinstance(element.got, str) else _show_difference(element.difference),
        }
        for element in worst_elements(one, apart)
    ]
    finite = np.abs(apart[np.isfinite(apart)])
    spread = finite[finite > 0]
    parts["has_sizes"] = bool(spread.size) and one.expected.dtype.kind not in "bOSUT"
    if parts["has_sizes"] and spread.size >= _LEAST_SPREAD:
        parts["histogram"] = histogram(spread, one.measure.tolerance.absolute)
        same, lost = finite.size - spread.size, apart.size - finite.size
        left_out = [f"{same:,} equal"] if same else []
        left_out += [f"{lost:,} of which only one side is finite"] if lost else []
        parts["histogram_note"] = f"{' and '.join(left_out)} left out" if left_out else ""
    cut = worst_slice(one, apart)
    if cut is not None:
        parts["heat_map"] = heat_map(cut)
        parts["heat_map_note"] = _heat_map_note(one, cut)
    return parts


def kind_of(array: Array) -> str:
    known = from_dtype(array.dtype)
    return f"{array.dtype.name if known is None else known.name}{show(array.shape)}"


def _operands(one: Comparison) -> Iterator[dict[str, str]]:
    names = _PORTS.get(one.operator, [])
    for number, array in enumerate(one.inputs):
        name = names[number] if number < len(names) else f"input {number}"
        listing = "" if array is None or not 0 < array.size <= _FEW_VALUES else _listing(array)
        yield {"name": name, "kind": "left out" if array is None else kind_of(array), "listing": listing}


def _listing(array: Array) -> str:
    if array.ndim == 0:
        return _show_element(plain(array[()]), array.dtype.itemsize >= 8)
    return f"[{', '.join(_listing(part) for part in array)}]"


def _where(found: Compared, alike: Sequence[Comparison]) -> str:
    one = alike[0]
    parts = []
    if len(found.feeds) > 1:
        parts.append(f"case {one.case}")
    if one.place:
        parts.append(f"iteration {', '.join(map(str, one.place))}")
    if len(alike) > 1:
        numbers = sorted({other.case for other in alike})
        shown = ", ".join(map(str, numbers[:_MOST_CASES])) + (", …" if len(numbers) > _MOST_CASES else "")
        cases = f" (cases {shown})" if len(numbers) > 1 else ""
        parts.append(f"the worst of {len(alike)} runs in which it differs{cases}")
    return ", ".join(parts)


def _show_element(value: Any, is_double: bool) -> str:
    """Return an element with all of its digits, a text in quotes and shortened."""
    if isinstance(value, str):
        return repr(str(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")
    return f"{value:.9g}" if isinstance(value, float) and not is_double else str(value)


def _show_difference(number: float) -> str:
    return "not finite" if isnan(number) else f"{number:+.4g}"


def size_text(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) else "none is enough"


def steps_text(one: Comparison) -> str:
    """Return the units in the last place, "" where there is no such thing."""
    if one.got is None or one.got.dtype.kind in "OUSTc" or not isfinite(one.measure.max_abs):
        return ""
    return f"{one.measure.max_ulp:,}"


def _heat_map_note(one: Comparison, cut: Slice) -> str:
    parts = [f"slice {cut.label}"] if any(letter.isdigit() for letter in cut.label) else []
    parts.append("worst element framed")
    down, across = cut.spans
    if cut.axes[0] is None:
        if across > 1:
            parts.append(f"each cell the worst of {across:,} elements")
    elif (down, across) != (1, 1):
        parts.append(f"each cell the worst of {down} by {across} elements")
    if one.measure.contested:
        parts.append(f"{one.measure.contested:,} contested elements shown as well")
    return "".join(f", {part}" for part in parts)


# Where two tensors differ and by how much; nothing is judged here

_MOST_CELLS = 96
"""Cells of a heat map along one side; larger slices are pooled."""
_LINE = 48
"""Cells per row where a tensor has one dimension only."""


class Element(NamedTuple):
    """One element that differs; the difference is NaN where that is no number."""

    position: tuple[int, ...]
    got: Any
    expected: Any
    difference: float


def differences(one: Comparison) -> Array | None:
    """Got - expected as f64: 0.0 where they are the same, NaN where only one is finite.

    Of complex numbers it is the size of the difference, of strings 1.0 where they differ. None without
    two tensors of one type and shape that have elements.
    """
    got, expected = one.got, one.expected
    if got is None or expected is None or not got.size:
        return None
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return None
    if kind(got) == "string":
        return np.asarray(got != expected).astype(np.float64)
    with np.errstate(all="ignore"):
        size = distances(got, expected)
        sign = 1.0 if kind(got) == "complex" else np.where(got < expected, -1.0, 1.0)
        return np.where(np.isfinite(size), sign * size, np.nan)


def worst_elements(one: Comparison, found: Array, most: int = 10) -> list[Element]:
    """Return the elements that are farthest off, the one that the comparison names first.

    Those within the tolerance are left out if others are not. Where the document leaves elements
    open, their differences may be larger than any that counts, and these are left out as well.
    """
    got, expected, measure = one.got, one.expected, one.measure
    assert got is not None
    assert expected is not None
    size = np.where(np.isnan(found), np.inf, np.abs(found))
    if measure.mismatched and kind(got) != "string":
        with np.errstate(all="ignore"):
            size[size <= measure.tolerance.limits(expected)] = 0.0
    if measure.contested:
        size[size > measure.max_abs] = 0.0
    flat = size.reshape(-1)
    count = min(most, flat.size)
    chosen = np.argpartition(flat, flat.size - count)[flat.size - count :]
    places = sorted((int(place) for place in chosen if flat[place] > 0), key=lambda at: (-flat[at], at))
    if measure.worst is not None:
        first = int(np.ravel_multi_index(measure.worst.index, got.shape)) if got.ndim else 0
        places = [first, *(place for place in places if place != first)][:most]
    if measure.mismatched and not measure.contested:
        places = places[: measure.mismatched]
    indices = [tuple(map(int, np.unravel_index(place, got.shape))) for place in places]
    return [Element(at, plain(got[at]), plain(expected[at]), float(found[at])) for at in indices]


def worst_slice(one: Comparison, found: Array) -> Slice | None:
    """Return the two dimensions around the worst element, pooled if they are large; None of a scalar."""
    worst = one.measure.worst
    if worst is None or found.size == 1:
        return None
    wide = [axis for axis, size in enumerate(found.shape) if size > 1]
    if len(wide) == 1:
        return _line(found.reshape(-1), wide[0], worst.index)
    down, across = wide[-2:]
    key = tuple(slice(None) if axis in {down, across} else place for axis, place in enumerate(worst.index))
    label = ", ".join(":" if isinstance(part, slice) else str(part) for part in key)
    plane = found[key]
    spans = (-(-plane.shape[0] // _MOST_CELLS), -(-plane.shape[1] // _MOST_CELLS))
    cell = (worst.index[down] // spans[0], worst.index[across] // spans[1])
    return Slice(_pooled(plane, spans), f"[{label}]", (down, across), spans, cell)


def _line(found: Array, axis: int, index: tuple[int, ...]) -> Slice:
    label = f"[{', '.join(':' if at == axis else '0' for at in range(len(index)))}]"
    span = -(-found.size // (_LINE * _LINE)) if found.size > _LINE else 1
    cells = _pooled(found[None], (1, span))[0]
    across = min(cells.size, _LINE)
    blank = -cells.size % across
    rows = np.pad(cells, (0, blank)).reshape(-1, across)
    worst = divmod(index[axis] // span, across)
    return Slice(rows, label, (None, axis), (across * span, span), worst, blank)


def _pooled(values: Array, spans: tuple[int, int]) -> Array:
    """Return of each block of elements the difference that is largest, NaN before all."""
    down, across = spans
    padded = np.pad(values, [(0, -size % span) for size, span in zip(values.shape, spans, strict=True)])
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    flat = blocks.swapaxes(1, 2).reshape(blocks.shape[0], blocks.shape[2], down * across)
    ranked = np.where(np.isnan(flat), np.inf, np.abs(flat))
    return np.take_along_axis(flat, ranked.argmax(axis=2)[..., None], axis=2)[..., 0]
