"""One difference in full: how much, where, with which inputs, and how to see it again."""

import shlex
from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.compare.measure import plain
from ir_scatter.compare.result import SAVED, Compared, Comparison, Level, Settings, Verdict
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.ops.lookup import SPECS
from ir_scatter.report.comparison_html.deviations import Slice, differences, worst_elements, worst_slice
from ir_scatter.report.comparison_html.pictures import heat_map, histogram
from ir_scatter.report.matrices import tensor_of

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


_SHORTEN = "openvino:"
_KNOWN = Settings()


def repeat_command(
    found: Compared, one: Comparison, inputs: str | None = None, against: str | None = None
) -> str:
    """Return the command that repeats one case of a comparison."""
    settings = found.settings
    words = ["ir-scatter", "compare", *(_path(path) for path in (found.model, found.other) if path)]
    for runner in dict.fromkeys((one.reference, one.subject)):
        if not runner.startswith(SAVED):
            words += ["--on", runner.removeprefix(_SHORTEN)]
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
_FARTHEST = 2**62
"""From so many units in the last place on there are none: one of the two is no finite number."""


def group(found: Compared) -> list[list[Comparison]]:
    """Return what differs: of each tensor on each runner all cases and iterations, the worst first.

    Nodes come before outputs: an output may only pass on what a node did.
    """
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for one in found.comparisons:
        if one.measure.verdict.is_difference:
            groups.setdefault(_cell_of(one), []).append(one)
    ordered = sorted(groups.values(), key=lambda group: group[0].level is Level.MODEL)
    return [sorted(group, key=_severity, reverse=True) for group in ordered]


def _cell_of(one: Comparison) -> tuple[Level, str, str, str]:
    """What the cell of the table is found by that leads to a difference."""
    return one.level, tensor_of(one), one.subject, one.reference


def _severity(one: Comparison) -> tuple[bool, bool, int]:
    found = one.measure
    return found.verdict is Verdict.MISMATCH, bool(found.remark), found.mismatched


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
    if spread.size and one.expected.dtype.kind not in "bOSUT":
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


def kind_of(array: "Array") -> str:
    """Return type and shape, "f32[2, 3]"."""
    known = from_dtype(array.dtype)
    return f"{array.dtype.name if known is None else known.name}{show(array.shape)}"


def _operands(one: Comparison) -> Iterator[dict[str, str]]:
    names = _PORTS.get(one.operator, [])
    for number, array in enumerate(one.inputs):
        name = names[number] if number < len(names) else f"input {number}"
        listing = "" if array is None or not 0 < array.size <= _FEW_VALUES else _listing(array)
        yield {"name": name, "kind": "left out" if array is None else kind_of(array), "listing": listing}


def _listing(array: "Array") -> str:
    """Return a small tensor as nested lists."""
    if array.ndim == 0:
        return _show_element(plain(array[()]), array.dtype.itemsize >= 8)
    return f"[{', '.join(_listing(part) for part in array)}]"


def _where(found: Compared, alike: Sequence[Comparison]) -> str:
    """Return in which case and iteration, and in how many others."""
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
    """Return a size, "∞" where there is none."""
    return f"{value:.3g}" if isfinite(value) else "∞"


def steps_text(one: Comparison) -> str:
    """Return the units in the last place, "" where there is no such thing."""
    if one.got is None or one.got.dtype.kind in "OUSTc":
        return ""
    steps = one.measure.max_ulp
    return "∞" if steps >= _FARTHEST else f"{steps:,}"


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
