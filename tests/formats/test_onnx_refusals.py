"""What onnxruntime or OpenVINO refuses in an ONNX file, and names that are legal."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, parser

from ir_scatter.core.diagnostics import Severity
from ir_scatter.reading import read
from ir_scatter.validate import validate

PUT = "ScatterElements <axis = 0> (data, i, u)"
INPUTS = "bool c, int64 n, int64[1] l, float[5, 3] data, int64[2, 3] i, float[2, 3] u"
IF = "<then_branch = t () => (float[5, 3] {0}) {{ {0} = PUT }}, else_branch = e () => (b) {{ b = Neg (data) }}>"
IF = IF.replace("PUT", PUT)
LOOP = "<body = s (int64 {0}, bool go, float[5, 3] s) => (on, t) {{ on = Identity (go) t = Relu (s) }}>"
REFUSES = """
import sys
import onnxruntime, openvino
onnxruntime.set_default_logger_severity(4)
for path in sys.argv[1:]:
    words = []
    for load in (onnxruntime.InferenceSession, openvino.Core().read_model):
        try:
            load(path)
        except Exception:
            words.append("refused")
        else:
            words.append("taken")
    print(*words)
"""


def graph(nodes: str) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 18]> m ({INPUTS}) => (float[5, 3] y) {{ {nodes} }}'
    )


def edited(nodes: str, edit: Callable[[NodeProto], object]) -> ModelProto:
    """Return a graph whose first node was edited."""
    model = graph(nodes)
    edit(model.graph.node[0])
    return model


def of_type(kind: str) -> ModelProto:
    """Return a graph whose data is no tensor."""
    model, made = graph(f"y = {PUT}"), TypeProto()
    old = model.graph.input[3].type
    if kind == "map":
        made.map_type.key_type = 7
        made.map_type.value_type.CopyFrom(old)
    elif kind == "sparse_tensor":
        made.sparse_tensor_type.elem_type = 1
        made.sparse_tensor_type.shape.CopyFrom(old.tensor_type.shape)
    else:
        getattr(made, f"{kind}_type").elem_type.CopyFrom(old)
    old.CopyFrom(made)
    return model


def twice(node: NodeProto) -> None:
    node.attribute.append(helper.make_attribute("axis", 1))


def untyped(node: NodeProto) -> None:
    node.attribute[0].type = 0


def nameless(node: NodeProto) -> None:
    node.output[-1] = ""


def stored(name: str, kind: int, dims: Sequence[int], put: str = PUT) -> ModelProto:
    """Return a graph that stores a type for a value."""
    model = graph(f"x = Neg (data) y = {put}")
    model.graph.value_info.append(helper.make_tensor_value_info(name, kind, dims))
    if name == "y":
        model.graph.output[0].CopyFrom(model.graph.value_info.pop())
    return model


def negative(size: int = -1) -> list[ModelProto]:
    """Return graphs with a negative size in an input, an output, a value and a body's output."""
    given, branch = graph(f"x = Neg (data) y = {PUT}"), of_body(lambda body: None)
    next(one for one in given.graph.input if one.name == "data").type.tensor_type.shape.dim[
        0
    ].dim_value = size
    typed = helper.make_tensor_value_info("y", 1, (size, 3))
    for attribute in branch.graph.node[0].attribute:
        attribute.g.output[0].type.CopyFrom(typed.type)
    others = [stored("x", 1, (size, 3)), stored("y", 1, (size, 3)), branch]
    return [given, *others] if size == -1 else others


def default(dims: Sequence[int], kind: int = 1) -> ModelProto:
    """Return a graph whose input u has a default [2, 3] and declares other dimensions."""
    model = graph(f"y = {PUT}")
    model.graph.initializer.append(helper.make_tensor("u", 1, (2, 3), range(6)))
    model.graph.input[-1].CopyFrom(helper.make_tensor_value_info("u", kind, dims))
    return model


def input_of_type(kind: int | None) -> ModelProto:
    model = graph(f"y = {PUT}")
    model.graph.input[3].ClearField("type")
    if kind is not None:
        model.graph.input[3].type.tensor_type.elem_type = kind
    return model


