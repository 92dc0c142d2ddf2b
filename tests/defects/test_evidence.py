"""What an answer rests on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from ir_scatter.core.instructions import UNKNOWN, instruction_set
from ir_scatter.defects import by_code
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Row, Target, evidence, key_of, read_rows, text_of
from ir_scatter.doctor import check_row, save_row
from ir_scatter.report.doctor_text import state

_DEFECT = by_code()["DEV301"]
_GPU = Target("openvino:GPU", "2026.4.1")


def _row(release: str, driver: str, result: Result) -> Row:
    return Row("openvino", release, "GPU", {"DEV301/slices": result}, "Arc", driver)


def test_a_driver_is_told_unless_it_comes_with_the_release() -> None:
    of_its_own = _row("2026.4.1", "25.22.33944", Result.REFUSED)
    assert evidence(_DEFECT, _GPU, [of_its_own], []).told == "2026.4.1 on Arc, driver 25.22.33944"
    of_the_release = _row("2026.4.1", "plugin 2026.4.1-22982", Result.REFUSED)
    assert evidence(_DEFECT, _GPU, [of_the_release], []).told == "2026.4.1 on Arc"


_CPU = Target("openvino:CPU", "2026.4.1")
_INFINITE = by_code()["DEV115"]
_DEFECTIVE = {"DEV115/max": Result.WRONG, "DEV115/min": Result.WRONG}
_NEAR = {key_of(_INFINITE, probe): Result.RIGHT for probe in _INFINITE.near}


def _on(instructions: str, changes: Mapping[str, Result] = MappingProxyType({})) -> Row:
    results = {**_DEFECTIVE, **_NEAR, **changes}
    return Row("openvino", "2026.4.1", "CPU", results, "Xeon", instructions=instructions)


@pytest.mark.parametrize(
    ("recorded", "here", "changes", "differs", "said"),
    [
        ("AVX2", "AVX2", {}, False, "present"),
        ("AVX2", "AVX2", {"DEV115/bf16": Result.WRONG}, True, "present, also affects: bf16"),
        (
            "AVX2", "AVX-512 with bf16", {"DEV115/bf16": Result.WRONG}, False,
            "present, depends on the instruction set (recorded on AVX2, this machine has AVX-512 with bf16), "
            "also affects: bf16",
        ),
        (
            "AVX-512", "AVX2", {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}, False,
            "absent, depends on the instruction set (recorded on AVX-512, this machine has AVX2)",
        ),
        ("AVX-512", "AVX2", {}, False, "present"),
        (
            "", "AVX2", {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}, False,
            "absent, depends on the instruction set (recorded on an unknown one, this machine has AVX2)",
        ),
        (
            UNKNOWN, UNKNOWN, {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}, False,
            "absent, depends on the instruction set (recorded on an unknown one, this machine has an unknown one)",
        ),
        ("", "", {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}, True, "gone, recorded: wrong"),
    ],
)  # fmt: skip
def test_like_is_compared_with_like(
    recorded: str, here: str, changes: Mapping[str, Result], differs: bool, said: str
) -> None:
    """What depends on the instruction set is no news on a processor with another one."""
    checked = check_row(_INFINITE, _CPU, _on(here, changes), [_on(recorded)])
    assert (checked.differs, state(checked)) == (differs, said)


def test_records_without_the_defect_name_no_instruction_set() -> None:
    """A record of other defects alone, measured later on another processor, says nothing of this one."""
    passed = {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}
    of_others = Row("openvino", "2026.4.1", "CPU", {"DEV112/tiled": Result.WRONG}, "Zen", instructions="NEON")
    checked = check_row(_INFINITE, _CPU, _on("AVX2", passed), [_on("AVX-512"), of_others])
    assert checked.other_processor == "recorded on AVX-512, this machine has AVX2"


def test_of_several_records_that_of_the_same_processor_counts() -> None:
    records = [_on("AVX2", {"DEV115/max": Result.RIGHT, "DEV115/min": Result.RIGHT}), _on("AVX-512")]
    assert not check_row(_INFINITE, _CPU, _on("AVX-512"), records).differs
    assert check_row(_INFINITE, _CPU, _on("AVX2"), records).differs
    found = evidence(_INFINITE, _CPU, [_on("AVX2")], [])
    assert found.told == "2026.4.1 on Xeon, AVX2"


def test_what_depends_on_nothing_is_compared_with_all() -> None:
    defect = by_code()["DEV142"]
    results = {key_of(defect, probe): Result.RIGHT for probe in (*defect.probes, *defect.near)}
    before = {**results, **{key_of(defect, probe): Result.ACCEPTED for probe in defect.probes}}
    rows = [
        Row("openvino", "2026.4.1", "CPU", one, "Xeon", instructions=word)
        for one, word in ((results, "AVX2"), (before, "AVX-512"))
    ]
    assert check_row(defect, _CPU, rows[0], rows[1:]).differs


def test_records_of_processors_stand_side_by_side(tmp_path: Path) -> None:
    """One from before instructions were written down gives way to a new one of the same name."""
    path = tmp_path / "history.json"
    for instructions in ("", "AVX2", "AVX-512", "AVX2"):
        save_row(_on(instructions), path)
    assert [row.instructions for row in read_rows(path)] == ["AVX-512", "AVX2"]
    assert '"instructions"' not in text_of([_on("")])


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        ("flags : fpu sse4_1 avx avx2", "", "AVX2"),
        ("flags\t\t: fpu sse4_1", "", "SSE4"),
        ("flags : avx2 avx512f", "", "AVX-512"),
        ("flags : avx2 avx512f avx512_bf16 avx512_fp16", "", "AVX-512 with bf16 and f16"),
        ("flags : avx2 avx512f avx512_bf16 amx_tile amx_bf16", "default", "AMX with bf16"),
        ("flags : avx2 avx512f", "avx2", "AVX-512, limited to AVX2"),
        ("Features : fp asimd asimdhp bf16", "", "NEON with bf16 and f16"),
        ("flags : fpu", "", UNKNOWN),
        ("model name : AMD EPYC", "", UNKNOWN),
    ],
)
def test_the_instruction_set_is_read(
    line: str, limit: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", limit)
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor : 0\n{line}\n\nprocessor : 1\n", encoding="ascii")
    assert instruction_set(path) == expected
    assert instruction_set(tmp_path / "missing") == UNKNOWN
