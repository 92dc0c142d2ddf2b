"""Answers questions about ONNX models, whatever computes them; in the process of a runtime."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.runners.kept import Kept, identity
from ir_scatter.runners.onnx.inputs import Expected, check
from ir_scatter.runners.onnx.taps import AskedTap, TappedModel, sizes, tap
from ir_scatter.runners.service import Failure
from ir_scatter.runners.tapping import Batch, Done, part_of, with_taps

LONGEST_MESSAGE = 400


class OnnxAnswers(ABC):
    """Answers the questions of `ChildRunner`.

    Attributes:
        loops_join: see `onnx_taps.tap`.
    """

    loops_join = False

    def __init__(self) -> None:
        self._kept = Kept()

    @abstractmethod
    def describe(self, question: dict[str, Any], _: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Say what the runtime is."""

    @abstractmethod
    def load(self, path: str) -> Any:
        """Return what computes the model of a file."""

    @abstractmethod
    def load_changed(self, model: Any, path: str) -> Any:
        """Return what computes a changed model, whose tensors may lie beside the file."""

    @abstractmethod
    def inputs(self, session: Any) -> list[Expected]:
        """Return what the model asks for."""

    @abstractmethod
    def output_names(self, session: Any) -> list[str]:
        """Return the names of the outputs."""

    @abstractmethod
    def infer(self, session: Any, names: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Return some outputs, as arrays of their own."""

    def read(self, path: str) -> Any:
        """Return the model of a file without the tensors beside it."""
        import onnx

        try:
            return onnx.load(path, load_external_data=False)
        except Exception as error:  # whatever the parser says is the answer
            raise Failure("refused", shortened(str(error))) from None

    def run(self, question: dict[str, Any], arrays: Sequence[Array]) -> tuple[dict[str, Any], list[Array]]:
        """Run a model, with or without taps."""
        started = perf_counter()
        path, repeat = question["model"], question["repeat"]
        session = self._kept.get(("session", *identity(path)), lambda: self.load(path))
        feeds = dict(zip(question["feeds"], arrays, strict=True))
        check(self.inputs(session), feeds)
        names = self.output_names(session)
        loaded = perf_counter() - started

        def attempt(bodies: bool) -> Done:
            return self._run_tapped(question, names, feeds, bodies=bodies)

        done = with_taps(len(question["taps"]), attempt, lambda: self._run(session, names, feeds, repeat))
        done.seconds += loaded
        return done.answer(names)

    def _run(self, session: Any, names: Sequence[str], feeds: Mapping[str, Array], repeat: int) -> Done:
        done = Done()
        for _ in range(repeat):
            started = perf_counter()
            done.runs.append(self.infer(session, names, feeds))
            done.seconds = done.seconds or perf_counter() - started
        return done

    def _run_tapped(
        self, question: dict[str, Any], names: list[str], feeds: Mapping[str, Array], *, bodies: bool
    ) -> Done:
        """Run the model with as many taps, from the first on, as memory allows."""
        path, asked = question["model"], _asked(question)
        key = ("tapped", *identity(path), asked, frozenset(feeds), bodies)

        def make(taps: tuple[AskedTap, ...]) -> TappedModel:
            return tap(self.read(path), taps, frozenset(feeds), bodies=bodies, loops_join=self.loops_join)

        def measure(model: Any, given: list[str]) -> list[list[int]]:
            return [found.tolist() for found in self.infer(self.load_changed(model, path), given, feeds)]

        def all_of_them() -> tuple[TappedModel, Batch, list[Any]]:
            found = make(asked)
            return found, part_of(len(asked), lambda: sizes(found, asked, measure), question), []

        kept: tuple[TappedModel, Batch, list[Any]] = self._kept.get(key, all_of_them)
        tapped, batch, sessions = kept
        if batch.count < len(asked):
            self._kept.forget(key)
            tapped = make(asked[: batch.count])
        session = sessions[0] if sessions else self.load_changed(tapped.model, path)
        if batch.is_whole:
            sessions[:] = [session]
        done = Done()
        started = perf_counter()
        wanted = [name for name in dict.fromkeys(_names(tapped.taps)) if name not in names]
        found = self.infer(session, [*names, *wanted], feeds)
        done.runs.append(found[: len(names)])
        done.seconds = perf_counter() - started
        places = {name: at for at, name in enumerate([*names, *wanted])}
        done.arrays += found
        done.taps += [_numbered(one, places) for one in tapped.taps]
        for _ in range(question["repeat"] - 1):
            done.runs.append(self.infer(session, names, feeds))
        return batch.entered(done)


def _asked(question: dict[str, Any]) -> tuple[AskedTap, ...]:
    return tuple(
        AskedTap(
            scope,
            output,
            tuple(types),
            tuple(None if shape is None else tuple(shape) for shape in shapes),
            tuple(callers),
        )
        for scope, output, types, shapes, callers in question["taps"]
    )


def shortened(message: str) -> str:
    """Return a message on one line, and not too much of it."""
    text = " ".join(message.split())
    return text if len(text) <= LONGEST_MESSAGE else text[: LONGEST_MESSAGE - 3] + "..."


def _names(taps: Sequence[dict[str, Any]]) -> list[str]:
    """Return the outputs that taps need."""
    found = []
    for tapped in taps:
        for run in tapped.get("runs", ()):
            found += [value[1] for value in (*run["inputs"], run["output"]) if value and value[0] == "each"]
            found += [name for name, _ in run["markers"]]
    return found


def _numbered(tapped: dict[str, Any], places: Mapping[str, int]) -> dict[str, Any]:
    """Say where the arrays are instead of what they are called."""
    if "problem" in tapped:
        return dict(tapped)

    def number(value: list[Any] | None) -> list[Any] | None:
        return value if value is None or value[0] == "feed" else ["each", places[value[1]], value[2]]

    return {
        "runs": [
            {
                **run,
                "inputs": list(map(number, run["inputs"])),
                "output": number(run["output"]),
                "markers": [[places[name], loops] for name, loops in run["markers"]],
            }
            for run in tapped["runs"]
        ]
    }
