"""Forms that `convert --for` finds where no operator avoids a defect, and forms of nodes that write nothing."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from ir_scatter import convert, evaluate_model, runners
from ir_scatter.runners.base import Runner, Status
from tests.rewrites.ir_models import given, held, one_scatter

Arrays = Mapping[str, NDArray[Any]]


@pytest.fixture(scope="module")
def cpu() -> Iterator[Runner]:
    pytest.importorskip("openvino")
    runner = runners.find("CPU")
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def ort() -> Iterator[Runner]:
    pytest.importorskip("onnxruntime")
    runner = runners.find("onnxruntime")
    yield runner
    runner.close()


def written(folder: Path, type: str, operator: str, **attributes: str) -> Path:
    """Write an ONNX node of data [4, 3] whose indices are given when it runs."""
    words = "".join(f', {name} = "{word}"' for name, word in attributes.items())
    indices, shape = ("int64[2, 3]", "2, 3") if operator == "ScatterElements" else ("int64[2, 1]", "2, 3")
    kind = "axis = 0" if operator == "ScatterElements" else ""
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> '
        f"main ({type}[4, 3] data, {indices} indices, {type}[{shape}] updates) => ({type}[4, 3] out) "
        f"{{ out = {operator} <{(kind + words).removeprefix(', ')}> (data, indices, updates) }}"
    )
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def assert_runs_like_numpy(runner: Runner, before: Path, after: Path, feeds: Arrays) -> None:
    outcome = runner.run(after, feeds, timeout=60)
    assert outcome.status is Status.OK, outcome.message
    (found,), (expected,) = outcome.outputs.values(), evaluate_model(before, feeds).values()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=2e-3)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
@pytest.mark.parametrize("assume", [[], ["unique-indices"]])
@pytest.mark.parametrize("word", ["add", "mul"])
def test_onnxruntime_adds_and_multiplies_halves_in_f32(
    operator: str, assume: list[str], word: str, tmp_path: Path, ort: Runner
) -> None:
    path = written(tmp_path, "float16", operator, reduction=word)
    conversion = convert(path, targets=["onnxruntime"], assume=assume)
    assert not conversion.refused
    conversion.write(after := tmp_path / "after.onnx")
    data, updates = np.arange(12).reshape(4, 3) / 8, np.arange(6).reshape(2, 3) / 4
    rows = [[3, 1, 0], [0, 2, 1]] if operator == "ScatterElements" else [[3], [0]]
    feeds = {
        "data": data.astype(np.float16), "indices": np.array(rows), "updates": updates.astype(np.float16),
    }  # fmt: skip
    assert_runs_like_numpy(ort, path, after, feeds)


@pytest.mark.onnxruntime
@pytest.mark.parametrize("word", ["none", "max", "min"])
def test_booleans_are_scattered_in_i32_where_the_gpu_plugin_has_no_kernel(
    word: str, tmp_path: Path, ort: Runner
) -> None:
    path = written(tmp_path, "bool", "ScatterElements", reduction=word)
    conversion = convert(path, targets=["GPU@2026.4.1", "onnxruntime"])
    assert not conversion.refused
    (converted,) = conversion.converted
    expected = "elements-to-tuples" if word == "none" else "cast-to-i32"
    assert converted.rewrites == (expected,)
    assert converted.is_safe
    conversion.write(after := tmp_path / "after.onnx")
    data, updates = np.arange(12).reshape(4, 3) % 2 == 0, np.arange(6).reshape(2, 3) % 3 == 0
    feeds = {"data": data, "indices": np.array([[3, 1, 0], [0, 2, 1]]), "updates": updates}
    assert_runs_like_numpy(ort, path, after, feeds)


def test_a_sum_of_bytes_is_not_cast_as_it_wraps_around(tmp_path: Path) -> None:
    path = written(tmp_path, "uint8", "ScatterElements", reduction="add")
    conversion = convert(path, targets=["GPU@2026.4.1"])
    assert [one.code for one in conversion.refused] == ["CVT113"]


@pytest.mark.parametrize(("type", "is_possible"), [("uint8", False), ("int32", True)])
def test_a_form_with_an_operator_that_has_no_kernel_is_not_taken(
    type: str, is_possible: bool, tmp_path: Path
) -> None:
    """OpenVINO's GPU plugin has no reduction of tuples (DEV305), and no GatherND of u8 to do it before."""
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> '
        f"main ({type}[4, 3] data, int64[2, 2] indices, {type}[2] updates) => ({type}[4, 3] out) "
        '{ out = ScatterND <reduction = "add"> (data, indices, updates) }'
    )
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    conversion = convert(path, targets=["GPU@2026.4.1"], assume=["unique-indices"])
    types = {
        new.inputs[0].element_type.name
        for patch in conversion.patches
        for new in patch.fragment.news
        if new.type == "GatherND" and new.inputs[0] is not None and new.inputs[0].element_type is not None
    }
    assert "u8" not in types
    assert not conversion.refused or not is_possible


