"""ONNX files changed at random, byte by byte and field by field, held against onnxruntime.

Whatever the file holds, reading, validating, inspecting and converting it ends with a sentence. What
onnxruntime refuses because of a scatter node and we call clean, and what it takes and we call an error,
is counted by class, and every class is one that is explained here.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from tests.campaigns.children import Child, answer
from tests.formats.ir_files import MODELS
from tests.scale import cases, generator, in_part_and_whole

CASES = 200
_HERE = "tests.campaigns.test_onnx_mutations"

CLEAN_BUT_REFUSED = {
    # onnx.proto: `type` says which field of an attribute counts; another one that is set beside it says nothing.
    "another field of an attribute is set": r"type field and data field mismatch in attribute",
    # onnx.proto: a function has opsets of its own; onnxruntime reads its nodes with those of the model.
    "a function of another opset": r'"_inlfunc_f.*(No Op registered|Unrecognized attribute)',
    # The indices are fed: where a dimension has no elements, no feed would be legal.
    "nothing to write to": r"within the inclusive range \[0,-1\]|indices must be empty when an indexed data dimension",
    # A loop may carry another shape in every iteration, and another one than its body declares: which one is
    # known when it runs.
    "a shape that a loop carries": (
        r"running Loop node.*(updates tensor should have|rank|IsAxisInRange|dimension|shape|invalid indice found)"
    ),
    # The type that the file stores for an output is a memory; ours is a warning (SCT502).
    "a stored type": r"^\S* : 1 : FAIL : .*Type Error: Type \(.*of output arg",
}
"""Classes of what onnxruntime says of a scatter node of a file that we call clean."""

ERROR_BUT_TAKEN = {
    "SCT105": "a word of no document is computed as none",
    "SCT203": "the node did not run: its body has no iterations, or is not the branch that was taken",
    "SCT207": "the node did not run, as above",
    "SCT302": "the node did not run, as above",
    "SCT301": "the node did not run, as above",
    "SCT210": "the node did not run, or its body declares another shape than it is given, which is overlooked",
    "SCT403": "onnx.proto wants an opset for each domain; where there is none, the newest one is taken",
    "SCT921": "nothing in the function produces a value; it is not called, or finds the name where it is inlined",
    "SCT928": "OpenVINO reads a dimension below -1 of an input as 0; onnxruntime takes it for an unknown one",
}
"""Codes of errors in files that onnxruntime runs, and why they are errors all the same."""


_BODIES = {
    "plain": "y = SCATTER",
    "branch": """y = If (c) <
        then_branch = then () => (float[4, 5] a) <INDICES> { a = SCATTER },
        else_branch = other () => (float[4, 5] b) { b = Identity (data) }
      >""",
    "loop": """y = Loop (trips, , data) <
        body = body (int64 n, bool go, float[4, 5] old) => (bool go_on, float[4, 5] new) <INDICES> {
          go_on = Identity (go)
          new = SCATTER
        }
      >""",
    "function": "y = my.f (data, indices, updates)",
}
"""Where a scatter node of data [4, 5] and updates [2, 5] may stand."""


def seeds() -> list[ModelProto]:
    """Return small models: every operator and version, in bodies and functions, with constants and without."""
    cache = """<ir_version: 10, opset_import: ["" : 24]>
      g (float[1, 1, 4, 5] data, float[1, 1, 2, 5] updates) => (float[1, 1, 4, 5] y) <int64[1] w = {1}> {
        [s] y = TensorScatter <axis = -2> (data, updates, w)
      }"""
    found = [parser.parse_model(cache)]
    grid = "indices", "[2, 5]", "{0, 1, 2, 3, 0, 3, 2, 1, 0, 1}"
    rows = "indices", "[2, 1]", "{1, 3}"
    for opset in (9, 10, 11, 13, 16, 18, 21):
        word = "" if opset < 16 else 'reduction = "add"' if opset < 18 else 'reduction = "max"'
        axis = f"axis = 0, {word}".removesuffix(", ")
        forms = [("ScatterElements", " <axis = 0>", grid), ("ScatterND", "", rows)]
        forms += [("ScatterElements", f" <{axis}>", grid), ("ScatterND", f" <{word}>", rows)] if word else []
        for type, attributes, indices in forms if opset > 10 else [("Scatter", " <axis = 0>", grid)]:
            for place in _BODIES if opset >= 13 else ["plain"]:
                found.append(_seed(opset, place, f"{type}{attributes}", indices, is_fed=False))
            found.append(_seed(opset, "plain", f"{type}{attributes}", indices, is_fed=True))
    for graph in (graph for model in found for graph in graphs(model)):
        for node in graph.node:
            node.name = node.name or node.op_type
        for tensor in graph.initializer if isinstance(graph, GraphProto) else ():
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))  # raw bytes
    return found


def _seed(opset: int, place: str, operator: str, indices: tuple[str, ...], *, is_fed: bool) -> ModelProto:
    name, shape, numbers = indices
    constant, is_inside = f"int64{shape} {name} = {numbers}", place in {"branch", "loop"}
    node = f"{operator} ({'old' if place == 'loop' else 'data'}, indices, updates)"
    inputs = [f"int64{shape} {name}"] if is_fed else ["bool c"] if place == "branch" else []
    constants = [] if is_inside or is_fed else [constant]
    constants += ["int64 trips = {2}"] if place == "loop" else []
    body = _BODIES[place].replace("INDICES", constant).replace("SCATTER", node)
    text = f"""<ir_version: 10, opset_import: ["" : {opset}, "my" : 1]>
      g ({", ".join(["float[4, 5] data", "float[2, 5] updates", *inputs])}) => (float[4, 5] y)
      <{", ".join(constants)}> {{ {body} }}"""
    if place == "function":
        text += f"""
          <domain: "my", opset_import: ["" : {opset}]> f (data, indices, updates) => (y) {{ y = {node} }}"""
    return parser.parse_model(text)


def small_real_models() -> list[bytes]:
    """Return real models that are small enough to be changed often."""
    return [path.read_bytes() for path in sorted(MODELS.rglob("*.onnx")) if path.stat().st_size < 60_000]


NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7, -4, -5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63)]
WORDS = [
    "", "none", "add", "mul", "max", "min", "sum", "ADD", "linear", "circular", "x", "é", "y", "data", "indices",
    "updates",
]  # fmt: skip
TYPES = [
    "Scatter", "ScatterElements", "ScatterND", "TensorScatter", "Identity", "Add", "If", "Loop", "f", "Unknown",
]  # fmt: skip


def graphs(proto: ModelProto) -> list[Any]:
    """Return the graphs and functions of a model."""
    found: list[Any] = [proto.graph, *proto.functions]
    for graph in found:
        for node in graph.node:
            found += [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]
    return found


def change_node(chance: random.Random, node: NodeProto) -> None:
    kind = chance.randrange(7)
    names = chance.choice([node.input, node.output])
    if kind == 0 and names:
        names[chance.randrange(len(names))] = chance.choice(WORDS)
    elif kind == 1:
        names.append(chance.choice(WORDS))
    elif kind == 2 and names:
        del names[chance.randrange(len(names))]
    elif kind == 3:
        node.op_type = chance.choice(TYPES)
    elif kind == 4:
        node.attribute.append(
            helper.make_attribute(
                chance.choice(["axis", "reduction", "mode", "other"]),
                chance.choice([*NUMBERS, "add", 1.5, [1, 2]]),
            )
        )
    elif kind == 5 and node.attribute:
        attribute = chance.choice(node.attribute)
        attribute.i, attribute.s = chance.choice(NUMBERS), chance.choice(WORDS).encode()
    elif node.attribute:
        del node.attribute[chance.randrange(len(node.attribute))]


def change_tensor(chance: random.Random, tensor: TensorProto) -> None:
    kind = chance.randrange(6)
    if kind == 0 and tensor.dims:
        tensor.dims[chance.randrange(len(tensor.dims))] = chance.choice(NUMBERS)
    elif kind == 1:
        tensor.dims.append(chance.choice(NUMBERS))
    elif kind == 2:
        tensor.data_type = chance.randrange(28)
    elif kind == 3:
        tensor.raw_data = tensor.raw_data[: chance.randrange(len(tensor.raw_data) + 1)]
    elif kind == 4 and tensor.raw_data:
        numbers = np.frombuffer(tensor.raw_data[: len(tensor.raw_data) // 8 * 8], np.int64).copy()
        if len(numbers):
            numbers[chance.randrange(len(numbers))] = chance.choice(NUMBERS)
            tensor.raw_data = numbers.tobytes()
    else:
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in (
            ("location", chance.choice(["w.bin", "../w.bin", "none.bin"])),
            ("offset", str(chance.choice(NUMBERS))),
            ("length", str(len(tensor.raw_data))),
        ):
            tensor.external_data.add(key=key, value=text)
        tensor.raw_data = b""


def change_type(chance: random.Random, info: onnx.ValueInfoProto) -> None:
    kind, tensor = chance.randrange(5), info.type.tensor_type
    if kind == 0:
        tensor.elem_type = chance.randrange(28)
    elif kind == 1 and tensor.shape.dim:
        tensor.shape.dim[chance.randrange(len(tensor.shape.dim))].dim_value = chance.choice(NUMBERS)
    elif kind == 2:
        tensor.shape.dim.add(dim_value=chance.choice(NUMBERS))
    elif kind == 3 and tensor.shape.dim:
        tensor.shape.dim[chance.randrange(len(tensor.shape.dim))].dim_param = chance.choice(WORDS)
    else:
        tensor.ClearField("shape")


def change_graph(chance: random.Random, graph: Any) -> None:
    kind = chance.randrange(3)
    if kind == 0 and graph.node:
        graph.node.append(chance.choice(graph.node))
    elif kind == 1 and len(graph.node) > 1:
        nodes = list(graph.node)
        chance.shuffle(nodes)
        del graph.node[:]
        graph.node.extend(nodes)
    elif graph.node:
        del graph.node[chance.randrange(len(graph.node))]


def change(chance: random.Random, proto: ModelProto) -> None:
    """Change one field."""
    graph = chance.choice(graphs(proto))
    kind = chance.randrange(10)
    if kind < 4 and graph.node:
        change_node(chance, chance.choice(graph.node))
    elif kind < 6 and isinstance(graph, GraphProto) and graph.initializer:
        change_tensor(chance, chance.choice(graph.initializer))
    elif kind < 8 and isinstance(graph, GraphProto):
        declared = [*graph.input, *graph.output, *graph.value_info]
        if declared:
            change_type(chance, chance.choice(declared))
    elif kind == 8 and proto.opset_import:
        chance.choice(proto.opset_import).version = chance.choice([*range(1, 27), *NUMBERS[:8]])
    else:
        change_graph(chance, graph)


def change_bytes(chance: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place, kind = chance.randrange(len(changed)), chance.randrange(5)
        if kind < 2:
            changed[place] = chance.randrange(256)
        elif kind == 2:
            del changed[place : place + chance.randrange(20)]
        elif kind == 3:
            changed[place:place] = changed[place : place + chance.randrange(40)]
        else:
            changed[place:place] = b"\xff\xff\xff\xff\x7f"
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def mutant(number: int, small: list[ModelProto], real: list[bytes]) -> bytes:
    chance = generator("onnx mutations", number)
    data = (
        chance.choice(real) if real and chance.random() < 0.15 else chance.choice(small).SerializeToString()
    )
    if chance.random() < 0.25:
        return change_bytes(chance, data)
    proto = ModelProto.FromString(data)
    for _ in range(chance.randint(1, 2)):
        change(chance, proto)
    return bytes(proto.SerializeToString())


def about_scatter(said: str) -> bool:
    """Whether it complains about a scatter node; tensors are often named after one."""
    schema = re.search(r"with schema\(\S*::(\w+):\d+\)", said)
    if schema:
        return "Scatter" in schema[1]
    return re.search(r"(?<!my:)\b(?:Tensor)?Scatter", said) is not None


def class_of(said: str) -> str:
    """Return what onnxruntime says without names and numbers."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", said)
    text = re.sub(r"Load model from \S+ failed:", "", text)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\([^)]*\)|-?\d+", "*", text)
    return " ".join(text.split())[:160]


