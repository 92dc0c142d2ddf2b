"""`ir-scatter convert --verify-on`: both whole models on a runtime, before anything is written."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.runners.base import Outcome, Status
from tests.cli.conftest import Cli, copy_sample
from tests.cli.scatter_models import deprecated, files, slices

_TO = ("--to", "ScatterNDUpdate", "-o", "new.xml", "--verify-on", "pretended")
_Answer = Callable[[bool, int], Outcome]


class _Pretended:
    """Answers as it is told: for the model before and after, by the number of the case."""

    name = "pretended"

    def __init__(self, answer: _Answer) -> None:
        self.answer = answer
        self.cases = {True: 0, False: 0}
        self.is_closed = False

    def run(self, path: str | Path, feeds: Mapping[str, Any], **_: Any) -> Outcome:
        assert Path(path).exists()
        assert {"data", "rows"} <= set(feeds)
        is_new = Path(path).name == "converted.xml"
        self.cases[is_new] += 1
        self.feeds = feeds
        return self.answer(is_new, self.cases[is_new] - 1)

    def remedy(self) -> str:
        return ""

    def remedy_of(self, problem: str) -> str:
        return ""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[[_Answer], _Pretended]:
    def start(answer: _Answer) -> _Pretended:
        made = _Pretended(answer)
        monkeypatch.setattr(runners, "find", lambda name: made)
        return made

    return start


def _ok(*numbers: float, name: str = "out", dtype: Any = np.float32) -> Outcome:
    return Outcome("pretended", Status.OK, runs=({name: np.array(numbers, dtype)},))


def _bad(status: Status, message: str = "its words") -> Outcome:
    return Outcome("pretended", status, message)


def _ended(before: Status, after: Status = Status.OK) -> _Answer:
    def answer(is_new: bool, case: int) -> Outcome:
        status = after if is_new else before
        return _ok(1) if status is Status.OK else _bad(status)

    return answer


def _became(after: Outcome) -> _Answer:
    return lambda is_new, case: after if is_new else _ok(0, 1, 2)


_EQUAL = "equal on pretended (2 cases); new.xml written\n"
_DIFFERENT = "refused: CVT109\n    pretended: "


@pytest.mark.parametrize(
    ("answer", "code", "sentence"),
    [
        (lambda is_new, case: _ok(case, np.nan, -0.0 if is_new else 0.0), 0, _EQUAL),
        (
            lambda is_new, case: _ok(1 + is_new * 1e-6),
            0,
            "note: pretended: outputs are equal except for rounding\n",
        ),
        (lambda is_new, case: _ok(is_new * case), 1, "(case 1)"),
        (_became(_ok(0, 1, 5)), 1, f"{_DIFFERENT}output out is 5.0 at [2], expected 2.0 (case 0)\n"),
        (_became(_ok(0, 1)), 1, f"{_DIFFERENT}output out is float32 [2], expected float32 [3] (case 0)\n"),
        (
            _became(_ok(0, 1, 2, dtype=np.float64)),
            1,
            f"{_DIFFERENT}output out is float64 [3], expected float32 [3] (case 0)\n",
        ),
        (_became(_ok(0, 1, 2, name="other")), 1, f"{_DIFFERENT}output out is missing (case 0)\n"),
        (_became(_bad(Status.REFUSED)), 1, f"{_DIFFERENT}the converted model is refused: its words\n"),
        (_became(_bad(Status.CRASHED)), 1, f"{_DIFFERENT}the converted model is crashed: its words\n"),
        (
            _ended(Status.REFUSED),
            1,
            f"{_DIFFERENT}the original model is refused: its words; the converted one runs, but output out is "
            "float32 [1], expected float32 [4, 5, 3] in NumPy\n",
        ),
        (_ended(Status.UNAVAILABLE), 4, "note: pretended: unavailable: its words\n"),
        (_ended(Status.TIMEOUT), 4, "note: pretended: timeout: its words\n"),
        (
            _ended(Status.REFUSED, Status.REFUSED),
            4,
            "note: pretended: neither model runs: refused: its words\n",
        ),
        (_ended(Status.OK, Status.TIMEOUT), 4, "note: pretended: neither model runs: timeout: its words\n"),
    ],
)
def test_both_models_are_compared(
    answer: _Answer, code: int, sentence: str, cli: Cli, pretend: Callable[[_Answer], _Pretended]
) -> None:
    made, source = pretend(answer), slices()
    before = files()
    result = cli("convert", source, *_TO)
    assert result.code == code
    assert sentence in result.out
    assert result.out.endswith("new.xml written\n" if code == 0 else "nothing written\n")
    assert code == 0 or files() == before
    assert made.is_closed
    assert code or made.cases == {True: 2, False: 2}


def test_targets_that_repeat_cannot_tell(cli: Cli, pretend: Callable[[_Answer], _Pretended]) -> None:
    def answer(is_new: bool, case: int) -> Outcome:
        out = made.feeds["data"].copy()
        out[:, 1] = made.feeds["rows"][:, int(is_new)]
        return Outcome("pretended", Status.OK, runs=({"out": out + is_beyond * is_new},))

    is_beyond, made = False, pretend(answer)
    result = cli("convert", slices(values=[1, 1]), *_TO)
    assert result.code == 4
    assert "note: pretended: output out is " in result.out
    assert ", but repeated targets of scatter have no specified order (case 0)\n" in result.out
    assert not Path("new.xml").exists()
    is_beyond = True
    assert cli("convert", slices(values=[1, 1]), *_TO).code == 1


def test_what_was_wrong_before_is_mended(cli: Cli, pretend: Callable[[_Answer], _Pretended]) -> None:
    def answer(is_new: bool, case: int) -> Outcome:
        out = made.feeds["data"].copy()
        out[:, [2, 0]] = made.feeds["rows"] + (not is_new) + is_beyond
        return Outcome("pretended", Status.OK, runs=({"out": out},))

    is_beyond, made = False, pretend(answer)
    result = cli("convert", slices(values=[2, 0]), *_TO)
    assert result.code == 0
    assert result.out.count("note: pretended: before, output out is ") == 1
    assert " in NumPy; now it agrees with NumPy\n" in result.out
    is_beyond = True
    assert cli("convert", slices(values=[2, 0]), *_TO, "--overwrite").code == 1


def test_a_missing_runtime_yields_to_a_refusal(cli: Cli, pretend: Callable[[_Answer], _Pretended]) -> None:
    pretend(lambda is_new, case: _bad(Status.UNAVAILABLE))
    result = cli("convert", slices(values=[0, -1]), *_TO, "--partial")
    assert result.code == 1


@pytest.mark.openvino
def test_a_missing_device(cli: Cli) -> None:
    pytest.importorskip("openvino")
    source = slices()
    before = files()
    result = cli("convert", source, "--to", "ScatterNDUpdate", "-o", "new.xml", "--verify-on", "GPU.7")
    assert result.code == 4
    assert "note: openvino:GPU.7: unavailable: " in result.out
    assert files() == before


@pytest.mark.openvino
def test_a_legal_model_that_the_plugin_refuses(cli: Cli) -> None:
    pytest.importorskip("openvino")
    source = slices(indices=())
    result = cli("convert", source, "--to", "ScatterUpdate", "-o", "new.xml", "--verify-on", "CPU")
    assert result.code == 0
    assert "note: openvino:CPU: the original model is refused: " in result.out
    assert "; the converted one runs, and agrees with NumPy\n" in result.out
    again = cli(
        "convert",
        "new.xml",
        "--to",
        "ScatterElementsUpdate",
        "--dry-run",
        "--verify-on",
        "CPU",
        "--format",
        "json",
    )
    assert json.loads(again.out)["verified_on"] == {"openvino:CPU": 2}


@pytest.mark.openvino
@pytest.mark.parametrize("target", ["ScatterNDUpdate-3", "ScatterElementsUpdate"])
def test_a_model_with_operators_that_numpy_does_not_know(target: str, cli: Cli, elsewhere: Path) -> None:
    pytest.importorskip("openvino")
    source = copy_sample("kv_cache/decoder.xml", elsewhere)
    result = cli(
        "convert", source, "--to", target, "-o", "new.xml", "--verify-on", "cpu", "--verify-on", "CPU"
    )
    assert result.code == 0
    assert result.out.count("equal on openvino:CPU (2 cases)") == 1


@pytest.mark.onnxruntime
def test_a_deprecated_operator_that_onnxruntime_refuses(cli: Cli) -> None:
    pytest.importorskip("onnxruntime")
    result = cli("convert", deprecated(13), "-o", "new.onnx", "--verify-on", "onnxruntime")
    assert result.code == 0
    assert "note: onnxruntime: the original model is " in result.out
    result = cli("convert", deprecated(9, "old"), "-o", "newer.onnx", "--verify-on", "onnxruntime")
    assert "equal on onnxruntime (2 cases), opset 11; newer.onnx written" in result.out
