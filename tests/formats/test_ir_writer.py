"""Patches written into IRs, also into those written at random: what changes, and that nothing else does."""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from ir_scatter.core.errors import NotEditable, UnreadableModel
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.formats.base import Written
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.writer import write_ir
from tests.formats.edited_ir import (
    SCATTER,
    Make,
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
from tests.formats.test_xml_index import FIELDS, Writer
from tests.models.runtimes import run_all
from tests.operations import executed_lines

NESTED_FOLDER = ROOT / "samples" / "nested"
SAMPLE = (NESTED_FOLDER / "branch.xml").read_bytes()
LEGAL = struct.pack("<3q", 0, 3, 1)
"""The axis and the indices of the file below."""
TWO = Path(__file__).with_name("two.xml").read_bytes()
"""Two ScatterUpdate, one behind the other, written as `save_model` does."""


def one_of_two(make: Make, name: str = "first") -> tuple[list[str], Written]:
    """Replace one node of `TWO`; return the lines that differ, and what was written."""
    model = load(TWO)
    (node,) = [node for node in model.walk(SCATTER) if node.name == name]
    written = write_ir(model, [Patch(node, make(node))])
    return list(outside_lines(TWO.decode(), written.content.decode())), written


def alone(
    type: str = "",
    opset: str = "",
    inputs: Callable[[list[Value]], Sequence[Value | None]] = list,
    data: Mapping[str, str] = {},
) -> Make:
    """Return what makes one new node of a node's inputs."""

    def make(node: Node) -> Fragment:
        known = given(node)
        result = new("x", type or node.type, opset or str(node.opset), inputs(known), node.outputs[0], **data)
        return Fragment(known, [result])

    return make


def test_the_diff_shows_the_conversion_and_nothing_more() -> None:
    lines, written = one_of_two(as_tuples)
    assert lines == Path(__file__).with_name("two_first.diff").read_text().splitlines()
    assert written.appended == (-1).to_bytes(8, "little", signed=True)


def test_a_new_version_changes_the_bytes_of_the_version_only() -> None:
    _, written = one_of_two(alone(opset="opset16"))
    old, wanted = (f'type="ScatterUpdate" version="opset{number}"'.encode() for number in (3, 16))
    assert written.content == TWO.replace(old, wanted, 1)
    assert written.appended == b""


@pytest.mark.parametrize(
    ("old", "wanted", "diff"),
    [
        ("", {}, []),
        ('reduction="sum"', {"reduction": "sum"}, []),
        ('a="1" b="2"', {"b": "2", "a": "1"}, []),
        ("", {"reduction": "sum"}, ['+<data reduction="sum"/>']),
        ('reduction="sum"', {}, ['-<data reduction="sum"/>']),
        (
            'reduction="sum" use_init_val="true"',
            {"reduction": "<&\"'>"},
            [
                '-<data reduction="sum" use_init_val="true"/>',
                '+<data reduction="&lt;&amp;&quot;&apos;&gt;"/>',
            ],
        ),
    ],
)
def test_data_changes_if_an_attribute_does(old: str, wanted: dict[str, str], diff: list[str]) -> None:
    ports = [port(n, "FP32") for n in range(4)]
    node = layer(4, "ScatterElementsUpdate", old, ports, [port(4, "FP32")], version="opset12")
    edges = "".join(edge(n, 0, 4, n) for n in range(4))
    text = net("".join(parameter(n, "?") for n in range(4)) + node, edges).replace("><", ">\n<")
    _, written = convert(text.encode(), alone(data=wanted))
    assert list(outside_lines(text, written.content.decode())) == diff


def test_an_input_that_is_no_longer_read_loses_its_port_and_its_edge() -> None:
    lines, _ = one_of_two(alone("ScatterNDUpdate", "opset4", lambda inputs: inputs[:3]), "second")
    assert lines == [
        '-		<layer id="5" name="second" type="ScatterUpdate" version="opset3">',
        '+		<layer id="5" name="second" type="ScatterNDUpdate" version="opset4">',
        '-				<port id="3" precision="I64" />',
        '-		<edge from-layer="3" from-port="0" to-layer="5" to-port="3" />',
    ]


def test_more_inputs_take_ids_that_no_port_has() -> None:
    limit = constant("limit", "i64", [2, 3])
    lines, written = one_of_two(alone(inputs=lambda inputs: [*inputs, inputs[3], limit]), "second")
    assert [line.strip("\t+") for line in lines][8:] == [
        '<port id="5" precision="I64" />',
        '<port id="6" precision="I64">',
        "<dim>2</dim>",
        "</port>",
        '<edge from-layer="3" from-port="0" to-layer="5" to-port="5" />',
        '<edge from-layer="8" from-port="0" to-layer="5" to-port="6" />',
    ]
    assert written.appended == struct.pack("<2q", 2, 3)


def test_an_input_given_twice_keeps_its_edges() -> None:
    twice = b'from-layer="%d" from-port="0" to-layer="4"'
    text = TWO.replace(twice % 1, twice % 0)
    model = load(text)
    node = next(model.walk(SCATTER))
    make = alone(opset="opset4", inputs=lambda inputs: [inputs[0], inputs[1], inputs[0], inputs[3]])
    written = write_ir(model, [Patch(node, make(node))])
    assert len(list(outside_lines(text.decode(), written.content.decode()))) == 2


def test_one_fragment_serves_many_nodes() -> None:
    model = load(TWO)
    nodes = list(model.walk(SCATTER))
    fragment = as_tuples(nodes[0])
    shared = write_ir(model, [Patch(node, fragment) for node in nodes])
    assert shared == write_ir(model, [Patch(node, as_tuples(node)) for node in reversed(nodes)])
    assert len(shared.appended) == 8
    demand_nothing_else(TWO, shared.content, places(model))
    names = re.findall(r'id="(\d+)" name="([^"]*)"', shared.content.decode())
    assert names[4:] == [
        ("8", "first/axes"),
        ("9", "first/indices_unsqueezed"),
        ("4", "first"),
        ("10", "second/axes"),
        ("11", "second/indices_unsqueezed"),
        ("5", "second"),
        ("7", "result"),
    ]


def test_names_are_unique_in_the_whole_file() -> None:
    text = TWO.replace(b'name="data"', b'name="first/axes"').replace(b'name="second"', b'name="first"')
    text = text.replace(b'name="rows"', b"name='first/indices_unsqueezed'")
    text = text.replace(b'"result"', b'"first/axes_3"')
    model, written = convert(text, as_tuples)
    names = [node.name for node in load(written.content).walk()]
    ends = ["axes", "indices_unsqueezed", "axes_2", "indices_unsqueezed_2"]
    ends += ["axes_4", "indices_unsqueezed_3", "axes_3"]
    assert [name for name in names if "/" in name] == [f"first/{end}" for end in ends]
    demand_nothing_else(text, written.content, places(model))


def test_many_nodes_of_one_name_take_no_more_steps_than_others() -> None:
    def steps(name: str) -> int:
        nodes = range(4, 304)
        text = net(
            "".join(parameter(n, "?") for n in range(4))
            + "".join(scatter(n).replace(f"n{n}", name % n) for n in nodes),
            "".join(edge(port, 0, n, port) for n in nodes for port in range(4)),
        )
        model = load(text.encode())
        fragment = with_sum(next(model.walk(SCATTER)))
        patches = [Patch(node, fragment) for node in model.walk(SCATTER)]
        return executed_lines(lambda: write_ir(model, patches))

    different = steps("n%d")
    assert steps("same%.0s") < 2 * different


NAMES = "a&amp;b|&lt;tag&gt;|100%|%s%d%b|naïve/模型|it's|&#65;|a&#10;b||tab\tname|{0}"


@pytest.mark.parametrize("raw", NAMES.split("|"))
def test_any_name_and_any_label_can_be_written(raw: str) -> None:
    label = 'a "b" <c> & %d'

    def make(node: Node) -> Fragment:
        inputs = given(node)
        output = Value("", inputs[3].element_type, ())
        first = new(label, "Convert", "opset1", inputs[3:], output, destination_type='"%s"')
        return Fragment(
            inputs, [first, new("x", node.type, "opset3", (*inputs[:3], output), node.outputs[0])]
        )

    text = TWO.decode().replace('name="first"', f'name="{raw}"').encode()
    model, written = convert(text, make)
    demand_nothing_else(text, written.content, places(model))
    (found, _) = load(written.content).walk(frozenset({"Convert"}))
    assert found.name == f"{next(model.walk(SCATTER)).name}/{label}"
    assert found.attributes == {"destination_type": '"%s"'}


def test_ports_of_new_layers_say_what_is_known() -> None:
    def vague(node: Node) -> Fragment:
        inputs = given(node)
        outputs = [value(None, None), value("u2", ()), value("boolean", (1, (2, 5), 3))]  # type: ignore[arg-type]
        news = [new(f"step_{n}", "Step", "opset1", inputs[3:], output) for n, output in enumerate(outputs)]
        return Fragment(inputs, [*news, new("x", node.type, "opset3", inputs, node.outputs[0])])

    _, written = one_of_two(vague)
    text = written.content.decode()
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


def refused(raw: bytes) -> str:
    model = load(raw)
    node = next(model.walk(SCATTER))
    inputs = [value("i64", ())] * 4
    fragment = Fragment(inputs, [new("x", node.type, "opset9", inputs, value("i64", ()))])
    with pytest.raises(NotEditable) as caught:
        write_ir(model, [Patch(node, fragment)])
    return str(caught.value)


SOUND = SOURCES["two"].decode()


def test_files_in_other_encodings_are_refused() -> None:
    for encoding in ("utf-16", "latin-1"):
        text = SOUND.replace('version="1.0"', f'version="1.0" encoding="{encoding}"').replace("first", "für")
        message = refused(text.encode(encoding))
        assert message.endswith("m.xml is written in another encoding, expected UTF-8")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('to-layer="4" to-port="1"', 'to-layer="4" to-port="2"', "not every input has exactly one edge"),
        ('to-layer="4" to-port="1"', 'to-layer="4" to-port="9"', "not every input has exactly one edge"),
        ('to-layer="4" to-port="1"', 'to-layer="7" to-port="1"', "not every input has exactly one edge"),
        ('from-layer="2" from-port="0"', 'from-layer="77" from-port="0"', "a layer or a port that does not exist"),
        ('from-layer="2" from-port="0"', 'from-layer="2" from-port="8"', "a layer or a port that does not exist"),
        ('<port id="3" precision="I64" />', '<port id="2" precision="I64" />', "its ports are not unique numbers"),
        ('<port id="3" precision="I64" />', '<port id="x" precision="I64" />', "its ports are not unique numbers"),
        ('<layer id="7"', '<layer id="4"', "several layers have the id 4, expected one"),
        ('<layer id="7"', '<layer id="2"', "several layers have the id 2, expected one"),
        ('id="4" name', 'id="x" name', "its id is 'x', expected a number"),
        ('version="opset3">', 'version="opset3"><data a="1"/><data b="2"/>', "it has <data> 2 times, expected once"),
        ("</input>", "</input><input/>", "it has <input> 2 times, expected once"),
        ('<port id="4"', '<port id="6"/><port id="4"', "it has 2 outputs, expected one"),
        ('version="opset3">', 'version="opset3"><body><layers/></body>', "it has bodies, expected none"),
    ],
)  # fmt: skip
def test_a_node_is_refused_with_a_reason(old: str, new: str, reason: str) -> None:
    assert old in SOUND
    text = SOUND.replace(old, new)
    if 'id="x" name' in new:
        text = text.replace('-layer="4"', '-layer="x"')
    message = refused(text.encode())
    assert message.startswith("first cannot be replaced: ")
    assert message.endswith(reason)


