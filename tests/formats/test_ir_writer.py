"""Patches written into IRs: what changes, and that nothing else does."""

import re
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.fragment import Fragment, Patch
from ir_scatter.core.model import Node, Value
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.writer import write_ir
from tests.formats.edited_ir import (
    SCATTER,
    as_tuples,
    constant,
    convert,
    demand_nothing_else,
    given,
    load,
    new,
    outside_lines,
    places,
    value,
    with_sum,
)
from tests.formats.ir_files import (
    NESTED,
    ROOT,
    edge,
    layer,
    needs_models,
    net,
    parameter,
    port,
    real_models,
    scatter,
    write,
)
from tests.unit.runtimes import run_all

NESTED_FOLDER = ROOT / "samples" / "nested"
SAMPLE = (NESTED_FOLDER / "branch.xml").read_bytes()
LEGAL = struct.pack("<3q", 0, 3, 1)
"""The axis and the indices of the file below."""
TWO = Path(__file__).with_name("two.xml").read_bytes()
"""Two ScatterUpdate, one behind the other, written as `save_model` does."""


def one_of_two(make: Callable[[Node], Fragment], name: str = "first") -> tuple[str, bytes]:
    """Replace one node of `TWO`; return the new text and what is appended."""
    model = load(TWO)
    (node,) = [node for node in model.walk(SCATTER) if node.name == name]
    written = write_ir(model, [Patch(node, make(node))])
    return written.content.decode(), written.appended


def test_the_diff_shows_the_conversion_and_nothing_more() -> None:
    text, appended = one_of_two(as_tuples)
    assert (
        list(outside_lines(TWO.decode(), text))
        == Path(__file__).with_name("two_first.diff").read_text().splitlines()
    )
    assert appended == (-1).to_bytes(8, "little", signed=True)


def test_a_new_version_changes_the_bytes_of_the_version_only() -> None:
    def newer(node: Node) -> Fragment:
        inputs = given(node)
        return Fragment(inputs, [new("x", node.type, "opset16", inputs, node.outputs[0])])

    text, appended = one_of_two(newer)
    expected = TWO.replace(
        b'type="ScatterUpdate" version="opset3"', b'type="ScatterUpdate" version="opset16"', 1
    )
    assert text.encode() == expected
    assert appended == b""


def attributes_of_elements(old: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """Give a ScatterElementsUpdate other attributes; return the diff."""
    data = " ".join(f'{name}="{text}"' for name, text in old.items())
    ports = [port(n, "FP32") for n in range(4)]
    text = net(
        "".join(parameter(n, "?") for n in range(4))
        + layer(4, "ScatterElementsUpdate", data, ports, [port(4, "FP32")], version="opset12")
        + layer(5, "Result", "", [port(0, "FP32")]),
        "".join(edge(n, 0, 4, n) for n in range(4)) + edge(4, 4, 5, 0),
    ).replace("><", ">\n<")

    def changed(node: Node) -> Fragment:
        inputs = given(node)
        return Fragment(inputs, [new("x", node.type, str(node.opset), inputs, node.outputs[0], **wanted)])

    _, written = convert(text.encode(), changed)
    return list(outside_lines(text, written.content.decode()))


@pytest.mark.parametrize(
    ("old", "wanted", "diff"),
    [
        ({}, {}, []),
        ({"reduction": "sum"}, {"reduction": "sum"}, []),
        ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, []),
        ({}, {"reduction": "sum"}, ['+<data reduction="sum"/>']),
        ({"reduction": "sum"}, {}, ['-<data reduction="sum"/>']),
        (
            {"reduction": "sum", "use_init_val": "true"},
            {"reduction": "<&\"'>"},
            [
                '-<data reduction="sum" use_init_val="true"/>',
                '+<data reduction="&lt;&amp;&quot;&apos;&gt;"/>',
            ],
        ),
    ],
)
def test_data_changes_if_an_attribute_does(
    old: dict[str, str], wanted: dict[str, str], diff: list[str]
) -> None:
    assert attributes_of_elements(old, wanted) == diff


