"""A runner that computes with NumPy, and does what it is told wrong."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ir_scatter import evaluate_model
from ir_scatter.compare.judge import nodes_by_tap
from ir_scatter.core.errors import Error
from ir_scatter.evaluate.model import case_of_node
from ir_scatter.evaluate.operator import run as compute
from ir_scatter.reading import read
from ir_scatter.runners.base import (
    TAP_MEMORY,
    TIME_LIMIT,
    Availability,
    Execution,
    NodeFacts,
    Outcome,
    Runner,
    Status,
    Tap,
    Tapped,
)

Array = npt.NDArray[Any]


class FakeRunner(Runner):
    """Gives every scatter node the inputs of the model by role: for models of one node.

    Attributes:
        questions: that were asked.
        closed: how often it was closed.
    """

    def __init__(
        self,
        name: str = "fake",
        *changes: Callable[[Array], Array],
        ending: Status = Status.OK,
        message: str = "",
        problem: str = "",
        facts: Sequence[NodeFacts] = (),
        remarks: tuple[str, ...] = (),
        tapped_change: Callable[[Array], Array] | None = None,
    ) -> None:
        self.name, self.changes = name, changes or (np.copy,)
        self.ending, self.message, self.problem_of_taps = ending, message, problem
        self.facts, self.remarks, self.tapped_change = tuple(facts), remarks, tapped_change
        self.questions: list[dict[str, Any]] = []
        self.closed = 0

    def versions(self) -> Mapping[str, str]:
        return {self.name: "1"}

    def availability(self) -> Availability:
        return Availability(self.name, self.ending is not Status.UNAVAILABLE, self.message, "pip install it")

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
        tap_memory: int = TAP_MEMORY,
        timeout: float = TIME_LIMIT,
    ) -> Outcome:
        self.questions.append({"taps": len(taps), "repeat": repeat, "precision": precision})
        base = Outcome(self.name, self.ending, self.message, precision=precision, versions=self.versions())
        if self.ending is not Status.OK:
            return base
        try:
            outputs = evaluate_model(model_path, feeds)
        except Error:
            outputs = {"output": feeds["data"]}
        runs = tuple(
            {name: self.changes[min(number, len(self.changes) - 1)](array) for name, array in outputs.items()}
            for number in range(repeat)
        )
        tapped = tuple(self._tapped(model_path, tap, feeds, runs[0]) for tap in taps)
        return replace(base, runs=runs, tapped=tapped, facts=self.facts if profile else ())

    def _tapped(
        self, path: str | Path, tap: Tap, feeds: Mapping[str, Array], run: Mapping[str, Array]
    ) -> Tapped:
        if self.problem_of_taps:
            return Tapped(tap, problem=self.problem_of_taps)
        known = nodes_by_tap(read(path))[tap]
        inputs: list[Array | None] = []
        for port, input in zip(known.spec.ports, known.node.inputs, strict=False):
            assert input.value is not None
            constant = known.facts.array(input.value)
            inputs.append(feeds[port.name] if constant is None else constant)
        change = self.tapped_change or self.changes[0]
        try:
            output = change(compute(case_of_node(known, inputs)))
        except Error:
            output = next(iter(run.values()))
        return Tapped(tap, (Execution((), tuple(inputs), output),))


def wrong_at(*places: int, by: float = 1) -> Callable[[Array], Array]:
    """Return what changes some elements."""

    def change(array: Array) -> Array:
        changed = array.copy()
        for place in places:
            changed.reshape(-1)[place] += by
        return changed

    return change