def test_new_ids_are_above_the_greatest() -> None:
    model = load(SOUND.replace('<layer id="7"', '<layer id="999999999999999999"').encode())
    written = write_ir(model, [Patch(node, as_tuples(node)) for node in model.walk(SCATTER)])
    assert b'id="1000000000000000000" name="first/axes"' in written.content


def test_an_input_that_is_left_out_is_refused() -> None:
    with pytest.raises(NotEditable, match=r"the new X 'x' omits an input, expected all of them"):
        convert(TWO, alone("X", inputs=lambda inputs: [None, *inputs]))


@pytest.mark.parametrize("weights", [None, b"", bytes(23)])
def test_new_constants_are_refused_where_old_ones_would_read_them(
    weights: bytes | None, tmp_path: Path
) -> None:
    path = write(tmp_path, TWO, weights)
    model = read(str(path), TWO)
    nodes = list(model.walk(SCATTER))
    reason = f"its constants end at byte 24 of a .bin that has {len(weights or b'')}"
    if weights is None:
        reason = "model.bin cannot be read (no such file or directory)"
    with pytest.raises(NotEditable, match=re.escape(f"{reason}: new constants cannot be appended")):
        write_ir(model, [Patch(node, as_tuples(node)) for node in nodes])
    assert write_ir(model, [Patch(node, alone(opset="opset7")(node)) for node in nodes]).appended == b""


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
    values: dict[str, tuple[str, Any]] = {"a": ("i64", [1, 2]), "b": ("i64", [[1], [2]])}
    values |= {"c": ("u8", [1]), "d": ("boolean", True), "e": ("f32", [])}
    nodes, appended = write_constants(tmp_path, values)
    places = [(node.attributes["offset"], node.attributes["size"]) for node in nodes]
    assert places == [("33", "16"), ("33", "16"), ("49", "1"), ("49", "1"), ("50", "1")]
    assert [node.attributes["shape"] for node in nodes] == ["2", "2, 1", "1", "", "0"]
    assert len(appended) == 18


