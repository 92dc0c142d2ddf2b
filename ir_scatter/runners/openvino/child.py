"""Runs models on OpenVINO's devices: what happens in the process of that runtime."""

import re
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.process import Failure, require
from ir_scatter.runners.base import NodeFacts, RunRequest, Tap
from ir_scatter.runners.engine import Engine, Loaded, loaded, run
from ir_scatter.runners.openvino.inputs import feeds_by_parameter, output_names, to_array, to_tensor
from ir_scatter.runners.openvino.messages import failure
from ir_scatter.runners.openvino.questions import HANDLERS
from ir_scatter.runners.openvino.taps import add_taps, shape_model

_PROPERTIES = {
    "full_name": "FULL_DEVICE_NAME",
    "capabilities": "OPTIMIZATION_CAPABILITIES",
    "default_precision": "INFERENCE_PRECISION_HINT",
}
_VERSION_10 = re.compile(rb"(<net\b[^>]*?\bversion\s*=\s*[\"'])10(?=[\"'])")
_HEAD = 4096
_DEFAULT = "default"
_TIME, _NOT_RUN = "execTimeMcs", "not_executed"


def handlers() -> dict[str, Callable[..., Any]]:
    """Return what answers questions."""
    require("openvino.Core", "openvino.Tensor", "openvino.opset8")
    return {"run": partial(run, DeviceEngine), "describe": _describe, "prepare": _prepare, **HANDLERS}