def test_an_input_that_is_no_longer_read_loses_its_port_and_its_edge() -> None:
    def without_axis(node: Node) -> Fragment:
        inputs = given(node)
        return Fragment(inputs, [new("x", "ScatterNDUpdate", "opset4", inputs[:3], node.outputs[0])])

    text, _ = one_of_two(without_axis, "second")
    assert list(outside_lines(TWO.decode(), text)) == [
        '-		<layer id="5" name="second" type="ScatterUpdate" version="opset3">',
        '+		<layer id="5" name="second" type="ScatterNDUpdate" version="opset4">',
        '-				<port id="3" precision="I64" />',
        '-		<edge from-layer="3" from-port="0" to-layer="5" to-port="3" />',
    ]


def test_more_inputs_take_ids_that_no_port_has() -> None:
    def wider(node: Node) -> Fragment:
        inputs = given(node)
        more = [*inputs, inputs[3], constant("limit", "i64", [2, 3])]
        return Fragment(inputs, [new("x", node.type, "opset3", more, node.outputs[0])])

    text, appended = one_of_two(wider, "second")
    assert [line.strip("\t+") for line in outside_lines(TWO.decode(), text)][8:] == [
        '<port id="5" precision="I64" />',
        '<port id="6" precision="I64">',
        "<dim>2</dim>",
        "</port>",
        '<edge from-layer="3" from-port="0" to-layer="5" to-port="5" />',
        '<edge from-layer="8" from-port="0" to-layer="5" to-port="6" />',
    ]
    assert appended == bytes([2, *[0] * 7, 3, *[0] * 7])


def test_an_input_given_twice_keeps_its_edges() -> None:
    text = TWO.replace(
        b'from-layer="1" from-port="0" to-layer="4"', b'from-layer="0" from-port="0" to-layer="4"'
    )
    model = load(text)
    node = next(model.walk(SCATTER))
    data, indices, _, axis = given(node)
    fragment = Fragment(
        (data, indices, data, axis), [new("x", node.type, "opset4", (data, indices, data, axis), data)]
    )
    written = write_ir(model, [Patch(node, fragment)])
    assert len(list(outside_lines(text.decode(), written.content.decode()))) == 2


def test_one_fragment_serves_many_nodes() -> None:
    model = load(TWO)
    nodes = list(model.walk(SCATTER))
    fragment = as_tuples(nodes[0])
    shared = write_ir(model, [Patch(node, fragment) for node in nodes])
    alone = write_ir(model, [Patch(node, as_tuples(node)) for node in reversed(nodes)])
    assert shared == alone
    assert len(shared.appended) == 8
    demand_nothing_else(TWO, shared.content, places(model))
    names = re.findall(rb'id="(\d+)" name="([^"]*)"', shared.content)
    assert names[4:] == [
        (b"8", b"first/axes"),
        (b"9", b"first/indices_unsqueezed"),
        (b"4", b"first"),
        (b"10", b"second/axes"),
        (b"11", b"second/indices_unsqueezed"),
        (b"5", b"second"),
        (b"7", b"result"),
    ]


def test_no_patch_changes_nothing() -> None:
    written = write_ir(load(TWO), [])
    assert written.content == TWO
    assert written.appended == b""


def test_names_are_unique_in_the_whole_file() -> None:
    text = TWO.replace(b'name="data"', b'name="first/axes"').replace(b'name="second"', b'name="first"')
    text = text.replace(b'name="rows"', b"name='first/indices_unsqueezed'").replace(
        b'"result"', b'"first/axes_3"'
    )
    model, written = convert(text, as_tuples)
    names = [node.name for node in load(written.content).walk()]
    assert [name for name in names if "/" in name] == [
        "first/axes",
        "first/indices_unsqueezed",
        "first/axes_2",
        "first/indices_unsqueezed_2",
        "first/axes_4",
        "first/indices_unsqueezed_3",
        "first/axes_3",
    ]
    demand_nothing_else(text, written.content, places(model))


