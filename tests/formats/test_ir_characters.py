"""Characters as OpenVINO writes and reads them, which are more than XML has."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ir_scatter
from tests.formats.ir_files import (
    WEIGHTS,
    check,
    codes,
    constant,
    edge,
    indices_from,
    layer,
    port,
    render_all,
    write,
)

LETTERS = [*map(chr, range(1, 33)), *"\x7f\x85\u2028\ufeff\ufffd\ufffe\uffff\"'&<>;", "&#49;"]

SAVE = """
import json, sys
import numpy as np, openvino as ov
from openvino import opset16 as op

def chain(letters, data, updates):
    for letter in letters:
        indices = op.constant(np.array([1], np.int64))
        data = op.scatter_update(data, indices, updates, op.constant(np.int64(0)))
        data.set_friendly_name(f"a{letter}b")
        data.output(0).set_names({f"t{letter}u"})
    return data

letters, path = json.loads(sys.argv[1]), sys.argv[2]
given = [op.parameter([4, 5], np.float32), op.parameter([1, 5], np.float32)]
inner = [op.parameter([4, 5], np.float32), op.parameter([1, 5], np.float32)]
outer = chain(letters, *given)
branches = [ov.Model([op.result(end)], inner) for end in (chain(letters, *inner),)]
inner = [op.parameter([4, 5], np.float32), op.parameter([1, 5], np.float32)]
branches.append(ov.Model([op.result(inner[0])], inner))
condition = op.parameter([], bool)
choice = op.if_op(condition)
choice.set_then_body(branches[0])
choice.set_else_body(branches[1])
for number, value in enumerate((outer.output(0), given[1].output(0))):
    choice.set_input(value, *(branch.get_parameters()[number] for branch in branches))
end = choice.set_output(*(branch.get_results()[0] for branch in branches))
has_body = sys.argv[3] == "body"
results = [op.result(outer)] + ([op.result(end)] if has_body else [])
parameters = given + ([condition] if has_body else [])
model = ov.Model(results, parameters, "m" + "".join(letters))
model.set_rt_info("v" + "".join(letters), "key")
ov.save_model(model, path, compress_to_fp16=False)
"""

LIST = """
import json, sys
import openvino as ov

def listed(model):
    for node in model.get_ordered_ops():
        yield node.get_type_name(), node.get_friendly_name(), sorted(node.output(0).get_names()) if node.get_output_size() else []
        if node.get_type_name() == "If":
            for number in (0, 1):
                yield from listed(node.get_function(number))

print(json.dumps(list(listed(ov.Core().read_model(sys.argv[1])))))
"""


def child(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(path: Path, type: str) -> list[tuple[str, list[str]]]:
    """Return the names of layers, and of their tensors, as OpenVINO reads them."""
    found = json.loads(child(LIST, str(path)))
    return sorted((name, tensors) for kind, name, tensors in found if kind == type)


@pytest.mark.parametrize("kind", ["plain", "body"])
def test_names_that_save_model_writes(tmp_path: Path, kind: str) -> None:
    path, new = tmp_path / "model.xml", tmp_path / "new.xml"
    child(SAVE, json.dumps(LETTERS), str(path), kind)
    expected = sorted(f"a{letter}b" for letter in LETTERS)
    assert sorted({name for name, _ in names(path, "ScatterUpdate")}) == expected
    checked = check(path)
    assert codes(checked) == []
    render_all(checked)
    model = ir_scatter.read(path)
    nodes = [node for node in model.graph.walk() if node.type == "ScatterUpdate"]
    assert sorted({node.name for node in nodes}) == expected
    conversion = ir_scatter.convert(model, "ScatterElementsUpdate")
    assert not conversion.refused
    alone = ir_scatter.convert(model, "ScatterElementsUpdate", nodes=["a\x01b"]).converted
    assert {one.node.name for one in alone} == {"a\x01b"}
    conversion.write(new)
    assert codes(check(new)) == []
    assert names(new, "ScatterElementsUpdate") == names(path, "ScatterUpdate")
    assert names(new, "ScatterUpdate") == []
    kept = [
        text
        for text in re.findall(rb"<layer .*?</layer>", path.read_bytes(), re.DOTALL)
        if b'type="ScatterUpdate"' not in text and b"<layer" not in text[1:]
    ]
    written = new.read_bytes()
    assert kept
    assert all(text in written for text in kept)
    assert path.read_bytes().rpartition(b"</edges>")[2] == written.rpartition(b"</edges>")[2]


RESULT = layer(5, "Result", "", [port(0, "FP32", (4, 5))])
MODEL = indices_from(constant(1, "1", 0, 8) + RESULT, edge(4, 4, 5, 0), 1, 0)

READ = """
import sys
import openvino as ov
for path in sys.argv[1:]:
    try:
        ov.Core().read_model(path)
        print("read")
    except Exception:
        print("refused")
