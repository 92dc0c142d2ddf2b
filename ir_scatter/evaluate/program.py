"""A model made ready to be run, as often as one likes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.diagnostics import Location, Severity
from ir_scatter.core.errors import BrokenModel, EvaluationFailed, UnknownOperator, UnreadableModel
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.evaluate.feeds import check_feeds
from ir_scatter.evaluate.nodes import ArrayMachine
from ir_scatter.evaluate.plan import Plan, Plans, make_plans, wire
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.validate import read, validate


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A model that can be run.

    Attributes:
        path: the file as the caller named it.
        plan: what is done in the main graph.
        plans: what is done in every graph.
    """

    path: str
    plan: Plan
    plans: Plans

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """Return what must be fed."""
        return self.plan.inputs

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs by name; none shares memory with a feed.

        Args:
            feeds: arrays by any name of an input.

        Raises:
            BadFeed: they are not what the model asks for.
            EvaluationFailed: a node cannot be computed with the values that reach it.
        """
        arrays = check_feeds(self.inputs, feeds)
        found = self.named(ArrayMachine(self.plans).run(self.plan, arrays))
        return {
            name: array.copy() if _shares_memory(array, arrays) else array for name, array in found.items()
        }

    def named(self, cells: Sequence[Array | None]) -> dict[str, Array]:
        """Return the outputs by name.

        Raises:
            EvaluationFailed: one of them is not there.
        """
        found = {}
        for output, array in zip(self.plan.outputs, cells, strict=True):
            if array is None:
                message = f"output {output.name} is an input of a function that was left out"
                raise EvaluationFailed(message, Location(self.path))
            found[output.name] = array
        return found


def _shares_memory(array: Array, others: Sequence[Array]) -> bool:
    return any(np.may_share_memory(array, other) for other in others)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """What is known of how a model is computed; it cannot be run.

    Attributes:
        path: the file as the caller named it.
        plan: what is done in the main graph.
        plans: what is done in every graph.
    """

    path: str
    plan: Plan
    plans: Plans

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        """Return what must be fed."""
        return self.plan.inputs


def make_sketch(model: "Model | str | Path") -> Sketch:
    """Return what is known of a model, whatever operators it has and whichever rules it breaks.

    Raises:
        UnreadableModel: it cannot be read, an output of it comes from nowhere, or functions that call
            functions stand for more graphs than can be looked at.
    """
    known = model if isinstance(model, Model) else read(model)
    with collector_paused():
        try:
            main = wire(known)
        except UnknownOperator as error:
            raise UnreadableModel("not-looked-at", str(error), error.location) from None
        plans = make_plans(main, known.path, is_sketch=True)
    return Sketch(known.path, plans[main], plans)


def make_program(model: "Model | str | Path") -> Program:
    """Make a model ready to be run; see `ir_scatter.evaluate.model.prepare`."""
    known = model if isinstance(model, Model) else read(model)
    errors = tuple(found for found in validate(known) if found.severity is Severity.ERROR)
    if errors:
        first = errors[0]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise BrokenModel(f"{known.path}: {first.code} {first.message}{more}", errors)
    with collector_paused():
        main = wire(known)
        plans = make_plans(main, known.path)
    return Program(known.path, plans[main], plans)
