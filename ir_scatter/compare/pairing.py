"""Which inputs and outputs of two models are the same, though a converter renamed or narrowed them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np

from ir_scatter.analysis.interpreter import load
from ir_scatter.compare.measure import FRACTION_BITS, PRECISION_BITS, Tolerance, coarser, default_tolerance
from ir_scatter.core.arrays import Array, kind
from ir_scatter.core.dataflow import GraphInput, GraphOutput
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, from_dtype
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import Shape, agree, narrow, show, show_numbers
from ir_scatter.evaluate.model import make_sketch
from ir_scatter.formats import dataflow_of
from ir_scatter.inputs.search import Twin

Feeds = Mapping[str, Array]

_Told = TypeVar("_Told")
_End = TypeVar("_End", GraphInput, GraphOutput)

NamePair = str | tuple[str, str]
"""An input or output of the first model and one of the second: two names, or the text "A=B"."""

_WHOLE = frozenset({"signed", "unsigned"})
_BYTES = frozenset({"u8", "i8"})
"""What some runtimes make of booleans."""


class By(StrEnum):
    """How it is known that two inputs or outputs are the same."""

    MAP = "map"
    """The caller says so."""
    NAME = "name"
    ORDER = "order"
    SHAPE = "shape"
    """No other one has a type and shape that fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Match(Generic[_End]):
    """An input or output of the first model, and that of the second which is the same."""

    first: _End
    second: _End
    by: By

    @property
    def types(self) -> tuple[str, str] | None:
        """The element types, if they are known and not the same."""
        one, other = self.first.element_type, self.second.element_type
        return None if one is None or other is None or one is other else (one.name, other.name)

    @property
    def narrower(self) -> ElementType | None:
        """The element type whose numbers both can have."""
        one, other = self.first.element_type, self.second.element_type
        return one or other if one is None or other is None else narrower(one, other)

    def name_in(self, known: Mapping[str, object]) -> str | None:
        """Return the name of the first model's by which it is known."""
        return next((name for name in self.first.names if name in known), None)


