"""What is known of one node holds for all of its form: with forms and without, the same is found."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from ir_scatter.analysis.plain_forms import PlainForm, PlainForms
from ir_scatter.analysis.scatter_node import Site
from ir_scatter.convert import Conversion, convert
from ir_scatter.convert.output import make_files
from ir_scatter.core.errors import NotEditable, UnreadableModel, UsageError
from ir_scatter.core.model import Model
from ir_scatter.formats.onnx.graph import OnnxForms
from ir_scatter.formats.openvino.graph import IrForms
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.rewrites.conditions import Condition, judge
from ir_scatter.rules import all_rules
from ir_scatter.validate import Check, read, validate
from tests.rules.ir_text import IrText, Output

SEEDS, WORLDS = range(8), 6
"""Tests of each format, and the worlds that each of them makes."""

EVERYTHING = ("unique-indices", "non-negative-indices", "equal-indices")
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
        files = make_files(found.changes, Path(model.path).parent / "new" / Path(model.path).name)
    except (NotEditable, UnreadableModel, UsageError) as error:
        return type(error), str(error)
    return [(file.path, file.content) for file in files.outputs]


def everything(path: str) -> dict[str, object]:
    """Return the findings of one model and what becomes of it on each way."""
    model = read(path)
    found: dict[str, object] = {
        "validate": validate(model),
        "one rule": validate(model, select=["SCT304"]),
        "few numbers": validate(model, max_index_elements=3),
    }
    for to in TARGETS[model.format]:
        found[f"{to}"] = converted(model, to, (), keeps=False)
        found[f"{to} with promises"] = converted(model, to, EVERYTHING, keeps=True)
    return found


def without_forms(path: str) -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainForms, "find", lambda self, site: None)
        for forms in (IrForms, OnnxForms):
            patch.setattr(forms, "is_settled", lambda self, handle, output: False, raising=False)
        return everything(path)


def sites_by_form(path: str) -> tuple[Check, dict[PlainForm, list[Site]]]:
    """Return the nodes that have a form, by it."""
    model = read(path)
    check = Check(model, all_rules())
    found: dict[PlainForm, list[Site]] = defaultdict(list)
    for node in model.walk(scatter_types(model.domain)):
        lookup = find(node.domain, node.type, node.opset)
        if lookup is not None:
            form = check.plain.find(site := Site(node, lookup, check.facts))
            if form is not None:
                found[form].append(site)
    return check, found


def facts_of(site: Site, check: Check) -> object:
    """Return what rules and rewrites can see of a node."""
    operands = {role: (one.element_type, one.shape) for role, one in site._operands.items()}
    verdicts = [judge(condition, site).verdict for condition in (Condition.NON_NEGATIVE, Condition.UNIQUE)]
    check.clean.clear()
    codes = [one.code for one in check.node(site, site.node.graph)]
    seen = (site.written_axis, site.axis, site.reduction, site.limits, site.longer_dimensions())
    return site.signature, operands, dict(site.node.attributes), verdicts, codes, seen


def check_forms(path: Path | str) -> int:
    """Demand that forms change nothing; return how many nodes have the form of another one."""
    with_forms, without = everything(str(path)), without_forms(str(path))
    for key, found in with_forms.items():
        assert found == without[key], key
    check, forms = sites_by_form(str(path))
    for sites in forms.values():
        first, *others = [facts_of(site, check) for site in sites]
        assert all(other == first for other in others)
    return sum(len(sites) - 1 for sites in forms.values())


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

    def __init__(self, seed: int) -> None:
        self.chooser = random.Random(seed)
        self.main = IrText()
        self.branches = {name: IrText(self.main.weights) for name in ("then", "else")}
        self.shared: dict[tuple[int, str], Output] = {}
        self.last: dict[int, Output] = {}

    def write(self, folder: Path) -> str:
        for number, plan in enumerate(vary(self.chooser, IR_CHOICES, 12)):
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
        written = np.array(numbers(plan["numbers"], count, 4)).reshape(index_dims) % (
            256 if plan["index_type"] == "u8" else 1 << 40
        )
        if plan["index_type"] != "u8":
            written = np.array(numbers(plan["numbers"], count, 4)).reshape(index_dims)
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


@pytest.mark.parametrize("make", [OnnxWorld, IrWorld])
@pytest.mark.parametrize("seed", SEEDS)
def test_worlds(seed: int, make: Callable[[int], OnnxWorld | IrWorld], tmp_path: Path) -> None:
    shared = 0
    for number in range(WORLDS):
        shared += check_forms(make(WORLDS * seed + number).write(tmp_path))
    assert shared > 0


FLAT = np.arange(4).reshape(2, 2)


def add_scatter(text: OnnxText, prefix: str, data: str, array: Any = FLAT, axis: int = 1) -> str:
    """Add ScatterElements of constant indices."""
    text.hold(f"{prefix}_indices", array)
    text.hold(f"{prefix}_updates", np.zeros(np.shape(array), np.float32))
    operands = [data, f"{prefix}_indices", f"{prefix}_updates"]
    return text.add("ScatterElements", operands, f"{prefix}_out", axis=axis)


def add_if(text: OnnxText, name: str, branches: Mapping[str, OnnxText]) -> None:
    text.inputs["flag"] = info("flag", [], BOOL)
    graphs = {f"{key}_branch": branch.graph(key, has_inputs=False) for key, branch in branches.items()}
    text.add("If", ["flag"], name, **graphs)
    text.outputs += outputs(name)


@pytest.mark.parametrize("values", [(0, 1), (1, 0), (0, 7)])
def test_axis_behind_a_plain_operator_is_looked_at(values: Sequence[int], tmp_path: Path) -> None:
    """What an axis is computed from belongs to the form as much as the axis itself."""
    ir = IrText()
    inputs = [ir.parameter("data", "f32", (4, 4)), ir.parameter("indices", "i64", (4,))]
    inputs.append(ir.parameter("updates", "f32", (4, 4)))
    for axis in values:
        held = ir.const(f"axis{axis}", "i64", [axis])
        to = {"destination_type": "i32"}
        found = ir.add(f"converted{axis}", "Convert", "opset1", [held], [("i32", (1,))], to)
        ir.add(f"scatter{axis}", "ScatterUpdate", "opset3", [*inputs, found], [("f32", (4, 4))])
    check_forms(ir.write(tmp_path))


@pytest.mark.parametrize("keeper", ["Relu", "Cast", "Identity", "Sigmoid"])
@pytest.mark.parametrize("is_first", [True, False])
def test_shape_stored_around_a_body_is_known_in_it(keeper: str, is_first: bool, tmp_path: Path) -> None:
    """Of two values from around it one has a stored shape that says more than inference knows."""
    main, branches = OnnxText(), {}
    main.input("x", ["n", 4])
    main.stored.append(info("left" if is_first else "right", [1, 4]))
    for key, name in (("then", "left"), ("else", "right")):
        main.add("Relu", ["x"], name)
        branches[key] = branch = OnnxText()
        more = {"to": FLOAT} if keeper == "Cast" else {}
        data = branch.add(keeper, [name], f"{key}_data", **more)
        branch.outputs = outputs(add_scatter(branch, key, data))
    add_if(main, "chosen", branches)
    check_forms(main.write(tmp_path))


@pytest.mark.parametrize("ir_version", [3, 10])
def test_default_that_contradicts_its_input(ir_version: int, tmp_path: Path) -> None:
    main = OnnxText()
    for key in "ab":
        first = add_scatter(main, f"{key}_first", main.input(key, [9, 4]), [[5, 0]], axis=0)
        main.outputs += outputs(add_scatter(main, f"{key}_second", first, [[5, 0]], axis=0))
    main.hold("b", np.zeros((3, 4), np.float32))
    check_forms(main.write(tmp_path, ir_version=ir_version))


def bfloat16(text: OnnxText, prefix: str, domain: str) -> None:
    """Add ScatterElements of constants of a type that version 11 does not take."""
    for name, type, size, width in (("data", 16, 4, 2), ("indices", 7, 1, 8), ("updates", 16, 1, 2)):
        held = TensorProto(data_type=type, dims=[size], raw_data=b"\0" * (size * width))
        text.add("Constant", [], f"{prefix}_{name}", value=held)
    operands = [f"{prefix}_{name}" for name in ("data", "indices", "updates")]
    text.add("ScatterElements", operands, f"{prefix}_out", domain=domain)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_function_of_another_opset(domain: str, tmp_path: Path) -> None:
    """The opset counts, by whichever of its two names a node calls the domain."""
    main, inner = OnnxText(), OnnxText()
    bfloat16(main, "main", domain)
    bfloat16(inner, "inner", domain)
    function = helper.make_function("my", "F", [], ["inner_out"], inner.nodes, [helper.make_opsetid("", 11)])
    main.add("F", [], "called", domain="my")
    main.outputs = outputs("main_out", "called")
    path = main.write(tmp_path, opset=13, functions=[function])
    assert [one.code for one in validate(read(path)) if one.location.scope.startswith("my::F")] == ["SCT201"]
    check_forms(path)


def odd_constant(kind: str) -> NodeProto:
    """Return a node that looks like a Constant of [[1], [2]] and is none."""
    found = node("Constant", [], ["odd"], name="odd_node", value=tensor("", np.array([[1], [2]])))
    match kind:
        case "another domain":
            found.domain = "my"
        case "two values":
            found.attribute.insert(0, helper.make_attribute("value_ints", [77, 78]))
        case "two outputs":
            found.output.append("more")
        case "of a call":
            found.attribute[0].ref_attr_name = "value"
        case "segment":
            found.attribute[0].t.segment.end = 2
    return found


@pytest.mark.parametrize("kind", ["another domain", "two values", "two outputs", "of a call", "segment", ""])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_only_looks_like_a_constant(kind: str, is_first: bool, tmp_path: Path) -> None:
    main = OnnxText(nodes=[odd_constant(kind)])
    main.add("Constant", [], "plain", value=tensor("", np.array([[1], [2]])))
    operands = main.input("data", [4, 1]), main.input("updates", [2, 1])
    for name in ("odd", "plain") if is_first else ("plain", "odd"):
        add = [operands[0], name, operands[1]]
        main.outputs += outputs(main.add("ScatterElements", add, f"{name}_out"))
    check_forms(main.write(tmp_path))


def test_function_of_several_signatures(tmp_path: Path) -> None:
    main, inner = OnnxText(), OnnxText()
    inner.add("Relu", ["data"], "calm")
    inner.add("Constant", [], "indices", value=tensor("", FLAT))
    for axis in (0, 1):
        inner.add("ScatterElements", ["calm", "indices", "updates"], f"along{axis}", axis=axis)
        inner.add("ScatterElements", [f"along{axis}", "indices", "updates"], f"again{axis}", axis=axis)
    imports = [helper.make_opsetid("", 18)]
    names = ["data", "updates"], ["again0", "again1"]
    function = helper.make_function("my", "F", *names, inner.nodes, imports)
    main.input("updates", [2, 2])
    signatures: Sequence[Dims] = [4, 4], [4, 4], [3, 4], ["n", 2], [2, 2], None
    for number, dims in enumerate(signatures):
        given = [main.input(f"data{number}", dims), "updates"]
        main.nodes.append(node("F", given, [f"a{number}", f"b{number}"], domain="my"))
        main.outputs += outputs(f"a{number}", f"b{number}")
    check_forms(main.write(tmp_path, functions=[function]))


def test_loop_whose_body_scatters(tmp_path: Path) -> None:
    main, body = OnnxText(), OnnxText()
    for name, dims, type in (("number", [], INT64), ("go", [], BOOL), ("state", [4, 4], FLOAT)):
        body.input(name, dims, type)
    first = add_scatter(body, "first", "state")
    second = add_scatter(body, "second", body.add("Relu", [first], "calm"))
    for key in ("third", "fourth"):
        body.add("Identity", [main.input(f"{key}_outer", [4, 4])], f"{key}_data")
        add_scatter(body, key, f"{key}_data", FLAT if key == "third" else FLAT[::-1])
    body.outputs = [info("go", [], BOOL), info(second, [4, 4])]
    main.add("Loop", ["", "", main.input("start", [4, 4])], "end", body=body.graph("body"))
    main.outputs = outputs("end")
    assert check_forms(main.write(tmp_path)) > 0