def of_body(edit: Callable[[GraphProto], object]) -> ModelProto:
    """Return a graph with a branch that was edited."""
    model = graph(
        "y = If (c) "
        + IF.format("a").replace("{ a = ", "{ x = Neg (data) a = ").replace("(data, i, u)", "(x, i, u)")
    )
    edit(model.graph.node[0].attribute[0].g)
    return model


def function(outputs: str, domain: str = "") -> ModelProto:
    return parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
      m ({INPUTS}) => (float[5, 3] y) {{ y = my.f (data, i, u) }}
      <domain: "my", opset_import: ["{domain}" : 18]> f (data, i, u) => ({outputs}) {{ x = Neg (data) y = {PUT.replace("data", "x")} }}""")


def two_outputs() -> ModelProto:
    model = graph(f"y = {PUT}")
    model.graph.output.insert(0, helper.make_tensor_value_info("y", 7, (5, 3)))
    return model


def same_names(body: GraphProto) -> None:
    for node in body.node:
        node.name = "twice"


def with_initializer(name: str, model: ModelProto) -> ModelProto:
    """Give an initializer of a name to the first branch."""
    model.graph.node[0].attribute[0].g.initializer.append(helper.make_tensor(name, 1, (1,), [1]))
    return model


def with_ir_version(version: int | None, model: ModelProto) -> ModelProto:
    model.ClearField("ir_version")
    if version is not None:
        model.ir_version = version
    return model


def ir_1(model: ModelProto) -> ModelProto:
    model.ir_version = 1
    return model


REFUSED = {
    "SCT920 attribute 'axis' is written 2 times, expected once": [
        edited(f"y = {PUT}", twice),
        edited(f"z = Softmax <axis = 0> (data) y = {PUT}", twice),
    ],
    "SCT935 attribute 'axis' has no type, expected one": [
        edited(f"y = {PUT}", untyped),
        edited(f"z = Softmax <axis = 0> (data) y = {PUT}", untyped),
    ],
    "SCT935 output 0 has no name, expected one": [
        edited(f"q = {PUT} y = Identity ()", nameless),
        edited(f"q = Relu (data) y = {PUT}", nameless),
    ],
    "SCT935 output 1 has no name, expected one": [edited(f"k, j = TopK (data, n) y = {PUT}", nameless)],
    "SCT920 'a' is the name of several values, expected a unique name": [
        graph("a = Relu (data) y = If (c) " + IF.format("a")),
        graph("a = Relu (data) y = Loop (n, c, data) " + LOOP.format("a")),
    ],
    "SCT920 'n' is the name of several values, expected a unique name": [
        graph("y = Loop (n, c, data) " + LOOP.format("n"))
    ],
    "SCT505 'x' is float[5, 3], the file stores int64[5, 3]": [stored("x", 7, (5, 3))],
    "SCT502 the stored type of output is int64, expected float like data": [stored("y", 7, (5, 3))],
    "SCT504 the stored type of data is int64, but the input receives float": [
        stored("x", 7, (5, 3), PUT.replace("data", "x"))
    ],
    "SCT505 'u' is float[2, 3], the file stores float[2, 4]": [default((2, 4))],
    "SCT505 'u' is float[2, 3], the file stores float[6]": [default((6,)), with_ir_version(3, default((6,)))],
    "SCT505 'u' is float[2, 3], the file stores double[2, 3]": [default((2, 3), 11)],
    "SCT928 the element type of 'x' is number 0, expected one that ONNX defines": [stored("x", 0, (5, 3))],
    "SCT928 the element type of 'data' is number 77, expected one that ONNX defines": [input_of_type(77)],
    "SCT935 the input 'data' has no type, expected one": [input_of_type(None)],
    "SCT935 the body has no name, expected one": [of_body(lambda body: body.ClearField("name"))],
    "SCT935 an output of the body has no name, expected one": [
        of_body(lambda body: body.output[0].ClearField("name"))
    ],
    "SCT935 an initializer of the body has no name, expected one": [
        of_body(lambda body: body.initializer.append(helper.make_tensor("", 1, (1,), [1])))
    ],
    "SCT920 'y' is the name of several values, expected a unique name": [two_outputs()],
    "SCT920 'twice' is the name of 2 nodes, expected a unique name": [
        graph(f"[twice] x = Neg (data) [twice] y = {PUT}"),
        of_body(same_names),
    ],
    "SCT927 'x' is used before the node 'x' that produces it, expected nodes in topological order": [
        of_body(lambda body: body.node.insert(0, body.node.pop()))
    ],
    "SCT921 output 'data' of the body is not the output of a node in it, expected such an output": [
        graph("y = If (c) " + IF.format("a").replace("(float[5, 3] a) {", "(data) {"))
    ],
    "SCT937 the model imports no opset of the domain 'my', which f belongs to": [
        parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]> m ({INPUTS}) => (float[5, 3] y) {{ y = my.f (data, i, u) }}
          <domain: "my", opset_import: ["" : 18]> f (data, i, u) => (y) {{ y = {PUT} }}""")
    ],
    "SCT937 the function imports no opset of the domain 'ai.onnx', which Neg belongs to": [
        function("y", "my")
    ],
    "SCT920 'y' is an output of the function 2 times, expected once": [function("y, y")],
    "SCT921 output 'data' of the function is not the output of a node in it, expected such an output": [
        function("y, data")
    ],
    "SCT928 the dimensions of attribute 'value' of '' are [1, -1], expected numbers >= 0": [
        edited(
            f"z = ConstantOfShape <value = float[1] {{0}}> (l) y = {PUT}",
            lambda node: node.attribute[0].t.dims.append(-1),
        )
    ],
    "SCT928 ir_version is missing, expected 1 or more": [with_ir_version(None, graph(f"y = {PUT}"))],
    "SCT928 ir_version is 3, but the initializer 'w' of a body is not one of its inputs, expected 4 or more": [
        with_ir_version(
            3, of_body(lambda body: body.initializer.append(helper.make_tensor("w", 1, (1,), [1])))
        )
    ],
    "SCT201 input 0 is a sequence, expected a tensor": [
        of_type("sequence"),
        graph("s = SequenceConstruct (data) y = ScatterElements <axis = 0> (s, i, u)"),
    ],
    "SCT201 input 0 is an optional, expected a tensor": [of_type("optional")],
    "SCT201 input 0 is a map, expected a tensor": [of_type("map")],
    "SCT201 input 0 is a sparse tensor, expected a tensor": [of_type("sparse_tensor")],
}
LEGAL = [
    *negative(),
    *negative(-2),
    stored("x", 1, (4, 3)),  # shapes are a memory
    stored("x", 1, (5,)),
    stored("y", 1, (7, 3)),
    stored("data", 7, (5, 3)),
    stored("nobody", 7, (5, 3)),
    default((2, 3)),
    with_ir_version(3, default((2, 3))),
    graph(f"[once] x = Neg (data) y = {PUT}"),
    of_body(lambda body: None),
    graph(f"[twice] x = Neg (data) [twice] w = Constant <value = float {{1}}> () y = {PUT}"),
    graph(f"y = {PUT}"),
    graph("y = If (c) " + IF.format("y")),
    graph("y = If (c) " + IF.format("a") + " a = Relu (data)"),
    graph("x = If (c) " + IF.format("a") + " y = If (c) " + IF.format("a")),
    edited(f"q, m = Dropout (data) y = {PUT}", nameless),
]