@dataclass(frozen=True, slots=True, eq=False)
class Pairing:
    """How two models belong together.

    Attributes:
        ends: all inputs of both.
        notes: what is to be said of it, a sentence each.
    """

    models: tuple[Model, Model]
    ends: tuple[tuple[GraphInput, ...], tuple[GraphInput, ...]]
    inputs: tuple[Match[GraphInput], ...]
    outputs: tuple[Match[GraphOutput], ...]
    notes: tuple[str, ...]
    precision: str = ""
    """In what one of the models stores its numbers, if that is narrower than what the other one does."""

    def twin(self) -> Twin:
        """Return the second model as one that gets the inputs of the first."""
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

    def shapes(self, given: Mapping[str, Shape]) -> dict[str, Shape]:
        """Return the shapes of the first model's inputs as far as both models, and the caller, say them.

        Raises:
            BadFeed: the caller contradicts the second model.
        """
        found = {self._of_first(name): shape for name, shape in given.items()}
        for match in self.inputs:
            name = match.name_in(found) or match.first.names[0]
            shape = found.get(name)
            if not agree(shape, match.second.shape):
                second = f"{match.second.names[0]} of {self.models[1].path}"
                raise BadFeed(
                    f"{second} has shape {show(match.second.shape)}, which {show(shape)} does not fit"
                )
            found[name] = narrow(shape, match.second.shape)
        return found

    def given(self, feeds: Feeds) -> tuple[dict[str, Array], list[str]]:
        """Return feeds that the caller gave as both models take them, by names of the first; and notes.

        They may have names and types of the second. Floating-point numbers that a narrower type does not
        hold are rounded for both.

        Raises:
            BadFeed: a number is beyond a type.
        """
        found, notes = {self._of_first(name): array for name, array in feeds.items()}, list[str]()
        for match in self.inputs:
            name, type = match.name_in(found), match.narrower
            if name is None:
                continue
            array = found[name]
            if type is not None and kind(array) == type.kind == "float":
                rounded = _converted(array, type)
                _demand_kept(np.isfinite(array) & ~np.isfinite(rounded), array, type, name)
                if not np.array_equal(rounded.astype(array.dtype), array, equal_nan=True):
                    notes.append(f"input {name} is rounded to {type.name} for both models")
                    array = rounded.astype(array.dtype)
            found[name] = self._cast(array, match.first.element_type, name, self.models[0])
        return found, notes

    def feeds(self, feeds: Feeds) -> tuple[Feeds, Feeds]:
        """Return for both models what they are given, each in its own types.

        Raises:
            BadFeed: a type does not hold a number.
        """
        first, second = dict(feeds), dict[str, Array]()
        for match in self.inputs:
            if (name := match.name_in(feeds)) is not None:
                first[name] = self._cast(feeds[name], match.first.element_type, name, self.models[0])
                second[match.second.names[0]] = self._fed(match, first[name])
            elif match.first.default is not None and match.second.default is None:
                second[match.second.names[0]] = self._fed(match, load(match.first.default))
        return first, second

    def by_first(self, outputs: Mapping[str, _Told]) -> dict[str, _Told]:
        """Return what is told of outputs of the second model by the names that they have in the first."""
        names = {match.second.name: match.first.name for match in self.outputs}
        taken = set(names.values())  # a name that stands for another output here
        return {names.get(name, f"{name}'" if name in taken else name): one for name, one in outputs.items()}

    def _of_first(self, name: str) -> str:
        """Return the name that an input has in the first model."""
        if any(name in input.names for input in self.ends[0]):
            return name
        return next((match.first.names[0] for match in self.inputs if name in match.second.names), name)

    def _fed(self, match: Match[GraphInput], array: Array) -> Array:
        return self._cast(array, match.second.element_type, match.second.names[0], self.models[1])

    def _cast(self, array: Array, type: ElementType | None, name: str, model: Model) -> Array:
        """Return an array in the type of an input, if nothing is lost by that."""
        wanted = None if type is None else dtype(type)
        if type is None or wanted is None or not _are_alike(from_dtype(array.dtype), type):
            return array  # what does not fit is for others to say
        if wanted == array.dtype:
            return array
        found = _converted(array, type)
        with np.errstate(all="ignore"):
            is_lost = np.asarray(found.astype(array.dtype) != array)
        if kind(array) == "float":
            is_lost &= array == array
        elif array.dtype.kind == "i" or found.dtype.kind == "i":  # whose ends wrap around to each other
            is_lost |= (found < 0) != (array < 0)
        _demand_kept(is_lost, array, type, f"{model.path}: {name}")
        return found


def _demand_kept(is_lost: Array, array: Array, type: ElementType, name: str) -> None:
    if is_lost.any():
        place = tuple(map(int, np.argwhere(is_lost)[0]))
        where = f" at {show_numbers(place)}" if place else ""
        raise BadFeed(f"{name} holds {array[place]}{where}, which {type.name} does not hold")


def pair_text(pair: NamePair) -> str:
    return pair if isinstance(pair, str) else "=".join(pair)


