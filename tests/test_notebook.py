"""Models from anywhere, and results that show themselves in a line, in a table, as a DataFrame."""

import copy
import gc
import gzip
import io
import os
import pickle
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest

import ir_scatter as irs
from ir_scatter.compare import request
from ir_scatter.compare.phases import Interrupted
from ir_scatter.compare.result import Compared
from ir_scatter.core.display import LONGEST_MESSAGE, LONGEST_REPR
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.shapes import static
from ir_scatter.evaluate import archive
from ir_scatter.formats import dataflow_of
from tests.models.onnx_graph import OnnxGraph

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
BROKEN = str(SAMPLES / "broken" / "scatter_nd_update.xml")
DECODER = SAMPLES / "kv_cache" / "decoder.xml"
DECODER_ONNX = SAMPLES / "kv_cache" / "decoder.onnx"
CONSTANT = SAMPLES / "documented" / "scatter_2.onnx"
LEGAL = str(SAMPLES / "operators" / "scatter_update_3_axis_0.xml")


# Models from anywhere.


def same(model: irs.Model, path: Path) -> bool:
    """Tell whether a model has the scatter nodes of a file, wherever their lines are."""
    found, expected = model.scatter_nodes, irs.read(path).scatter_nodes
    return [(one.scope, one.operator, one.shapes, one.indices) for one in found] == [
        (one.scope, one.operator, one.shapes, one.indices) for one in expected
    ]


def test_paths_and_bytes() -> None:
    data = DECODER_ONNX.read_bytes()
    for source in (str(DECODER_ONNX), DECODER_ONNX, data, bytearray(data), memoryview(data)):
        model = irs.read(source)
        assert isinstance(model, irs.Model)
        assert same(model, DECODER_ONNX)
        assert irs.read(model) is model
    assert irs.read("name.onnx", data).path == "name.onnx"
    assert same(irs.read(DECODER.read_bytes()), DECODER)


def test_a_message_of_onnx() -> None:
    proto = onnx.load(DECODER_ONNX)
    model = irs.read(proto)
    assert same(model, DECODER_ONNX)
    assert model.path == "<onnx.ModelProto decoder>"
    assert proto == onnx.load(DECODER_ONNX)
    feeds = {"data": np.zeros((1, 5), "f"), "updates": np.ones((1, 2), "f")}
    found = irs.evaluate_model(onnx.load(CONSTANT), feeds)
    assert found["scatter"].tolist() == [[0, 1, 0, 1, 0]]


def test_files(tmp_path: Path) -> None:
    with DECODER.open("rb") as file:
        model = irs.read(file)
        assert model.path == str(DECODER)  # so that the weights beside it are found
        assert irs.read(DECODER).scatter_nodes == model.scatter_nodes
    with DECODER_ONNX.open("rb") as file:
        assert file.read(1)
        file.seek(0)
        assert same(irs.read(io.BytesIO(file.read())), DECODER_ONNX)
    with DECODER_ONNX.open("rb", buffering=0) as raw:
        assert irs.read(raw).path == str(DECODER_ONNX)
    with DECODER_ONNX.open("rb") as file:
        file.seek(10)
        with pytest.raises(irs.UnreadableModel, match="expected an OpenVINO IR or an ONNX model"):
            irs.read(file)
    with pytest.raises(irs.UnreadableModel, match=r"cannot be read: .*closed file"):
        irs.read(file)
    moved = tmp_path / "moved.onnx"
    moved.write_bytes(DECODER_ONNX.read_bytes())
    with moved.open("rb") as file:
        moved.unlink()
        assert same(irs.read(file), DECODER_ONNX)
    with gzip.open(moved, "wb") as packed:
        packed.write(DECODER_ONNX.read_bytes())
    with gzip.open(moved) as packed:
        assert same(irs.read(packed), DECODER_ONNX)
    with tempfile.NamedTemporaryFile() as temporary:
        temporary.write(DECODER_ONNX.read_bytes())
        temporary.seek(0)
        assert same(irs.read(temporary), DECODER_ONNX)
    with DECODER.open() as file_of_text, pytest.raises(TypeError, match="gives a str, expected bytes"):
        irs.read(file_of_text)  # type: ignore[arg-type]