@pytest.mark.parametrize("type", ["string", "u1", "u3", "f6e2m3"])
def test_types_that_cannot_be_written_are_refused(type: str, tmp_path: Path) -> None:
    with pytest.raises(NotEditable, match=f"element type {type}"):
        write_constants(tmp_path, {"c": (type, np.zeros(2))})


# What OpenVINO makes of it.


def converted(folder: Path, raw: bytes, weights: bytes, make: Make, name: str) -> dict[str, Path]:
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
        with pytest.raises(NotEditable, match="new constants cannot be appended"):
            write_ir(model, patches)
        return
    written = write_ir(model, patches)
    demand_nothing_else(raw, written.content, places(model))
    assert bool(nodes) == bool(written.appended)


# Files written at random.

TARGET = frozenset({"ScatterUpdate"})


class WiredWriter(Writer):
    """Writes bodies in which layers 1 to 3 are fed properly by layer 0, among whatever else."""

    def fed_layer(self, id: int, inputs: int) -> str:
        pairs = [("id", f'"{id}"'), ("name", self.value(f"n/{id}")), ("type", '"ScatterUpdate"')]
        pairs += [] if self.odd() else [("version", self.value("opset1"))]
        parts = [self.element("data", self.attributes([("a", self.value("b"))]), "")] if self.odd() else []
        counts = {"input": range(inputs), "output": range(inputs, inputs + 1)}
        for tag, numbers in counts.items():
            ports = []
            for number in numbers:
                dims = [self.element("dim", "", "4")] * self.random.randrange(3)
                attributes = self.attributes([("precision", self.value("FP32"))])
                ports.append(self.element("port", f' id="{number}"{attributes}', self.joined(dims)))
            parts.append(self.element(tag, "", self.joined(ports)))
        parts += [self.junk()] if self.odd() else []
        if self.odd():
            self.random.shuffle(parts)
        attributes = "".join(f" {name}={text}" for name, text in pairs)
        return self.element("layer", attributes + self.attributes([]), self.joined(parts))

    def body(self, tag: str, attributes: str, depth: int) -> str:
        ports = '<output><port id="0"/><port id="1"/></output>'
        layers, edges = [f'<layer id="0" name="source" type="Source">{ports}</layer>'], []
        for id in range(1, 4):
            inputs = self.random.randrange(1, 4)
            layers.append(self.fed_layer(id, inputs))
            for number in range(inputs):
                ends = ["0", str(self.random.randrange(2)), str(id), str(number)]
                pairs = [(name, f'"{end}"') for name, end in zip(FIELDS, ends, strict=True)]
                if self.odd():
                    self.random.shuffle(pairs)
                written = "".join(f" {name}={end}" for name, end in pairs) + self.attributes([])
                edges.append(self.element("edge", written, self.junk() if self.odd() else ""))
        layers.append(self.layer(4, depth))
        self.random.shuffle(edges)
        self.random.shuffle(layers)
        sections = (("layers", layers), ("edges", edges))
        parts = [self.element(name, "", self.joined(found)) for name, found in sections]
        if self.odd():
            self.random.shuffle(parts)
        parts += [self.junk()] if self.odd() else []
        return self.element(tag, attributes, self.joined(parts))