"""

DIMS = [
    "<!-- c -->4", "4<!-- c -->", "4<!-- c -->2", "<?p q?>4", "<![CDATA[4]]>", " <![CDATA[4]]>", "<![CDATA[]]>4",
    "\n 4\t", "&#52;", "&#x34;", "&#32;4", "&#09;4", "&#01;4", "+4", "04", "<x/>4", "4<x/>", " <!-- --> 4 <!-- --> ",
    "", "- 1", "-2", "&lt;",
]  # fmt: skip


def test_dimensions_are_read_as_openvino_does(tmp_path: Path) -> None:
    """The port of data, which says [4, 5]: only what OpenVINO refuses is a finding."""
    place = MODEL.find("<dim>4</dim>", MODEL.find('type="ScatterUpdate"'))
    texts = [f"{MODEL[:place]}<dim>{dim}</dim>{MODEL[place + 12 :]}" for dim in DIMS]
    paths = [write(tmp_path, text, WEIGHTS, f"m{number}") for number, text in enumerate(texts)]
    answers = child(READ, *map(str, paths)).split()
    found = ["refused" if "SCT928" in codes(check(path)) else "read" for path in paths]
    assert dict(zip(DIMS, found, strict=True)) == dict(zip(DIMS, answers, strict=True))
    assert codes(check(paths[0])) == []


def test_ports_with_something_between(tmp_path: Path) -> None:
    """Comments, processing instructions, CDATA and space between all tags change nothing."""
    for aside in ("<!-- <dim>9</dim> -->", "<?p <dim>9</dim> ?>", "<![CDATA[ <dim>9</dim> ]]>", "\r\n\t "):
        parts = re.split(r"(?=<(?!\?xml|net))", MODEL)
        text = parts[0] + parts[1] + aside.join(["", *parts[2:]]) if len(parts) > 2 else MODEL
        assert text.count(aside) > 50
        assert codes(check(write(tmp_path, text, WEIGHTS))) == []


TYPES = ["Parameter", "Parameter", "Const", "Const", "Result", "ScatterUpdate"]


@pytest.mark.parametrize("way", ["&#{};", "&#x{:x};", "&#x{:X};", "&#000{};"])
def test_references_in_every_attribute(tmp_path: Path, way: str) -> None:
    paths = []
    body = MODEL.index("<net")
    for number, match in enumerate(re.finditer(r'="([^"]+)"', MODEL[body:])):
        start, end = (body + place for place in match.span(1))
        text = "".join(way.format(ord(letter)) for letter in match[1])
        paths.append(write(tmp_path, MODEL[:start] + text + MODEL[end:], WEIGHTS, f"m{number}"))
        assert codes(check(paths[-1])) == [], text
        model = ir_scatter.read(paths[-1])
        assert [node.type for node in model.graph.walk()] == TYPES
        conversion = ir_scatter.convert(model, "ScatterElementsUpdate", verify=0)
        assert not conversion.refused
        paths.append(tmp_path / f"new{number}.xml")
        conversion.write(paths[-1])
    assert set(child(READ, *map(str, paths)).split()) == {"read"}


@pytest.mark.parametrize("text", ["+0", "&#43;0", " 0"])
def test_numbers_of_constants_with_a_sign(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, MODEL.replace('offset="0"', f'offset="{text}"'), WEIGHTS)
    assert child(READ, str(path)).split() == ["read"]
    assert codes(check(path)) == []


@pytest.mark.parametrize("text", ["&#0;", "&#xD800;", "&#1114112;", "&#x1F", "&nothing;", "\x01"])
def test_what_is_no_character_is_refused(tmp_path: Path, text: str) -> None:
    assert codes(check(write(tmp_path, MODEL.replace('name="n4"', f'name="{text}"'), WEIGHTS))) == ["SCT903"]