def test_a_pipe() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as sender:
        sender.write(CONSTANT.read_bytes())
    with os.fdopen(reader, "rb") as pipe:
        model = irs.read(pipe)
    assert same(model, CONSTANT)
    assert model.path == "<file>"


@pytest.mark.openvino
def test_a_model_of_openvino() -> None:
    import openvino

    live = openvino.Core().read_model(DECODER)
    before = [(op.get_friendly_name(), op.get_type_name()) for op in live.get_ordered_ops()], live.rt_info
    model = irs.read(live)
    assert same(model, DECODER)
    assert [(op.get_friendly_name(), op.get_type_name()) for op in live.get_ordered_ops()] == before[0]
    assert live.rt_info == before[1]
    assert model.path.endswith("/decoder.xml")
    assert "decoder.xml: openvino-ir" in repr(model)
    nodes, folder = list(model.walk()), Path(model.path).parent
    del model
    gc.collect()
    assert folder.exists()  # somebody may ask a node for its constants
    assert any(value.constant is not None for node in nodes for value in node.outputs)
    del nodes
    gc.collect()
    assert not folder.exists()


@pytest.mark.openvino
def test_a_model_that_openvino_built_is_converted_and_written(tmp_path: Path) -> None:
    import openvino
    from openvino import opset13

    data = opset13.parameter([5, 3], np.float32, name="data")
    updates = opset13.parameter([2, 3], np.float32, name="new")
    node = opset13.scatter_update(data, np.array([4, 1]), updates, np.array(0))
    live = openvino.Model([node], [data, updates], "a / strange: name")
    (one,) = irs.read(live).scatter_nodes
    assert (one.operator, one.shapes["data"], str(one.indices)) == (
        "ScatterUpdate-3",
        (5, 3),
        "constant 1..4",
    )
    assert irs.validate(live) == []
    path = tmp_path / "new.xml"
    irs.convert(live, to="ScatterNDUpdate").write(path)
    feeds = {"data": np.zeros((5, 3), "f"), "new": np.ones((2, 3), "f")}
    (found,) = irs.evaluate_model(path, feeds).values()
    assert found.sum(axis=1).tolist() == [0, 3, 0, 0, 3]


@pytest.mark.openvino
def test_what_openvino_cannot_write_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import openvino

    def fail(*_: object) -> None:
        raise RuntimeError("Exception from src/core/src/pass.cpp:1:\nno room\n\n")

    live = openvino.Core().read_model(DECODER)
    monkeypatch.setattr(openvino, "serialize", fail)
    with pytest.raises(irs.UnreadableModel, match="openvino cannot write the model: no room"):
        irs.read(live)
    assert [one.code for one in irs.validate(live)] == ["SCT901"]


def test_what_protobuf_cannot_write_is_said() -> None:
    class ModelProto:
        class DESCRIPTOR:
            full_name = "onnx.ModelProto"

        class graph:
            name = "large"

        def SerializeToString(self) -> bytes:
            raise ValueError("Message onnx.ModelProto exceeds maximum protobuf size of 2GB: 3")

    with pytest.raises(irs.UnreadableModel, match="exceeds maximum protobuf size"):
        irs.read(ModelProto())


WRONG: list[tuple[Any, str]] = [
    (None, "a NoneType"),
    (3, "an int"),
    ([DECODER], "a list"),
    (np.zeros(3), "a numpy.ndarray"),
    (onnx.GraphProto(), "an onnx.onnx_ml_pb2.GraphProto"),
    (re, "a module"),
    (irs.Model, "a type"),
]


@pytest.mark.parametrize(("wrong", "name"), WRONG, ids=lambda value: str(value)[:20])
def test_anything_else_is_a_type_error_that_names_it(wrong: Any, name: str) -> None:
    for function in (irs.read, irs.validate, irs.inspect, irs.convert, irs.compare):
        with pytest.raises(
            TypeError, match=f"the model is {re.escape(name)}, expected a path, bytes, an onnx"
        ):
            function(wrong)
    with pytest.raises(TypeError, match="the model is"):
        irs.evaluate_model(wrong, {})


