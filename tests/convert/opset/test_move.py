"""Whole models: bodies, functions, names, and everything that stays as it is."""

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, checker, helper, numpy_helper, parser

from ir_scatter.convert.opset.move import NEWEST_OPSET, Obstacle, lowest_opset, plan_move
from ir_scatter.core.errors import UsageError
from ir_scatter.core.fragment import Patch
from ir_scatter.core.model import Model, Node
from ir_scatter.formats.onnx.writer import write_onnx
from tests.convert.opset.opset_models import (
    assert_equal,
    assert_sound,
    moved,
    numbers,
    outputs_of,
    read,
    types_of,
)
from tests.formats.onnx_patches import in_place

X = numbers(3, 4)


def parsed(text: str) -> ModelProto:
    return parser.parse_model(text)


NESTED = """
    <ir_version: 8, opset_import: ["" : 9, "custom" : 3]>
    main (float[3, 4] x, bool flag, int64 count) => (float[3, 4] y, float[3, 4] z) {
        [branch] y = If (flag) <
            then_branch = then () => (float[3, 4] a) {
                [lower] a = Clip <min = 0.0> (x)
            },
            else_branch = other () => (float[3, 4] b) {
                [upper] b = Clip <max = 0.0> (x)
            }
        >
        [repeat] z = Loop (count, flag, x) <
            body = step (int64 i, bool c, float[3, 4] v) => (bool d, float[3, 4] w) {
                d = Identity (c)
                [inner] w_full = Clip <min = -0.5, max = 0.5> (v)
                w = Add (w_full, x)
            }
        >
    }
"""


@pytest.mark.onnxruntime
def test_bodies_are_moved(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    proto = parsed(NESTED)
    del proto.opset_import[1:]
    fed = [X, np.array(True), np.array(3)]
    jobs = {"before": (proto, fed)} | {str(opset): (moved(proto, opset), fed) for opset in (11, 13, 21)}
    found = outputs_of(jobs, tmp_path)
    for opset in ("11", "13", "21"):
        before, after = found["before"], found[opset]
        assert not isinstance(before, str)
        assert not isinstance(after, str), after
        assert_equal(before, after, opset)


def test_new_nodes_stand_where_they_are_needed() -> None:
    proto = moved(parsed(NESTED), 11)
    branch, repeat = proto.graph.node
    bodies = {attribute.name: attribute.g for attribute in (*branch.attribute, *repeat.attribute)}
    assert {name: [node.op_type for node in body.node] for name, body in bodies.items()} == {
        "then_branch": ["Constant", "Clip"],
        "else_branch": ["Constant", "Clip"],
        "body": ["Identity", "Constant", "Constant", "Clip", "Add"],
    }
    assert [list(node.input) for node in bodies["then_branch"].node] == [[], ["x", "lower/min"]]
    assert [list(node.input) for node in bodies["else_branch"].node] == [[], ["x", "", "upper/max"]]
    assert [entry.version for entry in proto.opset_import] == [11, 3]


def test_an_obstacle_is_named_by_its_path() -> None:
    text = NESTED.replace("[lower] a = Clip <min = 0.0> (x)", "[lower] a, m = Dropout (x) n = Not (m)")
    move = plan_move(read(parsed(text)), 11)
    (obstacle,) = move.obstacles
    assert (obstacle.scope, obstacle.type) == ("branch:then_branch/lower", "Dropout")


def renamed(proto: ModelProto, **names: str) -> ModelProto:
    """Return a copy with names that the text format cannot write."""
    copy = ModelProto()
    copy.CopyFrom(proto)
    for value in (*copy.graph.input, *copy.graph.initializer):
        value.name = names.get(value.name, value.name)
    for node in copy.graph.node:
        node.name = names.get(node.name, node.name)
        node.input[:] = [names.get(name, name) for name in node.input]
    return copy


def test_new_names_are_not_taken() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 9]>
        main (float[3, 4] x, float p) => (float[3, 4] y) <float[1] q = {1.0}> {
            [clip] a = Clip <min = 0.0, max = 2.0> (x)
            [r] b = Add (a, p)
            y = Mul (b, q)
        }
    """
    proto = renamed(parsed(text), p="clip/min", q="clip/max", r="clip/max_2")
    after = moved(proto, 11)
    assert [list(node.output) for node in after.graph.node[:3]] == [["clip/min_2"], ["clip/max_3"], ["a"]]
    assert list(after.graph.node[2].input) == ["x", "clip/min_2", "clip/max_3"]
    assert [node.name for node in after.graph.node[:3]] == ["clip/min_2", "clip/max_3", "clip"]


def test_the_last_node_keeps_the_name() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 9]>
        main (float[2, N, M] x) => (float[2, N, M] y) { [soft] y = Softmax (x) }
    """
    proto = moved(parsed(text), 13)
    assert types_of(proto) == ["Shape", "Flatten", "Softmax", "Reshape"]
    assert [node.name for node in proto.graph.node] == [
        "soft/shape",
        "soft/flattened",
        "soft/along_rows",
        "soft",
    ]
    assert list(proto.graph.node[-1].output) == ["y"]
    assert len(proto.graph.node[-1].attribute) == 0
    (allowzero,) = moved(parsed(text), 14).graph.node[-1].attribute
    assert (allowzero.name, allowzero.i) == ("allowzero", 1)


