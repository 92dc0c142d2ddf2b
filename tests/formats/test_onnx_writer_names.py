"""Names of new nodes: readable, and of nothing else in the file."""

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper, parser

from ir_scatter.core.fragment import Patch
from ir_scatter.formats.onnx.writer import write_onnx
from tests.formats.onnx_patches import in_place, new_names, patched, read, rows_as_nd, table, trivial


def test_a_node_without_a_name_lends_that_of_its_output() -> None:
    written, _ = patched(read(table(name="")), "ScatterElements", trivial)
    first, last = ModelProto.FromString(written).graph.node
    assert (first.name, list(first.output), last.name) == ("out/copied", ["out/copied"], "")
    assert new_names(read(table()), written) == ["out/copied"]


CLASHES = """
    <ir_version: 10, opset_import: ["" : 18]>
    main (float[4] data, int64[2] indices, float[2] updates, bool c, float[4] {input}) => (float[4] out)
    <float[4] {initializer} = {{1, 2, 3, 4}}, float[4] {stored}> {{
        [{node}] inner = If (c) <
            then_branch = then () => (float[4] {body}) {{ {body} = Relu (data) }},
            else_branch = other () => (float[4] d) {{ d = ScatterElements (data, indices, updates) }}
        >
        {value} = Relu (inner)
        out = ScatterElements ({value}, indices, updates)
    }}
"""


@pytest.mark.parametrize("place", ["input", "initializer", "stored", "node", "body", "value"])
def test_names_are_new_wherever_the_old_one_stands(place: str) -> None:
    places = {key: f"some_{key}" for key in ("input", "initializer", "stored", "node", "body", "value")}
    text = CLASHES.format(**places).replace(f"some_{place}", "TAKEN").replace("[TAKEN]", "[out_copied]")
    source = parser.parse_model(text.replace("TAKEN", "out_copied"))
    data = source.SerializeToString().replace(b"out_copied", b"out/copied")
    model = read(data)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["out/copied_2", "d/copied"]
    onnx.checker.check_model(written)


@pytest.mark.parametrize("place", ["sparse", "missing", "training", "training_body"])
def test_names_are_new_in_rare_places(place: str) -> None:
    source, name = table(), "scatter/copied"
    if place == "sparse":
        source.graph.sparse_initializer.add().values.name = name
    elif place == "missing":
        source.graph.node.add(op_type="Relu", input=[name], output=["unused"])
    else:
        training = source.training_info.add().algorithm
        if place == "training_body":
            training = training.node.add(op_type="If").attribute.add(name="then_branch", type="GRAPH").g
        training.node.add(op_type="Relu", input=["data"], output=[name])
    model = read(source)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["scatter/copied_2"]


def test_functions_have_names_of_their_own() -> None:
    source = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
        main (float[4] d, int64[2] i, float[2] u) => (float[4] x, float[4] y) {
            x = own.Put (d, i, u)
            y = ScatterElements (x, i, u)
        }
        <domain: "own", opset_import: ["" : 18]> Put (d, i, u) => (y) { y = ScatterElements (d, i, u) }
    """)
    model = read(source)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["y/copied", "y/copied"]
    onnx.checker.check_model(written, full_check=True)


def test_nodes_of_one_name_and_names_that_count() -> None:
    source = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 18]>
        main (float[4] data, int64[2] indices, float[2] updates) => (float[4] out) {
            a = ScatterElements (data, indices, updates)
            b = ScatterElements (a, indices, updates)
            c = ScatterElements (b, indices, updates)
            out = Relu (c)
        }
    """)
    for node in source.graph.node[:3]:
        node.name = "same"
    source.graph.node[3].name = "same/copied_3"
    model = read(source)
    written, _ = patched(model, "ScatterElements", trivial)
    assert new_names(model, written) == ["same/copied", "same/copied_2", "same/copied_4"]


NAMES = st.sampled_from(["", "n", "n/copied", "n/copied_2", "n/copied_3", "v0/copied", "v1/copied"])


@given(st.lists(st.tuples(NAMES, st.booleans()), min_size=1, max_size=6), st.permutations(range(6)))
def test_any_names(rows: list[tuple[str, bool]], order: list[int]) -> None:
    nodes = [
        helper.make_node(
            "ScatterElements" if is_scatter else "Sum",
            [f"v{at}" if at else "data", "indices", "updates"], [f"v{at + 1}"], name=name,
        )
        for at, (name, is_scatter) in enumerate(rows)
    ]  # fmt: skip
    model = read(helper.make_model(helper.make_graph(nodes, "g", [], []), ir_version=10))
    written, found = patched(model, "ScatterElements", trivial)
    new = new_names(model, written)
    taken = {name for node in nodes for name in (node.name, *node.input, *node.output)}
    assert len({*new}) == len(new)
    assert taken.isdisjoint(new)
    patches = [Patch(node, trivial(node)) for node in found]
    shuffled = write_onnx(model, [patches[at] for at in order if at < len(patches)])
    assert shuffled == written


def test_names_that_are_not_utf8() -> None:
    data = table().SerializeToString().replace(b"indices", b"ind\xffces").replace(b"out", b"o\xfet")
    written, _ = patched(read(data.replace(b"scatter", b"sc\xfdtter")), "ScatterElements", rows_as_nd())
    nodes = ModelProto.FromString(written).graph.node
    assert nodes[0].name == r"sc\xfdtter/indices_shape"
    assert list(nodes[0].input) == [b"ind\xffces"]
    assert (nodes[-1].name, nodes[-1].output[0]) == (b"sc\xfdtter", b"o\xfet")
    written, _ = patched(read(data), "ScatterElements", in_place("ScatterElements", axis=1))
    assert list(ModelProto.FromString(written).graph.node[0].input) == ["data", b"ind\xffces", "updates"]


def test_a_long_name_that_is_not_utf8() -> None:
    name = b"\xff" + b"i" * 300
    source = table()
    source.graph.node[0].input[1] = "i" * 301
    data = source.SerializeToString().replace(b"i" * 301, name)
    written, _ = patched(read(data), "ScatterElements", trivial)
    assert ModelProto.FromString(written).graph.node[1].input[1] == name
