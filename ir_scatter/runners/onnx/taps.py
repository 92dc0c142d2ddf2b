"""Makes what goes in and out of nodes outputs of an ONNX model; in the process of a runtime."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.formats.onnx.index import text
from ir_scatter.runners.onnx.additions import Additions, complete_scan, zeros
from ir_scatter.runners.onnx.places import (
    BRANCH,
    FUNCTION,
    LOOP,
    MAIN,
    OTHER,
    SCAN,
    Call,
    Found,
    Level,
    Places,
)
from ir_scatter.runners.tapping import INSIDE


class CannotTap(Exception):
    """A value cannot be made an output; the message says why."""


@dataclass(frozen=True, slots=True)
class AskedTap:
    """A node whose inputs and first output are wanted.

    Attributes:
        scope: the path to it.
        output: the name of its first output.
        types: element types of the inputs, then of the output; "" where that is not known.
        shapes: of the same; None where a dimension is not known.
        callers: paths to the calls of the function around it that are meant; all if there are none.
    """

    scope: str
    output: str
    types: tuple[str, ...]
    shapes: tuple[tuple[int, ...] | None, ...]
    callers: tuple[str, ...]


@dataclass(slots=True, eq=False)
class TappedModel:
    """A model with more outputs.

    Attributes:
        model: a changed copy.
        taps: one for each tap, as `tapped.decode` takes them, arrays by the name of the output.
    """

    model: ModelProto
    taps: list[dict[str, Any]] = field(default_factory=list)


def tap(
    model: ModelProto,
    taps: Sequence[AskedTap],
    feeds: Collection[str],
    *,
    bodies: bool,
    loops_join: bool = False,
) -> TappedModel:
    """Return a copy of a model with outputs for what goes in and out of nodes.

    Args:
        model: it stays as it is.
        taps: the nodes.
        feeds: the inputs that are fed; they need no output.
        bodies: whether to tap inside bodies and functions as well.
        loops_join: whether a Loop puts its scan outputs one behind the other, at least as matrices,
            and not on a new axis as its document says.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    tapper = _Tapper(copy, feeds, loops_join=loops_join)
    found = [tapper.tap(one, bodies=bodies) for one in taps]
    return TappedModel(copy, found)


@dataclass(frozen=True, slots=True)
class _Hint:
    """What is known of a value: its element type, and its shape if all of it is known."""

    type: str
    shape: tuple[int, ...] | None


_MARKER = _Hint("i64", (1,))


