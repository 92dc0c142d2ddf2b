"""Known findings: by code, path, scope and node, not by line."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from ir_scatter import Diagnostic, Location, NodeRef, Severity, UsageError
from ir_scatter.lint import Baseline, FileResult, Report, baseline_text, read_baseline


def finding(
    path: Path | str, *, code: str = "SCT203", line: int = 7, scope: str = "s", node: str = "s"
) -> Diagnostic:
    where = Location(str(path), line, 3, scope)
    return Diagnostic(code, "rule", Severity.ERROR, "m", where, NodeRef(node, "ScatterUpdate", 3))


def report(*found: Diagnostic, readable: bool = True) -> Report:
    path = found[0].location.path
    return Report((FileResult(path, "openvino-ir", readable, 1, found),))


def written(folder: Path, found: Report) -> str:
    path = folder / "known.json"
    path.write_text(baseline_text(found, str(path)))
    return str(path)


def test_a_known_finding_is_excused_wherever_it_moved(tmp_path: Path) -> None:
    known = read_baseline(written(tmp_path, report(finding(tmp_path / "m.xml", line=7))))
    moved = replace(finding(tmp_path / "m.xml", line=99), message="other words", severity=Severity.WARNING)
    assert known.excuses(moved)
    assert not known.excuses(moved)


@pytest.mark.parametrize("change", [{"code": "SCT204"}, {"scope": "t"}, {"node": "t"}])
def test_another_finding_is_not(change: dict[str, str], tmp_path: Path) -> None:
    known = read_baseline(written(tmp_path, report(finding(tmp_path / "m.xml"))))
    assert not known.excuses(finding(tmp_path / "m.xml", **change))  # type: ignore[arg-type]
    assert not known.excuses(finding(tmp_path / "n.xml"))
    assert known.excuses(finding(tmp_path / "m.xml"))


def test_each_known_one_excuses_one(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    known = read_baseline(written(tmp_path, report(finding(path, line=1), finding(path, line=2))))
    assert [known.excuses(finding(path)) for _ in range(3)] == [True, True, False]


def test_paths_are_relative_to_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    name = written(tmp_path, report(finding(tmp_path / "models" / "m.xml")))
    assert json.loads(Path(name).read_text())["findings"] == [
        {"code": "SCT203", "path": "models/m.xml", "scope": "s", "node": "s", "count": 1}
    ]
    monkeypatch.chdir(tmp_path / "models")
    assert read_baseline("../known.json").excuses(finding("m.xml"))


def test_a_finding_about_the_file(tmp_path: Path) -> None:
    found = replace(finding(tmp_path / "m.xml", scope=""), node=None)
    assert read_baseline(written(tmp_path, report(found))).excuses(found)


def test_unreadable_files_cannot_be_excused(tmp_path: Path) -> None:
    name = written(tmp_path, report(finding(tmp_path / "m.xml"), readable=False))
    assert json.loads(Path(name).read_text()) == {"schema": 1, "findings": []}


def test_the_text_is_the_same_whatever_the_order(tmp_path: Path) -> None:
    one, two = (
        finding(tmp_path / "m.xml", code="SCT302"),
        finding(tmp_path / "m.xml", code="SCT203", scope="é"),
    )
    texts = {baseline_text(report(*order), str(tmp_path / "b.json")) for order in ([one, two], [two, one])}
    assert len(texts) == 1
    text = texts.pop()
    assert text.isascii()
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"schema": 2, "findings": []}',
        '{"schema": 1}',
        '{"schema": 1, "findings": [{}]}',
        '{"schema": 1, "findings": 3}',
        '{"schema": 1, "findings": [{"code": 1, "path": [], "scope": "", "node": ""}]}',
        '{"schema": 1, "findings": [{"code": "a", "path": "p", "scope": "", "node": "", "count": "many"}]}',
        "\ufeff{}",
        "{" * 100_000,
    ],
)
def test_a_file_that_is_no_baseline(text: str, tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"known\.json"):
        read_baseline(str(path))


def test_a_large_count_takes_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    entry = {"code": "SCT203", "path": "m.xml", "scope": "s", "node": "s", "count": 1_000_000}
    path.write_text(json.dumps({"schema": 1, "findings": [entry]}))
    tracemalloc.start()
    known = read_baseline(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert known.excuses(finding(tmp_path / "m.xml"))
    assert peak < 10_000_000


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: no such file"):
        read_baseline(str(tmp_path / "missing.json"))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UsageError, match="is no baseline"):
        read_baseline(str(tmp_path / "known.json"))


def test_an_empty_baseline_excuses_nothing(tmp_path: Path) -> None:
    assert not Baseline(tmp_path).excuses(finding(tmp_path / "m.xml"))
