"""One difference in detail: size, location, inputs, and the command that repeats it."""

from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.compare.measure import Verdict, distances, to_python
from ir_scatter.compare.pairing import pair_names
from ir_scatter.compare.result import SAVED, Compared, CompareSettings, Comparison, Level
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.parameters import Invocation
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.core.value_ranges import show_range
from ir_scatter.ops.lookup import SPECS
from ir_scatter.report.comparison_html.pictures import TensorSlice, heat_map, histogram
from ir_scatter.report.matrices import tensor_of
from ir_scatter.runners import short

_KNOWN = CompareSettings()


def repeat_command(
    compared: Compared, comparison: Comparison, inputs: str | None = None, against: str | None = None
) -> str:
    """Return the command that repeats one case of a comparison."""
    settings = compared.settings
    runners = dict.fromkeys((comparison.reference, comparison.subject))
    arguments: dict[str, object] = {
        "on": [short(runner) for runner in runners if not runner.startswith(SAVED)]
    }
    if against is not None:
        arguments["against"] = _path(against)
    elif inputs is not None and comparison.case < max(compared.passed_cases, 1):
        arguments["inputs"] = _path(inputs)
    else:
        arguments["seed"] = settings.seed + comparison.case
        if settings.values != _KNOWN.values:
            arguments["values"] = settings.values
        shapes = settings.input_shapes.items()
        arguments["input_shapes"] = {name: show(shape)[1:-1].replace(" ", "") for name, shape in shapes}
        ranges = settings.input_ranges.items()
        arguments["input_ranges"] = {name: show_range(ends) for name, ends in ranges}
    for name, pairs in (("map_inputs", settings.map_inputs), ("map_outputs", settings.map_outputs)):
        arguments[name] = dict(map(pair_names, pairs))
    if not settings.reference:
        arguments["reference"] = False
    if settings.precision != _KNOWN.precision:
        arguments["precision"] = settings.precision
    tolerances = [
        (name, f"{pair.absolute:g},{pair.relative:g}") for name, pair in settings.tolerances.named.items()
    ]
    arguments["tolerance"] = [f"{name}={numbers}" if name else numbers for name, numbers in tolerances]
    if comparison.measure.verdict is Verdict.NONDETERMINISTIC:
        arguments["repeat"] = settings.repeat
    set_arguments = {name: value for name, value in arguments.items() if value not in ([], {})}
    paths = tuple(_path(path) for path in (compared.model, compared.other) if path)
    return str(Invocation("compare", set_arguments, paths))


def _path(path: str) -> str:
    """Return a path in a form that the command line cannot mistake for an option."""
    return f"./{path}" if path.startswith("-") else path


_PORTS = {str(spec.key): [port.name for port in spec.ports] for spec in SPECS.values()}
_FEW_VALUES = 16
"""Maximum elements of a tensor whose values are listed."""
_LONGEST = 60
"""Maximum characters of a string element."""
_MOST_CASES = 10
"""Maximum case numbers in a list."""
_LEAST_SPREAD = 20
"""Minimum number of errors for a histogram; for fewer, the table of the worst elements shows more."""


