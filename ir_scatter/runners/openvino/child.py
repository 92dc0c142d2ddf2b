"""The child process of OpenVINO: runs models on its devices and folds constants."""

import os
import re
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from ir_scatter.core.arrays import Array
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.process import Failure, require, shortened
from ir_scatter.formats.onnx.message_text import is_text_file, to_message
from ir_scatter.ops.lookup import scatter_types
from ir_scatter.runners.base import NodeFacts, RunRequest, Tap
from ir_scatter.runners.engine import Engine, Loaded, as_failures, run, stream
from ir_scatter.runners.openvino.inputs import feeds_by_parameter, output_names, to_array, to_tensor
from ir_scatter.runners.openvino.runner import FOLD, NOT_FOLDED, VIRTUAL_DEVICES
from ir_scatter.runners.openvino.taps import add_taps, shape_model, walk

_PROPERTIES = {
    "full_name": "FULL_DEVICE_NAME",
    "capabilities": "OPTIMIZATION_CAPABILITIES",
    "default_precision": "INFERENCE_PRECISION_HINT",
}
_NPU_DRIVER = "NPU_DRIVER_VERSION"
_MOST_DEVICES, _ANY, _IS_GPU, _DEVICE_TYPE, _DRIVER_VERSION = 16, 0xFFFFFFFF, 1 << 2, 0x1000, 0x102D
"""Constants of the OpenCL API: most devices that are listed, and numbers of device types and properties."""
_VERSION_10 = re.compile(rb"(<net\b[^>]*?\bversion\s*=\s*[\"'])10(?=[\"'])")
_HEAD = 4096
"""Number of bytes at the start of an IR that contain its version."""
_DEFAULT, _CPU = "default", "CPU"
_CONSTANT = "Constant"
_TIME, _NOT_RUN = "execTimeMcs", "not_executed"
_LONGEST_REFUSAL = 500
"""Limit of characters of an error message about a node."""
_NOISE = ("FrontEnd API failed", "Model wasn't fully converted", "Summary:", "-- Conversion is failed")
_PLACE = re.compile(r"Check '.*?' failed at \S+:\d+:?|Exception from \S+:\d+:?|\bat src/\S+:\d+:?")
_NODE = re.compile(r"While validating node '\w+::(\w+) .*?' with friendly_name '[^']*':?")
_ONNX_NODE = re.compile(r"While validating ONNX node '<Node\((\w+)\): (.*?)>':?")
_DETAIL = re.compile(r"-- \S+ with a message:")
_FOLDER = re.compile(r'"?(?:/[^/\s":]+)+/([^/\s":]+)"?')
_UNSUPPORTED = re.compile(
    r"No conversion rule found|^Cannot create \w+ layer|from unsupported opset|Not Implemented|"
    r"doesn't contain the operation|Unable to read the model|Unsupported operation of type|"
    r"is not supported yet|"
    r"^Operation: .* of type .* is not supported",
    re.MULTILINE,
)


def handlers() -> dict[str, Callable[..., Any]]:
    require("openvino.Core", "openvino.Tensor", "openvino.opset8")
    return {
        "run": lambda request, feeds: run(_engine(request), request, feeds),
        "stream": lambda request, feeds, progress: stream(_engine(request), request, feeds, progress),
        "describe": _describe,
        "export": _export,
        "propagate": _propagate,
    }


def _engine(request: RunRequest) -> "type[OpenVinoEngine]":
    return FoldEngine if request.device == FOLD else DeviceEngine