def test_other_arguments_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="data is a str, expected bytes"):
        irs.read("m.onnx", "text")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="data goes with the path of a file, not with a bytes"):
        irs.read(b"", b"")
    with pytest.raises(TypeError, match="select has an int, expected a string or several"):
        irs.validate(BROKEN, select=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="on has an int"):
        irs.compare(BROKEN, on=["CPU", 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="the topic is an int"):
        irs.explain(302)  # type: ignore[arg-type]
    with pytest.raises(irs.UsageError, match="values is 'odd', expected one of plain, edge"):
        irs.compare(BROKEN, values="odd")
    with pytest.raises(irs.UsageError, match="the shape of 'x' is '2,y'"):
        irs.read(DECODER, input_shapes={"x": "2,y"})


def test_shapes_of_inputs_are_text_or_numbers(tmp_path: Path) -> None:
    text = '<ir_version: 10, opset_import: ["" : 18]> g (float[n, 3] x, int64[2, 1] at, float[2, 3] new)'
    text += " => (float[n, 3] out) { y = Relu (x) out = ScatterND (y, at, new) }"
    data = onnx.parser.parse_model(text).SerializeToString()
    for shape in ("5,3", [5, 3], (5, 3)):
        (node,) = irs.read(data, input_shapes={"x": shape}).scatter_nodes
        assert node.shapes["data"] == (5, 3)
    (node,) = irs.read(data, input_shapes={"x": (-1, 3)}).scatter_nodes
    assert str(node.shapes["data"]) == "(?, 3)"
    (node,) = irs.read(data).scatter_nodes
    assert str(node.shapes["data"]) == "(n, 3)"


def test_a_model_from_memory_to_which_nothing_is_done_is_written_as_it_was(tmp_path: Path) -> None:
    data = DECODER_ONNX.read_bytes()
    found = irs.convert(data)
    assert found.is_empty
    found.write(tmp_path / "same.onnx")
    assert onnx.load(tmp_path / "same.onnx") == onnx.load(DECODER_ONNX)


# Results.


def test_a_model_in_a_line_and_as_a_table() -> None:
    model = irs.read(BROKEN)
    assert repr(model) == "<Model scatter_nd_update.xml: openvino-ir, opset15, 18 nodes, 5 scatter nodes>"
    assert model._repr_html_().count("<tr>") == 6
    for node in model.scatter_nodes:
        assert f">{node.scope}<" in model._repr_html_()


def test_counts_of_thousands_have_commas() -> None:
    names = [f"x{number}" for number in range(1203)]
    graph = OnnxGraph(17, "chain")
    graph.input(names[0], shape=[1])
    for first, second in pairwise(names):
        graph.add("Relu", [first], second)
    graph.output(names[-1], shape=[1])
    model = graph.model()
    assert (
        repr(irs.read(model))
        == "<Model <onnx.ModelProto chain>: onnx, opset17, 1,202 nodes, 0 scatter nodes>"
    )
    assert "0 scatter nodes" in irs.read(model)._repr_html_()


def test_scatter_nodes() -> None:
    nodes = irs.read(BROKEN).scatter_nodes
    assert isinstance(nodes, list)
    assert irs.inspect(BROKEN) == nodes
    node = nodes[1]
    assert (node.operator, node.name, node.scope) == ("ScatterNDUpdate-15", "past_end", "past_end")
    assert node.shapes == {"data": (4, 5), "indices": (2, 2), "updates": (2,), "output": (4, 5)}
    assert (node.indices.low, node.indices.high) == (-5, 5)
    assert node.attributes == {"reduction": "none"}
    assert str(nodes).endswith("5 scatter nodes in 1 file: 4 ScatterNDUpdate-15, 1 ScatterNDUpdate-3\n")


def test_findings_are_a_list_with_the_text_of_the_command_line() -> None:
    found = irs.validate(BROKEN, select="SCT3")
    assert isinstance(found, list)
    assert [one.code for one in found] == ["SCT303", "SCT302"]
    assert found == irs.validate(irs.read(BROKEN), select=["SCT303", "index-out-of-range"])
    assert found.errors == list(found)
    assert found.warnings == []
    done = subprocess.run(
        [sys.executable, "-m", "ir_scatter_cli", "validate", BROKEN, "--select", "SCT3"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert str(found).replace('guard="drop"', "--guard drop") == done.stdout
    assert repr(found) == "<Findings scatter_nd_update.xml: 2 errors in 1 file (5 scatter nodes)>"
    assert found._repr_html_().count("<tr>") == 3


def test_a_file_that_cannot_be_read_is_a_finding() -> None:
    found = irs.validate("no such model.xml")
    assert [one.rule for one in found] == ["unreadable-file"]
    assert "no such file" in str(found)
    with pytest.raises(irs.UsageError, match="there is no rule 'SCT8'"):
        irs.validate("no such model.xml", select="SCT8")


def test_findings_are_copied_like_lists() -> None:
    found = irs.validate(BROKEN)
    for other in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other == found
        assert str(other) == str(found)
    assert str(irs.Findings()) == "no files were checked\n"


def test_data_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = ModuleType("pandas")
    pandas.DataFrame = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    rows = irs.validate(BROKEN, select="SCT3").to_pandas()
    assert [(row["code"], row["line"], row["scope"]) for row in rows] == [
        ("SCT303", 57, "negative"),
        ("SCT302", 88, "past_end"),
    ]
    assert [row["operator"] for row in irs.inspect(CONSTANT).to_pandas()] == ["Scatter-9"]
    assert irs.validate(LEGAL).to_pandas() == []


def test_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(irs.UsageError, match="needs pandas, which is not installed: pip install pandas"):
        irs.validate(BROKEN).to_pandas()


def test_a_real_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = irs.validate(BROKEN, select="SCT3").to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["code"].tolist() == ["SCT303", "SCT302"]


def test_an_explanation_is_its_text() -> None:
    found = irs.explain("SCT302")
    assert isinstance(found, str)
    assert found.startswith("SCT302 index-out-of-range (error)\n\n")
    assert repr(found).startswith("<Explanation SCT302 index-out-of-range (error): ")
    assert found._repr_html_().startswith("<pre>SCT302")


def test_strings_are_lists_of_one() -> None:
    by_list = irs.convert(LEGAL, "ScatterNDUpdate", nodes=["scatter"], assume=["unique-indices"])
    by_text = irs.convert(LEGAL, "ScatterNDUpdate", nodes="scatter", assume="unique-indices")
    assert str(by_list) == str(by_text)
    assert len(by_text.converted) == 1
    assert repr(by_text).startswith("<Conversion scatter_update_3_axis_0.xml: 1 node converted, ")


@pytest.mark.openvino
def test_a_comparison(tmp_path: Path) -> None:
    found = irs.compare(LEGAL, on=["numpy", "CPU"], cases=2)
    assert not found.differs
    assert repr(found) == f"<ComparisonResult {found.verdict}>"
    assert str(found).startswith(found.verdict)
    assert ">openvino:CPU<" in found._repr_html_()
    assert found.found[0].model == LEGAL
    found.write_report(tmp_path / "report.html")
    assert found.verdict.split()[0] in (tmp_path / "report.html").read_text()


def test_an_interrupt_keeps_what_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(job: request.CompareRequest) -> None:
        raise Interrupted(
            request.ComparedModels(
                (Compared(job.models[0], job.settings),), interrupted="one case is missing"
            )
        )

    monkeypatch.setattr(request, "run_job", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        irs.compare(DECODER_ONNX.read_bytes())
    found = caught.value.found  # type: ignore[attr-defined]
    assert isinstance(found, irs.ComparisonResult)
    assert found.found[0].model == "<bytes>"


def test_what_could_not_be_written_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    done = request.ComparedModels(
        (), unwritten=("out cannot be written: no space",), skipped=(("openvino:NPU", "no NPU"),)
    )
    monkeypatch.setattr(request, "run_job", lambda _: done)
    with pytest.warns(UserWarning, match="out cannot be written: no space"):
        found = irs.compare(LEGAL, save="out", map_inputs=None)
    assert ">no NPU<" in found._repr_html_()


@pytest.mark.onnxruntime
def test_two_models_whose_inputs_have_other_names() -> None:
    first = onnx.load(SAMPLES / "operators" / "scatter_elements_13.onnx")
    second = onnx.load(SAMPLES / "operators" / "scatter_elements_13.onnx")
    pairs = {"data": "base", "updates": "new"}
    for one in second.graph.input:
        one.name = pairs.get(one.name, one.name)
    second.graph.node[0].input[:] = [pairs.get(name, name) for name in second.graph.node[0].input]
    found = irs.compare(first, second, on="onnxruntime", map_inputs=pairs)
    assert not found.differs
    assert found.found[0].ran


@pytest.mark.onnxruntime
def test_a_comparison_of_a_model_from_memory_on_arrays() -> None:
    feeds = {"data": np.zeros((1, 5), "f"), "updates": np.ones((1, 2), "f")}
    proto = onnx.load(SAMPLES / "operators" / "scatter_elements_13.onnx")
    shapes = {
        one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in proto.graph.input
    }
    feeds = {
        name: np.zeros(shape, np.int64 if name == "indices" else np.float32) for name, shape in shapes.items()
    }
    found = irs.compare(proto, on=["numpy", "onnxruntime"], inputs=feeds)
    assert found.found[0].model.startswith("<onnx.ModelProto")
    assert found.found[0].ran == ("numpy", "onnxruntime")
    (given,) = found.found[0].feeds
    assert {name: array.tolist() for name, array in given.items()} == {
        name: array.tolist() for name, array in feeds.items()
    }


# However long names are.


def hostile() -> onnx.ModelProto:
    """A model of 300 inputs whose names are long, of which two nodes break rules."""
    names = [f"{'é<b>x</b>' * 500}{number}" for number in range(300)]
    graph = OnnxGraph(name="g" * 5000)
    for name in names:
        graph.input(name, shape=[3, 2])
    indices = graph.constant("at" * 3000, [[7], [7]])
    first = graph.add("ScatterND", [names[0], indices, names[1]], "out", "\x1b[31m" * 900)
    graph.output(graph.add("ScatterND", [first, indices, names[2]], "y", "n" * 90_000))
    return graph.model()


def results(tmp_path: Path) -> Iterator[object]:
    """Yield results of every kind, and what they are made of."""
    model, proto = irs.read(hostile()), hostile()
    yield from (model, model.scatter_nodes, *model.scatter_nodes, *model.walk())
    for node in model.walk():
        yield from (node.location, *node.inputs, *(one.value for one in node.inputs), *node.outputs)
        yield from (one.indices for one in model.scatter_nodes)
    path = tmp_path / f"{'p' * 200}.onnx"
    path.write_bytes(proto.SerializeToString())
    for found in (irs.validate(proto), irs.validate(path), irs.validate(BROKEN), irs.validate("x" * 9000)):
        yield found
        for one in found:
            yield from (one, one.location, one.node, *one.related)
    for conversion in (irs.convert(proto, to="ScatterElements"), irs.convert(LEGAL, to="ScatterNDUpdate")):
        yield from (conversion, *conversion.converted, *conversion.refused, *conversion.verified)
    yield irs.explain("ScatterND")
    yield from (irs.evaluate_detailed("ScatterND", data=[1, 2], indices=[[0]], updates=[3]),)
    yield irs.evaluate_model(CONSTANT, {"data": np.zeros((1, 5), "f"), "updates": np.ones((1, 2), "f")})
    yield irs.Outputs({"o" * 900: np.zeros((2, 3))})


def shown_results() -> Iterator[object]:
    """Yield results that runtimes have a part in."""
    yield from (found := irs.devices())
    yield found
    compared = irs.compare(BROKEN, on=["numpy", "CPU"])
    yield from (compared, compared.done)
    for one in compared.found:
        yield from (one, *one.outcomes, *one.comparisons, *one.guarded, *one.outliers, *one.not_tapped)
        yield from (each for facts in one.facts.values() for each in facts)


def demand_short(found: object) -> None:
    if found is None:
        return
    assert len(repr(found)) <= LONGEST_REPR, type(found)
    assert repr(found).isprintable()
    html = found._repr_html_() if hasattr(found, "_repr_html_") else None
    assert html is not None or isinstance(found, str) or type(found).__name__ == "Node", type(found)
    assert html is None or (len(html) < 200_000 and "<b>" not in html and "\x1b" not in html)
    assert len(getattr(found, "message", "")) <= LONGEST_MESSAGE


def test_no_repr_is_long_and_html_holds_no_markup_of_a_model(tmp_path: Path) -> None:
    kinds = set()
    for found in results(tmp_path):
        demand_short(found)
        kinds.add(type(found).__name__)
    assert kinds >= {
        "ShownModel", "ScatterNodes", "NodeSummary", "IndexSummary", "Findings", "Diagnostic", "Location", "NodeRef",
        "Related", "ShownConversion", "Converted", "Verified", "Explanation", "DetailedResult", "Outputs",
    }  # fmt: skip


@pytest.mark.openvino
@pytest.mark.long
def test_no_repr_of_what_runtimes_did_is_long() -> None:
    for found in shown_results():
        demand_short(found)


def test_no_message_is_long() -> None:
    proto = hostile()
    for call in (
        lambda: irs.evaluate_model(CONSTANT, {"x" * 9000: [1]}),
        lambda: irs.evaluate_model(proto, {}),
        lambda: irs.explain("x" * 9000),
        lambda: irs.convert(proto, to="y" * 9000),
        lambda: irs.convert(proto, nodes="z" * 9000),
        lambda: irs.read("x" * 9000),
        lambda: irs.validate(proto, select="q" * 9000),
        lambda: irs.evaluate("s" * 9000),  # type: ignore[arg-type]
    ):
        with pytest.raises(irs.Error) as caught:
            call()
        assert 10 < len(str(caught.value)) <= LONGEST_MESSAGE
        if isinstance(caught.value, UnreadableModel):
            assert len(caught.value.message) <= LONGEST_MESSAGE
    assert (
        len(irs.Diagnostic("SCT101", "r", irs.Severity.NOTE, "m" * 9000, irs.Location("f")).message) == 2000
    )
    for one in irs.validate(proto):
        messages = [one.message, *(each.message for each in one.related)]
        assert max(map(len, messages)) <= LONGEST_MESSAGE


def test_a_comparison_reads_no_model_twice_and_writes_no_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was read, or is in memory, is compared as it is; so are arrays and pairs of names."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was there already")

    path = SAMPLES / "operators" / "scatter_elements_13.onnx"
    model, feeds = irs.read(path), {}
    for input in dataflow_of(model).inputs:
        assert input.element_type is not None
        feeds[input.names[0]] = np.zeros(static(input.shape) or (), input.element_type.dtype_name)
    monkeypatch.setattr(request, "read", refuse)
    monkeypatch.setattr(archive, "write_arrays", refuse)
    pairs = {"data": "data"}
    found = irs.compare(model, model, on="numpy", inputs=feeds, map_inputs=pairs, map_outputs={})
    (compared,) = found.found
    assert (compared.ran, compared.differs) == (("numpy",), False)
    assert compared.settings.map_inputs == (("data", "data"),)
    proto = onnx.load(path)
    proto.graph.node[0].op_type = "Unknown"
    (compared,) = irs.compare(proto, on="numpy", inputs=feeds).found
    (outcome,) = compared.outcomes
    assert (
        outcome.message
        == "NumPy computes nothing after scatter (Unknown): output scatter is judged by node only"
    )


def test_a_pair_of_names_may_hold_the_sign_that_separates_them_in_a_text() -> None:
    path = SAMPLES / "operators" / "scatter_elements_13.onnx"
    with pytest.raises(irs.UsageError, match=r"map_outputs a=b=scatter: .* has no output 'a=b'"):
        irs.compare(path, path, on="numpy", map_outputs={"a=b": "scatter"})
