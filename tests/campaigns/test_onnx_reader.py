"""ONNX models changed at random, in one field each, held against onnx.checker and onnxruntime.

What they refuse to load and we call clean, and what they load and we call an error, is counted by class, and every
class is one that is explained here.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from onnx import GraphProto, ModelProto, NodeProto, parser

from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.files import Source
from ir_scatter.lint import Options, check_file
from tests.campaigns import body_models
from tests.campaigns.children import Child, answer
from tests.campaigns.test_onnx_mutations import seeds as of_every_row
from tests.formats.ir_files import MODELS
from tests.models.onnx_text import NESTED
from tests.scale import NIGHTLY, cases, generator, in_part_and_whole

CASES = 20
_HERE = "tests.campaigns.test_onnx_reader"
_LARGEST = 20_000
_GENERATED = 12
_SCATTERS = frozenset({"Scatter", "ScatterElements", "ScatterND", "TensorScatter"})
_ENDED = {"checker": "the process ended", "onnxruntime": "the process ended"}

CLEAN_BUT_REFUSED = {
    # What a file stores of the shapes of values, and of the types of those that no node makes, is a memory: where
    # it is wrong we warn (SCT501 to SCT505). Only onnx.checker refuses it.
    "something stored": (
        r"Inferred shape and existing shape differ|Inferred elem type differs from existing"
        r"|updates has inconsistent type"
    ),
    # An opset or an IR version that these releases do not know: newer ones may.
    "a newer version": r"Unsupported model IR version|only \*guarantees\* support|is out of supported range",
    # Readers do without them, onnxruntime as well.
    "a field that nobody needs": (
        r"Field '(shape|type|elem_type)' of '(type|value_info)' is required|Unrecognized type value case"
        r"|Field 'name' of '(graph|init|value_info|tensor)' is required|cannot have opset_import specified"
        r"|Field 'domain' of 'function' is required|in initializer but not in graph input"
    ),
    # A warning (SCT927): onnxruntime and OpenVINO sort.
    "the order of nodes": r"Nodes in a graph must be topologically sorted",
    # onnx.proto: a function has opsets of its own; onnxruntime reads its nodes with those of the model.
    "a function of another opset": r"not compatible with the version imported by model|\"_inlfunc_",
    # Whoever loads the library of a custom operator runs the model.
    "a custom operator": r"is not a registered function/op",
    # The condition that is left out, for one, tells nothing of the body's input.
    "an input of a body that nothing tells the type of": r"inferencing failed: .*does not have type information",
}
"""Classes of what onnx.checker and onnxruntime say of a file that we call clean, whose words tell them."""

ERROR_BUT_TAKEN = {
    "SCT105": "a word of no document is computed as none",
    "SCT203": "shapes of scatter nodes are looked at when they run",
    "SCT206": "as above",
    "SCT207": "as above",
    "SCT209": "as above; or a dimension of 2^62 is one that no memory holds",
    "SCT210": "as above",
    "SCT301": "indices are looked at when the node runs",
    "SCT302": "as above",
    "SCT403": "onnx.proto wants an opset for each domain; where there is none, the newest one is taken",
    "SCT920": "onnxruntime looks at names of values that are used, IR.md at all",
    "SCT928": "onnx.proto wants an IR version, and no dimension below -1 in an input; both are overlooked",
    "SCT935": "IR.md wants names of inputs; where nothing looks for one, it is overlooked",
    "SCT937": "IR.md wants an opset for each domain; what leads to no output is overlooked",
}
"""Codes of errors in files that both take, and why they are errors all the same."""

_FED = """<ir_version: 10, opset_import: ["" : 18]>
fed (float[6, 5] data, float[3, 5] updates, int64[3] rows, float[1, 2, 4, 4] picture, bool flag)
  => (float[6, 5] out, float[6, 5] grid, float[6, 5] more, float[1, 3, 3, 3] seen)