def test_many_nodes_of_one_name_take_no_longer_than_others() -> None:
    def seconds(name: str) -> float:
        nodes = range(4, 3004)
        text = net(
            "".join(parameter(n, "?") for n in range(4))
            + "".join(scatter(n).replace(f"n{n}", name % n) for n in nodes),
            "".join(edge(port, 0, n, port) for n in nodes for port in range(4)),
        )
        model = load(text.encode())
        fragment = with_sum(next(model.walk(SCATTER)))
        patches = [Patch(node, fragment) for node in model.walk(SCATTER)]
        start = time.perf_counter()
        write_ir(model, patches)
        return time.perf_counter() - start

    assert seconds("same%.0s") < 5 * seconds("n%d") + 0.5


@pytest.mark.parametrize(
    "raw",
    [
        "a&amp;b",
        "&lt;tag&gt;",
        "100%",
        "%s%d%b",
        "naïve/模型",
        "it's",
        "&#65;",
        "a&#10;b",
        "",
        "tab\tname",
        "{0}",
    ],
)
def test_any_name_can_be_written(raw: str) -> None:
    text = TWO.decode().replace('name="first"', f'name="{raw}"').encode()
    model, written = convert(text, as_tuples)
    demand_nothing_else(text, written.content, places(model))
    again = load(written.content)
    name = next(model.walk(SCATTER)).name
    assert [node.name for node in again.walk()][4:6] == [f"{name}/axes", f"{name}/indices_unsqueezed"]


def test_labels_are_escaped() -> None:
    def odd(node: Node) -> Fragment:
        inputs = given(node)
        output = Value("", inputs[3].element_type, ())
        first = new('a "b" <c> & %d', "Convert", "opset1", inputs[3:], output, destination_type='"%s"')
        return Fragment(
            inputs, [first, new("x", node.type, "opset3", (*inputs[:3], output), node.outputs[0])]
        )

    model, written = convert(TWO, odd)
    demand_nothing_else(TWO, written.content, places(model))
    found = [node for node in load(written.content).walk() if node.type == "Convert"]
    assert [node.name for node in found] == ['first/a "b" <c> & %d', 'second/a "b" <c> & %d']
    assert found[0].attributes == {"destination_type": '"%s"'}


def test_ports_of_new_layers_say_what_is_known() -> None:
    def vague(node: Node) -> Fragment:
        inputs = given(node)
        outputs = [value(None, None), value("u2", ()), value("boolean", (1, (2, 5), 3))]  # type: ignore[arg-type]
        news = [new(f"step_{n}", "Step", "opset1", inputs[3:], output) for n, output in enumerate(outputs)]
        return Fragment(inputs, [*news, new("x", node.type, "opset3", inputs, node.outputs[0])])

    text, _ = one_of_two(vague)
    steps = re.findall(r'name="first/step_\d".*?<output>(.*?)</output>', text, re.DOTALL)
    assert [re.sub(r"\s*\n\s*", "", step) for step in steps] == [
        '<port id="1" precision="UNSPECIFIED" />',
        '<port id="1" precision="U2" />',
        '<port id="1" precision="BOOL"><dim>1</dim><dim>-1</dim><dim>3</dim></port>',
    ]


# How files are written.


def reversed_attributes(text: str) -> str:
    def turn(match: re.Match[str]) -> str:
        found = re.findall(r' [\w-]+="[^"]*"', match[2])
        return f"<{match[1]}{''.join(reversed(found))}{match[3]}>"

    return re.sub(r'<(layer|edge|port|data)((?: [\w-]+="[^"]*")+)( ?/?)>', turn, text)


def output_first(text: str) -> str:
    data, info = r"(\s*<data [^>]*/>)?", r"(\s*<rt_info>(?:(?!</rt_info>).)*</rt_info>)?"
    ports = "".join(rf"(\s*<{name}>(?:(?!</{name}>).)*</{name}>)" for name in ("input", "output"))
    return re.sub(data + info + ports, r"\4\3\2\1", text, flags=re.DOTALL)


