"""Runs ONNX models, whatever computes them: what happens in the process of a runtime."""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.runners.base import RunRequest, Tap
from ir_scatter.runners.feeds import Input, names_of_feeds
from ir_scatter.runners.onnx.taps import add_taps, shape_model
from ir_scatter.runners.tapping import KEPT, Engine, Loaded, identity
from ir_scatter.runners.transport import Failure, shortened


class OnnxEngine(Engine):
    """A model with its feeds; a session is what a runtime makes of a model.

    Attributes:
        loops_join: see `add_taps`.
        path: of the file; tensors may lie beside it.
    """

    loops_join = False

    def __init__(self, request: RunRequest, arrays: Sequence[Array]) -> None:
        super().__init__(request, arrays)
        self.path = request.model
        self.loaded = _plain(identity(self.path))
        inputs, self.names = self.ends(self._session(self.loaded))
        names_of_feeds(inputs, self.feeds)

    @abstractmethod
    def load(self, model: Any) -> Any:
        """Return a session of a changed model, or of the file if that is None."""

    @abstractmethod
    def ends(self, session: Any) -> tuple[list[Input], list[str]]:
        """Return what the model asks for, and the names of the outputs."""

    @abstractmethod
    def compute(self, session: Any, names: Sequence[str]) -> list[Array]:
        """Return some outputs, as arrays of their own."""

    def tap(self, taps: tuple[Tap, ...], *, bodies: bool, keep: bool) -> Loaded:
        make = _tapped if keep else _tapped.__wrapped__
        return make(identity(self.path), taps, frozenset(self.feeds), bodies, self.loops_join)

    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        if any(tapped.sizes[key].loops for key in keys):
            return None
        model, given = shape_model(tapped.model, keys)
        found = self.compute(self.load(model), given)
        return {key: shape.tolist() for key, shape in zip(keys, found, strict=True)}

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        wanted = list(dict.fromkeys([*self.names, *keys]))
        found = dict(zip(wanted, self.compute(self._session(loaded), wanted), strict=True))
        return [found[name] for name in (*self.names, *keys)]

    def _session(self, loaded: Loaded) -> Any:
        return loaded.session((), lambda: self.load(loaded.model))


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