<int64 one = {1}, int64[1] last = {-1}, int64[1] zero = {0}, int64[1] end = {3}, int64[2] wide = {3, 5},
 float[5, 5] square = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7},
 float[3, 2, 2, 2] kernel = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}> {
  narrow = Cast <to = 6> (rows)
  whole = Cast <to = 7> (narrow)
  moved = Add (whole, one)
  tuples = Unsqueeze (moved, last)
  turned = MatMul (updates, square)
  positive = Relu (turned)
  some = Slice (data, zero, end, zero)
  chosen = Where (flag, positive, some)
  out = ScatterND <reduction = "add"> (data, tuples, chosen)
  size = Shape (updates)
  zeros = ConstantOfShape <value = int64[1] {0}> (size)
  both = Concat <axis = 0> (chosen, some)
  left, right = Split <axis = 0, num_outputs = 2> (both)
  grid = ScatterElements <axis = 0> (out, zeros, left)
  flat = Reshape (tuples, last)
  column = Unsqueeze (flat, last)
  spread = Expand (column, wide)
  turned_data = Transpose <perm = [1, 0]> (data)
  straight = Transpose <perm = [1, 0]> (turned_data)
  soft = Softmax <axis = 1> (right)
  more = ScatterElements <axis = 0> (straight, spread, soft)
  feature = Conv <kernel_shape = [2, 2]> (picture, kernel)
  pooled = MaxPool <kernel_shape = [1, 1]> (feature)
  place = Constant <value = int64[1, 1] {0}> ()
  nothing = Sub (zero, zero)
  part = Gather <axis = 0> (pooled, nothing)
  seen = ScatterND (pooled, place, part)
}"""
"""A model whose scatter nodes are fed by general operators."""

_STORED = """<ir_version: 10, opset_import: ["" : 18]>
stored (float[N, 5] data, float[3, 5] updates, int64[3] rows) => (float[N, 5] out)
<int64[1] last = {-1}, float[3, 5] column, int64[3, 1] tuples, float[3, 5] soft, int64[3] moved, int64[1] more = {1}> {
  moved = Add (rows, more)
  tuples = Unsqueeze (moved, last)
  column = Relu (updates)
  soft = Softmax <axis = -1> (column)
  out = ScatterND (data, tuples, soft)
}"""
"""A model that stores the types of its values."""


def seeds(folder: Path) -> list[bytes]:
    """Return small legal models: bodies, functions, every row, general operators in front, real ones."""
    found = [parser.parse_model(text) for text in (_FED, _STORED) * 5]
    found += of_every_row()
    found += [parser.parse_model(text) for text, _ in NESTED.values() if "Scatter" in text]
    generated = [
        body_models.write(
            generator("onnx reader seeds", number), folder, is_onnx=True, name=f"body_{number}"
        )[0]
        for number in range(_GENERATED)
    ]
    real = [path for path in sorted(MODELS.rglob("*.onnx")) if NIGHTLY and path.stat().st_size <= _LARGEST]
    clean = [path for path in real if not ours(path)[1]]
    return [
        *[one.SerializeToString() for one in found],
        *[path.read_bytes() for path in (*generated, *clean)],
    ]


class Site(NamedTuple):
    """A field of a message that is set."""

    message: Any
    field: Any
    value: Any

    @property
    def is_list(self) -> bool:
        return hasattr(self.value, "add") or hasattr(self.value, "append")


def sites(message: Any) -> Iterator[Site]:
    """Yield every field that is set in a message and in those in it."""
    for field, value in message.ListFields():
        site = Site(message, field, value)
        yield site
        if field.message_type is not None:
            for inner in value if site.is_list else (value,):
                yield from sites(inner)


NUMBERS = [0, 1, -1, 2, 3, 4, 5, 6, 7, 10, 11, 13, 17, 21, 27, 2**31 - 1, -(2**31), 2**62, -(2**63)]
_IDLE = frozenset(
    {"doc_string", "producer_name", "producer_version", "metadata_props", "model_version", "denotation"}
)
"""Fields that say nothing to whoever computes."""
_SEEN_AS_BYTES = frozenset({"raw_data", "float_data", "int32_data", "int64_data"})


def mutant(chance: random.Random, seed: bytes) -> bytes:
    """Change one field of a model."""
    model = ModelProto.FromString(seed)
    found = [site for site in sites(model) if site.field.name not in _IDLE]
    names = sorted({site.field.name for site in found})
    if chance.random() < 0.5:
        name = chance.choice(names)
        found = [site for site in found if site.field.name == name]
    change(chance, chance.choice(found), model)
    return bytes(model.SerializeToString())


def change(chance: random.Random, site: Site, model: ModelProto) -> None:
    """Change one field: take it away, or put something else, or something more, into it."""
    field, message = site.field, site.message
    like = [one for one in sites(model) if one.field.full_name == field.full_name]
    if not site.is_list:
        if chance.random() < 0.3:
            message.ClearField(field.name)
        elif field.message_type is not None:
            site.value.CopyFrom(copied(chance.choice(like).value))
        else:
            setattr(message, field.name, another(chance, site, like, model))
        return
    place, kind = chance.randrange(len(site.value)), chance.choice(["take", "put", "move", "change"])
    other = chance.choice(chance.choice(like).value)
    if kind == "take":
        del site.value[place]
    elif field.message_type is None and kind == "change":
        site.value[place] = another(chance, site, like, model)
    elif field.message_type is None:
        site.value.insert(place, other if kind == "put" else another(chance, site, like, model))
    else:
        parts, other = [copied(one) for one in site.value], copied(other)
        if kind == "put":
            parts.insert(place, other)
        elif kind == "move":
            parts.insert(chance.randrange(len(parts)), parts.pop(place))
        else:
            parts[place] = other
        del site.value[:]
        site.value.extend(parts)


def copied(message: Any) -> Any:
    return type(message).FromString(message.SerializeToString())


_TYPES = [
    "Add", "Cast", "Concat", "Constant", "ConstantOfShape", "Dropout", "Expand", "Gather", "If", "Identity",
    "Loop", "Relu", "Reshape", "Scan", "Scatter", "ScatterElements", "ScatterND", "Shape", "Slice", "Split",
    "Squeeze", "Sum", "Swish", "TensorScatter", "Transpose", "Unknown", "Unsqueeze", "Where",
]  # fmt: skip


def another(chance: random.Random, site: Site, like: list[Site], model: ModelProto) -> Any:
    """Return another value for a field that holds no message."""
    field = site.field
    held = site.value[0] if site.is_list else site.value
    if isinstance(held, float):
        return chance.choice([0.0, 1.5, -1.0, float("nan")])
    if isinstance(held, int):
        if field.enum_type is not None:
            return chance.choice([one.number for one in field.enum_type.values])
        if field.name in {"elem_type", "data_type"}:
            return chance.randrange(27)
        return chance.choice(NUMBERS)
    if isinstance(held, bytes):
        if chance.random() < 0.5 and held:
            place = chance.randrange(len(held))
            return held[:place] + bytes([chance.randrange(256)]) + held[place + 1 :]
        return chance.choice([b"", b"add", b"none", held[:-1], held + b"\0"])
    words = [one.value for one in like if not one.is_list] + [
        word for one in like if one.is_list for word in one.value
    ]
    if field.full_name == "onnx.NodeProto.op_type":
        words = _TYPES
    elif field.full_name in {"onnx.NodeProto.input", "onnx.NodeProto.output"}:
        words += [one.name for one in (*model.graph.input, *model.graph.initializer)]
    return chance.choice([*words, *words, "", "axis", "x"])


def graphs_in(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        yield from [attribute.g] if attribute.HasField("g") else attribute.graphs


def pruned(data: bytes) -> bytes | None:
    """Return a model without the nodes and outputs of its main graph that no scatter node depends on.

    None if none is left.
    """
    model = ModelProto.FromString(data)
    functions = {(one.domain, one.name): one for one in model.functions}

    def holds(nodes: Iterable[NodeProto], depth: int = 0) -> bool:
        for node in nodes:
            called = functions.get((node.domain, node.op_type))
            inner = [graph.node for graph in graphs_in(node)] + (
                [called.node] if called and depth < 5 else []
            )
            if node.op_type in _SCATTERS or any(holds(one, depth + 1) for one in inner):
                return True
        return False

    def names(nodes: Iterable[NodeProto]) -> Iterator[str]:
        for node in nodes:
            yield from node.input
            for graph in graphs_in(node):
                yield from names(graph.node)
                yield from (one.name for one in graph.output)

    def calls(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
        for node in nodes:
            yield node
            for graph in graphs_in(node):
                yield from calls(graph.node)

    kept = [node for node in model.graph.node if holds([node])]
    made = {name for node in kept for name in node.output}
    while more := [one for one in model.graph.node if one not in kept and {*one.output} & {*names(kept)}]:
        kept += more
    nodes = [node for node in model.graph.node if node in kept]
    if not nodes:
        return None
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    called, waiting = set[tuple[str, str]](), [(node.domain, node.op_type) for node in calls(nodes)]
    while waiting:
        key = waiting.pop()
        if key in functions and key not in called:
            called.add(key)
            waiting += [(node.domain, node.op_type) for node in calls(functions[key].node)]
    del model.functions[:]
    model.functions.extend(functions[key] for key in sorted(called))
    outputs = [one for one in model.graph.output if one.name in made]
    del model.graph.output[:]
    model.graph.output.extend(outputs or [onnx.ValueInfoProto(name=name) for name in sorted(made) if name])
    return bytes(model.SerializeToString())


def class_of(said: str) -> str:
    """Return what is said without names and numbers."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", said)
    text = re.sub(r"Load model from \S+ failed:", "", text)
    text = re.sub(r"This is an invalid model. In Node, .*? , Error ", "", text, flags=re.DOTALL)
    text = re.sub(r"\{[^}]*\}|\[[^\]]*\]|'[^']*'|\"[^\"]*\"|\([^)]*\)|-?\d+", "*", text)
    return " ".join(text.split())[:160]