def fragment(node: Node, random: Random) -> Fragment:
    """Return one to three nodes that read the inputs of another in any order, and new constants."""
    inputs_given = given(node)
    known = [*inputs_given, constant("few", "i64", [1, 2]), constant("one", "f32", np.float32(1))]
    news = []
    for number in range(random.randrange(1, 4)):
        inputs = random.sample(known, random.randrange(1, len(known)))
        output = value("f32", random.choice([None, (), (4, 5)]))
        attributes, type = (
            random.choice([{}, {"a": "b"}, {"c": "<"}]),
            random.choice(["ScatterUpdate", "Other"]),
        )
        news.append(new(f"step {number}", type, "opset1", inputs, output, **attributes))
        known.append(output)
    return Fragment(inputs_given, news)


def same_graph(model: Model, graph: IrGraph) -> IrGraph:
    """Return the graph of another model in the place of one."""
    if graph.owner is None or graph.outer is None:
        assert isinstance(model.graph, IrGraph)
        return model.graph
    place = [*graph.outer.body.bodies].index(graph.owner.handle)
    outer = same_graph(model, graph.outer)
    return outer.graphs([*outer.body.bodies][place])[graph.name]


def demand_same_inputs(patch: Patch, graph: IrGraph) -> None:
    """Demand that a graph holds a fragment in the place of a node."""
    old, key = patch.node.graph, patch.node.handle
    assert isinstance(old, IrGraph)
    producers = old.body.producers(key)
    origins = [producers[port.id] for port in old.layer(key).inputs]

    def demand(key: bytes, made: NewNode) -> None:
        node, written, found = graph.node(key), graph.layer(key), graph.body.producers(key)
        assert (node.type, node.opset) == (made.type, made.opset)
        assert node.attributes == made.attributes
        assert len(found) == len(written.inputs) == len(made.inputs)
        for text, wanted in zip(written.inputs, made.inputs, strict=True):
            assert wanted is not None
            number, producer = patch.fragment.number_given(wanted), patch.fragment.producer(wanted)
            if number is not None:
                assert found[text.id] == origins[number]
            elif producer is not None:
                demand(found[text.id][0], producer)
            else:
                assert isinstance(wanted.constant, NewConstant)
                (output,) = graph.node(found[text.id][0]).outputs
                assert output.constant is not None
                np.testing.assert_array_equal(output.constant.load(), wanted.constant.array, strict=True)

    demand(key, patch.fragment.result)


@drawn(st.integers(0, 2**63), st.sampled_from([0.0, 0.02, 0.1]))
def test_nothing_else_changes_in_files_written_at_random(seed: int, oddity: float) -> None:
    random = Random(seed)
    text = WiredWriter(random, oddity).file().encode()
    model = load(text, bytes(64))
    patches, places = [], set()
    for node in model.walk(TARGET):
        if random.random() < 0.7 and node.handle in (b"1", b"2", b"3"):
            patches.append(Patch(node, fragment(node, random)))
            places.add((node.scope.removesuffix(node.name), node.handle.decode()))
    try:
        written = write_ir(model, patches)
    except NotEditable:
        assert oddity
        return
    demand_nothing_else(text, written.content, places)
    with TemporaryDirectory() as folder:
        path = write(Path(folder), written.content, bytes(128) + written.appended)
        again = read(str(path), written.content)
        for patch in patches:
            assert isinstance(patch.node.graph, IrGraph)
            demand_same_inputs(patch, same_graph(again, patch.node.graph))
