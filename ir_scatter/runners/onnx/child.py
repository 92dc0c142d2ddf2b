"""The common part of the child processes of ONNX runtimes."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.process import Failure, shortened
from ir_scatter.formats.onnx.message_text import to_message
from ir_scatter.runners.base import RunRequest, Tap
from ir_scatter.runners.engine import Engine, Loaded, ModelInput, as_failures, names_of_feeds
from ir_scatter.runners.onnx.taps import add_taps, shape_model


class OnnxEngine(Engine):
    """An engine for ONNX models. A session is a loaded model; the one with key None is the unchanged file."""

    loops_join = False
    """Whether the runtime concatenates scan outputs of loops instead of stacking; see `taps.add_taps`."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        super().__init__(request, feeds)
        self.path = request.model
        inputs, self.names = self.ends(self._session(self.loaded))
        names_of_feeds(inputs, feeds)
        self.fed = tuple(sorted(feeds))

    @classmethod
    def read(cls, path: str) -> Any:
        return None

    @classmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        return add_taps(message_of(path), taps, fed, bodies=bodies, loops_join=cls.loops_join)

    @abstractmethod
    def load(self, model: Any) -> Any:
        """Return a session of a changed model; of the model file if `model` is None."""

    @abstractmethod
    def ends(self, session: Any) -> tuple[list[ModelInput], list[str]]:
        """Return the inputs of the model, and the names of its outputs."""

    @abstractmethod
    def compute(self, session: Any, names: Sequence[str]) -> list[Array]:
        """Run the model and return some outputs, as arrays that own their memory."""

    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        if any(tapped.sizes[key].loops for key in keys):
            return None
        model, outputs = shape_model(tapped.model, keys)
        arrays = self.compute(self.load(model), outputs)
        return {key: shape.tolist() for key, shape in zip(keys, arrays, strict=True)}

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        outputs = list(dict.fromkeys([*self.names, *keys]))
        arrays = dict(zip(outputs, self.compute(self._session(loaded), outputs), strict=True))
        return [arrays[name] for name in (*self.names, *keys)]

    def _session(self, loaded: Loaded) -> Any:
        threads = self.request.threads
        if threads not in loaded.sessions:
            loaded.sessions[threads] = self.load(loaded.model)
        return loaded.sessions[threads]


def message_of(path: str) -> Any:
    """Return the protobuf message of an ONNX file, without external tensors."""
    import onnx

    with as_failures(lambda error: Failure("refused", shortened(str(error)))):
        data = to_message(path, Path(path).read_bytes())
        return onnx.load_model_from_string(data)