def edges_first(text: str) -> str:
    return re.sub(r"(\s*<layers>.*</layers>)(\s*<edges>.*</edges>)", r"\2\1", text, flags=re.DOTALL)


def with_comments(text: str) -> str:
    text = re.sub(
        r"(<(?:layer|input|port|edge|edges|output|rt_info)\b)",
        r"<!-- <edge/> </layer> 'a --><?p <input>?>\1",
        text,
    )
    return text.replace("</edges>", "<!-- </edges> --></edges>")


LAYOUTS: dict[str, Callable[[str], str]] = {
    "as saved": str,
    "no space before the slash": lambda text: text.replace(" />", "/>"),
    "single quotes": lambda text: text.replace('"', "'"),
    "two spaces": lambda text: text.replace("\t", "  "),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "no indentation": lambda text: text.replace("\t", ""),
    "one line": lambda text: re.sub(r"\n\t*", "", text),
    "one line with spaces": lambda text: re.sub(r"\n\t*", " ", text),
    "a line for each layer": lambda text: re.sub(r"\n\t{3,}", "", text).replace("\n\t\t</layer>", "</layer>"),
    "blank lines": lambda text: text.replace("\n", "\n\n"),
    "reversed attributes": reversed_attributes,
    "output first": output_first,
    "edges first": edges_first,
    "comments": with_comments,
    "tags over lines": lambda text: re.sub(r' (type|to-layer|version)="', r'\n  \1 = "', text),
    "edges with end tags": lambda text: re.sub(r"<edge ([^>]*) />", r"<edge \1></edge>", text),
    "spaces in end tags": lambda text: re.sub(r"</(\w+)>", r"</\1 >", text),
    "a mark": lambda text: "\ufeff" + text,
    "leading zeros": lambda text: re.sub(r'(id|layer|port)="(\d)', r'\1="0\2', text),
    "references": lambda text: re.sub(r'-layer="4"', '-layer="&#52;"', text),
    "prefixes": lambda text: text.replace("<edge ", '<edge x:y="1" ').replace("<layer ", '<layer x:id="&quot;" '),
    "greater signs": lambda text: text.replace("<edge ", '<edge note="a > b" ').replace('version="opset3"', 'version="opset3" a="/>"'),
    "two layers elements": lambda text: text.replace("<rt_info />", '<layers><layer id="99"/></layers><edges><edge/></edges>'),
}  # fmt: skip
SOURCES = {
    "two": TWO,
    "branch": SAMPLE,
    "loop": (NESTED_FOLDER / "loop.xml").read_bytes(),
    "short": NESTED.encode(),
}
UNLOADABLE = {"references", "prefixes", "two layers elements"}
"""Well-formed, but nothing that OpenVINO reads."""


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_else_changes_however_a_file_is_written(source: str, layout: str) -> None:
    text = LAYOUTS[layout](SOURCES[source].decode()).encode()
    make = as_tuples if source == "two" else with_sum
    model, written = convert(text, make)
    demand_nothing_else(text, written.content, places(model))
    assert written.content.startswith(b"\xef\xbb\xbf") == (layout == "a mark")
    assert (b"\n" in written.content) == (not layout.startswith("one line"))
    again = load(written.content, written.appended)
    assert [defect.message for defect in again.defects] == [defect.message for defect in model.defects]
    nodes = [node for node in model.walk(SCATTER) if node.bodies == {}]
    assert [str(one.scope) for one in again.walk(SCATTER)] == [node.scope for node in nodes]


@drawn(st.lists(st.sampled_from(sorted(LAYOUTS)), max_size=4, unique=True), st.sampled_from(sorted(SOURCES)))
def test_layouts_go_together(layouts: list[str], source: str) -> None:
    text = SOURCES[source].decode()
    for layout in layouts:
        text = LAYOUTS[layout](text)
    try:
        model = load(text.encode())
    except UnreadableModel:
        return  # two layouts that do not go together
    if model.defects:
        return
    written = write_ir(model, [Patch(node, with_sum(node)) for node in model.walk(SCATTER)])
    demand_nothing_else(text.encode(), written.content, places(model))