class OpenVinoEngine(Engine):
    """A model that OpenVINO has read, with its feed as tensors."""

    def __init__(self, request: RunRequest, feeds: Mapping[str, Array]) -> None:
        super().__init__(request, feeds)
        self.fed = feeds_by_parameter(self.loaded.model, feeds, request.model)
        self.feed(feeds)
        self.names = output_names(self.loaded.model)

    def feed(self, feeds: Mapping[str, Array]) -> None:
        super().feed(feeds)
        self.tensors = [to_tensor(feeds[name]) for name in self.fed]

    @abstractmethod
    def compute(self, model: Any) -> list[Array]:
        """Run a temporary model once and return all outputs."""

    @classmethod
    def read(cls, path: str) -> Any:
        """Read a model with the element types and names of the file.

        OpenVINO adapts a file of IR version 10: f16 inputs become f32, outputs become i32 or f32, and added
        conversions get the names of nodes. To avoid that, the file is read as version 11, which is otherwise
        equal.
        """
        with as_failures(failure):
            with suppress(OSError), open(path, "rb") as file:
                if _VERSION_10.search(file.read(_HEAD)):
                    weights = Path(path).with_suffix(".bin")
                    with tempfile.TemporaryDirectory() as folder:
                        copy = Path(folder) / Path(path).name
                        copy.write_bytes(_VERSION_10.sub(rb"\g<1>11", Path(path).read_bytes(), count=1))
                        return core().read_model(copy, weights if weights.exists() else "")
            return core().read_model(_read_argument(path))

    @classmethod
    def add_taps(cls, path: str, model: Any, taps: Sequence[Tap], fed: Sequence[str], bodies: bool) -> Loaded:
        return add_taps(model, taps, fed, bodies=bodies)

    def shapes(self, tapped: Loaded, keys: Sequence[str]) -> Mapping[str, Sequence[int]] | None:
        # first infer the shapes; compute only those that stay dynamic, with a model that outputs shapes
        import openvino

        model = tapped.model.clone()
        with suppress(Exception):  # without this reshape, fewer shapes are static
            feed_shapes = enumerate(openvino.PartialShape(tensor.get_shape()) for tensor in self.tensors)
            model.reshape(dict(feed_shapes))
        inferred = {key: model.output(int(key)).get_partial_shape() for key in keys}
        unknown = [key for key, shape in inferred.items() if shape.is_dynamic]
        if any(tapped.sizes[key].loops for key in unknown):
            return None
        shapes = {key: list(shape.to_shape()) for key, shape in inferred.items() if shape.is_static}
        if unknown:
            arrays = self.compute(shape_model(model, list(map(int, unknown))))
            shapes |= {key: array.tolist() for key, array in zip(unknown, arrays, strict=True)}
        return shapes


class DeviceEngine(OpenVinoEngine):
    """An engine that runs models on a device.

    Attributes:
        ran: the compiled model that ran last, and its inference request.
    """

    ran: tuple[Any, Any]

    def compute(self, model: Any) -> list[Array]:
        _, request = _compiled(model, self.request._replace(profile=False))
        return self._infer(request, range(len(model.outputs)))

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        request = self.request
        options = (request.device, request.precision, request.profile, request.threads)
        if options not in loaded.sessions:
            loaded.sessions[options] = _compiled(loaded.model, request)
        self.ran = loaded.sessions[options]
        return self._infer(self.ran[1], [*range(len(self.names)), *map(int, keys)])

    def _infer(self, request: Any, outputs: Sequence[int]) -> list[Array]:
        """Run once and return some outputs. States are reset before, if `resets_states` is set."""
        with as_failures(failure, at_inference=True):
            if self.resets_states:
                request.reset_state()
            for number, tensor in enumerate(self.tensors):
                request.set_input_tensor(number, tensor)
            request.infer()
        return [to_array(request.get_output_tensor(number)) for number in outputs]

    def facts(self) -> tuple[NodeFacts, ...]:
        compiled, request = self.ran
        try:
            nodes = compiled.get_runtime_model().get_ordered_ops()
        except Exception:  # AUTO and HETERO have no such model
            return ()
        times: dict[str, float] = {}
        with suppress(Exception):  # the device may not measure times
            times = {
                entry.node_name: entry.real_time.total_seconds() * 1e6
                for entry in request.get_profiling_info()
                if "NOT_RUN" not in str(entry.status)
            }
        return tuple(
            _facts(node, times) for node in nodes if node.get_type_name() not in {_CONSTANT, "Result"}
        )


class FoldEngine(OpenVinoEngine):
    """Computes outputs by the pass ConstantFolding, after inputs were replaced by constants."""

    def compute(self, model: Any) -> list[Array]:
        return [_folded(source) for source in self._fold(model)]

    def infer(self, loaded: Loaded, keys: Sequence[str]) -> list[Array]:
        model = loaded.model.clone()  # the clone keeps the folded constants alive
        sources = self._fold(model)
        return [_folded(sources[number]) for number in (*range(len(self.names)), *map(int, keys))]

    def _fold(self, model: Any) -> list[Any]:
        """Return the outputs as folded constants."""
        from openvino.op import Constant
        from openvino.passes import ConstantFolding, Manager

        with as_failures(failure):
            for parameter, tensor in zip(model.get_parameters(), self.tensors, strict=True):
                _replace(parameter.output(0), Constant(tensor).output(0))
            manager = Manager()
            manager.register_pass(ConstantFolding())
            is_changed = True
            while is_changed:
                model.validate_nodes_and_infer_types()
                manager.run_passes(model)
                is_changed = _inline_branches(model)
        return [result.input_value(0).get_node() for result in model.get_results()]


