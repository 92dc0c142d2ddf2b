"""Matches inputs and outputs of two models, even if a converter renamed or narrowed them.

An "end" is an input or output of a model. A converter narrows an end if it changes f32 to f16, for example.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np

from ir_scatter.analysis.interpreter import load
from ir_scatter.compare.measure import FRACTION_BITS, PRECISION_BITS, Tolerance, coarsest, default_tolerance
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.dataflow import GraphInput, GraphOutput
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import Shape, agree, narrow, show, show_numbers
from ir_scatter.core.value_ranges import ValueRange
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.formats import dataflow_of
from ir_scatter.inputs.search import Twin

Feeds = Mapping[str, Array]

_Value = TypeVar("_Value")
_End = TypeVar("_End", GraphInput, GraphOutput)

NamePair = str | tuple[str, str]
"""An input or output of the first model and its counterpart in the second: two names, or the text "A=B"."""

_INTEGER_KINDS = frozenset({"signed", "unsigned"})
_BYTES = frozenset({"u8", "i8"})
"""8-bit types by which some converters replace booleans."""


class By(StrEnum):
    """How two inputs or outputs were matched."""

    MAP = "map"
    """The caller named both."""
    NAME = "name"
    ORDER = "order"
    SHAPE = "shape"
    """No other input or output has a compatible type and shape."""


@dataclass(frozen=True, slots=True, eq=False)
class Match(Generic[_End]):
    """An input or output of the first model (`first`) and its counterpart in the second (`second`)."""

    first: _End
    second: _End
    by: By

    @property
    def types(self) -> tuple[str, str] | None:
        """The names of both element types; None if they are equal or one is unknown."""
        first, second = self.first.element_type, self.second.element_type
        return None if first is None or second is None or first is second else (first.name, second.name)

    @property
    def narrower(self) -> ElementType | None:
        """The element type whose values both inputs or outputs can hold: of f32 and f16, f16."""
        first, second = self.first.element_type, self.second.element_type
        return first or second if first is None or second is None else narrower(first, second)

    def name_in(self, values: Mapping[str, object]) -> str | None:
        """Return the name of the first model's input or output that is a key of `values`, or None."""
        return next((name for name in self.first.names if name in values), None)


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """The matching inputs and outputs of two models.

    Attributes:
        ends: all graph inputs of each model.
        notes: remarks for the user, a sentence each.
    """

    models: tuple[Model, Model]
    ends: tuple[tuple[GraphInput, ...], tuple[GraphInput, ...]]
    inputs: tuple[Match[GraphInput], ...]
    outputs: tuple[Match[GraphOutput], ...]
    notes: tuple[str, ...]
    precision: str = ""
    """The precision of the weights in one model, if it is coarser than in the other ("f16"); otherwise ""."""

    def twin(self) -> Twin:
        """Return the second model as a `Twin`: the input generator then draws inputs that are legal for both.

        Each of its inputs gets its values from an input of the first model, or from a constant.
        """
        firsts = [input for input in self.ends[0] if input.default is None]
        matches = {match.second: match for match in self.inputs}
        types = {match.first: match.narrower for match in self.inputs}
        sources = list[int | Array | None]()
        for input in self.ends[1]:
            match = matches.get(input)
            if match is None:
                sources.append(None)
            elif match.first.default is None:
                sources.append(firsts.index(match.first))
            else:
                sources.append(self._fed(match, load(match.first.default)))
        drawn = tuple(types.get(input, input.element_type) for input in firsts)
        return Twin(make_sketch(self.models[1]), tuple(sources), drawn)

    def shapes(self, input_shapes: Mapping[str, Shape]) -> dict[str, Shape]:
        """Intersect the input shapes that the caller sets with those that both models declare.

        Raises:
            BadFeed: the caller's shape contradicts the second model.
        """
        shapes = {self._name_in_first(name): shape for name, shape in input_shapes.items()}
        for match in self.inputs:
            name = match.name_in(shapes) or match.first.names[0]
            shape = shapes.get(name)
            if not agree(shape, match.second.shape):
                second = f"{match.second.names[0]} of {self.models[1].path}"
                raise BadFeed(f"{second} has shape {show(match.second.shape)}, expected {show(shape)}")
            shapes[name] = narrow(shape, match.second.shape)
        return shapes

    def ranges(self, input_ranges: Mapping[str, ValueRange]) -> dict[str, ValueRange]:
        """Replace input names of the second model by those of the first in a mapping of value ranges."""
        return {self._name_in_first(name): ends for name, ends in input_ranges.items()}

    def adapt_feeds(self, feeds: Feeds) -> tuple[dict[str, Array], list[str]]:
        """Return the caller's arrays under the first model's input names, in types that both models accept.

        Also return notes for the user. The caller may use names and types of the second model. If one model
        has a narrower floating-point type, numbers are rounded to it for both models.

        Raises:
            BadFeed: a number is outside the range of a type.
        """
        adapted, notes = {self._name_in_first(name): array for name, array in feeds.items()}, list[str]()
        for match in self.inputs:
            name, type = match.name_in(adapted), match.narrower
            if name is None:
                continue
            array = adapted[name]
            if type is not None and kind(array) == type.kind == "float":
                rounded = _converted(array, type)
                _demand_lossless(np.isfinite(array) & ~np.isfinite(rounded), array, type, name)
                if not np.array_equal(rounded.astype(array.dtype), array, equal_nan=True):
                    notes.append(f"input {name} is rounded to {type.name} for both models")
                    array = rounded.astype(array.dtype)
            adapted[name] = self._cast(array, match.first.element_type, name, self.models[0])
        return adapted, notes

    def feeds(self, feeds: Feeds) -> tuple[Feeds, Feeds]:
        """Return the input arrays for the first and the second model, each in its own names and types.

        Raises:
            BadFeed: a type cannot represent a number.
        """
        first, second = dict(feeds), dict[str, Array]()
        for match in self.inputs:
            if (name := match.name_in(feeds)) is not None:
                first[name] = self._cast(feeds[name], match.first.element_type, name, self.models[0])
                second[match.second.names[0]] = self._fed(match, first[name])
            elif match.first.default is not None and match.second.default is None:
                second[match.second.names[0]] = self._fed(match, load(match.first.default))
        return first, second

    def by_first(self, outputs: Mapping[str, _Value]) -> dict[str, _Value]:
        """Replace the output names of the second model by those of their counterparts in the first.

        An output without a counterpart keeps its name. If the first model uses that name, it gets a prime:
        "y'".
        """
        names = {match.second.name: match.first.name for match in self.outputs}
        matched = set(names.values())
        return {
            names.get(name, f"{name}'" if name in matched else name): value for name, value in outputs.items()
        }

    def _name_in_first(self, name: str) -> str:
        if any(name in input.names for input in self.ends[0]):
            return name
        return next((match.first.names[0] for match in self.inputs if name in match.second.names), name)

    def _fed(self, match: Match[GraphInput], array: Array) -> Array:
        return self._cast(array, match.second.element_type, match.second.names[0], self.models[1])

    def _cast(self, array: Array, type: ElementType | None, name: str, model: Model) -> Array:
        """Convert an array to the type of an input if no value changes; raise BadFeed if one does.

        An array of an incompatible type is returned unchanged: `check_feeds` reports it.
        """
        target = None if type is None else dtype(type)
        if type is None or target is None or not _are_compatible(from_dtype(array.dtype), type):
            return array
        if target == array.dtype:
            return array
        converted = _converted(array, type)
        with np.errstate(all="ignore"):
            is_lost = np.asarray(converted.astype(array.dtype) != array)
        if kind(array) == "float":
            is_lost &= array == array
        elif array.dtype.kind == "i" or converted.dtype.kind == "i":  # 255 as u8 -> -1 as i8 -> 255: lost
            is_lost |= (converted < 0) != (array < 0)
        _demand_lossless(is_lost, array, type, f"{model.path}: {name}")
        return converted


