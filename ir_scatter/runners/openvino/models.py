"""Models as OpenVINO reads and compiles them, kept between questions; runs in its process."""

from collections.abc import Hashable
from functools import cached_property
from typing import Any

from ir_scatter.runners.kept import Kept, identity
from ir_scatter.runners.openvino.messages import sentence, status
from ir_scatter.runners.openvino.v10 import restore
from ir_scatter.runners.service import Failure

_DEFAULT = "default"


class Models:
    """Reads and compiles models once."""

    def __init__(self) -> None:
        self.kept = Kept()

    @cached_property
    def core(self) -> Any:
        """Return OpenVINO's Core."""
        import openvino

        return openvino.Core()

    def read(self, path: str) -> Any:
        """Return a model; whoever changes it must clone it first."""
        return self.kept.get(("model", *identity(path)), lambda: self._read(path))

    def start(
        self, model: Any, key: Hashable, device: str, precision: str, *, profile: bool
    ) -> tuple[Any, Any]:
        """Return a compiled model, and a request that runs it.

        Args:
            model: what is compiled.
            key: what else it depends on.
            device: of OpenVINO.
            precision: a word of the hint, or "default".
            profile: count the time of each node.

        Raises:
            Failure: the device is missing, or does not take the model.
        """
        found: tuple[Any, Any] = self.kept.get(
            ("started", key, device, precision, profile),
            lambda: self.make(model, device, precision, profile=profile),
        )
        return found

    def make(self, model: Any, device: str, precision: str, *, profile: bool) -> tuple[Any, Any]:
        """Return the same as `start`, which nobody keeps."""
        compiled = self._compile(model, device, precision, profile=profile)
        return compiled, compiled.create_infer_request()

    def _read(self, path: str) -> Any:
        try:
            model = self.core.read_model(path)
            restore(model, path)
            return model
        except Exception as error:  # whatever the runtime says is the answer
            raise Failure(status(error), sentence(error)) from None

    def _compile(self, model: Any, device: str, precision: str, *, profile: bool) -> Any:
        config: dict[str, Any] = {"PERF_COUNT": True} if profile else {}
        if precision != _DEFAULT:
            config["INFERENCE_PRECISION_HINT"] = precision
        try:
            return self.core.compile_model(model, device, config)
        except Exception as error:
            message = sentence(error)
            problem = status(error) if self.has(device) else "unavailable"
            raise Failure(problem, message) from None

    def has(self, device: str) -> bool:
        """Tell whether there are devices for a name."""
        kind, _, rest = device.partition(":")
        wanted = [part.lstrip("-").partition("(")[0] for part in rest.split(",")] if rest else [kind]
        found = self.core.available_devices
        return all(
            name in {"AUTO", "MULTI", "HETERO", "BATCH"}
            or any(name in {one, one.partition(".")[0]} or one == f"{name}.0" for one in found)
            or (name == f"{name.partition('.')[0]}.0" and name.partition(".")[0] in found)
            for name in wanted
        )
