"""Runs cases on a runner: many feeds of one model, or many nodes in one model."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations_with_replacement, count
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from ir_scatter.cases.case import Case
from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import CannotWrite, Error
from ir_scatter.core.model import ONNX
from ir_scatter.core.temporary import explained_temporary
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.ops.spec import Layout, OpSpec
from ir_scatter.runners.base import Runner, Status, Streamed

NODES = 100
"""Of one model: more of them in one model cost more to compile than they save."""

_HOPELESS = 3
"""So many nodes with something in common are refused alone before others of the operator are not run."""
_EXCEPTIONS = 4
"""What is refused more than so many times as often as it is taken speaks against a node."""
_NAMED = re.compile(r"\bn(\d+)_")
_NOT_RUN = Streamed(Status.UNAVAILABLE, message="not run: others like it are refused")
_OVER = Streamed(Status.UNAVAILABLE, message="not run: the time is over")
_MOMENT = 1.0
_NUMBERS = count()
_MODELS = 5
"""So many models of a case are loaded in a fresh process."""
_OUT = {Status.CRASHED, Status.TIMEOUT, Status.REFUSED, Status.UNSUPPORTED}


class Workshop:
    """Writes models of cases to a folder, has them run, and learns what each runner refuses."""

    def __init__(
        self, folder: str, timeout: float, deadline: float = inf, *, passes_over: bool = True
    ) -> None:
        """Begin with nothing; after the deadline, on the monotonic clock, nothing more is run.

        Unless nothing is passed over, what is like much that was refused is not run either.
        """
        self.timeout, self.deadline, self._folder = timeout, deadline, Path(folder)
        self._passes_over = passes_over
        self._refusals: defaultdict[str, Refusals] = defaultdict(Refusals)

    def answers(
        self,
        runner: Runner,
        kind: str,
        cases: Sequence[Case],
        threads: int = 0,
        refusals: "Refusals | None" = None,
    ) -> Sequence[Streamed]:
        """Run the cases of a round: "forms" of one form, "batches" of one operator, "illegal" ones alone.

        Refusals that are handed in take the place of those that were met here.
        """
        if not cases:
            return []
        if kind == "forms":
            return self.stream(runner, cases, threads, refusals)
        if kind == "batches":
            return self.batch(runner, cases, refusals)
        return [self.batch(runner, [case], refusals)[0] for case in cases]

    def fresh(self, runner: Runner, case: Case, each: int = 2) -> list[Streamed]:
        """Run a case in a process that has run nothing else, until something goes wrong with the process.

        More models of it are loaded than a process keeps, each run so often: to throw one away shows
        what it damaged.
        """
        other, found = runner.another(), list[Streamed]()
        try:
            while len(found) < _MODELS * each and monotonic() < self.deadline:
                model = self._write([case], [""])
                try:
                    feeds = [case.feeds()] * each
                    found += self._streamed(other, model, feeds, most_deaths=1)
                finally:
                    self._remove(model)
                if found[-1].status is not Status.OK:
                    break
        finally:
            other.close()
        return found

    def stream(
        self,
        runner: Runner,
        cases: Sequence[Case],
        threads: int = 0,
        refusals: "Refusals | None" = None,
        *,
        keeps_states: bool = False,
    ) -> list[Streamed]:
        """Run cases of one form, whose model has dynamic dimensions, one after the other.

        States begin anew with each case, unless they are to be kept.
        """
        refusals = self._refusals[runner.name] if refusals is None else refusals
        common = _traits(cases[0])
        if self._passes_over and refusals.is_certain(common):
            return [_NOT_RUN] * len(cases)
        model = self._write(cases[:1], [""])
        try:
            feeds = [case.feeds() for case in cases]
            answers = self._streamed(runner, model, feeds, threads, keeps_states=keeps_states)
        finally:
            self._remove(model)
        refusals.note(common, is_refused=all(one.status is not Status.OK for one in answers))
        return answers

    def batch(
        self, runner: Runner, cases: Sequence[Case], refusals: "Refusals | None" = None
    ) -> list[Streamed]:
        """Run cases of one operator, each a node of one model.

        A guilty node of a model that is refused, or ends the process, is found by halving. Nodes that have
        something in common with it that no other node had run alone, so that each kind is guilty once.
        """
        refusals = self._refusals[runner.name] if refusals is None else refusals
        traits = [_traits(case) for case in cases]
        found, open_ = dict[int, Streamed](), list(range(len(cases)))
        while open_:
            if self._passes_over and len(cases) > 1:
                found |= {number: _NOT_RUN for number in open_ if refusals.is_certain(traits[number])}
            open_ = [number for number in open_ if number not in found]
            against = {number: refusals.against(traits[number]) for number in open_}
            open_.sort(key=against.__getitem__)
            part = [number for number in open_ if not any(against[number])]
            if not part:  # what one refusal speaks against is likely innocent, where little of it does
                part = [number for number in open_ if against[number][0] == 1]
                part = part[: (len(part) + 1) // 2] or open_[:1]
            chosen = {number: cases[number] for number in part[:NODES]}
            found |= self._first_guilty(runner, chosen, refusals) if chosen else {}
        return [found[number] for number in range(len(cases))]

    def _first_guilty(
        self, runner: Runner, cases: Mapping[int, Case], refusals: "Refusals"
    ) -> dict[int, Streamed]:
        """Return the answers of all nodes, or of one that is guilty and those that are found innocent."""
        found: dict[int, Streamed] = {}
        open_ = list(cases)
        half = open_
        while True:
            answer = self._together(runner, [cases[number] for number in half], refusals)
            if answer.status is Status.OK:
                outputs = zip(half, answer.outputs, strict=True)
                found |= {number: Streamed(Status.OK, [output]) for number, output in outputs}
                open_ = [number for number in open_ if number not in found]
            elif len(half) == 1 or answer.status not in _OUT:
                return found | dict.fromkeys(half, answer)
            else:
                open_ = half
            if not open_:
                return found
            named = set(map(int, _NAMED.findall(answer.message))) & set(range(len(half)))
            half = [half[named.pop()]] if len(named) == 1 else open_[: (len(open_) + 1) // 2]

    def _together(self, runner: Runner, cases: Sequence[Case], refusals: "Refusals") -> Streamed:
        """Run cases as nodes of one model; what a format cannot say is not run."""
        if monotonic() > self.deadline:
            return _OVER
        is_alone = len(cases) == 1
        prefixes = [""] if is_alone else [f"n{number}_" for number in range(len(cases))]
        try:
            model = self._write(cases, prefixes)
        except CannotWrite:  # no model of any case could be
            raise
        except (Error, TypeError, ValueError) as error:
            status = Status.UNAVAILABLE if is_alone else Status.REFUSED
            answer = Streamed(status, message=f"cannot be written: {error}")
        else:
            feeds = [case.feeds(prefix).items() for case, prefix in zip(cases, prefixes, strict=True)]
            try:
                (answer,) = self._streamed(runner, model, [dict(chain(*feeds))])
            finally:
                self._remove(model)
        if is_alone or answer.status is Status.OK:
            for case in cases:
                refusals.note(_traits(case), is_refused=answer.status is not Status.OK)
        return answer

    def _streamed(
        self, runner: Runner, model: Path, feeds: Sequence[Mapping[str, Array]], threads: int = 0, **more: Any
    ) -> list[Streamed]:
        """Run a model within the time that is left but for a moment; what that cuts off does not hang."""
        limit = min(self.timeout, max(self.deadline - monotonic(), _MOMENT))
        try:
            answers = runner.stream(model, feeds, timeout=limit, threads=threads, **more)
        except RuntimeError as error:  # a plugin that writes outside its memory may hit anything
            told = f"the process is damaged: {str(error).strip().splitlines()[-1]}"
            return [Streamed(Status.CRASHED, message=told)] * len(feeds)
        if limit == self.timeout:
            return answers
        return [_OVER if answer.status is Status.TIMEOUT else answer for answer in answers]

    def _write(self, cases: Sequence[Case], prefixes: Sequence[str]) -> Path:
        nodes = [
            replace(case.node(prefix), prefix=prefix) for case, prefix in zip(cases, prefixes, strict=True)
        ]
        files = FORMATS[cases[0].format].nodes(nodes)
        stem = self._folder / f"m{next(_NUMBERS)}"
        with explained_temporary(str(self._folder)):
            for suffix, data in files.items():
                stem.with_suffix(suffix).write_bytes(data)
        return stem.with_suffix(next(iter(files)))

    def _remove(self, model: Path) -> None:
        for path in model.parent.glob(f"{model.stem}.*"):
            path.unlink(missing_ok=True)


_Pair: TypeAlias = tuple[str, str, str]
_Traits: TypeAlias = frozenset[_Pair]
"""Pairs of what a node has, for all operators and for its own."""


class Refusals:
    """What nodes that a runner refused have in common, and few or no nodes that it took.

    Attributes:
        noted: of a copy, what was noted since.
    """

    def __init__(self) -> None:
        self.noted: list[tuple[_Traits, bool]] | None = None
        self._refused, self._taken = Counter[_Pair](), Counter[_Pair]()
        self._suspects = set[_Pair]()

    def copy(self) -> "Refusals":
        """Return the same, to be changed by itself: `learn` takes over what was noted there."""
        found = Refusals()
        found.noted = []
        found._refused, found._taken = self._refused.copy(), self._taken.copy()
        found._suspects = self._suspects.copy()
        return found

    def learn(self, other: "Refusals") -> None:
        """Note what a copy noted."""
        for traits, is_refused in other.noted or ():
            self.note(traits, is_refused=is_refused)

    def note(self, traits: _Traits, *, is_refused: bool) -> None:
        """Count a node; where it is certain what is refused of it, nothing else is blamed."""
        if self.noted is not None:
            self.noted.append((traits, is_refused))
        changed = self._certain(traits) or traits if is_refused else self._suspects & traits
        (self._refused if is_refused else self._taken).update(changed if is_refused else traits)
        for key in changed:
            is_suspect = self._refused[key] > _EXCEPTIONS * self._taken[key]
            (self._suspects.add if is_suspect else self._suspects.discard)(key)

    def against(self, traits: _Traits) -> tuple[int, int]:
        """Return what speaks against a node: how often a pair was refused, and how many pairs were."""
        counts = [self._refused[key] for key in self._suspects & traits]
        return max(counts, default=0), len(counts)

    def is_certain(self, traits: _Traits) -> bool:
        """Tell whether so many nodes of the same operator were refused that another one tells nothing new."""
        return bool(self._certain(traits))

    def _certain(self, traits: _Traits) -> set[_Pair]:
        many = {key for key in self._suspects & traits if self._refused[key] >= _HOPELESS}
        return {key for key in many if key[0] and not self._taken[key]}


@lru_cache(2 * NODES)
def _traits(case: Case) -> _Traits:
    data, indices, updates = case.data, case.indices, case.updates
    found = [
        case.element_type.name, case.reduction, case.shapes, case.broken or "", f"rank {data.ndim}",
        f"empty {data.size == 0} {updates.size == 0}", f"odd {data.size % 2}", f"axis {case.axis}",
        f"loop {case.iterations > 0}",
        f"constant {' '.join(sorted(case.constants))}",
    ]  # fmt: skip
    if indices is not None:
        behind = data.ndim - indices.shape[-1] if case.spec.layout is Layout.TUPLES and indices.ndim else 0
        found += [f"{case.index_type.name} indices", f"rank(indices) {indices.ndim}", f"rows {behind}"]
        found.append(f"ranks {indices.ndim} {updates.ndim} {behind}")
    pairs = list(combinations_with_replacement(found, 2))
    return frozenset((operator, *pair) for operator in ("", str(case.spec.key)) for pair in pairs)


def takes(runner: Runner, spec: OpSpec) -> bool:
    """Tell whether a runner reads models with an operator."""
    return (ONNX_FORMAT if spec.key.domain == ONNX else IR) in runner.formats