def _demand_lossless(is_lost: Array, array: Array, type: ElementType, name: str) -> None:
    if is_lost.any():
        place = tuple(map(int, np.argwhere(is_lost)[0]))
        where = f" at {show_numbers(place)}" if place else ""
        raise BadFeed(f"{name} holds {array[place]}{where}, which {type.name} cannot represent")


def pair_text(pair: NamePair) -> str:
    return pair if isinstance(pair, str) else "=".join(pair)


def pair_names(pair: NamePair) -> tuple[str, str]:
    """Split "A=B" at the first "=" into two names; return a tuple unchanged."""
    if not isinstance(pair, str):
        return pair
    first, _, second = pair.partition("=")
    return first, second


def pair(
    first: Model, second: Model, inputs: Sequence[NamePair] = (), outputs: Sequence[NamePair] = ()
) -> Pairing:
    """Match the inputs and the outputs of two models.

    The caller's pairs come first, then inputs and outputs of the same name. The rest is matched in order, if
    types and shapes allow only one such matching. Otherwise an end is matched if it has only one compatible
    candidate.

    Raises:
        BadFeed: an input of the second model has no counterpart, or a name of the caller does not exist.
    """
    models = first, second
    before, after = dataflow_of(first), dataflow_of(second)
    ends = _Matcher(models, "input", (before.inputs, after.inputs), inputs)
    ends.match_by_name()
    for match in ends.matches:
        if not _fit(match.first, match.second):
            descriptions = ends.describe(match.first), ends.describe(match.second)
            why = "are mapped" if match.by is By.MAP else "have the same name"
            message = f"input {descriptions[0]} of {first.path} and {descriptions[1]} of {second.path} {why}"
            hint = Parameter("map_inputs", {"A": "B"})
            raise BadFeed(f"{message}, but are not compatible; pair inputs with {hint}")
    required = [[input for input in side if input.default is None] for side in ends.unmatched()]
    if required[1] and not (ends.match_in_order(*required) or ends.match_by_shape(*required)):
        missing, candidates = (
            ", ".join(map(ends.describe, side)) or "nothing" for side in reversed(required)
        )
        message = f"{second.path} has input {missing}, and {first.path} has {candidates}"
        hint = Parameter("map_inputs", {"A": "B"})
        raise BadFeed(f"{message}: cannot match these inputs; pair them with {hint}")
    notes = list(ends.notes())
    notes += [
        f"input {input.names[0]} of {first.path} has no counterpart in {second.path}, which ignores it"
        for input in ends.unmatched()[0]
        if input.default is None
    ]
    results = _Matcher(models, "output", (before.outputs, after.outputs), outputs)
    results.match_by_name()
    rest = results.unmatched()
    is_matched = results.match_in_order(*rest) or results.match_by_shape(*rest)
    if not is_matched and len(rest[0]) == len(rest[1]) == 1:
        results.add(rest[0][0], rest[1][0], By.ORDER)
    notes += results.notes()
    order = {output: number for number, output in enumerate(before.outputs)}
    sorted_outputs = sorted(results.matches, key=lambda match: order[match.first])
    stored = [_stored_precision(model) for model in models]
    precision = "" if stored[0] == stored[1] else coarsest(*stored)
    if precision:
        path = models[stored.index(precision)].path
        notes.append(f"{path} stores numbers as {precision}, which the tolerance allows for")
    return Pairing(
        models,
        (before.inputs, after.inputs),
        tuple(ends.matches),
        tuple(sorted_outputs),
        tuple(notes),
        precision,
    )