FUNCTIONS = """
    <ir_version: 8, opset_import: ["" : 9, "my" : 1, "ai.onnx.ml" : 2]>
    main (float[3, 4] x) => (float[3, 4] y) {
        a = my.bend <low = 0.5> (x)
        b = Clip <max = 1.0> (a)
        y = my.old (b)
    }
    <domain: "my", opset_import: ["" : 9]>
    bend <low> (data) => (out) {
        [inside] out = Clip <min = -0.25> (data)
    }
    <domain: "my", opset_import: ["" : 13]>
    old (data) => (out) {
        axes = Constant <value_ints = [0]> ()
        more = Unsqueeze (data, axes)
        out = Squeeze (more, axes)
    }
"""


@pytest.mark.onnxruntime
def test_each_function_moves_from_its_own_opset(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    proto = parsed(FUNCTIONS)
    up, same, down = (moved(proto, opset) for opset in (18, 13, 11))
    for after, opset in ((up, 18), (same, 13), (down, 11)):
        assert [(entry.domain, entry.version) for entry in after.opset_import] == [
            ("", opset), ("my", 1), ("ai.onnx.ml", 2),
        ]  # fmt: skip
        assert [entry.version for function in after.functions for entry in function.opset_import] == [
            opset
        ] * 2
        assert [node.op_type for node in after.functions[0].node] == ["Constant", "Clip"]
    assert up.functions[1].node == proto.functions[1].node
    assert same.functions[1].node == proto.functions[1].node
    assert [list(node.input) for node in down.functions[1].node] == [[], ["data"], ["more"]]
    assert [node.attribute[0].name for node in down.functions[1].node] == ["value", "axes", "axes"]
    found = outputs_of({name: (after, [X]) for name, after in (("up", up), ("same", same))}, tmp_path)
    expected = np.minimum(np.maximum(X, np.float32(-0.25)), np.float32(1.0))
    for name, arrays in found.items():
        assert not isinstance(arrays, str), arrays
        assert_equal([expected], arrays, name)


def test_everything_else_stays() -> None:
    text = """
        <ir_version: 4, producer_name: "maker", domain: "some.where", model_version: 7,
         doc_string: "a model", opset_import: ["ai.onnx" : 9, "custom" : 2],
         metadata_props: ["key" : "value"]>
        main (float[3, 4] x, float[4] w) => (float[3, 4] y)
        <float[4] w = {1.0, 2.0, 3.0, 4.0}, float[1] unused = {5.0}, float[3, 4] a, float[3, 4] b>
        {
            [first] a = Add (x, w)
            [second] b = Clip <min = 0.0> (a)
            [third] y = custom.Own <way = "up"> (b)
        }
    """
    proto = parsed(text)
    proto.graph.doc_string = "a graph"
    proto.graph.node[1].doc_string = "a node"
    entry = proto.graph.node[1].metadata_props.add()
    entry.key, entry.value = "where", "here"
    after = moved(proto, 18)
    second = after.graph.node[2]
    assert (second.name, second.doc_string) == ("second", "a node")
    assert [(entry.key, entry.value) for entry in second.metadata_props] == [("where", "here")]
    assert [(entry.domain, entry.version) for entry in after.opset_import] == [("ai.onnx", 18), ("custom", 2)]
    after.opset_import[0].version = 9
    del after.graph.node[1]
    after.graph.node[1].CopyFrom(proto.graph.node[1])
    assert after == proto


SCATTERS = """
    <ir_version: 8, opset_import: ["" : 9]>
    main (float[3, 4] x, int64[1, 4] at, float[1, 4] new, bool flag) => (float[3, 4] y, float[3, 4] z) {
        [first] a = Scatter (x, at, new)
        [second] b = Scatter <axis = 0> (a, at, new)
        y = Clip <min = 0.0> (b)
        [branch] z = If (flag) <
            then_branch = then () => (float[3, 4] c) { [inner] c = Scatter (x, at, new) },
            else_branch = other () => (float[3, 4] d) { d = Identity (x) }
        >
    }
"""


def scatters(model: Model) -> list[Node]:
    return [node for node in model.walk() if node.type == "Scatter"]


def test_ignored_nodes_become_what_their_patches_say() -> None:
    proto = parsed(SCATTERS)
    model = read(proto)
    nodes = scatters(model)
    assert [obstacle.scope for obstacle in plan_move(model, 11, ignore=nodes[1:]).obstacles] == ["first"]
    move = plan_move(model, 13, ignore=nodes)
    assert move.obstacles == ()
    patches = [Patch(node, in_place("ScatterElements", opset=13)) for node in nodes]
    written = ModelProto.FromString(write_onnx(model, patches, move))
    assert_sound(written)
    assert types_of(written) == ["ScatterElements", "ScatterElements", "Constant", "Clip", "If"]
    assert written.graph.node[4].attribute[0].g.node[0].op_type == "ScatterElements"


def test_the_lowest_opset() -> None:
    model = read(parsed(SCATTERS))
    assert lowest_opset(model, 11) is None
    assert lowest_opset(model, 11, ignore=scatters(model)) == 11
    assert lowest_opset(model, 16, ignore=scatters(model)) == 16
    assert lowest_opset(model, 9) == 9
    assert lowest_opset(model, 7) == 9
    assert lowest_opset(read(parsed(FUNCTIONS)), 11) == 13
    masked = read(parsed(_ARITHMETIC.replace("a = Relu (x)", "a, m = Dropout (x) n = Not (m)")))
    assert (lowest_opset(masked, 9), lowest_opset(masked, 10)) == (9, None)


@pytest.mark.parametrize("opset", [6, NEWEST_OPSET + 1, 0, -3])
def test_an_opset_that_is_not_known(opset: int) -> None:
    expected = f"opset {opset} is unknown, expected 7 to {NEWEST_OPSET}"
    with pytest.raises(UsageError, match=expected):
        plan_move(read(parsed(SCATTERS)), opset)


def test_training_graphs_are_not_changed() -> None:
    proto = parsed("""
        <ir_version: 8, opset_import: ["" : 9]>
        main (float[3] x) => (float[3] y) { y = Relu (x) }
    """)
    info = proto.training_info.add()
    info.algorithm.node.append(helper.make_node("Relu", ["x"], ["step"]))
    assert plan_move(read(proto), 11).obstacles == ()
    info.initialization.node.append(helper.make_node("Clip", ["x"], ["more"], min=0.0))
    reason = "training_info is not converted, and contains Clip, which would have to change"
    assert plan_move(read(proto), 11).obstacles == (Obstacle("", "Clip", reason),)


def test_a_mask_that_nobody_reads_goes_with_its_declaration() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 9]>
        main (float[3] x) => (float[3] y) <float[3] mask, float[3] a> {
            a, mask = Dropout <ratio = 0.25> (x)
            y = Relu (a)
        }
    """
    proto = moved(parsed(text), 12)
    assert list(proto.graph.node[1].output) == ["a"]
    assert [known.name for known in proto.graph.value_info] == ["a"]


def test_constants_have_the_type_of_the_data() -> None:
    """What is left out of Clip-6 is the greatest float32 number, which no half is."""
    most = 3.4028234663852886e38
    for type, expected in (
        ("float16", [np.array(0.5, np.float16), np.array(np.inf, np.float16)]),
        ("double", [np.array(0.5, np.float64), np.array(most, np.float64)]),
    ):
        proto = moved(parsed(f"""
            <ir_version: 8, opset_import: ["" : 9]>
            main ({type}[3] x) => ({type}[3] y) {{ y = Clip <min = 0.5> (x) }}
        """), 12)  # fmt: skip
        assert types_of(proto) == ["Constant", "Constant", "Clip"]
        arrays = [numpy_helper.to_array(node.attribute[0].t) for node in proto.graph.node[:2]]
        assert_equal(expected, arrays, type)


@pytest.mark.parametrize("opset", [11, 13, 14])
@pytest.mark.parametrize("shape", ["0, 0, 3", "2, 3, 0", "0, 3, 4"])
def test_nothing_is_taken_for_a_matrix_without_elements(shape: str, opset: int) -> None:
    text = f"""
        <ir_version: 8, opset_import: ["" : 9]>
        main (float[{shape}] x) => (float[{shape}] y) {{ [soft] y = Softmax <axis = 0> (x) }}
    """
    assert types_of(moved(parsed(text), opset)) == ["Softmax"]


_SEVERAL = """
    <ir_version: 8, opset_import: ["" : 9, "my" : 1]>
    main (float[3] x, double[3] w) => (float[3] y, double[3] z) { y = my.bend (x) z = my.bend (w) }
    <domain: "my", opset_import: ["" : 9]>
    bend (data) => (out) { [inside] out = Clip <min = 0.5> (data) }
