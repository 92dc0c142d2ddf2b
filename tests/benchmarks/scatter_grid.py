"""The grid of cases that the kernels are timed on, and the same work done by others."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ir_scatter import evaluate
from ir_scatter.ops.names import OperatorName

Array = Any
Work = Callable[[], object]

_IR_WORDS = {"none": "none", "add": "sum", "mul": "prod", "max": "max"}


@dataclass(frozen=True)
class Entry:
    """One case of the grid.

    Attributes:
        label: what the table prints.
        operator: for `evaluate`.
        inputs: data, indices, updates.
        attributes: axis and reduction, in the operator's dialect.
        bare: what NumPy's user would write, for a small case.
    """

    label: str
    operator: OperatorName
    inputs: dict[str, Array]
    attributes: dict[str, Any] = field(default_factory=dict)
    bare: Callable[[dict[str, Array]], object] | None = None

    def ours(self) -> Work:
        return lambda: evaluate(self.operator, **self.inputs, **self.attributes)

    def copy(self) -> Work:
        data = self.inputs["data"]
        return lambda: data.copy()

    def onnx_model(self) -> bytes | None:
        """Make a model of the one node; None for an operator that ONNX does not have."""
        import onnx
        from onnx import helper

        type, version = self.operator.split("-")
        if type == "ScatterUpdate":
            return None
        ports = ["data", "updates", "indices"] if type == "TensorScatter" else ["data", "indices", "updates"]
        node = helper.make_node(type, ports, ["output"], **self.attributes)
        inputs = []
        for name in ports:
            number = helper.np_dtype_to_tensor_dtype(self.inputs[name].dtype)
            inputs.append(helper.make_tensor_value_info(name, number, self.inputs[name].shape))
        data = self.inputs["data"]
        output = helper.make_tensor_value_info("output", onnx.TensorProto.FLOAT, data.shape)
        graph = helper.make_graph([node], "one", inputs, [output])
        imports = [helper.make_opsetid("", int(version))]
        return bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())

    def onnxruntime(self) -> Work | None:
        import onnxruntime

        model = self.onnx_model()
        if model is None:
            return None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, self.inputs)

    def reference(self) -> Work | None:
        from onnx.reference import ReferenceEvaluator

        model = self.onnx_model()
        if model is None:
            return None
        evaluator = ReferenceEvaluator(model)
        return lambda: evaluator.run(None, self.inputs)

    def openvino(self) -> Work | None:
        """Compile the operator for the CPU plugin; None where OpenVINO does not have it."""
        import openvino
        from openvino import opset3, opset12, opset15

        ports = [
            opset3.parameter(self.inputs[n].shape, self.inputs[n].dtype)
            for n in ("data", "indices", "updates")
        ]
        type, word = self.operator.split("-")[0], _IR_WORDS[self.attributes.get("reduction", "none")]
        if type == "TensorScatter":
            return None
        axis = opset3.constant(self.attributes.get("axis", 0), np.int64)
        if type == "ScatterUpdate":
            node = opset3.scatter_update(*ports, axis)
        elif type == "ScatterElements":
            node = opset12.scatter_elements_update(*ports, axis, word)
        else:
            node = opset15.scatter_nd_update(*ports, word)
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2}
        compiled = openvino.Core().compile_model(openvino.Model([node], ports, "one"), "CPU", settings)
        feeds = list(self.inputs.values())
        return lambda: compiled(feeds, share_inputs=True)[0]


def _normal(generator: np.random.Generator, *shape: int) -> Array:
    return generator.standard_normal(shape, np.float32)


def _inputs(data: Array, indices: Array, updates: Array) -> dict[str, Array]:
    return {"data": data, "indices": indices, "updates": updates}


REDUCTIONS = ("none", "add", "mul", "max")


def large() -> Iterator[Entry]:
    """Yield the large cases; each is made when it is asked for."""
    generator = np.random.default_rng(7)
    shape = (64, 512, 64)
    for axis in (0, 1, 2):
        for word in REDUCTIONS:
            indices = generator.integers(0, shape[axis], shape)
            given = _inputs(_normal(generator, *shape), indices, _normal(generator, *shape))
            label = f"ScatterElements [64, 512, 64], axis {axis}, {word}"
            yield Entry(label, "ScatterElements-18", given, {"axis": axis, "reduction": word})
    for kind in ("unique", "repeated"):
        for word in REDUCTIONS:
            chosen = generator.permutation(100_000)[:50_000]
            rows = chosen if kind == "unique" else generator.integers(0, 100_000, 50_000)
            given = _inputs(_normal(generator, 100_000, 64), rows[:, None], _normal(generator, 50_000, 64))
            label = f"ScatterND [100000, 64], 50000 {kind} rows, {word}"
            yield Entry(label, "ScatterND-18", given, {"reduction": word})
    given = _inputs(
        _normal(generator, 100, 256, 10, 15),
        generator.integers(0, 256, (125, 20)),
        _normal(generator, 100, 125, 20, 10, 15),
    )
    yield Entry(
        "ScatterUpdate [100, 256, 10, 15], indices [125, 20], axis 1", "ScatterUpdate-3", given, {"axis": 1}
    )
    given = _inputs(
        _normal(generator, 8, 32, 2048, 128),
        generator.integers(0, 2032, 8),
        _normal(generator, 8, 32, 16, 128),
    )
    yield Entry("TensorScatter [8, 32, 2048, 128], 16 new", "TensorScatter-24", given)


def small() -> Iterator[Entry]:
    """Yield the cases of 1,000 elements, with the statement that does the same in NumPy."""
    generator = np.random.default_rng(7)
    square = _normal(generator, 10, 100)

    def elements(given: dict[str, Array]) -> None:
        np.put_along_axis(given["data"].copy(), given["indices"], given["updates"], 1)

    def elements_add(given: dict[str, Array]) -> None:
        np.add.at(given["data"].copy(), (np.arange(10)[:, None], given["indices"]), given["updates"])

    def rows(given: dict[str, Array]) -> None:
        given["data"].copy()[given["indices"][:, 0]] = given["updates"]

    def rows_add(given: dict[str, Array]) -> None:
        np.add.at(given["data"].copy(), given["indices"][:, 0], given["updates"])

    def columns(given: dict[str, Array]) -> None:
        given["data"].copy()[:, given["indices"]] = given["updates"]

    def cache(given: dict[str, Array]) -> None:
        output = given["data"].copy()
        for batch, start in enumerate(given["indices"]):
            output[batch, :, start : start + 4] = given["updates"][batch]

    full = _inputs(square, generator.integers(0, 100, (10, 100)), _normal(generator, 10, 100))
    some = _inputs(square, generator.permutation(10)[:5, None], _normal(generator, 5, 100))
    part = _inputs(square, generator.permutation(100)[:50], _normal(generator, 10, 50))
    run = _inputs(
        _normal(generator, 2, 5, 20, 5), generator.integers(0, 16, 2), _normal(generator, 2, 5, 4, 5)
    )
    yield Entry("ScatterElements, none", "ScatterElements-18", full, {"axis": 1}, elements)
    added = {"axis": 1, "reduction": "add"}
    yield Entry("ScatterElements, add", "ScatterElements-18", full, added, elements_add)
    yield Entry("ScatterND, none", "ScatterND-18", some, {}, rows)
    yield Entry("ScatterND, add", "ScatterND-18", some, {"reduction": "add"}, rows_add)
    yield Entry("ScatterUpdate", "ScatterUpdate-3", part, {"axis": 1}, columns)
    yield Entry("TensorScatter", "TensorScatter-24", run, {}, cache)
