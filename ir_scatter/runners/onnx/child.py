"""Runs ONNX models, whatever computes them: what happens in the process of a runtime."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any

from ir_scatter.ops.general_kernels.case import Array
from ir_scatter.runners.base import RunRequest, Tap
from ir_scatter.runners.feeds import Input, names_of_feeds
from ir_scatter.runners.onnx.taps import add_taps, shape_model
from ir_scatter.runners.tapping import KEPT, Engine, Loaded, identity, run
from ir_scatter.runners.transport import Answer, Failure, Handler, shortened


class OnnxEngine(Engine):
    """A model with its feeds; sessions are what a runtime makes of models.

    Attributes:
        loops_join: see `add_taps`.
        path: of the file.
    """

    loops_join = False

    def __init__(self, request: RunRequest, arrays: Sequence[Array]) -> None:
        self.path = request.model
        self.feeds = dict(zip(request.feeds, arrays, strict=True))
        self.loaded = _plain(identity(self.path))
        session = self._session(self.loaded)
        names_of_feeds(self.inputs(session), self.feeds)
        self.names = self.output_names(session)

    @staticmethod
    @abstractmethod
    def full_name() -> str:
        """Return what the runtime is."""

    @abstractmethod
    def load(self, path: str) -> Any:
        """Return what computes the model of a file."""

    @abstractmethod
    def load_changed(self, model: Any, path: str) -> Any:
        """Return what computes a changed model, whose tensors may lie beside the file."""

    @abstractmethod
    def inputs(self, session: Any) -> list[Input]:
        """Return what the model asks for."""

    @abstractmethod
    def output_names(self, session: Any) -> list[str]:
        """Return the names of the outputs."""

    @abstractmethod
    def compute(self, session: Any, names: Sequence[str]) -> list[Array]:
        """Return some outputs, as arrays of their own."""

    def tap(self, taps: tuple[Tap, ...], *, bodies: bool, keep: bool) -> Loaded:
        """Return a copy of the model with taps; see `Engine`."""
        make = _tapped if keep else _tapped.__wrapped__
        return make(identity(self.path), taps, frozenset(self.feeds), bodies, self.loops_join)

    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        """Return the shapes of values, by running a model that gives them out."""
        if any(tapped.sizes[key].loops for key in keys):
            return None
        model, given = shape_model(tapped.model, keys)
        found = self.compute(self.load_changed(model, self.path), given)
        return {key: shape.tolist() for key, shape in zip(keys, found, strict=True)}

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        """Run once; see `Engine`."""
        wanted = list(dict.fromkeys([*self.names, *keys]))
        found = dict(zip(wanted, self.compute(self._session(loaded), wanted), strict=True))
        return [found[name] for name in (*self.names, *keys)]

    def _session(self, loaded: Loaded) -> Any:
        if loaded.model is None:
            return loaded.session((), lambda: self.load(self.path))
        return loaded.session((), lambda: self.load_changed(loaded.model, self.path))


def handlers_of(engine: type[OnnxEngine]) -> dict[str, Handler]:
    """Return what answers questions with an engine."""

    def describe(_: Mapping[str, Any], __: Sequence[Array]) -> Answer:
        return {"full_name": engine.full_name()}, []

    def answer(asked: Mapping[str, Any], arrays: Sequence[Array]) -> Answer:
        started, request = perf_counter(), RunRequest.of(asked)
        found = engine(request, arrays)
        return run(found, request, perf_counter() - started)

    return {"run": answer, "describe": describe}


def read(path: str) -> Any:
    """Return the model of a file without the tensors beside it."""
    import onnx

    try:
        return onnx.load(path, load_external_data=False)
    except Exception as error:  # whatever the parser says is the answer
        raise Failure("refused", shortened(str(error))) from None


@lru_cache(KEPT)
def _plain(_: Hashable) -> Loaded:
    return Loaded(None)


@lru_cache(KEPT)
def _tapped(
    file: tuple[Any, ...], taps: tuple[Tap, ...], feeds: frozenset[str], bodies: bool, loops_join: bool
) -> Loaded:
    return add_taps(read(file[0]), taps, feeds, bodies=bodies, loops_join=loops_join)