@in_part_and_whole
def test_mutants(tmp_path: Path, figures: Counter[str], is_whole: bool) -> None:
    small, real = seeds(), small_real_models()
    (tmp_path / "w.bin").write_bytes(bytes(80))
    ours, theirs = Child(_HERE, "ours"), Child(_HERE, "theirs")
    unexplained: dict[str, list[int]] = {}
    try:
        for number in cases(CASES, is_whole):
            path = tmp_path / "mutant.onnx"
            path.write_bytes(mutant(number, small, real))
            found = ours.ask(path)
            assert found is not None, f"case {number}: the process ended, or took too long"
            assert "bug" not in found, f"case {number}: {found['bug']}"
            figures["mutants"] += 1
            figures["readable"] += found["readable"]
            figures["with errors"] += found["readable"] and bool(found["errors"])
            known = theirs.ask(path)
            if known is None:
                figures["onnxruntime died"] += 1
                continue
            for name in judged(found, known, figures):
                unexplained.setdefault(name, []).append(number)
    finally:
        ours.close()
        theirs.close()
    assert unexplained == {}


def judged(found: dict[str, Any], known: dict[str, Any], figures: Counter[str]) -> Iterator[str]:
    """Yield the classes of disagreement that nothing explains."""
    is_clean = found["readable"] and not found["errors"]
    if is_clean and known["said"] and found["nodes"] and about_scatter(known["said"]):
        figures["clean, but refused"] += 1
        if not any(re.search(pattern, known["said"]) for pattern in CLEAN_BUT_REFUSED.values()):
            yield f"clean, but refused: {class_of(known['said'])}"
    if known.get("ran") and not is_clean:
        figures["an error, but taken"] += 1
        for code in sorted({*found["errors"]} - ERROR_BUT_TAKEN.keys()):
            yield f"{code}, but taken"


