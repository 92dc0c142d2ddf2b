"""Where the parts of a layer stand: what is sliced out of the file there is what was asked for."""

import pytest

from ir_scatter.core.diagnostics import Part, Side, Span
from ir_scatter.formats.base import ReadOptions
from ir_scatter.formats.openvino.reader import read

TEXT = """<?xml version="1.0"?>
<net name="模型" version="11">
\t<layers>
\t\t<layer id="0" name="é́" type="Parameter" version="opset1"><data shape="2,3" element_type='f32'/>
\t\t\t<output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
\t\t<layer id="1" name="层 é" type="Loop" version="opset5">
\t\t\t<data
\t\t\t\tmode="a > b" reduction = 'summ'/>
\t\t\t<input>
\t\t\t\t<port id="0" precision="I64"/>
\t\t\t\t<port id="1" precision="FP32">
\t\t\t\t\t<dim>2</dim>
\t\t\t\t\t<dim> 3 </dim>
\t\t\t\t</port>
\t\t\t</input>
\t\t\t<body><layers><layer id="0" name="inner" type="Relu" version="opset1">
\t\t\t\t<output><port id="1" precision="FP16"><dim>7</dim></port></output></layer></layers><edges/></body><output>
\t\t\t\t<port id="2" precision="FP32" names="层,é"><dim>2</dim><dim>5</dim></port>
\t\t\t</output>
\t\t</layer>
\t\t<layer id="2" name="bare" type="Result" version="opset1"/>
\t</layers>
\t<edges/>
</net>
"""


def whole(name: str) -> Part:
    return Part(Side.NODE, name=name)


PARTS = {
    ("é́", Part(Side.NODE)): '<layer id="0" name="é́" type="Parameter" version="opset1">',
    ("é́", whole("opset")): 'version="opset1"',
    ("é́", Part(Side.ATTRIBUTE, name="shape")): 'shape="2,3"',
    ("é́", Part(Side.OUTPUT, 0, "shape")): 'shape="2,3"',
    ("é́", Part(Side.OUTPUT, 0, dim=1)): 'shape="2,3"',
    ("é́", Part(Side.OUTPUT, 0, "type")): "element_type='f32'",
    ("é́", Part(Side.OUTPUT, 0)): '<port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port>',
    ("层 é", whole("type")): 'type="Loop"',
    ("层 é", whole("id")): 'id="1"',
    ("层 é", Part(Side.ATTRIBUTE, name="reduction")): "reduction = 'summ'",
    ("层 é", Part(Side.ATTRIBUTE, name="axis")): "<data\n\t\t\t\tmode=\"a > b\" reduction = 'summ'/>",
    ("层 é", Part(Side.INPUT, 0)): '<port id="0" precision="I64"/>',
    ("层 é", Part(Side.INPUT, 0, "type")): 'precision="I64"',
    ("层 é", Part(Side.INPUT, 0, dim=0)): '<port id="0" precision="I64"/>',
    ("层 é", Part(Side.INPUT, 1)): '<port id="1" precision="FP32">',
    ("层 é", Part(Side.INPUT, 1, dim=1)): "<dim> 3 </dim>",
    ("层 é", Part(Side.INPUT, 1, "id")): 'id="1"',
    ("层 é", Part(Side.INPUT, 2)): "<input>",
    ("层 é", Part(Side.OUTPUT, 0, "type")): 'precision="FP32"',
    ("层 é", Part(Side.OUTPUT, 0, dim=1)): "<dim>5</dim>",
    ("层 é", Part(Side.OUTPUT, 1)): "<output>",
    ("inner", Part(Side.OUTPUT, 0, dim=0)): "<dim>7</dim>",
    ("bare", Part(Side.ATTRIBUTE, name="x")): '<layer id="2" name="bare" type="Result" version="opset1"/>',
    ("bare", Part(Side.INPUT, 0)): '<layer id="2" name="bare" type="Result" version="opset1"/>',
    ("bare", whole("nothing")): '<layer id="2" name="bare" type="Result" version="opset1"/>',
}


def cut(text: str, span: Span) -> str:
    """Return what stands at a span, counted in characters."""
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    return "\n".join([lines[0][span.column - 1 :], *lines[1:]])


def spans(text: str, encoding: str) -> dict[tuple[str, Part], Span | None]:
    model = read("m.xml", text.encode(encoding), ReadOptions())
    nodes = {one.name: one for one in model.walk()}
    return {(name, part): nodes[name].graph.span_of(nodes[name], part) for name, part in PARTS}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows"])
def test_a_part_is_what_stands_at_its_span(encoding: str) -> None:
    text = TEXT.replace("\n", "\r\n") if encoding == "windows" else TEXT
    found = spans(text, "utf-8" if encoding == "windows" else encoding)
    shown = {place: span and cut(text, span).replace("\r\n", "\n") for place, span in found.items()}
    assert shown == PARTS


def test_in_a_file_of_one_line() -> None:
    text = TEXT.replace("\n", " ").replace("\t", "")
    expected = {place: part.replace("\n", " ").replace("\t", "") for place, part in PARTS.items()}
    # Which stands on one line now:
    port = '<port id="1" precision="FP32"> <dim>2</dim> <dim> 3 </dim> </port>'
    expected["层 é", Part(Side.INPUT, 1)] = port
    found = spans(text, "utf-8")
    assert {(span.line, span.end_line) for span in found.values() if span} == {(1, 1)}
    assert {place: span and cut(text, span) for place, span in found.items()} == expected
