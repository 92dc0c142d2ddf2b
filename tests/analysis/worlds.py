"""Models of several scatter nodes that differ in one thing or another, as a seed draws them."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.errors import NotEditable, UnreadableModel, UsageError
from ir_scatter.core.model import Model
from tests.models.ir_text import IrText, Output

PROMISES = ("unique-indices", "non-negative-indices", "equal-indices")
TARGETS: Mapping[str, Sequence[str | None]] = {
    "onnx": (None, "ScatterElements", "ScatterND"),
    "openvino-ir": (
        "ScatterNDUpdate", "ScatterElementsUpdate", "ScatterUpdate", "ScatterElementsUpdate-3",
        "ScatterNDUpdate-3",
    ),
}  # fmt: skip


def converted(model: Model, to: str | None, assume: Sequence[str], *, keeps: bool) -> object:
    """Return all that a conversion comes to, the bytes included."""
    try:
        found = convert(model, to, assume=assume, keep_negative_indices=keeps, verify=0)
    except UsageError as error:
        return str(error)
    nodes = [
        (one.location, one.name, one.source, one.target, one.rewrites, one.assumptions)
        for one in found.converted
    ]
    refused = [
        (one.code, one.message, one.name, one.location, one.source, one.target) for one in found.refused
    ]
    return nodes, refused, found.opset, _written(found, model)


def _written(found: Conversion, model: Model) -> object:
    try:
        files = found.files(Path(model.path).parent / "new" / Path(model.path).name)
    except (NotEditable, UnreadableModel, UsageError) as error:
        return type(error), str(error)
    return [(file.path, file.content) for file in files.outputs]


# ONNX

Dims = Sequence[int | str | None] | None
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def info(name: str, dims: Dims, type: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, type, dims)


def tensor(name: str, array: Any) -> TensorProto:
    return onnx.numpy_helper.from_array(np.asarray(array), name)


@dataclass
class OnnxText:
    """A graph that grows; a branch shares the inputs of the graph around it."""

    inputs: dict[str, ValueInfoProto] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    stored: list[ValueInfoProto] = field(default_factory=list)
    outputs: list[ValueInfoProto] = field(default_factory=list)

    def input(self, name: str, dims: Dims, type: int = FLOAT) -> str:
        self.inputs[name] = info(name, dims, type)
        return name

    def add(self, type: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self.nodes.append(node(type, inputs, [output], name=f"{output}_node", **attributes))
        return output

    def hold(self, name: str, array: Any) -> str:
        self.initializers.append(tensor(name, array))
        return name

    def graph(self, name: str, *, has_inputs: bool = True) -> onnx.GraphProto:
        inputs = list(self.inputs.values()) if has_inputs else []
        return helper.make_graph(
            self.nodes, name, inputs, self.outputs, initializer=self.initializers, value_info=self.stored
        )

    def write(
        self, folder: Path, *, opset: int = 18, ir_version: int = 10, functions: Sequence[Any] = ()
    ) -> str:
        imports = [helper.make_opsetid(domain, version) for domain, version in (("", opset), ("my", 1))]
        model = helper.make_model(
            self.graph("main"), opset_imports=imports, ir_version=ir_version, functions=functions
        )
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return str(path)


def outputs(*names: str) -> list[ValueInfoProto]:
    return [ValueInfoProto(name=name) for name in names]


def numbers(kind: str, count: int, size: int) -> list[int]:
    """Return indices for an axis of some size."""
    plain = [(3 * place + 1) % size for place in range(count)]
    if kind == "plain":
        return plain
    if kind == "other":
        return [place % size for place in range(count)]
    return {"negative": [-1], "repeated": [plain[-1]], "great": [size + 3]}[kind] + plain[1:]


KINDS = ("plain", "plain", "other", "other", "negative", "repeated", "great")
CHOICES: Mapping[str, Sequence[Any]] = {
    "type": ("ScatterElements", "ScatterElements", "ScatterND"),
    "data": ("input", "input", "held", "constant", "relu", "sigmoid", "cast", "reshaped", "both", "chain"),
    "data_dims": ((4, 5), (4, 5), (5, 4), ("n", 5), (None, 5), ("n", "m")),
    "indices": ("held", "held", "constant", "typed", "list", "identity", "input", "both", "cast"),
    "numbers": KINDS,
    "index_dims": ((2, 2), (2, 2), (1, 4), (3, 1), (1, 1)),
    "updates": ("input", "held", "relu", "constant", "data"),
    "wrong": (False, False, False, True),
    "attributes": ({}, {}, {"axis": 0}, {"axis": 1}, {"axis": -1}, {"axis": 7}, {"odd": 3}),
    "reduction": ("", "", "none", "add", "max", "avg"),
    "stored": ("", "", "same", "static", "other", "type"),
    "place": ("main", "main", "then", "else"),
}


def vary(
    chooser: random.Random, choices: Mapping[str, Sequence[Any]], count: int
) -> Iterator[dict[str, Any]]:
    """Yield plans of nodes that differ in one thing or another."""
    first = {name: options[0] for name, options in choices.items()}
    base = {name: chooser.choice((first[name], chooser.choice(options))) for name, options in choices.items()}
    for _ in range(count):
        plan = dict(base)
        for name in chooser.sample(sorted(choices), chooser.choice((0, 1, 1, 1, 2))):
            plan[name] = chooser.choice(choices[name])
        yield plan


class OnnxWorld:
    """Writes a model of several scatter nodes."""

    def __init__(self, seed: int) -> None:
        self.chooser = random.Random(seed)
        self.main, self.branches = OnnxText(), {name: OnnxText() for name in ("then", "else")}
        self.last: dict[int, tuple[str, Dims]] = {}

    def write(self, folder: Path) -> str:
        chooser = self.chooser
        opset = chooser.choice((11, 13, 16, 18, 18, 24))
        for number, plan in enumerate(vary(chooser, CHOICES, 12)):
            inside = self.branches.get(plan["place"], self.main)
            self.scatter(inside, number, plan, opset)
        branches = {f"{name}_branch": text for name, text in self.branches.items()}
        for text in branches.values():
            self.main.inputs |= text.inputs
            if not text.nodes:
                text.hold("nothing", np.zeros(1, np.float32))
            text.outputs = outputs(text.nodes[-1].output[0] if text.nodes else "nothing")
        if chooser.random() < 0.9:
            self.main.input("flag", [], BOOL)
            graphs = {name: text.graph(name, has_inputs=False) for name, text in branches.items()}
            self.main.add("If", ["flag"], "chosen", **graphs)
            self.main.outputs += outputs("chosen")
        return self.main.write(folder, opset=opset, ir_version=chooser.choice((3, 8, 10)))

    def scatter(self, text: OnnxText, number: int, plan: Mapping[str, Any], opset: int) -> None:
        is_nd = plan["type"] == "ScatterND"
        dims: Dims = plan["data_dims"]
        if plan["data"] == "chain" and id(text) in self.last:
            data, dims = self.last[id(text)]
        else:
            data = self.value(text, f"data{number}", plan["data"], dims, plan["stored"])
        index_dims = (*plan["index_dims"][:1], 1) if is_nd else plan["index_dims"]
        count, attributes = int(np.prod(index_dims)), dict(plan["attributes"])
        written = np.array(numbers(plan["numbers"], count, 4), np.int64).reshape(index_dims)
        indices = self.indices(text, f"indices{number}", plan["indices"], written)
        update_dims: Sequence[Any] = [index_dims[0], dims[1] if dims else 5] if is_nd else index_dims
        if plan["wrong"]:
            update_dims = [9, *update_dims[1:]]
        updates = (
            data
            if plan["updates"] == "data"
            else self.value(text, f"updates{number}", plan["updates"], update_dims, plan["stored"])
        )
        if is_nd:
            attributes.pop("axis", None)
        if plan["reduction"] and opset >= 16:
            attributes["reduction"] = plan["reduction"]
        output = text.add(plan["type"], [data, indices, updates], f"out{number}", **attributes)
        self.store(text, output, dims, plan["stored"])
        self.last[id(text)] = output, dims
        if text is self.main:
            claims = plan["stored"] == "same"
            self.main.outputs += [info(output, dims)] if claims else outputs(output)

    def value(self, text: OnnxText, name: str, kind: str, dims: Dims, stored: str) -> str:
        real = [size if isinstance(size, int) else 4 for size in dims or ()]
        if kind == "held":
            text.hold(name, np.zeros(real, np.float32))
        elif kind == "constant":
            text.add("Constant", [], name, value=tensor("", np.zeros(real, np.float32)))
        elif kind in {"input", "both", "chain"}:
            text.input(name, dims)
            if kind == "both":
                self.main.hold(name, np.zeros(real, np.float32))
        else:
            given = text.input(f"{name}_given", dims if kind != "reshaped" else ["k"])
            if kind == "reshaped":
                text.add("Reshape", [given, text.input(f"{name}_shape", [len(real)], INT64)], name)
            elif kind == "cast":
                text.add("Cast", [given], name, to=FLOAT)
            else:
                text.add(kind.capitalize(), [given], name)
            self.store(text, name, dims, stored)
        return name

    def store(self, text: OnnxText, name: str, dims: Dims, stored: str) -> None:
        real = [size if isinstance(size, int) else 4 for size in dims or ()]
        claims: dict[str, tuple[Dims, int]] = {
            "same": (dims, FLOAT),
            "static": (real, FLOAT),
            "other": ([*real[:-1], 8], FLOAT),
            "type": (dims, TensorProto.DOUBLE),
        }
        if stored in claims:
            text.stored.append(info(name, *claims[stored]))

    def indices(self, text: OnnxText, name: str, kind: str, array: Any) -> str:
        if kind in {"held", "typed"}:
            text.hold(name, array)
            if kind == "typed":
                text.initializers[-1].ClearField("raw_data")
                text.initializers[-1].int64_data.extend(array.reshape(-1).tolist())
        elif kind == "constant":
            text.add("Constant", [], name, value=tensor("", array))
        elif kind == "list":
            text.add("Constant", [], f"{name}_flat", value_ints=array.reshape(-1).tolist())
            text.hold(f"{name}_shape", np.array(array.shape))
            text.add("Reshape", [f"{name}_flat", f"{name}_shape"], name)
        elif kind in {"identity", "cast"}:
            text.hold(f"{name}_held", array)
            more = {"to": INT64} if kind == "cast" else {}
            text.add(kind.capitalize(), [f"{name}_held"], name, **more)
        else:
            text.input(name, array.shape, INT64)
            if kind == "both":
                self.main.hold(name, array)
        return name


# IR

IR_CHOICES: Mapping[str, Sequence[Any]] = {
    "operator": (
        ("ScatterUpdate", "opset3"), ("ScatterElementsUpdate", "opset3"),
        ("ScatterElementsUpdate", "opset12"), ("ScatterNDUpdate", "opset4"), ("ScatterNDUpdate", "opset15"),
    ),
    "data": ("parameter", "parameter", "const", "relu", "relu", "chain", "claims"),
    "data_dims": ((4, 4), (4, 4), (4, 6), ("?", 4), ("2..7", 4)),
    "data_type": ("f32", "f32", "f32", "i32", "boolean"),
    "indices": ("const", "const", "const", "parameter", "convert", "shared"),
    "index_type": ("i64", "i64", "i32", "u8"),
    "numbers": KINDS,
    "index_dims": ((2, 2), (1, 4), (3, 1), (1, 1)),
    "updates": ("parameter", "const", "relu", "data"),
    "wrong": (False, False, False, True),
    "axis": (0, 0, 1, -1, 9),
    "axis_from": ("const", "const", "list", "convert", "parameter", "shared"),
    "attributes": (
        {}, {}, {"reduction": "none"}, {"reduction": "sum"}, {"reduction": "MEAN"}, {"odd": "1"},
        {"reduction": "sum", "use_init_val": "false"}, {"use_init_val": "true"},
    ),
    "ports": ("", "", "", "data dims", "index dims", "data type", "axis type", "output dims"),
    "place": ("main", "main", "then", "else"),
}  # fmt: skip


class IrWorld:
    """Writes an IR of several scatter nodes."""

    def __init__(self, seed: int, choices: Mapping[str, Sequence[Any]] = IR_CHOICES) -> None:
        self.choices = choices
        self.chooser = random.Random(seed)
        self.main = IrText()
        self.branches = {name: IrText(self.main.weights) for name in ("then", "else")}
        self.shared: dict[tuple[int, str], Output] = {}
        self.last: dict[int, Output] = {}

    def write(self, folder: Path) -> str:
        for number, plan in enumerate(vary(self.chooser, self.choices, 12)):
            self.scatter(self.branches.get(plan["place"], self.main), number, plan)
        flag, given = self.main.parameter("flag", "boolean"), self.main.parameter("given", "f32", (4, 4))
        bodies = []
        for name, text in self.branches.items():
            result = text.const("nothing", "f32", np.zeros((4, 4)))
            text.add("end", "Result", "opset1", [result], [])
            maps = f'<output external_port_id="2" internal_layer_id="{text.count - 1}"/>'
            for layer in range(text.count if self.chooser.random() < 0.7 else 0):
                if ' type="Parameter"' in text.layers[layer] and 'name="data' in text.layers[layer]:
                    maps = f'<input external_port_id="1" internal_layer_id="{layer}"/>' + maps
            bodies.append(f"<{name}_port_map>{maps}</{name}_port_map>" + text.body(f"{name}_body"))
        chosen = self.main.add(
            "chosen", "If", "opset8", [flag, given], [("f32", (4, 4))], inside="".join(bodies)
        )
        self.main.add("last", "Result", "opset1", [chosen], [])
        path = self.main.write(folder)
        weights = Path(path).with_suffix(".bin")
        match self.chooser.randrange(12):
            case 0:
                weights.unlink()
            case 1:
                weights.write_bytes(weights.read_bytes()[: len(self.main.weights) // 2])
        return path

    def scatter(self, text: IrText, number: int, plan: Mapping[str, Any]) -> None:
        type, opset = plan["operator"]
        data = self.data(text, number, plan)
        index_dims = plan["index_dims"]
        if type == "ScatterNDUpdate":
            index_dims = (index_dims[0] * index_dims[1], 1)
        elif type == "ScatterUpdate":
            index_dims = (index_dims[0] * index_dims[1],)
        count = int(np.prod(index_dims))
        written = np.array(numbers(plan["numbers"], count, 4)).reshape(index_dims)
        if plan["index_type"] == "u8":
            written %= 256
        indices = self.indices(text, number, plan, written)
        along = [size if isinstance(size, int) else -1 for size in data.dims]
        axis = plan["axis"] % 2
        update_dims: Sequence[Any] = {
            "ScatterUpdate": [*along[:axis], *index_dims, *along[axis + 1 :]],
            "ScatterNDUpdate": [count, *along[1:]],
        }.get(type, list(index_dims))
        if plan["wrong"]:
            update_dims = [*update_dims[:-1], 9]
        updates = data if plan["updates"] == "data" else self.value(
            text, f"updates{number}", plan["updates"], plan["data_type"], update_dims
        )  # fmt: skip
        inputs = [data, indices, updates]
        if type != "ScatterNDUpdate":
            inputs.append(self.axis(text, number, plan))
        found = (data.precision, [9, *along[1:]] if plan["ports"] == "output dims" else along)
        inputs = [self.port(place, one, plan["ports"]) for place, one in enumerate(inputs)]
        output = text.add(f"scatter{number}", type, opset, inputs, [found], plan["attributes"])
        text.add(f"result{number}", "Result", "opset1", [output], [])
        self.last[id(text)] = output

    @staticmethod
    def port(place: int, source: Output, claims: str) -> Output:
        """Return an input as its port claims that it is."""
        if (place, claims) in {(0, "data dims"), (1, "index dims")}:
            return replace(source, dims=[*source.dims[:-1], 3])
        if (place, claims) in {(0, "data type"), (3, "axis type")}:
            return replace(source, precision="f64")
        return source

    def data(self, text: IrText, number: int, plan: Mapping[str, Any]) -> Output:
        if plan["data"] == "chain" and id(text) in self.last:
            return self.last[id(text)]
        return self.value(text, f"data{number}", plan["data"], plan["data_type"], plan["data_dims"])

    def value(self, text: IrText, name: str, kind: str, type: str, dims: Sequence[Any]) -> Output:
        sizes = [size if isinstance(size, int) and size >= 0 else 4 for size in dims]
        if kind == "const":
            return text.const(name, type, np.zeros(sizes))
        if kind == "claims":
            data = {"element_type": type, "shape": ",".join(map(str, dims))}
            return text.add(name, "Parameter", "opset1", [], [("f16", [*sizes, 2])], data)
        words = ["?" if size == -1 else size for size in dims]
        given = text.parameter(name, type, words)
        if kind == "relu":
            return text.add(f"{name}_relu", "ReLU", "opset1", [given], [(type, given.dims)])
        return given

    def indices(self, text: IrText, number: int, plan: Mapping[str, Any], array: Any) -> Output:
        name, type, kind = f"indices{number}", plan["index_type"], plan["indices"]
        if kind == "parameter":
            return text.parameter(name, type, array.shape)
        if kind == "shared":
            key = (id(text), f"{array.tolist()} {type}")
            if key not in self.shared:
                self.shared[key] = text.const(name, type, array)
            return self.shared[key]
        held = text.const(name, type, array)
        if kind == "convert":
            to = {"destination_type": "i64"}
            return text.add(f"{name}_converted", "Convert", "opset1", [held], [("i64", array.shape)], to)
        return held

    def axis(self, text: IrText, number: int, plan: Mapping[str, Any]) -> Output:
        name, kind, axis = f"axis{number}", plan["axis_from"], plan["axis"]
        if kind == "parameter":
            return text.parameter(name, "i64", (1,))
        if kind == "shared":
            key = (id(text), f"axis {axis}")
            if key not in self.shared:
                self.shared[key] = text.const(name, "i64", axis)
            return self.shared[key]
        held = text.const(name, "i64", axis if kind == "const" else [axis])
        if kind == "convert":
            to = {"destination_type": "i32"}
            return text.add(f"{name}_converted", "Convert", "opset1", [held], [("i32", (1,))], to)
        return held


FLAT = np.arange(4).reshape(2, 2)