@pytest.mark.parametrize(
    ("rank", "is_constant", "is_refused"), [(8, False, False), (9, False, True), (9, True, False)]
)
def test_more_dimensions_than_the_gpu_plugin_reads(
    rank: int, is_constant: bool, is_refused: bool, tmp_path: Path
) -> None:
    """DEV302 refuses seven and more; a Reshape of nine was wrong on the plugin, and the new form said to be safe."""
    leading = (*[1] * (rank - 4), 2)
    updates = (*leading, 2, 2, 2)
    new = held(np.ones(updates), "f32", name="updates") if is_constant else given("updates", "f32", updates)
    at = held(np.array([0, 1]).reshape(*leading, 1), name="indices")
    path = one_scatter(tmp_path, "ScatterNDUpdate", "opset4", given("data", "f32", (3, 2, 2, 2)), at, new)
    conversion = convert(path, targets=["GPU@2026.4.1"])
    assert [one.code for one in conversion.refused] == ["CVT113"] * is_refused
    assert len(conversion.converted) == (not is_refused)
    if is_refused:
        assert "misreads updates of 9 dimensions" in conversion.refused[0].message


@pytest.mark.parametrize("rows", [0, 2])
def test_empty_inputs_that_the_gpu_plugin_does_not_reshape(rows: int, tmp_path: Path) -> None:
    """DEV305 refuses the reduction; the form of two rows would reshape empty inputs, which is refused."""
    indices, updates = given("indices", "i64", (rows, 1)), given("updates", "f32", (rows, 3))
    data = given("data", "f32", (4, 3))
    attributes = {"reduction": "sum"}
    path = one_scatter(tmp_path, "ScatterNDUpdate", "opset15", data, indices, updates, attributes=attributes)
    conversion = convert(path, targets=["GPU@2026.4.1"], assume=["unique-indices"])
    assert conversion.refused == ()
    (converted,) = conversion.converted
    assert ("left-out" in converted.rewrites) == (rows == 0)


@pytest.mark.openvino
@pytest.mark.parametrize(
    ("data", "indices", "updates"), [("?,3", "?,3", "0,3"), ("5,3", "2,?", "2,0"), ("?,?", "0,3", "0,3")]
)
@pytest.mark.parametrize("words", [{}, {"reduction": "max"}, {"reduction": "max", "use_init_val": "false"}])
def test_nothing_is_written_beside_dimensions_that_are_not_known(
    data: str, indices: str, updates: str, words: dict[str, str], tmp_path: Path, cpu: Runner
) -> None:
    """OpenVINO drops a constant without elements from a Concat, so that coordinates got another shape."""

    def dims(text: str) -> list[Any]:
        return [-1 if dim == "?" else int(dim) for dim in text.split(",")]

    sources = given("data", "f32", dims(data)), given("indices", "i64", dims(indices))
    node = (*sources, given("updates", "f32", dims(updates)), held(0, name="axis"))
    before = Path(one_scatter(tmp_path, "ScatterElementsUpdate", "opset12", *node, words))
    conversion = convert(before, "ScatterNDUpdate-15")
    assert not conversion.refused
    conversion.write(after := tmp_path / "after.xml")
    shape = [5 if dim == -1 else dim for dim in dims(updates)]
    feeds: Arrays = {
        "data": np.ones((5, 3), np.float32), "indices": np.zeros(shape, np.int64),
        "updates": np.zeros(shape, np.float32),
    }  # fmt: skip
    assert_runs_like_numpy(cpu, before, after, feeds)


@pytest.mark.parametrize(
    ("reduction", "is_constant"), [("sum", False), ("prod", False), ("sum", True), ("none", True)]
)
def test_elements_with_a_reduction_do_not_become_such_tuples_for_the_gpu_plugin(
    reduction: str, is_constant: bool, tmp_path: Path
) -> None:
    """DEV305 refuses tuples with a reduction; if targets are distinct, the reduction is computed before."""
    array = np.array([[3, 0], [1, 2]])
    indices = held(array, name="indices") if is_constant else given("indices", "i64", (2, 2))
    data, updates = given("data", "f32", (5, 2)), given("updates", "f32", (2, 2))
    inputs = data, indices, updates, held(np.array(0), name="axis")
    attributes = {"reduction": reduction}
    path = one_scatter(tmp_path, "ScatterElementsUpdate", "opset12", *inputs, attributes=attributes)
    conversion = convert(path, "ScatterNDUpdate-15", targets=["GPU@cpu@2026.4.1"])
    assert [one.code for one in conversion.refused] == ["CVT113"] * (not is_constant)
    news = [new for patch in conversion.patches for new in patch.fragment.news]
    tuples = [new for new in news if new.type == "ScatterNDUpdate"]
    assert len(tuples) == is_constant
    assert {new.attributes.get("reduction", "none") for new in tuples} <= {"none"}
    if not is_constant:
        assert "DEV305" in conversion.refused[0].message


def test_a_refusal_without_a_defect_in_the_way_names_none(tmp_path: Path) -> None:
    """The sentence was "every known rewrite is affected by  on a device of --for"."""
    text = (
        '<ir_version: 10, opset_import: ["" : 18]> '
        "main (float[0, 3] data, int64[0, 1] indices, float[0, 3] updates) => (float[0, 3] out) "
        "{ out = ScatterND (data, indices, updates) }"
    )
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    (refusal,) = convert(path, "ScatterElements", targets=["GPU@2026.4.1"]).refused
    assert refusal.code == "CVT113"
    assert refusal.message.startswith("no known rewrite can be used on a device of ")
    assert "does not reshape" in refusal.message