def ours(path: Path) -> tuple[int, list[str]]:
    """Return how many scatter nodes a file has, and the codes of its errors."""
    checked = check_file(Source(str(path)), Options())
    assert not checked.bug, checked.bug
    errors = {one.code for one in checked.diagnostics if one.severity is Severity.ERROR}
    return checked.scatter_nodes, sorted(errors)


def judged(
    errors: list[str], known: Mapping[str, str], of_scatter: Mapping[str, str], figures: Counter[str]
) -> Iterator[str]:
    """Yield the classes of disagreement that nothing explains; `of_scatter` is of the pruned model."""
    for who in ("onnxruntime", "checker"):
        said = known[who]
        if said and not errors and (who == "onnxruntime" or not known["onnxruntime"]):
            names = [
                name for name, pattern in CLEAN_BUT_REFUSED.items() if re.search(pattern, of_scatter[who])
            ]
            names = ["no scatter node depends on it"] if not of_scatter[who] else names
            figures[f"{who} alone: {names[0] if names else 'unexplained'}"] += 1
            if not names:
                yield f"clean, but refused by {who}: {class_of(of_scatter[who])}"
    if errors and not any(known.values()):
        figures["taken alone"] += 1
        if not {*errors} & ERROR_BUT_TAKEN.keys():
            yield f"{' '.join(errors)}, but taken"


