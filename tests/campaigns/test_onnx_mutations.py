"""ONNX files changed at random, byte by byte and field by field, held against onnxruntime.

Whatever the file holds, reading, validating, inspecting and converting it ends with a sentence. What
onnxruntime refuses because of a scatter node and we call clean, and what it takes and we call an error,
is counted by class, and every class is one that is explained here.
"""

import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.campaigns.scale import cases, generator
from tests.formats.ir_files import MODELS, ROOT

CASES = 200

CLEAN_BUT_REFUSED = {
    # onnx.proto: `type` says which field of an attribute counts; another one that is set beside it says nothing.
    "another field of an attribute is set": r"type field and data field mismatch in attribute",
    # onnx.proto: names of attributes are unique in a node. That is no matter of scatter operators; we read the last.
    "an attribute twice": r"Attribute '\w+' appeared multiple times",
    # onnx.proto: a function has opsets of its own; onnxruntime reads its nodes with those of the model.
    "a function of another opset": r'"_inlfunc_f.*(No Op registered|Unrecognized attribute)',
    # The indices are fed: where a dimension has no elements, no feed would be legal.
    "nothing to write to": r"within the inclusive range \[0,-1\]|indices must be empty when an indexed data dimension",
    # onnx.proto: from IR version 2 on an attribute says its type. We read the field that is set; no matter of
    # scatter operators either.
    "an attribute without a type": r"Field 'type' of 'attr' is required but missing",
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
    "SCT928": "onnx.proto has no negative dimensions; onnxruntime takes them for unknown ones",
}
"""Codes of errors in files that onnxruntime runs, and why they are errors all the same."""


def value(name: str, shape: list[Any], type: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type, shape)


def constant(name: str, numbers: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def model(nodes: list[NodeProto], opset: int, constants: list[TensorProto], **more: Any) -> ModelProto:
    inputs = [value("data", [4, 5]), value("updates", [2, 5]), *more.pop("inputs", [])]
    graph = helper.make_graph(nodes, "g", inputs, [value("y", [4, 5])], constants)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports, **more)


def scatters(opset: int) -> Iterator[tuple[NodeProto, TensorProto]]:
    """Yield every scatter operator of an opset, of data [4, 5] and updates [2, 5]."""
    grid, rows = [[0, 1, 2, 3, 0], [3, 2, 1, 0, 1]], [[1], [3]]
    inputs = ["data", "indices", "updates"]
    if opset < 11:
        yield helper.make_node("Scatter", inputs, ["y"], "s", axis=0), constant("indices", grid)
        return
    reductions = [None] if opset < 16 else [None, "add"] if opset < 18 else [None, "max"]
    for reduction in reductions:
        words = {} if reduction is None else {"reduction": reduction}
        yield (
            helper.make_node("ScatterElements", inputs, ["y"], "s", axis=0, **words),
            constant("indices", grid),
        )
        yield helper.make_node("ScatterND", inputs, ["y"], "s", **words), constant("indices", rows)


def seeds() -> list[ModelProto]:
    """Return small models: every operator and version, in bodies and functions, with constants and without."""
    found = []
    for opset in (9, 10, 11, 13, 16, 18, 21):
        for node, indices in scatters(opset):
            found.append(model([node], opset, [indices]))
            shape = list(indices.dims)
            found.append(model([node], opset, [], inputs=[value("indices", shape, TensorProto.INT64)]))
            if opset >= 13:
                found += [make(node, indices, opset) for make in (in_branch, in_loop, in_function)]
    cache = helper.make_node("TensorScatter", ["data", "updates", "w"], ["y"], "s", axis=-2)
    graph = helper.make_graph(
        [cache], "g", [value("data", [1, 1, 4, 5]), value("updates", [1, 1, 2, 5])], [value("y", [1, 1, 4, 5])],
        [constant("w", [1])],
    )  # fmt: skip
    found.append(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 24)]))
    return found


def in_branch(node: NodeProto, indices: TensorProto, opset: int) -> ModelProto:
    other = helper.make_graph([helper.make_node("Identity", ["data"], ["y"])], "e", [], [value("y", [4, 5])])
    then = helper.make_graph([node], "t", [], [value("y", [4, 5])], [indices])
    choice = helper.make_node("If", ["c"], ["y"], "if", then_branch=then, else_branch=other)
    return model([choice], opset, [], inputs=[value("c", [], TensorProto.BOOL)])


def in_loop(node: NodeProto, indices: TensorProto, opset: int) -> ModelProto:
    inner = NodeProto()
    inner.CopyFrom(node)
    inner.input[0] = "carried"
    go = helper.make_node("Identity", ["go"], ["go_on"])
    inputs = [value("n", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("carried", [4, 5])]
    body = helper.make_graph(
        [go, inner], "b", inputs, [value("go_on", [], TensorProto.BOOL), value("y", [4, 5])], [indices]
    )
    loop = helper.make_node("Loop", ["trips", "", "data"], ["y"], "loop", body=body)
    return model([loop], opset, [constant("trips", 2)])


def in_function(node: NodeProto, indices: TensorProto, opset: int) -> ModelProto:
    inner = NodeProto()
    inner.CopyFrom(node)
    inputs = ["data", "indices", "updates"]
    function = helper.make_function("my", "f", inputs, ["y"], [inner], [helper.make_opsetid("", opset)])
    return model(
        [helper.make_node("f", inputs, ["y"], "call", domain="my")], opset, [indices], functions=[function]
    )


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


class Child:
    """A process that answers for one file after the other; it is started again if it ends."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.campaigns.mutation_child", self.kind]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)

    def ask(self, path: Path) -> dict[str, Any] | None:
        """Return the answer; None if the process ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        self.process.communicate()
        self.process = self._start()
        return None

    def close(self) -> None:
        self.process.communicate()


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


def test_mutants(tmp_path: Path, figures: Counter[str]) -> None:
    small, real = seeds(), small_real_models()
    (tmp_path / "w.bin").write_bytes(bytes(80))
    ours, theirs = Child("ours"), Child("theirs")
    unexplained: dict[str, list[int]] = {}
    try:
        for number in cases(CASES):
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
    ours, theirs = Child("ours"), Child("theirs")
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
