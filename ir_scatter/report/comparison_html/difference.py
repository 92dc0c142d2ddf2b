"""One difference in full: how much, where, with which inputs, and how to see it again."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ir_scatter.compare.result import SAVED, Compared, Comparison, Level, Settings, Verdict
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.shapes import show, show_numbers
from ir_scatter.ops.lookup import SPECS
from ir_scatter.report.comparison_html.deviations import (
    Element,
    Sizes,
    Slice,
    python_element,
    sizes,
    worst_elements,
    worst_slice,
)
from ir_scatter.report.comparison_html.matrix import subject_of

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array


_SHORTEN = "openvino:"
_KNOWN = Settings()


@dataclass(frozen=True, slots=True)
class Source:
    """Where inputs came from that were not generated.

    Attributes:
        inputs: a file; None without one.
        against: a folder with the results of another time or place; None without one.
    """

    inputs: str | None = None
    against: str | None = None

    @property
    def is_generator(self) -> bool:
        """Tell whether the inputs were generated."""
        return self.inputs is None and self.against is None


def repeat_command(found: Compared, one: Comparison, source: Source) -> str:
    """Return the command that repeats one case of a comparison.

    Args:
        found: the comparison of the model.
        one: the tensor that differs.
        source: where the inputs came from.
    """
    words = ["ir-scatter", "compare", *(_path(path) for path in (found.model, found.other) if path)]
    for runner in dict.fromkeys((one.reference, one.subject)):
        if not runner.startswith(SAVED):
            words += ["--on", runner.removeprefix(_SHORTEN)]
    if source.against is not None:
        words += ["--against", _path(source.against)]
    elif source.inputs is not None and one.case == 0:
        words += ["--inputs", _path(source.inputs)]
    else:
        words += ["--seed", str(found.settings.seed + one.case)]
    is_drawn = source.is_generator or (source.against is None and one.case > 0)
    words += _options(found.settings, is_generated=is_drawn)
    if one.measure.verdict is Verdict.NONDETERMINISTIC:
        words += ["--repeat", str(found.settings.repeat)]
    return shlex.join(words)


def _path(path: str) -> str:
    """Return a path that no command line takes for an option."""
    return f"./{path}" if path.startswith("-") else path


def _options(settings: Settings, *, is_generated: bool) -> Iterator[str]:
    """Yield what was asked for and is not the default."""
    if is_generated:
        if settings.values != _KNOWN.values:
            yield from ("--values", settings.values)
        for name, shape in settings.input_shapes.items():
            yield from ("--input-shape", f"{name}={show(shape)[1:-1].replace(' ', '')}")
    if settings.precision != _KNOWN.precision:
        yield from ("--precision", settings.precision)
    for name, tolerance in settings.tolerances.named.items():
        numbers = f"{tolerance.absolute:g},{tolerance.relative:g}"
        yield from ("--tolerance", f"{name}={numbers}" if name else numbers)


_PORTS = {str(spec.key): [port.name for port in spec.ports] for spec in SPECS.values()}
_FEW_VALUES = 16
_LONGEST = 60
_MOST_CASES = 10
_FARTHEST = 2**62
"""From so many units in the last place on there are none: one of the two is no finite number."""


class Operand(NamedTuple):
    """An input of the node: what it is called, its type and shape, and its values if they are few."""

    name: str
    kind: str
    values: str = ""


class Listed(NamedTuple):
    """An element that differs, as text."""

    position: str
    got: str
    expected: str
    difference: str


class Difference(NamedTuple):
    """What the page says of one tensor of one runner: the worst among cases and iterations."""

    anchor: str
    comparison: Comparison
    where: str
    kind: str
    operands: tuple[Operand, ...]
    elements: tuple[Listed, ...]
    histogram: Markup
    histogram_note: str
    heat_map: Markup
    heat_map_note: str
    command: str

    @property
    def key(self) -> tuple[Level, str, str, str]:
        """What the cell of the table is found by."""
        one = self.comparison
        return one.level, subject_of(one), one.subject, one.reference


def group(found: Compared) -> list[list[Comparison]]:
    """Return what differs: of each tensor on each runner all cases and iterations, the worst first.

    Nodes come before outputs: an output may only pass on what a node did.
    """
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for one in found.comparisons:
        if one.measure.verdict.is_difference:
            key = (one.level, subject_of(one), one.subject, one.reference)
            groups.setdefault(key, []).append(one)
    ordered = sorted(groups.values(), key=lambda group: group[0].level is Level.MODEL)
    return [sorted(group, key=_severity, reverse=True) for group in ordered]


def _severity(one: Comparison) -> tuple[bool, bool, int]:
    found = one.measure
    return found.verdict is Verdict.MISMATCH, bool(found.remark), found.mismatched


def describe(found: Compared, alike: Sequence[Comparison], anchor: str, source: Source) -> Difference:
    """Return all there is to say of a difference, with pictures.

    Args:
        found: the comparison of the model.
        alike: the same tensor in all cases and iterations in which it differs, the worst first.
        anchor: what links go to; also makes the names inside of pictures unique.
        source: where the inputs came from.
    """
    one = alike[0]
    spread, cut = sizes(one), worst_slice(one)
    histogram = heat_map = Markup()
    if spread.sizes.size and one.expected is not None and one.expected.dtype.kind != "b":
        from ir_scatter.report.comparison_html.pictures import histogram as draw_histogram

        histogram = draw_histogram(spread, one.measure.tolerance.absolute, f"{anchor}-h")
    if cut is not None:
        from ir_scatter.report.comparison_html.pictures import heat_map as draw_heat_map

        heat_map = draw_heat_map(cut, f"{anchor}-m")
    return Difference(
        anchor,
        one,
        _where(found, alike),
        "" if one.expected is None else kind_of(one.expected),
        tuple(_operands(one)),
        tuple(_listed(one, element) for element in worst_elements(one)),
        histogram,
        _histogram_note(spread),
        heat_map,
        "" if cut is None else _heat_map_note(one, cut),
        repeat_command(found, one, source),
    )


def kind_of(array: "Array") -> str:
    """Return type and shape, "f32[2, 3]"."""
    known = from_dtype(array.dtype)
    return f"{array.dtype.name if known is None else known.name}{show(array.shape)}"


def _operands(one: Comparison) -> Iterator[Operand]:
    names = _PORTS.get(one.operator, [])
    for number, array in enumerate(one.inputs):
        name = names[number] if number < len(names) else f"input {number}"
        if array is None:
            yield Operand(name, "left out")
        elif 0 < array.size <= _FEW_VALUES:
            yield Operand(name, kind_of(array), _listing(array))
        else:
            yield Operand(name, kind_of(array))


def _listing(array: "Array") -> str:
    """Return a small tensor as nested lists."""
    if array.ndim == 0:
        return show_element(python_element(array[()]), is_double=array.dtype.itemsize >= 8)
    return f"[{', '.join(_listing(part) for part in array)}]"


def _where(found: Compared, alike: Sequence[Comparison]) -> str:
    """Return in which case and iteration, and in how many others."""
    one = alike[0]
    parts = []
    if len(found.feeds) > 1:
        parts.append(f"case {one.case}")
    if one.place:
        parts.append(f"iteration {', '.join(map(str, one.place))}")
    others = len(alike) - 1
    if others:
        numbers = sorted({other.case for other in alike})
        shown = ", ".join(map(str, numbers[:_MOST_CASES])) + (", …" if len(numbers) > _MOST_CASES else "")
        cases = f" (cases {shown})" if len(numbers) > 1 else ""
        parts.append(f"the worst of {others + 1} runs in which it differs{cases}")
    return ", ".join(parts)


def _listed(one: Comparison, element: Element) -> Listed:
    is_double = one.got is not None and one.got.dtype.itemsize >= 8
    return Listed(
        show_numbers(element.index),
        show_element(element.got, is_double=is_double),
        show_element(element.expected, is_double=is_double),
        _show_difference(element),
    )


def _show_difference(element: Element) -> str:
    if isinstance(element.got, str):
        return ""
    return "not finite" if isnan(element.difference) else f"{element.difference:+.4g}"


def show_element(value: Any, *, is_double: bool = True) -> str:
    """Return an element with all of its digits, a text in quotes and shortened."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…")
    if isinstance(value, float) and not is_double:
        return f"{value:.9g}"
    return str(value)


def size_text(value: float) -> str:
    """Return a size, "∞" where there is none."""
    return f"{value:.3g}" if isfinite(value) else "∞"


def steps_text(one: Comparison) -> str:
    """Return the units in the last place, "" where there is no such thing."""
    got = one.got
    if got is None or got.dtype.kind in "OUSTc":
        return ""
    steps = one.measure.max_ulp
    return "∞" if steps >= _FARTHEST else f"{steps:,}"


def _histogram_note(spread: Sizes) -> str:
    if not spread.looked_at:
        return ""
    same = spread.looked_at - spread.sizes.size - spread.lost
    parts = [f"{same:,} equal"] if same else []
    if spread.lost:
        parts.append(f"{spread.lost:,} of which only one side is finite")
    text = f"{' and '.join(parts)} left out" if parts else ""
    if spread.step > 1:
        text = f"one element in {spread.step}; {text}".removesuffix("; ")
    return text


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