def test_seeds_are_clean_and_taken(tmp_path: Path) -> None:
    path = tmp_path / "seed.onnx"
    ours, theirs = Child(_HERE, "ours"), Child(_HERE, "theirs")
    try:
        for number, seed in enumerate(seeds()):
            path.write_bytes(seed.SerializeToString())
            found, known = ours.ask(path), theirs.ask(path)
            assert found is not None
            assert known is not None
            assert (found["readable"], found["errors"], found["nodes"]) == (True, [], 1), (number, found)
            assert known["opened"], (number, known)
    finally:
        ours.close()
        theirs.close()


def test_disagreement_is_seen() -> None:
    """The judgement of a file that one side takes and the other does not, of no known class."""
    clean = {"readable": True, "nodes": 1, "errors": []}
    refused = {"opened": False, "said": "ScatterND 's': something new about 7"}
    assert [*judged(clean, refused, Counter())] == ["clean, but refused: ScatterND *: something new about *"]
    taken = {"opened": True, "ran": True, "said": ""}
    assert [*judged({**clean, "errors": ["SCT204"]}, taken, Counter())] == ["SCT204, but taken"]
    assert [*judged(clean, taken, Counter())] == []


def ours(path: str) -> dict[str, Any]:
    """Read, validate, inspect and convert a file."""
    import ir_scatter
    from ir_scatter.core.errors import Error
    from ir_scatter.core.files import Source
    from ir_scatter.inspect import inspect
    from ir_scatter.lint import Options, check_file

    result = check_file(Source(path), Options())
    assert not result.bug, result.bug
    if not result.is_readable:
        return {"readable": False, "nodes": 0, "errors": [one.code for one in result.diagnostics]}
    model = ir_scatter.read(path)
    inspect(model)
    for target in (None, "ScatterND", "ScatterElements"):
        try:
            ir_scatter.convert(model, target, verify=1).diff()
        except Error:
            continue
    errors = [one.code for one in result.diagnostics if one.severity.name == "ERROR"]
    return {"readable": True, "nodes": result.scatter_nodes, "errors": errors}


def theirs(path: str) -> dict[str, Any]:
    """Open a file with onnxruntime, and run it where all inputs have a small and known shape."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"opened": False, "said": str(error)}
    types = {"float": "f4", "int64": "i8", "int32": "i4", "double": "f8", "float16": "f2", "bool": "?"}
    inputs = onnx.load(path, load_external_data=False).graph.input
    known = {one.name for one in inputs if one.type.tensor_type.HasField("shape")}
    feeds = {}
    for one in session.get_inputs():
        kind, shape = types.get(one.type[7:-1]), one.shape
        if (
            kind is None
            or one.name not in known
            or not all(isinstance(size, int) for size in shape)
            or np.prod(shape, dtype=float) > 1e6
        ):
            return {"opened": True, "ran": None, "said": ""}
        feeds[one.name] = np.zeros(shape, kind)
    try:
        session.run(None, feeds)
    except Exception as error:
        return {"opened": True, "ran": False, "said": str(error)}
    return {"opened": True, "ran": True, "said": ""}


if __name__ == "__main__":
    answer({"ours": ours, "theirs": theirs})