@in_part_and_whole
def test_mutants(tmp_path: Path, figures: Counter[str], is_whole: bool) -> None:
    known, child = seeds(tmp_path), Child(_HERE, "theirs")
    path, unexplained = tmp_path / "mutant.onnx", dict[str, list[int]]()
    try:
        for number in cases(CASES, is_whole):
            chance = generator("onnx reader", number)
            data = mutant(chance, chance.choice(known))
            path.write_bytes(data)
            nodes, errors = ours(path)
            if not nodes:
                figures["without scatter nodes"] += 1
                continue
            said = child.ask(path) or _ENDED
            figures["mutants"] += 1
            figures["with errors"] += bool(errors)
            figures["refused by onnxruntime"] += bool(said["onnxruntime"])
            figures["refused by onnx.checker"] += bool(said["checker"])
            rest = said
            if any(said.values()) and not errors:
                rest = {"checker": "", "onnxruntime": ""}
                if (left := pruned(data)) is not None:
                    path.write_bytes(left)
                    rest = child.ask(path) or _ENDED
            for name in judged(errors, said, rest, figures):
                unexplained.setdefault(name, []).append(number)
    finally:
        child.close()
    assert unexplained == {}


def test_seeds_are_clean_and_taken(tmp_path: Path) -> None:
    path, child = tmp_path / "seed.onnx", Child(_HERE, "theirs")
    try:
        for data in seeds(tmp_path):
            path.write_bytes(data)
            assert (ours(path)[1], (child.ask(path) or _ENDED)["onnxruntime"]) == ([], "")
    finally:
        child.close()


def test_disagreement_is_seen() -> None:
    """The judgement of a file that one side takes and the other does not, of no known class."""
    fine = {"checker": "", "onnxruntime": ""}
    refused = {**fine, "onnxruntime": "[ONNXRuntimeError] : 1 : FAIL : Something new about 'x' and 7"}
    found = [*judged([], refused, refused, Counter())]
    assert found == ["clean, but refused by onnxruntime: Something new about * and *"]
    assert [*judged([], refused, fine, Counter())] == []
    assert [*judged(["SCT204"], fine, fine, Counter())] == ["SCT204, but taken"]
    assert [*judged(["SCT204"], refused, refused, Counter()), *judged([], fine, fine, Counter())] == []


def theirs(path: str) -> dict[str, Any]:
    """Load a file with onnx.checker and onnxruntime."""
    import onnxruntime

    said = {"checker": "", "onnxruntime": ""}
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:
        said["checker"] = str(error) or "nothing"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        said["onnxruntime"] = str(error) or "nothing"
    return said


if __name__ == "__main__":
    answer({"theirs": theirs})
