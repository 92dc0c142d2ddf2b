"""Models whose states go on from inference to inference, held against NumPy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ir_scatter import runners
from ir_scatter.cases.from_probe import case_of
from ir_scatter.compare.headline import headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import CompareSettings, Level, Relation
from ir_scatter.compare.run import compare
from ir_scatter.core.arrays import Array
from ir_scatter.defects import by_code
from ir_scatter.evaluate.model import ForwardArrays, prepare
from ir_scatter.formats import FORMATS
from ir_scatter.reading import read

_DEFECT = by_code()["DEV116"]
_SUM = next(probe for probe in _DEFECT.probes if probe.name == "elements")
_FEEDS = case_of(_SUM).feeds()


def _written(folder: Path, *, assigns: str, before: tuple[str, ...] = ()) -> Path:
    """Write a sum of 10 into a state; what is assigned to it is "read" or "computed"."""
    node = replace(case_of(_SUM).node(), before=before)
    files = FORMATS["openvino-ir"].nodes([node])
    text, ids = files[".xml"], dict[bytes, bytes]()
    for part in text.split(b"<layer ")[1:]:
        ids[part.partition(b'name="')[2].partition(b'"')[0]] = part.partition(b'id="')[2].partition(b'"')[0]
    lines = text.split(b"\n")
    place = next(number for number, line in enumerate(lines) if b'to-layer="%b"' % ids[b"written"] in line)
    of_result = next(line for line in lines if b'to-layer="%b"' % ids[b"result"] in line)
    if assigns == "computed":
        lines[place] = of_result.replace(
            b'to-layer="%b"' % ids[b"result"], b'to-layer="%b"' % ids[b"written"]
        )
    (folder / "model.xml").write_bytes(b"\n".join(lines))
    (folder / "model.bin").write_bytes(files[".bin"])
    return folder / "model.xml"


def _inferences(path: Path, count: int) -> list[float]:
    program = prepare(path)
    forward, found = ForwardArrays(program.plans), list[float]()
    arrays: list[Array] = [_FEEDS[one.names[0]] for one in program.inputs]
    for _ in range(count):
        (output,) = forward.run(program.plan, arrays)
        assert isinstance(output, np.ndarray)
        found.append(float(output[0]))
    return found


@pytest.mark.parametrize(("assigns", "expected"), [("read", [11, 11, 11]), ("computed", [11, 21, 31])])
def test_numpy_keeps_what_is_assigned(assigns: str, expected: list[float], tmp_path: Path) -> None:
    path = _written(tmp_path, assigns=assigns)
    assert _inferences(path, 3) == expected
    assert np.array_equal(prepare(path).run(_FEEDS)["output"], [11, 2, 3, 4])  # which begins anew
    assert np.array_equal(prepare(path).run(_FEEDS)["output"], [11, 2, 3, 4])


def test_a_state_that_is_read_unchanged_is_wrong_from_the_second_inference_on(tmp_path: Path) -> None:
    path, cpu = _written(tmp_path, assigns="read"), runners.find("CPU")
    found = compare(path, [cpu], CompareSettings(repeat=3), feeds=_FEEDS)
    (output,) = (one for one in found.comparisons if one.level is Level.MODEL)
    assert output.wrong_runs == (2, 3)
    assert headline(found).sentence == (
        "openvino:CPU is wrong at output output in 2 of 3 runs: [0] is 21, NumPy computes 11; every scatter "
        "node is right in the first inference; nodes are not tapped in later inferences; node may be affected by DEV116, "
        "which taps hide"
    )
    assert not compare(path, [cpu], CompareSettings(), feeds=_FEEDS).differs
    cpu.close()


def test_a_state_that_changes_as_it_should_is_right(tmp_path: Path) -> None:
    path, cpu = _written(tmp_path, assigns="computed"), runners.find("CPU")
    found = compare(path, [cpu], CompareSettings(repeat=3), feeds=_FEEDS)
    assert not found.differs  # though each inference gives something else
    alone = compare(path, [cpu], CompareSettings(repeat=3, reference=False), feeds=_FEEDS, with_numpy=False)
    assert not alone.differs
    assert "inferences after the first depend on states" in " ".join(alone.remarks)
    cpu.close()


def test_later_inferences_of_two_models_are_compared(tmp_path: Path) -> None:
    """They are the same in the first inference, and what they keep for the next differs."""
    paths = []
    for assigns in ("read", "computed"):
        (tmp_path / assigns).mkdir()
        paths.append(_written(tmp_path / assigns, assigns=assigns))
    models = [read(path) for path in paths]
    assert not compare(models, [], CompareSettings(), feeds=_FEEDS).differs
    found = compare(models, [], CompareSettings(repeat=3), feeds=_FEEDS)
    (output,) = (one for one in found.comparisons if one.relation is Relation.MODELS)
    assert output.measure.verdict is Verdict.MISMATCH
    assert output.wrong_runs == (2, 3)
    assert not compare([models[1], read(paths[1])], [], CompareSettings(repeat=3), feeds=_FEEDS).differs


def test_a_state_that_one_of_two_models_updates_in_place(tmp_path: Path) -> None:
    path, cpu = _written(tmp_path, assigns="read"), runners.find("CPU")
    models = [read(path), read(path)]
    assert not compare(models, [cpu], CompareSettings(), feeds=_FEEDS).differs
    found = compare(models, [cpu], CompareSettings(repeat=3), feeds=_FEEDS)
    cpu.close()
    wrong = [one for one in found.comparisons if one.measure.verdict is Verdict.MISMATCH]
    assert {(one.subject, one.relation, one.wrong_runs) for one in wrong} == {
        (cpu.name, Relation.DOCUMENT, (2, 3))
    }
