"""Rules and rewrites that read other things than they declare, or declare other things than they read.

`one_by_one` lets every rule declare that it reads everything, so that each node is handled for itself.
`enforced` lets a node hand out nothing but what the rule or rewrite that looks at it has declared.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

import ir_scatter.rewrites
from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import Operand, ScatterNode
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.core.model import Input, Node, Value
from ir_scatter.core.tensors import Constant
from ir_scatter.rewrites import leads_to, route
from ir_scatter.rewrites.base import Rewrite, View
from ir_scatter.rules.base import Rule

Reads = frozenset[Fact]


@contextmanager
def with_rules(change: Callable[[Rule], Rule]) -> Iterator[None]:
    """Let `validate` and `convert` see other rules."""
    found = tuple(map(change, import_module("ir_scatter.validate").all_rules()))
    with pytest.MonkeyPatch.context() as patch:
        for module in ("ir_scatter.validate", "ir_scatter.convert.rewriter"):
            patch.setattr(import_module(module), "all_rules", lambda: found)
        yield


@contextmanager
def with_rewrites(change: Callable[[Rewrite], Rewrite]) -> Iterator[None]:
    """Let `convert` see other rewrites."""
    found = tuple(map(change, ir_scatter.rewrites.all_rewrites()))
    caches: tuple[Any, ...] = (ir_scatter.rewrites._from, route, leads_to)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ir_scatter.rewrites, "all_rewrites", lambda: found)
        for cache in caches:
            cache.cache_clear()
        yield
    for cache in caches:
        cache.cache_clear()


@contextmanager
def one_by_one() -> Iterator[None]:
    """Let each node be shown to each rule, and be rewritten for itself."""
    with with_rules(lambda rule: replace(rule, reads=EVERYTHING)):
        yield


class Undeclared(AssertionError):
    """Somebody looked at what it does not declare."""


_NUMBERS = (Fact.INDEX_FAULTS, Fact.INDICES, Fact.VALUES)
_ORIGIN = (Fact.PRODUCERS, Fact.INDEX_FAULTS, Fact.UNREAD_INDICES)

_GUARDED: dict[type, dict[str, tuple[Fact, ...]]] = {
    ScatterNode: {
        **dict.fromkeys(("lookup", "spec", "wraps"), (Fact.OPERATOR,)),
        **dict.fromkeys(("data", "indices", "updates", "operand", "operands"), (Fact.INPUTS,)),
        **dict.fromkeys(
            ("data_shape", "indices_shape", "depth", "longer_dimensions", "expected_updates", "limits"),
            (Fact.SHAPES,),
        ),
        **dict.fromkeys(("written_axis", "axis", "computed_axis"), (Fact.AXIS,)),
        **dict.fromkeys(("attribute", "reduction"), (Fact.ATTRIBUTES,)),
        "has_dynamic_limits": (Fact.AXIS, Fact.SHAPES),
        **dict.fromkeys(
            (
                "has_faults",
                "has_equal_updates",
                "out_of_range",
                "repeats",
                "computed_outside",
                "certainly_repeats",
                "outside_source",
            ),
            (Fact.INDEX_FAULTS,),
        ),
        "reach": (Fact.INDEX_FAULTS, Fact.AXIS),
        "scatters_inputs_into_zeros": (Fact.PRODUCERS,),
        **dict.fromkeys(("few_indices", "index_array"), (Fact.INDEX_FAULTS, Fact.INDICES)),
        "has_constant_indices": (Fact.CONSTANCY,),
        "refuses_types": (Fact.STORED,),
        "facts": (*_ORIGIN, Fact.INDICES, Fact.VALUES),
    },
    Operand: {"stored": (Fact.STORED,), "shape": (Fact.SHAPES,), "element_type": (Fact.TYPES,)},
    Node: {
        **dict.fromkeys(("domain", "type", "opset"), (Fact.OPERATOR,)),
        **dict.fromkeys(("inputs", "outputs"), (Fact.INPUTS,)),
        **dict.fromkeys(("name", "scope", "location"), (Fact.NAMES,)),
        **dict.fromkeys(("graph", "handle", "bodies"), (Fact.PRODUCERS,)),
        "attributes": (Fact.ATTRIBUTES,),
    },
    Input: {
        **dict.fromkeys(("value", "is_present"), (Fact.INPUTS,)),
        **dict.fromkeys(("stored_type", "stored_shape"), (Fact.STORED,)),
    },
    Value: {
        **dict.fromkeys(("name", "location"), (Fact.NAMES,)),
        **dict.fromkeys(("producer", "producer_type", "output", "is_input"), (Fact.PRODUCERS,)),
        **dict.fromkeys(("stored_type", "stored_shape"), (Fact.STORED,)),
        "element_type": (Fact.TYPES,),
        "shape": (Fact.SHAPES,),
    },
    Constant: {
        **dict.fromkeys(("load", "view"), _NUMBERS),
        **dict.fromkeys(("name", "location", "span"), (Fact.NAMES, Fact.INDEX_FAULTS)),
    },
    Facts: {
        **dict.fromkeys(("array", "numbers"), _NUMBERS),
        "origin": _ORIGIN,
        "skipped": (Fact.UNREAD_INDICES,),
        "shape": (Fact.SHAPES,),
    },
    View: {"proof": (Fact.CONDITIONS,), "index_numbers": (Fact.NOTED_INDICES, Fact.INDICES)},
}
"""What must be declared, one of these, by whoever asks for an attribute."""

_MORE = {("expected_updates", Fact.AXIS), ("limits", Fact.AXIS)}


class _Reader:
    """Who looks at a node at present: all that it has declared; None if nobody is held to anything."""

    def __init__(self) -> None:
        self.reads: list[Reads | None] = [None]
        self.asked = 0

    @contextmanager
    def held_to(self, reads: Reads | None) -> Iterator[None]:
        self.reads.append(reads)
        try:
            yield
        finally:
            self.reads.pop()

    def demand(self, name: str, needed: tuple[Fact, ...]) -> None:
        reads = self.reads[-1]
        if reads is None:
            return
        self.asked += 1
        more = {fact for attribute, fact in _MORE if attribute == name}
        if reads.isdisjoint(needed) or not more <= reads:
            raise Undeclared(f"{name} is read, {' or '.join(needed)} is not declared: {sorted(reads)}")


class _Guard:
    """An attribute that asks what is declared; what it is computed from counts for nothing."""

    def __init__(
        self, reader: _Reader, name: str, original: Any, needed: tuple[Fact, ...], has_dict: bool
    ) -> None:
        self.reader, self.name, self.original, self.needed = reader, name, original, needed
        self.has_dict = has_dict

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.original if not hasattr(self.original, "__get__") else self
        reads = self.reader.reads
        if reads[-1] is None:  # nearly always: a context manager here would double the time of all rewrites
            found = self._stored(instance, owner)
        else:
            self.reader.demand(self.name, self.needed)
            reads.append(None)
            try:
                found = self._stored(instance, owner)
            finally:
                reads.pop()
        return self._freed(found) if callable(found) else found

    def _stored(self, instance: Any, owner: type) -> Any:
        if self.has_dict:
            known = instance.__dict__
            if self.name in known:
                return known[self.name]
        return self.original.__get__(instance, owner)

    def _freed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        reads = self.reader.reads

        def call(*arguments: Any, **more: Any) -> Any:
            reads.append(None)
            try:
                return function(*arguments, **more)
            finally:
                reads.pop()

        return call

    def __set__(self, instance: Any, value: Any) -> None:
        if self.original is None or not hasattr(self.original, "__set__"):
            instance.__dict__[self.name] = value
        else:
            self.original.__set__(instance, value)


@contextmanager
def enforced() -> Iterator[_Reader]:
    """Hold every rule and every rewrite to what it declares."""
    reader = _Reader()

    def rule(one: Rule) -> Rule:
        check = one.check
        if check is None:
            return one

        def held(site: ScatterNode) -> Iterator[Any]:
            with reader.held_to(frozenset(one.reads)):
                found = list(check(site))
            return iter(found)

        return replace(one, check=held)

    def rewrite(one: Rewrite) -> Rewrite:
        def held(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                with reader.held_to(frozenset(one.reads)):
                    return function(*arguments)

            return call

        parts = [held(part) for part in (one.build, one.requires, one.is_done)]
        return replace(one, build=parts[0], requires=parts[1], is_done=parts[2])

    with pytest.MonkeyPatch.context() as patch, with_rules(rule), with_rewrites(rewrite):
        for owner, names in _GUARDED.items():
            for name, needed in names.items():
                original = next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), None)
                has_dict = owner.__dictoffset__ != 0
                guard = _Guard(reader, name, original, needed, has_dict)
                patch.setattr(owner, name, guard, raising=False)
        yield reader