def _inline_branches(model: Any) -> bool:
    """Replace each If with a constant condition by its branch, which ConstantFolding does not do.

    Returns whether any was replaced.
    """
    chosen = [
        (node, condition.get_data().item())
        for node in model.get_ordered_ops()
        if hasattr(node, "get_then_body")
        and (condition := node.input_value(0).get_node()).get_type_name() == _CONSTANT
    ]
    for node, truth in chosen:
        number = 0 if truth else 1
        body = (node.get_then_body() if truth else node.get_else_body()).clone()
        for description in node.get_input_descriptions(number):
            parameter = body.get_parameters()[description.body_parameter_index]
            _replace(parameter.output(0), node.input_value(description.input_index))
        for description in node.get_output_descriptions(number):
            source = body.get_results()[description.body_value_index].input_value(0)
            _replace(node.output(description.output_index), source)
    return bool(chosen)


def _replace(output: Any, source: Any) -> None:
    for target in output.get_target_inputs():
        target.replace_source_output(source)


def _folded(node: Any) -> Array:
    if node.get_type_name() != _CONSTANT:
        culprit = _first_unfolded(node)
        message = f"{culprit.get_type_name()} {culprit.get_friendly_name()} {NOT_FOLDED}"
        raise Failure("unsupported", message)
    return to_array(node.get_tensor_view())


def _first_unfolded(node: Any) -> Any:
    """Return the first node upstream of `node` that was not folded although all its inputs are constants."""
    while True:
        sources = (value.get_node() for value in node.input_values())
        deeper = next((source for source in sources if source.get_type_name() != _CONSTANT), None)
        if deeper is None or deeper.get_type_name() == "Parameter":
            return node
        node = deeper


def _facts(node: Any, times: Mapping[str, float]) -> NodeFacts:
    info = {name: str(getattr(value, "value", value)) for name, value in node.get_rt_info().items()}
    name, time = node.get_friendly_name(), info.get(_TIME, _NOT_RUN)
    return NodeFacts(
        name,
        tuple(text for text in info.get("originalLayersNames", "").split(",") if text),
        info.get("layerType", node.get_type_name()),
        info.get("primitiveType", ""),
        info.get("runtimePrecision", ""),
        tuple(text for text in info.get("outputPrecisions", "").split(",") if text),
        times.get(name, None if time == _NOT_RUN else float(time)),
    )


def _describe(device: str) -> dict[str, Any]:
    """Compile a minimal model for a device, and return a description of the device."""
    if device == FOLD:
        return {"full_name": "ConstantFolding"}
    import openvino
    from openvino import opset8

    parameter = opset8.parameter([1], openvino.Type.f32)
    smallest = openvino.Model([opset8.result(opset8.relu(parameter))], [parameter])
    _compiled(smallest, RunRequest("", device, _DEFAULT))
    description: dict[str, Any] = {}
    for word, property in _PROPERTIES.items():
        with suppress(Exception):  # virtual devices such as AUTO lack the property
            value = core().get_property(device, property)
            if isinstance(value, list | tuple | set):
                description[word] = tuple(sorted(map(str, value)))
            else:
                description[word] = str(value.to_string() if hasattr(value, "to_string") else value)
    description["driver"] = ", ".join(_drivers(device))
    return description


def _drivers(device: str) -> Iterator[str]:
    """Yield the build of the device's plugin, and the version of its driver if known."""
    with suppress(Exception):  # virtual devices such as AUTO lack the property
        (version,) = core().get_versions(device).values()
        yield f"plugin {version.build_number}"
    with suppress(Exception):
        if device.startswith("NPU"):
            yield f"driver {core().get_property(device, _NPU_DRIVER)}"
        if device.startswith("GPU"):
            for version in dict.fromkeys(_opencl_drivers()):
                yield f"OpenCL driver {version}"


def _opencl_drivers() -> Iterator[str]:
    """Yield the driver version of each GPU, which OpenVINO does not report.

    Raises:
        OSError: there is no OpenCL.
    """
    import ctypes

    library = ctypes.CDLL("libOpenCL.so.1" if os.name == "posix" else "OpenCL.dll")

    def listed(function: str, *arguments: Any) -> list[int]:
        count, handles = ctypes.c_uint(0), (ctypes.c_void_p * _MOST_DEVICES)()
        getattr(library, function)(*arguments, _MOST_DEVICES, handles, ctypes.byref(count))
        return [handle for handle in handles[: count.value] if handle]

    for platform in listed("clGetPlatformIDs"):
        for device in listed("clGetDeviceIDs", ctypes.c_void_p(platform), ctypes.c_ulonglong(_ANY)):
            kind, text = ctypes.c_ulonglong(0), ctypes.create_string_buffer(256)
            for property, answer in ((_DEVICE_TYPE, kind), (_DRIVER_VERSION, text)):
                size = ctypes.c_size_t(ctypes.sizeof(answer))
                library.clGetDeviceInfo(ctypes.c_void_p(device), property, size, ctypes.byref(answer), None)
            if kind.value & _IS_GPU and text.value:
                yield text.value.decode("ascii", "replace")