def _stored_precision(model: Model) -> str:
    """Return the coarsest precision in which a model stores weights, for example "f16"."""
    values = (input.value for node in model.walk() for input in node.inputs)
    types = {value.element_type for value in values if value is not None and value.constant is not None}
    return coarsest("f32", *(type.name for type in types if type is not None and type.name in PRECISION_BITS))


class _Matcher(Generic[_End]):
    """Matches the inputs, or the outputs, of two models; callers apply the most reliable criterion first."""

    def __init__(
        self,
        models: tuple[Model, Model],
        noun: str,
        ends: tuple[Sequence[_End], Sequence[_End]],
        pairs: Sequence[NamePair],
    ) -> None:
        self.models, self.noun = models, noun
        self._ends: tuple[Sequence[_End], Sequence[_End]] = ends
        self.matches: list[Match[_End]] = []
        for pair in pairs:
            first, second = self._ends_of(pair)
            if any(first is match.first or second is match.second for match in self.matches):
                raise BadFeed(f"{self._parameter()} {pair_text(pair)}: one of the two is mapped twice")
            self.add(first, second, By.MAP)

    def add(self, first: _End, second: _End, by: By) -> None:
        self.matches.append(Match(first, second, by))

    def unmatched(self) -> tuple[list[_End], list[_End]]:
        matched = {end for match in self.matches for end in (match.first, match.second)}
        first, second = ([end for end in side if end not in matched] for side in self._ends)
        return first, second

    def match_by_name(self) -> None:
        """Match inputs or outputs that share a name: first by their main names, then by all their names."""
        for count in (1, None):
            first, second = self.unmatched()
            by_name = {name: end for end in reversed(second) for name in reversed(end.names[:count])}
            for end in first:
                match = next((by_name[name] for name in end.names[:count] if name in by_name), None)
                if match is not None:
                    self.add(end, match, By.NAME)
                    by_name = {
                        name: candidate for name, candidate in by_name.items() if candidate is not match
                    }

    def match_in_order(self, first: Sequence[_End], second: Sequence[_End]) -> bool:
        """Match in order if only one such matching is possible; return whether it is.

        The matching is unique if matching from the front and from the back gives the same pairs. Inputs or
        outputs of the first model may stay unmatched.
        """
        earliest, latest = _in_order(first, second), _in_order(first[::-1], second[::-1])
        if earliest is None or latest is None or earliest != latest[::-1]:
            return False
        for first_end, second_end in zip(earliest, second, strict=True):
            self.add(first_end, second_end, By.ORDER)
        return True

    def match_by_shape(self, first: Sequence[_End], second: Sequence[_End]) -> bool:
        """Repeatedly match ends that have only one compatible candidate; all or nothing.

        Before: a fits {x}, b fits {x, y}. After a=x was matched, b fits {y} only: b=y.
        """
        candidates = {end: [candidate for candidate in first if _fit(candidate, end)] for end in second}
        matches: dict[_End, _End] = {}
        while candidates:
            sure = next((end for end, fitting in candidates.items() if len(fitting) == 1), None)
            if sure is None:
                return False
            (match,) = candidates.pop(sure)
            matches[sure] = match
            candidates = {
                end: [candidate for candidate in fitting if candidate is not match]
                for end, fitting in candidates.items()
            }
        for end in second if matches else ():
            self.add(matches[end], end, By.SHAPE)
        return bool(matches)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each match that is not based on names, and for each with different types."""
        paths = self.models[0].path, self.models[1].path
        for by, how in ((By.ORDER, "by their order"), (By.SHAPE, "by type and shape")):
            ends = [(match.first.names[0], match.second.names[0]) for match in self.matches if match.by is by]
            if ends:
                pairs = ", ".join(f"{first}={second}" for first, second in ends)
                yield f"{self.noun}s are matched {how}: {pairs} (to change that: {self._parameter()})"
        groups: dict[tuple[str, str], list[str]] = {}
        for match in self.matches:
            if match.types is not None and _are_compatible(
                match.first.element_type, match.second.element_type
            ):
                groups.setdefault(match.types, []).append(match.first.names[0])
        for (first_type, second_type), members in groups.items():
            consequence = "both get the same numbers"
            if self.noun == "output":
                consequence = "compared as numbers, with the tolerance of the narrower type"
            subject = f"{self.noun} {members[0]} is"
            if len(members) > 1:
                subject = f"{self.noun}s {', '.join(members)} are"
            yield f"{subject} {first_type} in {paths[0]}, {second_type} in {paths[1]}: {consequence}"

    def _parameter(self) -> Parameter:
        return Parameter(f"map_{self.noun}s")

    def describe(self, end: _End) -> str:
        type = "" if end.element_type is None else f"{end.element_type.name} "
        return f"{end.names[0]} ({type}{show(end.shape)})"

    def _ends_of(self, pair: NamePair) -> tuple[_End, _End]:
        """Return the end of each model that a pair names; in the text "A=B" both names may contain "="."""
        by_name = [
            {name: end for end in reversed(side) for name in reversed(end.names)} for side in self._ends
        ]
        text = pair_text(pair)
        if isinstance(pair, str):
            cuts = [number for number, letter in enumerate(pair) if letter == "="]
            ways = [(pair[:cut], pair[cut + 1 :]) for cut in cuts]
        else:
            ways = [pair]
        if not ways:
            raise BadFeed(f"{self._parameter()} is {text!r}, expected A=B")
        good = [way for way in ways if way[0] in by_name[0] and way[1] in by_name[1]]
        for number, name in enumerate(good[0] if good else ways[0]):
            if name not in by_name[number]:
                close = get_close_matches(name, by_name[number], 1)
                guess = f" (did you mean {close[0]}?)" if close else ""
                names = ", ".join(end.names[0] for end in self._ends[number])
                message = f"{self.models[number].path} has no {self.noun} {name!r}{guess}, expected {names}"
                raise BadFeed(f"{self._parameter()} {text}: {message}")
        first, second = good[0]
        return by_name[0][first], by_name[1][second]


def _in_order(first: Sequence[_End], second: Sequence[_End]) -> list[_End] | None:
    """Assign to each item of `second` the earliest compatible item of `first`, keeping the order.

    None if some item of `second` has no compatible item left.
    """
    rest = iter(first)
    matches = [next((end for end in rest if _fit(end, target)), None) for target in second]
    return None if None in matches else [end for end in matches if end is not None]


def _fit(first: GraphInput | GraphOutput, second: GraphInput | GraphOutput) -> bool:
    """Return whether the types and shapes of two inputs or outputs are compatible."""
    return _are_compatible(first.element_type, second.element_type) and agree(first.shape, second.shape)


def _are_compatible(first: ElementType | None, second: ElementType | None) -> bool:
    """Return whether a converter may replace one type by the other; True if one of them is unknown."""
    if first is None or second is None or first.kind == second.kind:
        return True
    kinds = {first.kind: first, second.kind: second}
    if kinds.keys() == _INTEGER_KINDS:
        return True
    return "boolean" in kinds and any(type.name in _BYTES for type in kinds.values())


def in_one_type(got: Array, expected: Array, precision: str) -> tuple[Array, Array, Tolerance | None]:
    """Convert outputs of two models to a common type, and return them with a tolerance.

    The arrays stay unchanged if no type can represent the numbers of both. The tolerance is the default of
    the narrower type; None if the types are not compatible.
    """
    first, second = from_dtype(got.dtype), from_dtype(expected.dtype)
    if first is None or second is None or not _are_compatible(first, second):
        return got, expected, None
    tolerance = default_tolerance(_converted(expected, narrower(first, second)), precision)
    kinds, names = {first.kind, second.kind}, {first.name, second.name}
    if "u64" in names and kinds != {"unsigned"}:
        return got, expected, tolerance
    name = "u64" if kinds == {"unsigned"} else "i64"
    if kinds == {"float"}:
        name = "f64" if "f64" in names else "f32"
    type = ELEMENT_TYPES[name]
    return _converted(got, type), _converted(expected, type), tolerance


def narrower(first: ElementType, second: ElementType) -> ElementType:
    def width(type: ElementType) -> tuple[bool, int, bool]:
        bits = FRACTION_BITS.get(type.dtype_name or "", type.bits)
        return type.kind != "boolean", bits, type.kind == "signed"

    return min(first, second, key=width)


def _converted(array: Array, type: ElementType) -> Array:
    target = dtype(type)
    assert target is not None
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(target))