def group(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """Group the differences by tensor and runner; in a group all cases and iterations, the worst first.

    Nodes come before outputs, as an output may only propagate the difference of a node.
    """
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.measure.verdict.is_difference:
            groups.setdefault(_cell_of(comparison), []).append(comparison)
    ordered = sorted(groups.values(), key=lambda group: group[0].level is Level.MODEL)

    def severity(comparison: Comparison) -> tuple[bool, bool, int]:
        measure = comparison.measure
        return measure.verdict is Verdict.MISMATCH, bool(measure.remark), measure.mismatched

    return [sorted(group, key=severity, reverse=True) for group in ordered]


def _cell_of(comparison: Comparison) -> tuple[object, ...]:
    """Return the key of the table cell that links to a difference."""
    models = comparison.subject_model, comparison.reference_model
    return comparison.level, tensor_of(comparison), *models, comparison.subject, comparison.reference


def describe(compared: Compared, alike: Sequence[Comparison], anchor: str, command: str) -> dict[str, Any]:
    """Return the template values of a tensor's differences; `alike` holds all cases, the worst first."""
    comparison = alike[0]
    parts: dict[str, Any] = {
        "anchor": anchor,
        "cell": _cell_of(comparison),
        "comparison": comparison,
        "where": _where(compared, alike),
        "kind": "" if comparison.expected is None else kind_of(comparison.expected),
        "operands": list(_operands(comparison)),
        "elements": [],
        "has_sizes": False,
        "histogram": None,
        "heat_map": None,
        "command": command,
    }
    deviations = differences(comparison)
    if deviations is None or comparison.expected is None:
        return parts
    is_double = comparison.expected.dtype.itemsize >= 8
    parts["elements"] = [
        {
            "position": show_numbers(element.position),
            "got": _show_element(element.got, is_double),
            "expected": _show_element(element.expected, is_double),
            "difference": "" if isinstance(element.got, str) else _show_difference(element.difference),
        }
        for element in worst_elements(comparison, deviations)
    ]
    finite = np.abs(deviations[np.isfinite(deviations)])
    spread = finite[finite > 0]
    parts["has_sizes"] = bool(spread.size) and comparison.expected.dtype.kind not in "bOSUT"
    if parts["has_sizes"] and spread.size >= _LEAST_SPREAD:
        parts["histogram"] = histogram(spread, comparison.measure.tolerance.absolute)
        same, lost = finite.size - spread.size, deviations.size - finite.size
        left_out = [f"{same:,} equal"] if same else []
        left_out += [f"{lost:,} of which only one side is finite"] if lost else []
        parts["histogram_note"] = f"{' and '.join(left_out)} left out" if left_out else ""
    cut = worst_slice(comparison, deviations)
    if cut is not None:
        parts["heat_map"] = heat_map(cut)
        parts["heat_map_note"] = _heat_map_note(comparison, cut)
    return parts


def kind_of(array: Array) -> str:
    element_type = from_dtype(array.dtype)
    return f"{array.dtype.name if element_type is None else element_type.name}{show(array.shape)}"


def _operands(comparison: Comparison) -> Iterator[dict[str, str]]:
    names = _PORTS.get(comparison.operator, [])
    for number, array in enumerate(comparison.inputs):
        name = names[number] if number < len(names) else f"input {number}"
        listing = "" if array is None or not 0 < array.size <= _FEW_VALUES else _listing(array)
        yield {"name": name, "kind": "left out" if array is None else kind_of(array), "listing": listing}


def _listing(array: Array) -> str:
    if array.ndim == 0:
        return _show_element(to_python(array[()]), array.dtype.itemsize >= 8)
    return f"[{', '.join(_listing(part) for part in array)}]"


def _where(compared: Compared, alike: Sequence[Comparison]) -> str:
    worst = alike[0]
    parts = []
    if len(compared.feeds) > 1:
        parts.append(f"case {worst.case}")
    if worst.place:
        parts.append(f"iteration {', '.join(map(str, worst.place))}")
    if len(alike) > 1:
        numbers = sorted({comparison.case for comparison in alike})
        listed = ", ".join(map(str, numbers[:_MOST_CASES])) + (", …" if len(numbers) > _MOST_CASES else "")
        cases = f" (cases {listed})" if len(numbers) > 1 else ""
        parts.append(f"the worst of {len(alike)} runs in which it differs{cases}")
    return ", ".join(parts)


def _show_element(value: Any, is_double: bool) -> str:
    """Return an element with all of its digits; a string is quoted and shortened."""
    if isinstance(value, str):
        return repr(str(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")
    return f"{value:.9g}" if isinstance(value, float) and not is_double else str(value)


def _show_difference(number: float) -> str:
    return "not finite" if isnan(number) else f"{number:+.4g}"


def size_text(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) else "no tolerance is enough"


def steps_text(comparison: Comparison) -> str:
    """Return the difference in units in the last place; "" for types without them."""
    if (
        comparison.got is None
        or comparison.got.dtype.kind in "OUSTc"
        or not isfinite(comparison.measure.max_abs)
    ):
        return ""
    return f"{comparison.measure.max_ulp:,}"


def _heat_map_note(comparison: Comparison, cut: TensorSlice) -> str:
    parts = [f"slice {cut.label}"] if any(letter.isdigit() for letter in cut.label) else []
    parts.append("worst element framed")
    down, across = cut.spans
    if cut.axes[0] is None:
        if across > 1:
            parts.append(f"each cell the worst of {across:,} elements")
    elif (down, across) != (1, 1):
        parts.append(f"each cell the worst of {down} by {across} elements")
    if comparison.measure.contested:
        parts.append(f"{comparison.measure.contested:,} contested elements shown as well")
    return "".join(f", {part}" for part in parts)


# Where and by how much two tensors differ, without a verdict

_MOST_CELLS = 96
"""Maximum cells along one side of a heat map; larger slices are pooled."""
_LINE = 48
"""Cells per row in the heat map of a one-dimensional tensor."""


class DifferingElement(NamedTuple):
    """One element that differs; the difference is NaN if it is not a finite number."""

    position: tuple[int, ...]
    got: Any
    expected: Any
    difference: float


def differences(comparison: Comparison) -> Array | None:
    """Return got - expected as f64: 0.0 where both are equal, NaN where only one is finite.

    For complex numbers it is the absolute difference, for strings 1.0 where they differ. None if a tensor is
    missing or empty, or if types or shapes differ.
    """
    got, expected = comparison.got, comparison.expected
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


def worst_elements(comparison: Comparison, deviations: Array, most: int = 10) -> list[DifferingElement]:
    """Return the elements with the largest differences; the worst element of the comparison comes first.

    Elements within the tolerance are left out if others exceed it. If the tensor has contested elements,
    those that differ by more than `max_abs` are unspecified, and are left out too.
    """
    got, expected, measure = comparison.got, comparison.expected, comparison.measure
    assert got is not None
    assert expected is not None
    size = np.where(np.isnan(deviations), np.inf, np.abs(deviations))
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
    return [
        DifferingElement(at, to_python(got[at]), to_python(expected[at]), float(deviations[at]))
        for at in indices
    ]


def worst_slice(comparison: Comparison, deviations: Array) -> TensorSlice | None:
    """Return a slice in two dimensions around the worst element, pooled if large; None for a scalar."""
    worst = comparison.measure.worst
    if worst is None or deviations.size == 1:
        return None
    wide = [axis for axis, size in enumerate(deviations.shape) if size > 1]
    if len(wide) == 1:
        return _line(deviations.reshape(-1), wide[0], worst.index)
    down, across = wide[-2:]
    key = tuple(slice(None) if axis in {down, across} else place for axis, place in enumerate(worst.index))
    label = ", ".join(":" if isinstance(part, slice) else str(part) for part in key)
    plane = deviations[key]
    spans = (-(-plane.shape[0] // _MOST_CELLS), -(-plane.shape[1] // _MOST_CELLS))
    cell = (worst.index[down] // spans[0], worst.index[across] // spans[1])
    return TensorSlice(_pool(plane, spans), f"[{label}]", (down, across), spans, cell)


def _line(deviations: Array, axis: int, index: tuple[int, ...]) -> TensorSlice:
    label = f"[{', '.join(':' if at == axis else '0' for at in range(len(index)))}]"
    span = -(-deviations.size // (_LINE * _LINE)) if deviations.size > _LINE else 1
    cells = _pool(deviations[None], (1, span))[0]
    across = min(cells.size, _LINE)
    blank = -cells.size % across
    rows = np.pad(cells, (0, blank)).reshape(-1, across)
    worst = divmod(index[axis] // span, across)
    return TensorSlice(rows, label, (None, axis), (across * span, span), worst, blank)


def _pool(values: Array, spans: tuple[int, int]) -> Array:
    """Return the largest difference in each block of elements; NaN counts as larger than any number."""
    down, across = spans
    padded = np.pad(values, [(0, -size % span) for size, span in zip(values.shape, spans, strict=True)])
    blocks = padded.reshape(padded.shape[0] // down, down, padded.shape[1] // across, across)
    flat = blocks.swapaxes(1, 2).reshape(blocks.shape[0], blocks.shape[2], down * across)
    ranked = np.where(np.isnan(flat), np.inf, np.abs(flat))
    return np.take_along_axis(flat, ranked.argmax(axis=2)[..., None], axis=2)[..., 0]