def test_new_layers_look_like_their_neighbours() -> None:
    text = LAYOUTS["single quotes"](
        LAYOUTS["a line for each layer"](LAYOUTS["no space before the slash"](TWO.decode()))
    )
    _, written = convert(text.encode(), as_tuples)
    added = [line[1:] for line in outside_lines(text, written.content.decode()) if line.startswith("+")]
    assert added[:2] == [
        "\t\t<layer id='8' name='first/axes' type='Const' version='opset1'><data element_type='i64' shape='1' "
        "offset='64' size='8'/><output><port id='0' precision='I64'><dim>1</dim></port></output></layer>",
        "\t\t<layer id='9' name='first/indices_unsqueezed' type='Unsqueeze' version='opset1'><input><port id='0' "
        "precision='I64'><dim>2</dim></port><port id='1' precision='I64'><dim>1</dim></port></input><output>"
        "<port id='2' precision='I64'><dim>2</dim><dim>1</dim></port></output></layer>",
    ]
    assert added[-1] == "\t\t<edge from-layer='11' from-port='2' to-layer='5' to-port='1'/>"


# What cannot be edited.


def refused(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    model = load(raw)
    node = next(model.walk(SCATTER))
    inputs = [Value("", ELEMENT_TYPES["i64"], ())] * 4
    fragment = Fragment(inputs, [new("x", node.type, "opset9", inputs, value("i64", ()))])
    with pytest.raises(NotEditable) as caught:
        write_ir(model, [Patch(node, fragment)])
    return str(caught.value)


SOUND = SOURCES["two"].decode()


def test_files_in_other_encodings_are_refused() -> None:
    text = SOUND.replace('version="1.0"', 'version="1.0" encoding="utf-16"')
    assert refused(text.encode("utf-16")).endswith("m.xml is written in another encoding, expected UTF-8")
    text = text.replace("utf-16", "latin-1").replace("first", "für")
    assert refused(text.encode("latin-1")).endswith("m.xml is written in another encoding, expected UTF-8")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('to-layer="4" to-port="1"', 'to-layer="4" to-port="2"', "there is not one edge into each of its inputs"),
        ('to-layer="4" to-port="1"', 'to-layer="4" to-port="9"', "there is not one edge into each of its inputs"),
        ('to-layer="4" to-port="1"', 'to-layer="7" to-port="1"', "there is not one edge into each of its inputs"),
        ('from-layer="2" from-port="0"', 'from-layer="77" from-port="0"', "a layer or a port that does not exist"),
        ('from-layer="2" from-port="0"', 'from-layer="2" from-port="8"', "a layer or a port that does not exist"),
        ('<port id="3" precision="I64" />', '<port id="2" precision="I64" />', "its ports are not different numbers"),
        ('<port id="3" precision="I64" />', '<port id="x" precision="I64" />', "its ports are not different numbers"),
        ('<layer id="7"', '<layer id="4"', "several layers have the id 4, expected one"),
        ('<layer id="7"', '<layer id="2"', "several layers have the id 2, expected one"),
        ('id="4" name', 'id="x" name', "its id is 'x', expected a number"),
        ('version="opset3">', 'version="opset3"><data a="1"/><data b="2"/>', "it has <data> 2 times, expected once"),
        ("</input>", "</input><input/>", "it has <input> 2 times, expected once"),
        ('<port id="4"', '<port id="6"/><port id="4"', "it has 2 outputs, expected one"),
        ('version="opset3">', 'version="opset3"><body><layers/></body>', "it holds bodies, expected none"),
    ],
)  # fmt: skip
def test_a_node_is_refused_with_a_reason(old: str, new: str, reason: str) -> None:
    assert old in SOUND
    text = SOUND.replace(old, new)
    if 'id="x" name' in new:
        text = text.replace('-layer="4"', '-layer="x"')
    message = refused(text)
    assert message.startswith("first cannot be replaced: ")
    assert message.endswith(reason)


