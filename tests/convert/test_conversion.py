"""`ir_scatter.convert`, as a library."""

from pathlib import Path

import pytest

import ir_scatter
from ir_scatter.convert.conversion import Conversion
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.errors import NotEditable, UsageError
from ir_scatter.reading import read
from ir_scatter.validate import validate
from tests.cli.scatter_models import chain, demand_equal, files, onnx_model, operators, slices
from tests.rewrites.ir_models import given, held, one_onnx, one_scatter


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_conversion() -> None:
    source = chain(["a", "b"])
    found = ir_scatter.convert(source, to="ScatterNDUpdate")
    assert isinstance(found, Conversion)
    assert [str(one.target) for one in found.converted] == ["ScatterNDUpdate-15"] * 2
    assert [one.name for one in found.verified] == ["a", "b"]
    assert (found.refused, found.is_whole, found.is_empty, found.is_stuck) == ((), True, False, False)
    assert [patch.node.name for patch in found.patches] == ["a", "b"]
    assert all(one.is_safe for one in found.converted)
    before, written = files(), [one.path.name for one in found.files(Path("new.xml")).outputs]
    assert written == ["new.bin", "new.xml"]  # new weights hold what the old text needs
    assert found.write("new.xml") == ()
    assert {name: data for name, data in files().items() if not name.startswith("new.")} == before
    demand_equal(source, Path("new.xml"))


def test_models_and_paths_are_taken() -> None:
    source = slices()
    for model in (source, str(source), read(source)):
        assert len(convert(model, "ScatterElementsUpdate").converted) == 1


def test_the_model_itself_stays() -> None:
    source = slices()
    model = read(source)
    convert(model, "ScatterElementsUpdate").write("new.xml")
    again = convert(model, "ScatterNDUpdate")
    assert [str(one.source) for one in again.converted] == ["ScatterUpdate-3"]
    again.write("other.xml")
    assert operators(Path("other.xml")) == ["ScatterNDUpdate-15"]


def test_the_source_is_replaced_by_its_own_path() -> None:
    source = slices()
    found = convert(source, "ScatterNDUpdate")
    with pytest.raises(UsageError, match="exists, expected a path that is free, or to overwrite it"):
        found.write(source)
    found.write(source, overwrite=True)
    assert operators(source) == ["ScatterNDUpdate-15"]


def test_a_refusal_is_a_value() -> None:
    source = slices(values=[0, -1])
    found = convert(source, "ScatterNDUpdate")
    (one,) = found.refused
    assert (one.code, one.name, str(one.source), str(one.target), one.type) == (
        "CVT101", "scatter", "ScatterUpdate-3", "ScatterNDUpdate-15", "ScatterUpdate",
    )  # fmt: skip
    assert one.location.line == 7
    with pytest.raises(UsageError, match="1 node was refused, expected none or partial=True"):
        found.write("new.xml")
    found.write("new.xml", partial=True)
    assert Path("new.xml").read_bytes() == source.read_bytes()


def test_the_same_call_gives_the_same_bytes() -> None:
    source = chain([f"n{number}" for number in range(5)])
    for name in ("a", "b"):
        convert(source, "ScatterElementsUpdate").write(f"{name}.xml")
    assert Path("a.xml").read_bytes() == Path("b.xml").read_bytes()
    assert Path("a.bin").read_bytes() == Path("b.bin").read_bytes()


def test_another_encoding_is_not_edited() -> None:
    source = slices()
    text = source.read_text()
    source.write_bytes(('<?xml version="1.0" encoding="utf-16"?>\n' + text).encode("utf-16"))
    found = convert(source, "ScatterNDUpdate")
    for act in (found.diff, lambda: found.write("new.xml")):
        with pytest.raises(NotEditable, match="another encoding, expected UTF-8"):
            act()
    assert not Path("new.xml").exists()


def test_a_model_that_cannot_move_is_not_written_in_part() -> None:
    source = onnx_model("""
        <ir_version: 4, opset_import: ["" : 9]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows, float[2] q) => (float[4,5] out, float[2] odd) {
          out = Scatter (data, at, rows)
          odd = Mystery (q)
        }
    """)
    found = convert(source)
    assert (found.is_stuck, found.is_whole, found.opset) == (True, False, 11)
    assert [(one.code, one.type) for one in found.refused] == [("CVT110", "Mystery")]
    with pytest.raises(UsageError, match="the model cannot move to opset 11"):
        found.write("new.onnx", partial=True)
    assert not Path("new.onnx").exists()


def _negative(folder: Path, opset: str, last: int) -> str:
    sources = given("data", "f32", (4, 6)), held([[0, -1], [2, last]]), given("updates", "f32", (2, 2))
    return one_scatter(folder, "ScatterElementsUpdate", opset, *sources, held(1, name="axis"))


def test_negative_indices_that_runtimes_take_as_meant_are_converted(tmp_path: Path) -> None:
    """ScatterElementsUpdate-3 forbids them in its text, which is a warning; -12 allows them."""
    found = ir_scatter.convert(_negative(tmp_path, "opset3", 1), "ScatterElementsUpdate-12")
    assert [str(one.target) for one in found.converted] == ["ScatterElementsUpdate-12"]
    assert found.refused == ()
    assert found.verified[0].cases == 8


def test_a_node_that_is_what_is_wanted_is_left_alone_whatever_it_breaks(tmp_path: Path) -> None:
    """It is `validate` that says so; nothing is to become of it."""
    path = _negative(tmp_path, "opset12", 9)
    assert [one.code for one in ir_scatter.validate(read(path))] == ["SCT302"]
    found = ir_scatter.convert(path, "ScatterElementsUpdate")
    assert (found.converted, found.refused) == ((), ())


@pytest.mark.parametrize("reduction", ["sum", "prod", "min", "max", "mean"])
def test_more_indices_than_positions_bring_no_note(reduction: str, tmp_path: Path) -> None:
    """Where old values take no part they are cleared first, without a node whose order is open."""
    words = {"reduction": reduction, "use_init_val": "false"}
    indices, updates = given("indices", "i64", (5, 2)), given("updates", "f32", (5, 2))
    data = given("data", "f32", (3, 2))
    source = one_scatter(
        tmp_path, "ScatterElementsUpdate", "opset12", data, indices, updates, held(0, name="axis"), words
    )
    assert list(validate(read(source))) == []
    found = convert(source, "ScatterNDUpdate", verify=6)
    assert [one.cases for one in found.verified] == [6]
    found.write(tmp_path / "new.xml")
    assert list(validate(read(tmp_path / "new.xml"))) == []
    demand_equal(Path(source), tmp_path / "new.xml")


def test_data_without_elements_brings_no_note(tmp_path: Path) -> None:
    source = tmp_path / "old.onnx"
    source.write_bytes(one_onnx("ScatterND", 16, [5, 0, 3], [2, 1], [2, 0, 3]))
    convert(source, "ScatterElements").write(tmp_path / "new.onnx")
    assert [list(validate(read(path))) for path in (source, tmp_path / "new.onnx")] == [[], []]


def test_runs_are_proven_where_negative_indices_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "old.onnx"
    source.write_bytes(one_onnx("TensorScatter", 24, [5, 4, 3], [5], [5, 2, 3]))
    found = convert(source, guard="clamp", keep_negative_indices=True)
    assert [one.cases for one in found.verified] == [8]