class OpenVinoEngine(Engine):
    """A model that OpenVINO has read, with its feeds as tensors."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        super().__init__(request, feeds)
        self.fed = feeds_by_parameter(self.loaded.model, feeds, request.model)
        self.tensors = [to_tensor(feeds[name]) for name in self.fed]
        self.names = output_names(self.loaded.model)

    @abstractmethod
    def compute(self, model: Any) -> list[Array]:
        """Return all outputs of a model that nobody needs again."""

    @classmethod
    def read(cls, path: str) -> Any:
        """Read a model with the types and names that the file has.

        A file of version 10 is adapted to the programs of its time: f16 inputs become f32, outputs i32 or
        f32, and conversions take over the names of nodes. It is read as one of version 11, which differs
        in nothing else.
        """
        try:
            with suppress(OSError), open(path, "rb") as file:
                if _VERSION_10.search(file.read(_HEAD)):
                    weights = Path(path).with_suffix(".bin")
                    with tempfile.TemporaryDirectory() as folder:
                        copy = Path(folder) / Path(path).name
                        copy.write_bytes(_VERSION_10.sub(rb"\g<1>11", Path(path).read_bytes(), count=1))
                        return core().read_model(copy, weights if weights.exists() else "")
            return core().read_model(path)
        except Exception as error:  # whatever the runtime says is the answer
            raise failure(error) from None

    @classmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        return add_taps(model, taps, fed, bodies=bodies)

    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        # as OpenVINO infers them, or by running a model that gives them out
        import openvino

        model = tapped.model.clone()
        with suppress(Exception):  # then the shapes that are known must do
            shapes = enumerate(openvino.PartialShape(tensor.get_shape()) for tensor in self.tensors)
            model.reshape(dict(shapes))
        inferred = {key: model.output(int(key)).get_partial_shape() for key in keys}
        unknown = [key for key, shape in inferred.items() if shape.is_dynamic]
        if any(tapped.sizes[key].loops for key in unknown):
            return None
        found = {key: list(shape.to_shape()) for key, shape in inferred.items() if shape.is_static}
        if unknown:
            shapes_found = self.compute(shape_model(model, list(map(int, unknown))))
            found |= {key: shape.tolist() for key, shape in zip(unknown, shapes_found, strict=True)}
        return found


class DeviceEngine(OpenVinoEngine):
    """What a device computes.

    Attributes:
        ran: the compiled model that ran last, and the request.
    """

    ran: tuple[Any, Any]

    def compute(self, model: Any) -> list[Array]:
        _, request = _compiled(model, self.request._replace(profile=False))
        return self._infer(request, range(len(model.outputs)))

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        self.ran = _session(loaded, self.request)
        return self._infer(self.ran[1], [*range(len(self.names)), *map(int, keys)])

    def _infer(self, request: Any, outputs: Sequence[int]) -> list[Array]:
        """Run once; a model with a memory begins anew."""
        try:
            request.reset_state()
            for number, tensor in enumerate(self.tensors):
                request.set_input_tensor(number, tensor)
            request.infer()
        except Exception as error:  # whatever the runtime says is the answer
            raise failure(error) from None
        return [to_array(request.get_output_tensor(number)) for number in outputs]

    def facts(self) -> tuple[NodeFacts, ...]:
        compiled, request = self.ran
        try:
            nodes = compiled.get_runtime_model().get_ordered_ops()
        except Exception:  # AUTO and HETERO have no such model
            return ()
        times: dict[str, float] = {}
        with suppress(Exception):  # a device that does not measure
            times = {
                one.node_name: one.real_time.total_seconds() * 1e6
                for one in request.get_profiling_info()
                if "NOT_RUN" not in str(one.status)
            }
        return tuple(
            _facts(node, times) for node in nodes if node.get_type_name() not in {"Constant", "Result"}
        )


def _facts(node: Any, times: Mapping[str, float]) -> NodeFacts:
    told = {name: str(getattr(value, "value", value)) for name, value in node.get_rt_info().items()}
    name, time = node.get_friendly_name(), told.get(_TIME, _NOT_RUN)
    return NodeFacts(
        name,
        tuple(one for one in told.get("originalLayersNames", "").split(",") if one),
        told.get("layerType", node.get_type_name()),
        told.get("primitiveType", ""),
        told.get("runtimePrecision", ""),
        tuple(one for one in told.get("outputPrecisions", "").split(",") if one),
        times.get(name, None if time == _NOT_RUN else float(time)),
    )


def _prepare(request: RunRequest) -> None:
    started = perf_counter()
    found = loaded(DeviceEngine, request.model)
    _session(found, request)
    found.seconds = perf_counter() - started


def _describe(device: str) -> dict[str, Any]:
    """Compile the smallest model, and say what the device is."""
    import openvino
    from openvino import opset8

    parameter = opset8.parameter([1], openvino.Type.f32)
    smallest = openvino.Model([opset8.result(opset8.relu(parameter))], [parameter])
    _compiled(smallest, RunRequest("", device, _DEFAULT))
    found: dict[str, Any] = {}
    for word, property in _PROPERTIES.items():
        with suppress(Exception):  # AUTO, HETERO and the like are no devices
            value = core().get_property(device, property)
            if isinstance(value, list | tuple | set):
                found[word] = tuple(sorted(map(str, value)))
            else:
                found[word] = str(value.to_string() if hasattr(value, "to_string") else value)
    return found


@cache
def core() -> Any:
    """Return OpenVINO's Core."""
    import openvino

    return openvino.Core()


def _session(loaded: Loaded, request: RunRequest) -> Any:
    """Return a compiled model and a request that runs it, made once."""
    options = (request.device, request.precision, request.profile)
    if options not in loaded.sessions:
        loaded.sessions[options] = _compiled(loaded.model, request)
    return loaded.sessions[options]


def _compiled(model: Any, request: RunRequest) -> tuple[Any, Any]:
    """Return a compiled model, and a request that runs it.

    Raises:
        Failure: the device is missing, or does not take the model.
    """
    config: dict[str, Any] = {"PERF_COUNT": True} if request.profile else {}
    if request.precision != _DEFAULT:
        config["INFERENCE_PRECISION_HINT"] = request.precision
    try:
        compiled = core().compile_model(model, request.device, config)
        return compiled, compiled.create_infer_request()
    except Exception as error:
        found = failure(error)
        raise found if _is_there(request.device) else Failure("unavailable", found.message) from None


def _is_there(device: str) -> bool:
    """Tell whether there are devices for a name."""
    kind, _, rest = device.partition(":")
    wanted = [part.lstrip("-").partition("(")[0] for part in rest.split(",")] if rest else [kind]
    found = core().available_devices
    kinds = {one.partition(".")[0] for one in found}
    known = {"AUTO", "MULTI", "HETERO", "BATCH", *found, *kinds, *(f"{one}.0" for one in found)}
    return known.issuperset(wanted)