def test_new_ids_are_above_the_greatest() -> None:
    model = load(SOUND.replace('<layer id="7"', '<layer id="999999999999999999"').encode())
    written = write_ir(model, [Patch(node, as_tuples(node)) for node in model.walk(SCATTER)])
    assert b'id="1000000000000000000" name="first/axes"' in written.content


def test_an_input_that_is_left_out_is_refused() -> None:
    def partial(node: Node) -> Fragment:
        inputs = given(node)
        return Fragment(inputs, [new("x", "X", "opset1", [None, *inputs], node.outputs[0])])

    with pytest.raises(NotEditable, match=r"the new X 'x' leaves an input out, expected all of them"):
        convert(TWO, partial)


@pytest.mark.parametrize("weights", [None, b"", bytes(23)])
def test_new_constants_are_refused_where_old_ones_would_read_them(
    weights: bytes | None, tmp_path: Path
) -> None:
    path = write(tmp_path, TWO, weights)
    model = read(str(path), TWO)
    nodes = list(model.walk(SCATTER))
    with pytest.raises(NotEditable, match=r"its constants end at byte 24 of a \.bin that has"):
        write_ir(model, [Patch(node, as_tuples(node)) for node in nodes])
    plain = [Patch(node, Fragment(inputs, [new("x", node.type, "opset7", inputs, node.outputs[0])]))
             for node in nodes for inputs in [given(node)]]  # fmt: skip
    assert write_ir(model, plain).appended == b""


def test_constants_need_no_bin_if_there_are_none_yet(tmp_path: Path) -> None:
    text = re.sub(rb'type="Const"', b'type="Odd"', TWO)
    model = read(str(write(tmp_path, text, None)), text)
    written = write_ir(model, [Patch(node, as_tuples(node)) for node in model.walk(SCATTER)])
    assert b'offset="0" size="8"' in written.content
    assert len(written.appended) == 8


# New constants.


def write_constants(folder: Path, values: dict[str, tuple[str, Any]]) -> tuple[list[Node], bytes]:
    """Write constants into an IR; return their layers as they are read again, and the new bytes."""

    def with_constants(node: Node) -> Fragment:
        inputs = given(node)
        news = [
            new(f"use_{label}", "Use", "opset1", [constant(label, type, array)], value(type, ()))
            for label, (type, array) in values.items()
        ]
        return Fragment(inputs, [*news, new("x", node.type, "opset3", inputs, node.outputs[0])])

    path = write(folder, TWO, bytes(33))
    model = read(str(path), TWO)
    written = write_ir(model, [Patch(node, with_constants(node)) for node in model.walk(SCATTER)])
    path.with_suffix(".bin").write_bytes(bytes(33) + written.appended)
    again = read(str(path), written.content)
    assert [defect for defect in again.defects if defect.kind.startswith("weights")] == []
    return [
        node for node in again.walk(frozenset({"Const"})) if node.name.startswith("first/")
    ], written.appended


@pytest.mark.parametrize(
    ("type", "values", "expected"),
    [
        ("u4", [1, 2, 3], "2103"),
        ("i4", [-1, 3, -8, 7], "3f78"),
        ("boolean", [True, False], "0100"),
        ("bf16", [1, -2], "803f00c0"),
        ("f8e4m3", [1], "38"),
        ("f4e2m1", [6, -6, 1], "f702"),
        ("i64", -2, "feffffffffffffff"),
        ("f32", [], "00"),
        ("i16", np.array([258], ">i2"), "0201"),
        ("i16", np.array([[1, 2], [3, 4]]).T, "0100030002000400"),
    ],
)
def test_constants_are_the_bytes_that_save_model_writes(
    type: str, values: Any, expected: str, tmp_path: Path
) -> None:
    _, appended = write_constants(tmp_path, {"c": (type, values)})
    assert appended.hex() == expected