"""
_GIVEN = """
    <ir_version: 8, opset_import: ["" : 9, "my" : 1]>
    main (float[3] x) => (float[3] y) { y = my.bend <low = 0.5> (x) }
    <domain: "my", opset_import: ["" : 9]>
    bend <low> (data) => (out) { out = Clip <min : float = @low> (data) }
"""
_ARITHMETIC = """
    <ir_version: 8, opset_import: ["" : 9]>
    main (float[3] x) => (float[3] y) { a = Relu (x) b = Add (a, a) y = Mul (a, b) }
"""
_OWN = """
    <ir_version: 10, opset_import: ["" : 9]>
    main (float[3] x) => (float[3] y) { y = Clip (x) }
    <domain: "", opset_import: ["" : 9]>
    Clip (data) => (out) { out = Relu (data) }
"""
_CUSTOM = """
    <ir_version: 8, opset_import: ["custom" : 2]>
    main (float[3] x) => (float[3] y) { y = custom.Own (x) }
"""


def obstacles(proto: ModelProto, opset: int = 11) -> tuple[Obstacle, ...]:
    return plan_move(read(proto), opset).obstacles


def test_what_uses_of_a_function_do_not_share_is_not_known() -> None:
    reason = "its min must become an input of the type of its data, which is unknown"
    assert obstacles(parsed(_SEVERAL)) == (Obstacle("my::bend/inside", "Clip", reason),)
    assert obstacles(parsed(_SEVERAL.replace("double", "float"))) == ()
    (obstacle,) = obstacles(parsed(_GIVEN))
    assert obstacle.reason == "its attribute min is given by the calls of the function"


@pytest.mark.parametrize("text", [_ARITHMETIC, _OWN, _CUSTOM])
def test_a_model_that_needs_nothing_only_gets_the_number(text: str) -> None:
    """Local functions may have the name of an operator, in the default domain too."""
    proto = parsed(text)
    model = read(proto)
    move = plan_move(model, 11)
    assert (move.obstacles, len(move.changes)) == ((), 0)
    written = write_onnx(model, [], move)
    assert ModelProto.FromString(written) == parsed(text.replace(": 9]", ": 11]"))


def test_a_model_of_an_opset_that_is_not_known() -> None:
    proto = parsed(_ARITHMETIC)
    proto.opset_import[0].version = NEWEST_OPSET + 1
    (one,) = obstacles(proto)
    del proto.opset_import[:]
    (other,) = obstacles(proto)
    expected = f", expected one of 7 to {NEWEST_OPSET}"
    assert (one.reason, other.reason) == (
        f"has opset {NEWEST_OPSET + 1}{expected}: operators of newer opsets may have changed and were not checked",
        f"does not say its opset{expected}"
    )  # fmt: skip


def test_a_node_without_outputs_is_an_obstacle() -> None:
    proto = parsed(_ARITHMETIC.replace("[3]", "[2, 3, 4]"))
    proto.graph.node.add(op_type="Softmax", name="dead", input=["x"])
    (obstacle,) = obstacles(proto, 13)
    assert obstacle.reason == "it has 0 outputs, expected at least 1 in Softmax-13"


@pytest.mark.parametrize("version", [4, 8])
def test_the_version_of_the_file_format_stays(version: int) -> None:
    """Neither onnx.checker nor a runtime ties it to the opset."""
    text = _ARITHMETIC.replace("Relu", "Clip <min = 0.0>").replace("ir_version: 8", f"ir_version: {version}")
    proto = moved(parsed(text), 21)
    assert proto.ir_version == version
    checker.check_model(proto, full_check=True)