def pair(
    first: Model, second: Model, inputs: Sequence[NamePair] = (), outputs: Sequence[NamePair] = ()
) -> Pairing:
    """Find out which inputs and outputs of two models are the same.

    That is so by any of their names; of the rest, in order where types and shapes fit, or where only one
    fits. The caller says others as "A=B", A being of the first model and B of the second.

    Raises:
        BadFeed: an input of the second model has no counterpart, or the caller names what is not there.
    """
    models = first, second
    before, after = dataflow_of(first), dataflow_of(second)
    found = _Matcher(models, "input", (before.inputs, after.inputs), inputs)
    found.by_name()
    for match in found.matches:
        if not _fits(match.first, match.second):
            one, other = found.describe(match.first), found.describe(match.second)
            same = "are mapped" if match.by is By.MAP else "have the same name"
            message = f"input {one} of {first.path} and {other} of {second.path} {same}, and do not fit"
            raise BadFeed(f"{message}; --map-input A=B says which do")
    required = [[input for input in side if input.default is None] for side in found.rest()]
    if required[1] and not (found.in_order(*required) or found.by_shape(*required)):
        lacking, left = (", ".join(map(found.describe, side)) or "nothing" for side in reversed(required))
        message = f"{second.path} has input {lacking}, and {first.path} has {left}"
        raise BadFeed(f"{message}: which are the same is not clear, --map-input A=B says it")
    notes = list(found.notes())
    notes += [
        f"input {input.names[0]} of {first.path} is not in {second.path}, and not given to it"
        for input in found.rest()[0]
        if input.default is None
    ]
    ends = _Matcher(models, "output", (before.outputs, after.outputs), outputs)
    ends.by_name()
    rest = ends.rest()
    if not (ends.in_order(*rest) or ends.by_shape(*rest)) and len(rest[0]) == len(rest[1]) == 1:
        ends.add(rest[0][0], rest[1][0], By.ORDER)
    notes += ends.notes()
    order = {output: number for number, output in enumerate(before.outputs)}
    sorted_outputs = sorted(ends.matches, key=lambda match: order[match.first])
    stored = [_stored_in(model) for model in models]
    precision = "" if stored[0] == stored[1] else coarser(*stored)
    if precision:
        path = models[stored.index(precision)].path
        notes.append(f"{path} stores numbers as {precision}: the tolerance follows that")
    return Pairing(
        models,
        (before.inputs, after.inputs),
        tuple(found.matches),
        tuple(sorted_outputs),
        tuple(notes),
        precision,
    )


def _stored_in(model: Model) -> str:
    """Return the coarsest precision that the numbers of a model are stored in: that of weights, "f16"."""
    values = (input.value for node in model.walk() for input in node.inputs)
    types = {value.element_type for value in values if value is not None and value.constant is not None}
    return coarser("f32", *(type.name for type in types if type is not None and type.name in PRECISION_BITS))


class _Matcher(Generic[_End]):
    """Puts inputs or outputs of two models together, the surest first."""

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
                raise BadFeed(f"--map-{self.noun} {pair_text(pair)}: one of the two is mapped twice")
            self.add(first, second, By.MAP)

    def add(self, first: _End, second: _End, by: By) -> None:
        self.matches.append(Match(first, second, by))

    def rest(self) -> tuple[list[_End], list[_End]]:
        """Return those that nothing is known of yet."""
        taken = {end for match in self.matches for end in (match.first, match.second)}
        first, second = ([end for end in side if end not in taken] for side in self._ends)
        return first, second

    def by_name(self) -> None:
        """Match by names: first by those that are used, then by any."""
        for count in (1, None):
            first, second = self.rest()
            known = {name: end for end in reversed(second) for name in reversed(end.names[:count])}
            for end in first:
                match = next((known[name] for name in end.names[:count] if name in known), None)
                if match is not None:
                    self.add(end, match, By.NAME)
                    known = {name: other for name, other in known.items() if other is not match}

    def in_order(self, first: Sequence[_End], second: Sequence[_End]) -> bool:
        """Match by order, if that is possible in one way; some of the first may be left over."""
        earliest, latest = _in_order(first, second), _in_order(first[::-1], second[::-1])
        if earliest is None or latest is None or earliest != latest[::-1]:
            return False
        for end, other in zip(earliest, second, strict=True):
            self.add(end, other, By.ORDER)
        return True

    def by_shape(self, first: Sequence[_End], second: Sequence[_End]) -> bool:
        """Match what only one fits, one after the other; nothing if some is left over then."""
        fitting = {end: [one for one in first if _fits(one, end)] for end in second}
        found: dict[_End, _End] = {}
        while fitting:
            sure = next((end for end, ones in fitting.items() if len(ones) == 1), None)
            if sure is None:
                return False
            (found[sure],) = fitting.pop(sure)
            fitting = {end: [one for one in ones if one is not found[sure]] for end, ones in fitting.items()}
        for end in second if found else ():
            self.add(found[end], end, By.SHAPE)
        return bool(found)

    def notes(self) -> Iterator[str]:
        """Yield what is to be said of matches: those that rest on no name, and those of other types."""
        paths = self.models[0].path, self.models[1].path
        for by, how in ((By.ORDER, "by their order"), (By.SHAPE, "by type and shape")):
            ends = [(one.first.names[0], one.second.names[0]) for one in self.matches if one.by is by]
            if ends:
                pairs = ", ".join(f"{first}={second}" for first, second in ends)
                yield f"{self.noun}s are matched {how}: {pairs} (else --map-{self.noun})"
        groups: dict[tuple[str, str], list[str]] = {}
        for match in self.matches:
            if match.types is not None and _are_alike(match.first.element_type, match.second.element_type):
                groups.setdefault(match.types, []).append(match.first.names[0])
        for (one, other), members in groups.items():
            end = "both get the same numbers"
            if self.noun == "output":
                end = "compared as numbers, with the tolerance of the narrower type"
            subject = f"{self.noun} {members[0]} is"
            if len(members) > 1:
                subject = f"{self.noun}s {', '.join(members)} are"
            yield f"{subject} {one} in {paths[0]}, {other} in {paths[1]}: {end}"

    def describe(self, end: _End) -> str:
        type = "" if end.element_type is None else f"{end.element_type.name} "
        return f"{end.names[0]} ({type}{show(end.shape)})"

    def _ends_of(self, pair: NamePair) -> tuple[_End, _End]:
        """Return the ends that a pair names; in "A=B" both names may contain "=" themselves."""
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
            raise BadFeed(f"--map-{self.noun} is {text!r}, expected A=B")
        good = [way for way in ways if way[0] in by_name[0] and way[1] in by_name[1]]
        for number, name in enumerate(good[0] if good else ways[0]):
            if name not in by_name[number]:
                close = get_close_matches(name, by_name[number], 1)
                guess = f" (did you mean {close[0]}?)" if close else ""
                names = ", ".join(end.names[0] for end in self._ends[number])
                message = f"{self.models[number].path} has no {self.noun} {name!r}{guess}, expected {names}"
                raise BadFeed(f"--map-{self.noun} {text}: {message}")
        first, second = good[0]
        return by_name[0][first], by_name[1][second]


