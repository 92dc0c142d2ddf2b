"""NumPy computes a model and watches the indices of its scatter nodes, before a plugin gets them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.compare.scopes import printed
from ir_scatter.elements import dtype
from ir_scatter.errors import Error, IllegalCase
from ir_scatter.evaluate import evaluate, evaluate_detailed
from ir_scatter.facts import Facts
from ir_scatter.graphs.failures import failure
from ir_scatter.graphs.feeds import check_feeds
from ir_scatter.graphs.machine import load
from ir_scatter.graphs.nodes import ArrayMachine, arguments_of, by_role, compute_node, site_of
from ir_scatter.graphs.plan import Plan, Plans, Step
from ir_scatter.graphs.program import Program, Sketch
from ir_scatter.model import Value
from ir_scatter.ops import Lookup
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.spec import Reduction, Role
from ir_scatter.shapes import static
from ir_scatter.wiring import Key

if TYPE_CHECKING:
    from ir_scatter.constants import Array


@dataclass(frozen=True, slots=True)
class Seen:
    """What is to be said of the indices of a node.

    Attributes:
        scope: of the node.
        operator: "ScatterUpdate-3".
        error: what is not legal; None if all is.
        contested: how many elements several updates meet in without a reduction.
        elements: how many there are.
    """

    scope: str
    operator: str
    error: IllegalCase | None = None
    contested: int = 0
    elements: int = 0


@dataclass(slots=True, eq=False)
class Sight:
    """What was seen while a model was computed; of each node once.

    Attributes:
        nodes: those that there are, as `validate` prints them.
        seen: what is to be said of some of them.
    """

    nodes: Collection[str] = ()
    seen: dict[str, Seen] = field(default_factory=dict)

    def add(self, one: Seen) -> None:
        """Enter what is to be said of a node; the first illegal computation is the one that counts."""
        scope = printed(one.scope, self.nodes) or one.scope
        known = self.seen.get(scope)
        if known is None or (one.error is not None and known.error is None):
            self.seen[scope] = replace(one, scope=scope)

    @property
    def contested(self) -> set[str]:
        """Return the nodes whose result the document leaves open."""
        return {scope for scope, one in self.seen.items() if one.contested}


def run_watched(program: Program, feeds: Mapping[str, Any], sight: Sight) -> "dict[str, Array]":
    """Compute the outputs of a model by name.

    Args:
        program: the model.
        feeds: arrays by any name of an input.
        sight: gets what is seen, even if the computation fails.

    Raises:
        BadFeed: the feeds are not what the model asks for.
        EvaluationFailed: a node cannot be computed with the values that reach it.
    """
    return program.run(feeds, _Watcher(program.plans, sight))


class _Watcher(ArrayMachine):
    """Computes, and enters what it sees."""

    def __init__(self, plans: Plans, sight: Sight) -> None:
        super().__init__(plans)
        self._sight = sight

    def compute(self, step: Step, cells: "list[Array | None]") -> "Sequence[Array | None]":
        """Return the outputs of a node without bodies."""
        if isinstance(step.work, Lookup):
            return [_watched(step, cells, self._sight)]
        return super().compute(step, cells)


def _watched(step: Step, cells: "Sequence[Array | None]", sight: Sight) -> "Array":
    """Return the output of a scatter node."""
    site = site_of(step)
    scope, text = step.node.scope, str(site.spec.key)
    try:
        operator, arguments = arguments_of(site, by_role(site.lookup, cells))
        if site.reduction is not Reduction.NONE:
            return evaluate(operator, **arguments)
        found = evaluate_detailed(operator, **arguments)
    except Error as error:
        if isinstance(error, IllegalCase):
            sight.add(Seen(scope, text, error))
        raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
    except MemoryError as error:
        raise failure(step, "there is not enough memory") from error
    count = int(np.count_nonzero(found.contested))
    if count:
        sight.add(Seen(scope, text, None, count, found.values.size))
    return found.values


def foresee(sketch: Sketch, feeds: Mapping[str, Any], sight: Sight) -> None:
    """Compute as much of the main graph as NumPy knows, for the indices alone.

    Args:
        sketch: a model with operators that NumPy does not compute, or one that breaks rules.
        feeds: arrays by any name of an input.
        sight: gets what is seen.

    Raises:
        BadFeed: the feeds are not what the model asks for.
    """
    arrays = check_feeds(sketch.inputs, feeds)
    _Foresight(sketch.plan, sight).run(arrays)


class _Unknown(Exception):
    """Something about a node cannot be known before it is computed."""


class _Foresight:
    """Computes a graph of which some values stay unknown."""

    def __init__(self, plan: Plan, sight: Sight) -> None:
        self._plan, self._sight = plan, sight
        self._facts = Facts()
        self._values: dict[Key, Array] = {}

    def run(self, arrays: "Sequence[Array | None]") -> None:
        """Compute what can be computed."""
        for input, array in zip(self._plan.inputs, arrays, strict=True):
            if array is not None:
                self._values[input.key] = array
        for step in self._plan.steps:
            for key, array in zip(step.outputs, self._outputs(step), strict=False):
                if key is not None and array is not None:
                    self._values[key] = array
            for key in step.done:
                self._values.pop(key, None)

    def _outputs(self, step: Step) -> "Sequence[Array | None]":
        is_scatter = isinstance(step.work, Lookup)
        if not is_scatter and not isinstance(step.work, GeneralOp):
            return ()
        if not all(key is None or self._is_known(key) for key in step.inputs):
            if is_scatter:
                self._look(step)
            return ()
        try:
            cells = [None if key is None else self._fetch(key) for key in step.inputs]
            return [_watched(step, cells, self._sight)] if is_scatter else compute_node(step, cells)
        except (Error, MemoryError):  # then what comes of it is not known
            return ()

    def _is_known(self, key: Key) -> bool:
        return key in self._values or key in self._plan.constants

    def _fetch(self, key: Key) -> "Array":
        constant = self._plan.constants.get(key)
        return self._values[key] if constant is None else load(constant)

    def _look(self, step: Step) -> None:
        """Look at the indices of a node whose data or updates are not known, but what they look like."""
        assert isinstance(step.work, Lookup)
        assert step.work.spec is not None
        ports = zip(step.work.spec.ports, step.node.inputs, step.inputs, strict=False)
        try:
            cells = [self._cell(port.role, input.value, key) for port, input, key in ports]
            _watched(step, cells, self._sight)
        except (Error, MemoryError, _Unknown):  # what is to be said was entered
            return

    def _cell(self, role: Role, value: Value | None, key: Key | None) -> "Array | None":
        """Return an input of a scatter node, or something that looks like it."""
        if key is None or self._is_known(key):
            return None if key is None else self._fetch(key)
        if role in {Role.DATA, Role.UPDATES} and value is not None:
            return self._like(value)
        raise _Unknown

    def _like(self, value: Value) -> "Array":
        """Return zeros of the type and shape of a value; they take no memory.

        Raises:
            _Unknown: type or shape are not known.
        """
        shape = static(self._facts.shape(value))
        type = None if value.element_type is None else dtype(value.element_type)
        if shape is None or type is None or type.hasobject:
            raise _Unknown
        return np.broadcast_to(np.zeros((), type), shape)