@cache
def core() -> Any:
    import openvino

    return openvino.Core()


def _compiled(model: Any, request: RunRequest) -> tuple[Any, Any]:
    """Return a compiled model and an inference request for it.

    Raises:
        Failure: the device is missing, or refuses the model.
    """
    config: dict[str, Any] = {"PERF_COUNT": True} if request.profile else {}
    if request.precision != _DEFAULT:
        config["INFERENCE_PRECISION_HINT"] = request.precision
    if request.threads and request.device == _CPU:
        config["INFERENCE_NUM_THREADS"] = request.threads
    try:
        compiled = core().compile_model(model, request.device, config)
        return compiled, compiled.create_infer_request()
    except Exception as error:
        failed = failure(error)
        raise failed if _has_device(request.device) else Failure("unavailable", failed.message) from None


def _has_device(device: str) -> bool:
    """Return whether OpenVINO has the named device, or all devices of a virtual one."""
    kind, _, rest = device.partition(":")
    parts = [part.lstrip("-").partition("(")[0] for part in rest.split(",")] if rest else [kind]
    devices = core().available_devices
    kinds = {device.partition(".")[0] for device in devices}
    names = {*VIRTUAL_DEVICES, *devices, *kinds, *(f"{device}.0" for device in devices)}
    return names.issuperset(parts)


def _read_argument(path: str) -> "str | bytes":
    """Return the argument for `read_model`: a path, or the message of an ONNX model in text syntax."""
    if not is_text_file(path):
        return path
    return to_message(path, Path(path).read_bytes())


def _export(source: str, target: str) -> None:
    import openvino

    with as_failures(lambda error: Failure("refused", sentence(error))):
        model = core().read_model(_read_argument(source))
        openvino.save_model(model, target, compress_to_fp16=False)


def _propagate(path: str, shapes: Mapping[str, str]) -> tuple[dict[str, list[str]], str]:
    """Infer the output shapes of each node separately, so that a refused node does not hide other shapes.

    Returns the shapes as texts, by scope of the node, and the first error of a general operator or "".
    """
    import openvino

    with as_failures(lambda error: Failure("refused", _node_error(error))):
        model = core().read_model(_read_argument(path))
        for parameter in model.get_parameters():
            names = {parameter.get_friendly_name(), *parameter.output(0).get_names()}
            for name in names & shapes.keys():
                parameter.set_partial_shape(openvino.PartialShape(shapes[name]))
    scatters, refusal = scatter_types(OPENVINO), ""
    for node in model.get_ordered_ops():
        try:
            node.validate_and_infer_types()
        except Exception as error:
            reason = _node_error(error)
            if node.get_type_name() not in scatters and not any(f"::{name} " in reason for name in scatters):
                refusal = refusal or reason
    shapes_by_scope = {
        scope: [str(output.get_partial_shape()) for output in place.node.outputs()]
        for scope, place in walk(model)
    }
    return shapes_by_scope, refusal


def _node_error(error: BaseException) -> str:
    """Return the lines of an error message about a node, without locations in OpenVINO's sources."""
    lines = [line.strip() for line in str(error).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("Exception from", "Check '"))]
    return " ".join(kept)[:_LONGEST_REFUSAL]


def failure(error: BaseException) -> Failure:
    """Convert an exception of OpenVINO to a failure, "unsupported" or "refused"."""
    return Failure("unsupported" if _UNSUPPORTED.search(str(error)) else "refused", sentence(error))


def sentence(error: BaseException) -> str:
    """Return an error message without locations in OpenVINO's sources and without folders."""
    text = _FOLDER.sub(r"\1", _PLACE.sub("", str(error)))
    text = _NODE.sub(r"\1:", _ONNX_NODE.sub(r"\1 \2:", _DETAIL.sub("", text)))
    lines = (line.strip() for line in text.splitlines())
    kept = [line.removeprefix("-- ") for line in lines if line and not line.startswith(_NOISE)]
    return shortened(" ".join(dict.fromkeys(kept))) or type(error).__name__