LATER = "a = Constant <value_floats = [1.0]> ()"
INNER = "y = If (c) " + IF.replace("{0} = ", "x = Neg (u) {0} = ").format("b")
SHADOWED = {
    "an output of a branch": graph("y = If (c) " + IF.format("a") + LATER),
    "a Constant with a tensor": graph(
        "y = If (c) " + IF.format("a") + " a = Constant <value = float {1}> ()"
    ),
    "a value in a loop": graph(
        "y = Loop (n, c, data) " + LOOP.format("m").replace("t =", "a = Neg (s) t =") + LATER
    ),
    "a body in a body": graph(
        "y = If (c) <then_branch = t () => (w) { w = If (c) "
        + IF.format("a").replace("(b) { b", "(d) { d")
        + " }, else_branch = e () => (b) { b = Neg (data) }>"
        + LATER
    ),
    "a Constant around a body, in a body": graph(
        "y = If (c) <then_branch = t () => (w) { w = If (c) "
        + IF.format("a").replace("(b) { b", "(d) { d")
        + LATER
        + " }, else_branch = e () => (b) { b = Neg (data) }>"
    ),
    "a function": parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 18, "my" : 1]> m ({INPUTS}) => (float[5, 3] y)
        {{ y = my.f (c, data, i, u) }}
        <domain: "my", opset_import: ["" : 18]> f (c, data, i, u) => (y) {{ y = If (c) {IF.format("a")} {LATER} }}"""
    ),
}
"""Models that onnxruntime alone refuses: a node in a body has the name of a later Constant around it."""
UNSHADOWED = [
    graph("y = If (c) " + IF.format("a") + " a = Neg (data)"),
    graph("y = Loop (n, c, data) " + LOOP.format("m").replace(" s)", " a)").replace("(s)", "(a)") + LATER),
    graph("y = If (c) " + IF.format("a") + " z = If (c) " + IF.format("a")),
    with_initializer("a", graph(INNER + LATER)),
]


def errors_of(model: ModelProto) -> list[str]:
    found = [
        one for one in validate(read("m.onnx", model.SerializeToString())) if one.severity is Severity.ERROR
    ]
    return [f"{one.code} {one.message}" for one in found]


def said_by_runtimes(models: Sequence[ModelProto], folder: Path) -> list[list[str]]:
    """Return what onnxruntime and OpenVINO do with each model, "taken" or "refused"."""
    paths = [folder / f"{number}.onnx" for number in range(len(models))]
    for path, model in zip(paths, models, strict=True):
        path.write_bytes(model.SerializeToString())
    done = subprocess.run(
        [sys.executable, "-c", REFUSES, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("expected", REFUSED)
def test_what_a_runtime_refuses_is_an_error(expected: str) -> None:
    for model in REFUSED[expected]:
        assert expected in errors_of(model)


def test_what_is_legal_is_not() -> None:
    for model in (*LEGAL, ir_1(edited(f"y = {PUT}", untyped))):
        assert errors_of(model) == []


def test_runtimes_say_so(tmp_path: Path) -> None:
    refused = [model for models in REFUSED.values() for model in models]
    words = said_by_runtimes([*refused, *LEGAL], tmp_path)
    assert all("refused" in both for both in words[: len(refused)])
    assert words[len(refused) :] == [["taken", "taken"]] * len(LEGAL)


def test_a_later_constant_with_the_name_of_a_value_in_a_body(tmp_path: Path) -> None:
    """The specification allows the name of a later value around a body, onnxruntime not that of a Constant."""
    message = (
        "'a' is the name of a value of a body and of a later Constant around it, expected different names"
    )
    for word, model in SHADOWED.items():
        found = read("m.onnx", model.SerializeToString()).defects
        said = [(one.kind, one.message.partition(":")[0], one.refused_by) for one in found]
        assert said == [("duplicate-id", message, "onnxruntime")], word
        assert errors_of(model) == [], word
    for model in UNSHADOWED:
        assert read("m.onnx", model.SerializeToString()).defects == ()
    words = said_by_runtimes([*SHADOWED.values(), *UNSHADOWED], tmp_path)
    assert words[: len(SHADOWED) - 1] == [["refused", "taken"]] * (len(SHADOWED) - 1)
    assert words[len(SHADOWED) - 1][0] == "refused"  # a function in both
    assert [word for word, _ in words[len(SHADOWED) :]] == ["taken"] * len(UNSHADOWED)