def test_equal_constants_share_their_bytes(tmp_path: Path) -> None:
    values = {
        "a": ("i64", [1, 2]),
        "b": ("i64", [[1], [2]]),
        "c": ("u8", [1]),
        "d": ("boolean", True),
        "e": ("f32", []),
    }
    nodes, appended = write_constants(tmp_path, values)
    places = [(node.attributes["offset"], node.attributes["size"]) for node in nodes]
    assert places == [("33", "16"), ("33", "16"), ("49", "1"), ("49", "1"), ("50", "1")]
    assert [node.attributes["shape"] for node in nodes] == ["2", "2, 1", "1", "", "0"]
    assert len(appended) == 18


@pytest.mark.parametrize("type", ["string", "u1", "u3", "f6e2m3"])
def test_types_that_cannot_be_written_are_refused(type: str, tmp_path: Path) -> None:
    with pytest.raises(NotEditable, match=f"of type {type}"):
        write_constants(tmp_path, {"c": (type, np.zeros(2))})


# What OpenVINO makes of it.


def converted(
    folder: Path, raw: bytes, weights: bytes, make: Callable[[Node], Fragment], name: str
) -> dict[str, Path]:
    """Write a model and what it becomes."""
    before = write(folder, raw, weights, name)
    model = read(str(before), raw)
    written = write_ir(model, [Patch(node, make(node)) for node in model.walk(SCATTER)])
    demand_nothing_else(raw, written.content, places(model))
    after = write(folder, written.content, weights + written.appended, f"{name}_converted")
    return {name: before, f"{name}, converted": after}


@pytest.mark.openvino
def test_openvino_computes_the_same(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    data, rows = random.normal(size=(4, 5)).astype(np.float32), random.normal(size=(2, 5)).astype(np.float32)
    jobs: dict[str, tuple[Path, Sequence[Any]]] = {}
    for number, (layout, change) in enumerate(LAYOUTS.items()):
        if layout not in UNLOADABLE:
            raw = change(SOUND).encode()
            found = converted(tmp_path, raw, LEGAL, as_tuples, f"two_{number}")
            jobs |= {name: (path, (data, rows)) for name, path in found.items()}
    legal = struct.pack("<5q", 0, 3, 0, 1, 2)
    branch = converted(tmp_path, SAMPLE, legal, with_sum, "branch")
    jobs |= {name: (path, (data, rows, np.array(False))) for name, path in branch.items()}
    legal = (NESTED_FOLDER / "loop.bin").read_bytes().replace(b"\x07", b"\x06")
    loop = converted(tmp_path, SOURCES["loop"], legal, with_sum, "loop")
    jobs |= {name: (path, (np.zeros((7, 5), np.float32), rows[:1])) for name, path in loop.items()}
    outcomes = run_all("openvino", jobs, tmp_path)
    names = [name for name in jobs if not name.endswith("converted")]
    for name in names:
        before, after = outcomes[name], outcomes[f"{name}, converted"]
        assert before.error == after.error == ""
        assert before.outputs
        for one, other in zip(before.outputs, after.outputs, strict=True):
            np.testing.assert_array_equal(one, other)
    assert len(names) == len(LAYOUTS) - len(UNLOADABLE) + 2


@needs_models
@pytest.mark.models
@pytest.mark.parametrize("path", real_models(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_real_models_change_where_they_are_to(path: Path) -> None:
    raw = path.read_bytes()
    try:
        model = read(str(path), raw)
    except UnreadableModel:
        return
    nodes = [node for node in model.walk(SCATTER) if None not in [one.value for one in node.inputs]]
    patches = [Patch(node, with_sum(node)) for node in nodes]
    if patches and not path.with_suffix(".bin").exists():
        with pytest.raises(NotEditable, match="there is no place for new ones"):
            write_ir(model, patches)
        return
    written = write_ir(model, patches)
    demand_nothing_else(raw, written.content, places(model))
    assert bool(nodes) == bool(written.appended)