class _Tapper:
    """Adds outputs to one model."""

    def __init__(self, model: ModelProto, feeds: Collection[str], *, loops_join: bool) -> None:
        self._model = model
        self._loops_join = loops_join
        self._feeds = feeds
        self._places = Places(model)
        self._additions = Additions(model)
        self._lifted: dict[tuple[int, str], dict[Call, tuple[str, int]]] = {}
        self._markers: dict[int, str] = {}
        self._outputs = {output.name for output in model.graph.output}

    def tap(self, asked: AskedTap, *, bodies: bool) -> dict[str, Any]:
        """Add outputs for one node and return where they are, or what the problem is."""
        found = self._places.find(asked.scope, asked.output)
        if len(found) != 1:
            count = "no node" if not found else f"{len(found)} nodes"
            return {"problem": f"the model has {count} of this name and output"}
        if found[0].level.kind != MAIN and not bodies:
            return {"problem": INSIDE}
        try:
            return {"runs": self._runs(found[0], asked)}
        except CannotTap as problem:
            return {"problem": str(problem)}

    def _runs(self, found: Found, asked: AskedTap) -> list[dict[str, Any]]:
        """Return one run for each way in which the graph of the node is called."""
        names = [*found.node.input, found.node.output[0]]
        hints = [_Hint(*pair) for pair in zip(asked.types, asked.shapes, strict=True)]
        if len(hints) != len(names):
            hints = [_Hint("", None)] * len(names)
        values = [self._value(found.level, name, hint) for name, hint in zip(names, hints, strict=True)]
        runs = []
        for call, levels in found.level.contexts():
            caller = found.level.caller(call)
            if asked.callers and caller not in asked.callers:
                continue
            placed = [self._placed(value, call) for value in values]
            markers = []
            for number, (level, of_level) in enumerate(levels):
                if level.kind == BRANCH:
                    name, _ = self._lift(level, self._marker(level), _MARKER)[of_level]
                    loops = sum(outer.kind in {LOOP, SCAN} for outer, _ in levels[:number])
                    markers.append([name, loops])
            runs.append({"inputs": placed[:-1], "output": placed[-1], "markers": markers, "caller": caller})
        return runs

    def _value(self, level: Level, name: str, hint: _Hint) -> "dict[Call, tuple[str, int]] | str | None":
        """Return the outputs that show a value, by call; or the input that is fed; or None."""
        if not name:
            return None
        definer = level.definer(name)
        if definer.kind == MAIN and name in self._feeds:
            return name
        return self._lift(definer, name, hint)

    def _placed(self, value: "dict[Call, tuple[str, int]] | str | None", call: Call) -> list[Any] | None:
        if value is None:
            return None
        if isinstance(value, str):
            return ["feed", value]
        return ["each", *value[call]]

    def _lift(self, level: Level, name: str, hint: _Hint) -> dict[Call, tuple[str, int]]:
        """Lead a value out to the main graph.

        Returns:
            For each way to call the graph: the name of the output, and how many loops stack it.
        """
        key = (id(level), name)
        if key not in self._lifted:
            self._lifted[key] = self._out_of(level, name, hint)
        return self._lifted[key]

    def _out_of(self, level: Level, name: str, hint: _Hint) -> dict[Call, tuple[str, int]]:
        if level.kind == MAIN:
            if name not in self._outputs:
                self._outputs.add(name)
                self._model.graph.output.add().name = name
            return {(): (name, 0)}
        if level.kind == OTHER:
            assert level.owner is not None
            raise CannotTap(f"it is in a body of {level.owner.op_type}, which gives out no more values")
        if level.kind == FUNCTION:
            return self._out_of_function(level, name, hint)
        parent, owner = level.parent, level.owner
        assert parent is not None
        assert owner is not None
        if level.kind == BRANCH:
            outer = self._out_of_branch(level, owner, name, hint)
            return self._lift(parent, outer, hint)
        outer = self._out_of_loop(level, owner, name)
        parent.defined.add(outer)
        lifted = self._lift(parent, outer, _Hint(hint.type, None))
        return {call: (found, loops + 1) for call, (found, loops) in lifted.items()}

    def _out_of_loop(self, level: Level, owner: NodeProto, name: str) -> str:
        """Add an output with the values of all iterations."""
        assert isinstance(level.proto, GraphProto)
        assert level.parent is not None
        is_joined = self._loops_join and level.kind == LOOP
        if is_joined:
            name = self._additions.with_axes(level, "Unsqueeze", name, [0, 1])
        self._additions.give_out(level.proto, name)
        count = len(level.proto.output) - (level.kind == LOOP)
        owner.output.extend(self._additions.name() for _ in range(count - len(owner.output)))
        if level.kind == SCAN:
            complete_scan(owner)
        outer = owner.output[count - 1]
        return self._additions.with_axes(level.parent, "Squeeze", outer, [1]) if is_joined else outer

    def _out_of_function(self, level: Level, name: str, hint: _Hint) -> dict[Call, tuple[str, int]]:
        self._additions.import_default_domain(level.proto)
        given = self._additions.name()
        level.proto.node.append(helper.make_node("Identity", [name], [given]))
        level.proto.output.append(given)
        found = {}
        for number, (caller, node, _) in enumerate(level.calls):
            outer = self._additions.name()
            node.output.extend(
                self._additions.name() for _ in range(len(level.proto.output) - 1 - len(node.output))
            )
            node.output.append(outer)
            caller.defined.add(outer)
            for call, lifted in self._lift(caller, outer, hint).items():
                found[(*call, number)] = lifted
        return found

    def _out_of_branch(self, level: Level, owner: NodeProto, name: str, hint: _Hint) -> str:
        """Add an output to both branches; the other one gives nothing, or zeros if a loop stacks it."""
        is_stacked = any(
            outer.kind in {LOOP, SCAN} for _, levels in level.contexts() for outer, _ in levels[:-1]
        )
        row = ELEMENT_TYPES.get(hint.type)
        if row is None or row.onnx_number is None:
            raise CannotTap("it is in a branch, and the element type of a value is not known")
        if is_stacked and hint.shape is None:
            raise CannotTap("it is in a branch inside a loop, and the shape of a value is not known")
        shape = hint.shape if hint.shape is not None and (is_stacked or hint == _MARKER) else (0,)
        for attribute in owner.attribute:
            if text(attribute.name) == level.body:
                self._additions.give_out(attribute.g, name)
            elif attribute.HasField("g"):
                given = self._additions.name()
                nothing = zeros(row, shape)
                attribute.g.node.append(helper.make_node("Constant", [], [given], value=nothing))
                attribute.g.output.add().name = given
        outer = self._additions.name()
        owner.output.append(outer)
        assert level.parent is not None
        level.parent.defined.add(outer)
        return outer

    def _marker(self, level: Level) -> str:
        """Return a name in a branch whose value is 1: where it was not taken there is 0 instead."""
        if id(level) not in self._markers:
            name = self._additions.name()
            one = TensorProto(dims=[1], data_type=TensorProto.INT64, int64_data=[1])
            level.proto.node.append(helper.make_node("Constant", [], [name], value=one))
            level.defined.add(name)
            self._markers[id(level)] = name
        return self._markers[id(level)]


