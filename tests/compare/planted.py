"""Runners that compute whole models with NumPy, bodies included, and are wrong where they are told to be."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ir_scatter.analysis.interpreter import NotComputed, Step
from ir_scatter.compare.nodes import nodes_by_tap
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import Error
from ir_scatter.core.model import Model, Node
from ir_scatter.core.shapes import static
from ir_scatter.evaluate.model import Computed, ForwardArrays, Program, check_feeds, prepare, scatter_node_of
from ir_scatter.ops.general import WITH_BODIES, find_computed, random_types
from ir_scatter.ops.lookup import Lookup, is_scatter
from ir_scatter.ops.spec import Reduction, Role
from ir_scatter.reading import read
from ir_scatter.runners.base import Availability, Execution, NodeFacts, Outcome, Runner, Status, Tap, Tapped
from tests.ops.naive_scatter import hits

Array = npt.NDArray[Any]
Change = Callable[[str, Array, bool, int], "Array | None"]
"""Given a name, what is right, whether there are taps, and the number of the run: what is answered."""


CUSTOM = "com.acme"
"""A domain whose operators the fake runners compute, but NumPy does not."""


def unchanged(name: str, array: Array, is_tapped: bool, number: int) -> Array:
    return array


class Planted(Runner):
    """Computes with NumPy, in the order of updates that it likes.

    Attributes:
        order: "last" of several updates of an element stays, or the "first".
        sums: "reversed" to add the updates of floating-point types from the last to the first.
        node: changes the result of a scatter node, and with it everything behind it.
        general: changes the first result of any other node, likewise.
        tap: changes what is told of a node alone.
        output: changes what is told of an output alone; None to leave it out.
        ending: how a run ends, by whether there are taps and its number.
        silent: nodes of which nothing is told when they are tapped.
        seed: decides about the numbers that it draws where a model asks for random ones.
        asked: the feeds of all runs.
    """

    install = ""

    def __init__(
        self,
        name: str = "planted",
        *,
        order: str = "last",
        sums: str = "forward",
        node: Change = unchanged,
        general: Change = unchanged,
        tap: Change = unchanged,
        output: Change = unchanged,
        ending: Callable[[bool, int], Status] = lambda *_: Status.OK,
        silent: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self.seed = seed
        self.name, self.order, self.sums = name, order, sums
        self.general = general
        self.node, self.tap, self.output, self.ending, self.silent = node, tap, output, ending, silent
        self.message, self.facts, self.no_taps = "as it was told", tuple[NodeFacts, ...](), ""
        self.asked, self.closed, self.versions = list[Mapping[str, Array]](), 0, {name: "1"}
        self._runs = Counter[bool]()
        self._programs: dict[str, Program] = {}

    def start(self) -> None:
        pass

    def availability(self) -> Availability:
        is_there = self.ending(False, 0) is not Status.UNAVAILABLE
        return Availability(self.name, is_there, "" if is_there else self.message, "pip install it")

    def close(self) -> None:
        self.closed += 1

    def run(
        self,
        model_path: str | Path,
        feeds: Mapping[str, Array],
        *,
        taps: Sequence[Tap] = (),
        precision: str = "f32",
        repeat: int = 1,
        profile: bool = False,
        **_: Any,
    ) -> Outcome:
        self.asked.append(feeds)
        base = Outcome(self.name, Status.OK, precision=precision, versions=self.versions)
        runs = []
        tapped: tuple[Tapped, ...] = ()
        for _number in range(repeat):
            number = self._runs[bool(taps)]
            self._runs[bool(taps)] += 1
            status = self.ending(bool(taps), number)
            if status is not Status.OK:
                return replace(base, status=status, message=self.message)
            outputs, tapped = self._once(str(model_path), feeds, taps, number)
            runs.append(outputs)
        return replace(base, runs=tuple(runs), tapped=tapped, facts=self.facts if profile else ())

    def _once(
        self, path: str, feeds: Mapping[str, Array], taps: Sequence[Tap], number: int
    ) -> tuple[dict[str, Array], tuple[Tapped, ...]]:
        if path not in self._programs:
            model = read(path)
            self._programs[path] = _program(model)
        program = self._programs[path]
        watched = _Watched(program, self, bool(taps), number)
        found, _, _ = program.named(watched.run(program.plan, check_feeds(program.inputs, feeds)))
        told = {name: self.output(name, array, bool(taps), number) for name, array in found.items()}
        seen = {} if self.no_taps else watched.seen
        tapped = [
            Tapped(tap, tuple(seen.get(tap.scope, ())), self.no_taps)
            for tap in taps
            if tap.scope not in self.silent
        ]
        return {name: array for name, array in told.items() if array is not None}, tuple(tapped)


class FakeRunner(Planted):
    """Changes whole arrays: those of outputs from run to run, and what is told of nodes as in the first run.

    Where NumPy does not compute the model, data are the output, also of the node.
    """

    def __init__(
        self,
        name: str = "fake",
        *changes: Callable[[Array], Array],
        ending: Status = Status.OK,
        message: str = "",
        problem: str = "",
        facts: Sequence[NodeFacts] = (),
        tapped_change: Callable[[Array], Array] | None = None,
    ) -> None:
        self.changes, self.tapped_change = changes or (np.copy,), tapped_change
        super().__init__(name, output=self._output, tap=self._tap, ending=lambda *_: ending)
        self.message, self.no_taps, self.facts = message, problem, tuple(facts)

    def run(self, *arguments: Any, **named: Any) -> Outcome:
        self._runs.clear()
        return super().run(*arguments, **named)

    def _output(self, name: str, array: Array, is_tapped: bool, number: int) -> Array:
        return self.changes[min(number, len(self.changes) - 1)](array)

    def _tap(self, name: str, array: Array, is_tapped: bool, number: int) -> Array:
        return (self.tapped_change or self.changes[0])(array)

    def _once(self, path: str, feeds: Mapping[str, Array], taps: Sequence[Tap], number: int) -> Any:
        try:
            return super()._once(path, feeds, taps, number)
        except Error:
            output = self._output("", feeds["data"], bool(taps), number)
            tapped = []
            for tap, scatter in nodes_by_tap(read(path)).items() if taps else ():
                values = [input.value for input in scatter.node.inputs]
                constants = [None if value is None else scatter.facts.array(value) for value in values]
                pairs = zip(scatter.spec.ports, constants, strict=False)
                inputs = tuple(feeds.get(port.name) if array is None else array for port, array in pairs)
                tapped.append(Tapped(tap, (Execution((), inputs, output),)))
            return {"output": output}, tuple(tapped)


def wrong_at(*places: int, by: float = 1) -> Callable[[Array], Array]:
    """Return what changes some elements."""

    def change(array: Array) -> Array:
        changed = array.copy()
        for place in places:
            changed.reshape(-1)[place] += by
        return changed

    return change


def _program(model: Model) -> Program:
    """Return a program of a model that may draw random numbers, or have operators of the domain com.acme."""
    program = prepare(model)
    if program.unknown is not None:
        nodes = [node for node in model.walk() if node.domain != CUSTOM]
        types = {node.type for node in nodes if not _is_computed(node)}
        if types - random_types(model.domain):
            raise program.unknown
    return program


def _is_computed(node: Node) -> bool:
    is_known = is_scatter(node.type) or find_computed(node.domain, node.type) is not None
    return is_known or node.type in {*WITH_BODIES, "Parameter", "Result", "Const"}


def fake_numbers(shape: Sequence[int], type: npt.DTypeLike, seed: int = 0) -> Array:
    """Return what Planted draws for random numbers: 0 or 1, the same in each run."""
    return ((np.arange(np.prod(shape, dtype=int)) * 5 + seed) % 7 % 2).reshape(shape).astype(type)


class _Watched(ForwardArrays):
    """Remembers what its scatter nodes did; of a node in a loop the places are counted."""

    def __init__(self, program: Program, runner: Planted, is_tapped: bool, number: int) -> None:
        super().__init__(program.plans)
        self._runner, self._is_tapped, self._number = runner, is_tapped, number
        self.seen: dict[str, list[Execution]] = {}

    def compute(self, step: Step, cells: list[Computed | None]) -> Sequence[Array | None]:
        if step.work is None:
            (output,) = step.node.outputs
            assert output.element_type is not None
            shape, type = static(output.shape), dtype(output.element_type)
            assert shape is not None
            assert type is not None
            return [fake_numbers(shape, type, self._runner.seed)]
        arrays = [cell for cell in cells if not isinstance(cell, NotComputed)]
        (found, *rest) = self.compute_arrays(step, arrays)
        assert found is not None
        scope = step.node.scope
        if not isinstance(step.work, Lookup):
            changed = self._runner.general(scope, found, self._is_tapped, self._number)
            assert changed is not None
            self.seen.setdefault(scope, []).append(Execution((), (), changed))
            return [changed, *rest]
        site = scatter_node_of(step)
        if site.reduction is Reduction.NONE and self._runner.order == "first":
            found = _first_wins(step, arrays)
        if site.reduction is Reduction.SUM and self._runner.sums == "reversed" and found.dtype.kind == "f":
            found = _backwards(step, arrays)
        found = self._runner.node(scope, found, self._is_tapped, self._number)
        assert found is not None
        told = self._runner.tap(scope, found, self._is_tapped, self._number)
        assert told is not None
        seen = self.seen.setdefault(scope, [])
        place = (len(seen),) if ":" in scope and "_branch" not in scope else ()
        seen.append(Execution(place, tuple(arrays), told))
        return [found]


def _first_wins(step: Step, cells: Sequence[Array | None]) -> Array:
    found, met = _met(step, cells)
    for position, update in reversed(met):
        found[position] = update
    return found


def _backwards(step: Step, cells: Sequence[Array | None]) -> Array:
    found, met = _met(step, cells)
    if not scatter_node_of(step).attribute("use_init_val") and "use_init_val" in step.node.attributes:
        for position, _ in met:
            found[position] = 0
    for position, update in reversed(met):
        found[position] = found[position] + update
    return found


def _met(step: Step, cells: Sequence[Array | None]) -> tuple[Array, list[Any]]:
    """Return a copy of data, and each update with the position that it is for."""
    site = scatter_node_of(step)
    roles = {port.role: cell for port, cell in zip(site.spec.ports, cells, strict=False)}
    data, indices, updates = (roles.get(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES))
    assert data is not None
    axis: Any = 0
    if site.spec.axis is not None:
        of_axis = site.spec.axis.attribute
        given = site.attribute(of_axis) if of_axis else roles[Role.AXIS]
        axis = int(np.asarray(given).reshape(-1)[0])
    mode = site.attribute("mode") if site.spec.attribute("mode") else "linear"
    return data.copy(), hits(step.node.type, data, indices, updates, axis, mode)


def elsewhere(value: Any, largest: float = 0.0) -> Any:
    """Return another element of the same type, far beyond rounding in a tensor with such a largest element."""
    if isinstance(value, np.bool_):
        return ~value
    if isinstance(value, str):
        return value + "!"
    if isinstance(value, np.integer):
        return value + 20 if value < 50 else value - 20
    number = float(value)
    if not np.isfinite(number):
        return type(value)(37)
    with np.errstate(over="ignore"):
        step = 37 + largest / 8
        found = type(value)(-3 * number + (step if number < 0 else -step))
    return found if np.isfinite(found) else type(value)(number / 3)


def largest(array: Array) -> float:
    """Return the size of the largest finite element; 0 where there are no floating-point numbers."""
    if array.dtype.kind != "f":
        return 0.0
    return float(np.max(np.abs(array[np.isfinite(array)]), initial=0, keepdims=False))


def at(
    place: int,
    *,
    name: str = "",
    value: Any = None,
    tapped: bool | None = None,
    runs: Sequence[int] | None = None,
) -> Change:
    """Return what changes one element, in row-major order: of an output or node by name, or of each."""

    def change(found: str, array: Array, is_tapped: bool, number: int) -> Array:
        if (name and found != name) or (tapped is not None and is_tapped is not tapped):
            return array
        if runs is not None and number not in runs:
            return array
        changed = array.copy()
        old = changed.reshape(-1)[place]
        changed.reshape(-1)[place] = elsewhere(old, largest(array)) if value is None else value
        return changed

    return change
