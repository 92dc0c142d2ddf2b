from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ir_scatter import EvaluationFailed, evaluate_model
from ir_scatter.analysis import interpreter as machine
from tests.models import nested_ir
from tests.models.onnx_text import NESTED, check, save
from tests.models.runtimes import Outcome, run_all

UNKNOWN_TO_OPENVINO = {"captured_deep", "functions"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("nested")
    return {name: save(text, folder / f"{name}.onnx") for name, (text, _) in NESTED.items()}


@pytest.fixture(scope="module")
def onnxruntime(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    pytest.importorskip("onnxruntime")
    jobs = {name: (models[name], list(feeds.values())) for name, (_, feeds) in NESTED.items()}
    return run_all("onnxruntime", jobs, tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def openvino(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Save the models as IR, and run those."""
    pytest.importorskip("openvino")
    jobs = {
        name: (models[name], list(feeds.values()))
        for name, (_, feeds) in NESTED.items()
        if name not in UNKNOWN_TO_OPENVINO
    }
    return run_all("openvino_ir", jobs, tmp_path_factory.mktemp("jobs"))


def _assert_same(ours: dict[str, npt.NDArray[Any]], theirs: Outcome) -> None:
    assert theirs.error == ""
    for (name, array), expected in zip(ours.items(), theirs.outputs, strict=True):
        assert array.dtype == expected.dtype, name
        np.testing.assert_array_equal(array, expected, err_msg=name)


@pytest.mark.parametrize("name", NESTED)
def test_models_are_legal(name: str, models: dict[str, Path]) -> None:
    check(models[name])


@pytest.mark.onnxruntime
@pytest.mark.parametrize("name", NESTED)
def test_onnx(name: str, models: dict[str, Path], onnxruntime: dict[str, Outcome]) -> None:
    _assert_same(evaluate_model(models[name], NESTED[name][1]), onnxruntime[name])


@pytest.mark.openvino
@pytest.mark.parametrize("name", [name for name in NESTED if name not in UNKNOWN_TO_OPENVINO])
def test_ir_saved_by_openvino(name: str, models: dict[str, Path], openvino: dict[str, Outcome]) -> None:
    path = models[name].with_suffix(".xml")
    _assert_same(evaluate_model(path, NESTED[name][1]), openvino[name])


@pytest.mark.parametrize("flag", [True, False])
def test_branches_take_their_inputs_in_any_order(flag: bool, tmp_path: Path) -> None:
    a, b = nested_ir.floats(2, 3), nested_ir.floats(2, 3) ** 2
    path = nested_ir.write_branch(tmp_path)
    found = evaluate_model(path, {"flag": np.array(flag), "a": a, "b": b})
    first, second = (a, b) if flag else (b, a)
    np.testing.assert_array_equal(found["chosen.0"], first - second)
    np.testing.assert_array_equal(found["chosen.1"], first)


@pytest.mark.parametrize("is_backward", [False, True])
def test_parts_of_several_rows(is_backward: bool, tmp_path: Path) -> None:
    rows, start = nested_ir.floats(6, 3), nested_ir.floats(2, 3) * 8
    path = nested_ir.write_iterator(tmp_path, is_backward=is_backward)
    each, total = evaluate_model(path, {"rows": rows, "start": start}).values()
    parts = np.split(rows, 3)
    sums = start + np.cumsum(parts[::-1] if is_backward else parts, axis=0)
    np.testing.assert_array_equal(total, sums[-1])
    np.testing.assert_array_equal(each, np.concatenate(sums[::-1] if is_backward else sums))


@pytest.mark.parametrize(
    ("trips", "starts", "done"), [(3, True, 3), (-1, True, 5), (0, True, 0), (9, False, 0)]
)
def test_loop_ends_by_count_or_condition(trips: int, starts: bool, done: int, tmp_path: Path) -> None:
    cache, row = nested_ir.floats(7, 5), -nested_ir.floats(1, 5) - 1
    path = nested_ir.write_loop(tmp_path, trips, starts=starts)
    kept, steps = evaluate_model(path, {"cache": cache, "row": row}).values()
    np.testing.assert_array_equal(kept, nested_ir.looped(cache, row, done))
    assert steps.tolist() == list(range(done))
    assert steps.dtype == np.int64


@pytest.mark.openvino
def test_ir_text_is_read_by_openvino_alike(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    cache, row, rows = nested_ir.floats(7, 5), -nested_ir.floats(1, 5), nested_ir.floats(6, 3)
    jobs: dict[str, tuple[Path, list[npt.NDArray[Any]]]] = {}
    for name, write in _writers(tmp_path).items():
        inputs = [rows, rows[:2]] if name.startswith("iterator") else [cache, row]
        jobs[name] = (Path(write()), inputs)
    for name, outcome in run_all("openvino", jobs, tmp_path).items():
        path, inputs = jobs[name]
        names = ("rows", "start") if name.startswith("iterator") else ("cache", "row")
        _assert_same(evaluate_model(path, dict(zip(names, inputs, strict=True))), outcome)


def _writers(folder: Path) -> dict[str, Callable[[], str]]:
    return {
        "iterator_forward": lambda: nested_ir.write_iterator(folder, is_backward=False),
        "iterator_backward": lambda: nested_ir.write_iterator(folder, is_backward=True),
        "loop_by_count": lambda: nested_ir.write_loop(folder, 3),
        "loop_by_condition": lambda: nested_ir.write_loop(folder, -1),
    }


def test_a_loop_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_ITERATIONS", 100)
    text = """<ir_version: 10, opset_import: ["" : 18]>
        endless (float[2] data) => (float[2] out) <bool true = {1}> {
          out = Loop ("", true, data) <
            body = body (int64 step, bool again, float[2] old) => (bool again, float[2] new) {
              new = Identity (old)
            }
          >
        }"""
    path = save(text, tmp_path / "endless.onnx")
    with pytest.raises(EvaluationFailed, match=r"Loop out .*has not ended after 100 iterations"):
        evaluate_model(path, {"data": np.zeros(2, np.float32)})