def sizes(
    tapped: TappedModel,
    taps: Sequence[AskedTap],
    measure: Callable[[ModelProto, list[str]], Sequence[Sequence[int]]],
) -> list[dict[str, int]] | None:
    """Return of each tap the bytes of the values that are given out, by their names.

    Args:
        tapped: the model.
        taps: what was asked for.
        measure: runs a model with outputs that are shapes.

    Returns:
        None if they cannot be known, as where a loop stacks values.
    """
    types: dict[str, str] = {}
    shapes: dict[str, Sequence[int] | None] = {}
    names_of: list[list[str]] = []
    for one, asked in zip(tapped.taps, taps, strict=True):
        names_of.append([])
        for run in one.get("runs", ()):
            values = [*run["inputs"], run["output"]]
            if len(values) != len(asked.types):
                return None
            for value, type, shape in zip(values, asked.types, asked.shapes, strict=True):
                if value is None or value[0] != "each":
                    continue
                _, name, loops = value
                if loops or type not in ELEMENT_TYPES:
                    return None
                names_of[-1].append(name)
                types[name], shapes[name] = type, shapes.get(name) or shape
    open_ones = [name for name, shape in shapes.items() if shape is None]
    if open_ones:
        shapes |= dict(zip(open_ones, measure(*_shapes_of(tapped.model, open_ones)), strict=True))
    bytes_of = {
        name: ELEMENT_TYPES[types[name]].byte_size(prod(map(int, shape)))
        for name, shape in shapes.items()
        if shape is not None
    }
    return [{name: bytes_of[name] for name in names} for names in names_of]


def _shapes_of(model: ModelProto, names: Sequence[str]) -> tuple[ModelProto, list[str]]:
    """Return a model that gives the shapes of some values of another, and the names of its outputs."""
    copy = ModelProto()
    copy.CopyFrom(model)
    additions = Additions(copy)
    del copy.graph.output[:]
    given = []
    for name in names:
        given.append(additions.name())
        copy.graph.node.append(helper.make_node("Shape", [name], [given[-1]]))
        copy.graph.output.append(helper.make_tensor_value_info(given[-1], TensorProto.INT64, None))
    return copy, given