def _in_order(first: Sequence[_End], second: Sequence[_End]) -> list[_End] | None:
    """Return for each of the second ones the earliest of the first that fits, in their order."""
    rest = iter(first)
    found = [next((end for end in rest if _fits(end, other)), None) for other in second]
    return None if None in found else [end for end in found if end is not None]


def _fits(first: GraphInput | GraphOutput, second: GraphInput | GraphOutput) -> bool:
    return _are_alike(first.element_type, second.element_type) and agree(first.shape, second.shape)


def _are_alike(one: ElementType | None, other: ElementType | None) -> bool:
    """Tell whether numbers of two types may stand for each other, as a converter narrows them."""
    if one is None or other is None or one.kind == other.kind or {one.kind, other.kind} == _WHOLE:
        return True
    kinds = {one.kind: one, other.kind: other}
    return "boolean" in kinds and any(type.name in _BYTES for type in kinds.values())


def in_one_type(got: Array, expected: Array, precision: str) -> tuple[Array, Array, Tolerance | None]:
    """Return outputs of two models in a type that holds the numbers of both; as they are without one.

    The tolerance is what the narrower type may be off; None if there is none.
    """
    one, other = from_dtype(got.dtype), from_dtype(expected.dtype)
    if one is None or other is None or not _are_alike(one, other):
        return got, expected, None
    allowed = default_tolerance(_converted(expected, narrower(one, other)), precision)
    kinds, names = {one.kind, other.kind}, {one.name, other.name}
    if "u64" in names and kinds != {"unsigned"}:
        return got, expected, allowed
    name = "u64" if kinds == {"unsigned"} else "i64"
    if kinds == {"float"}:
        name = "f64" if "f64" in names else "f32"
    type = ELEMENT_TYPES[name]
    return _converted(got, type), _converted(expected, type), allowed


def narrower(one: ElementType, other: ElementType) -> ElementType:
    def width(type: ElementType) -> tuple[bool, int, bool]:
        bits = FRACTION_BITS.get(type.dtype_name or "", type.bits)
        return type.kind != "boolean", bits, type.kind == "signed"

    return min(one, other, key=width)


def _converted(array: Array, type: ElementType) -> Array:
    wanted = dtype(type)
    assert wanted is not None
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(wanted))
