"""Every known defect has a page, and all of them a table by release, written from the history.

`UPDATE_README=1 pytest tests/samples` writes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import pytest

from ir_scatter.core.parameters import spelled
from ir_scatter.core.shapes import show
from ir_scatter.core.words import counted
from ir_scatter.defects import all_defects, by_code
from ir_scatter.defects.base import Defect, Numbers
from ir_scatter.defects.evidence import Row, history, key_of, order, result_of
from ir_scatter.ops.spec import Role
from ir_scatter_cli.spelling import OptionSpelling
from tests.samples.pages import DOCS, IS_UPDATE

FOLDER = DOCS / "defects"


def page(defect: Defect) -> str:
    """Return the page of a defect, which recommends commands."""
    with spelled(OptionSpelling("doctor").spell):
        return _page(defect)


def _page(defect: Defect) -> str:
    lines = [
        f"# {defect.code} {defect.name}",
        "",
        f"Symptom: {defect.symptom}, on {', '.join(defect.runners)}.",
        "",
        f"It shows {defect.strikes}.",
        "",
        defect.text.replace("<", "&lt;"),
        "",
        f"**Around it:** {defect.advice()}.",
        "",
        "## Measured",
        "",
        "| runner | release | device | result | probes |",
        "|---|---|---|---|---|",
        *_measured(defect),
        "",
        "## Probes",
        "",
        "| probe | operator | data | indices | updates | axis | attributes and settings |",
        "|---|---|---|---|---|---|---|",
        *_probes(defect),
        "",
    ]
    return "\n".join(lines)


def is_measured(defect: Defect, row: Row) -> bool:
    return any(key_of(defect, one) in row.results for one in defect.probes)


def _measured(defect: Defect) -> Iterator[str]:
    for row in history():
        if not is_measured(defect, row):
            continue
        told = result_of(defect, row)
        results = [(one.name, row.results.get(key_of(defect, one))) for one in defect.probes]
        each = [f"{name} {defect.word_of(result) if result else 'untested'}" for name, result in results]
        word = defect.word_of(told) if told else "absent"
        yield f"| {row.runner} | {row.release} | {row.name} | {word} | {', '.join(each)} |"


def _probes(defect: Defect) -> Iterator[str]:
    for one in (*defect.probes, *defect.near):
        types = one.element_type, one.index_type, one.element_type
        arrays = [
            "" if numbers is None else f"{type} {_numbers(numbers)}"
            for type, numbers in zip(types, (one.data, one.indices, one.updates), strict=True)
        ]
        told = [f"{name}={value}" for name, value in one.attributes.items()]
        told += [f"{one.shapes} shapes"] if one.shapes != "static" else []
        if constants := sorted(one.constants - {Role.AXIS}):
            told.append(f"{' and '.join(constants)} constant")
        if one.axis is not None and Role.AXIS not in one.constants:
            told.append("axis not constant")
        told += [f"{one.threads} thread"] if one.threads else []
        told += [f"in a loop of {one.iterations}"] if one.iterations else []
        told += [f"after {' and '.join(one.before)}"] if one.before else []
        told += [f"data is a state, {counted(one.times, 'inference')}"] if one.keeps_state else []
        told += ["in a function"] if one.in_function else []
        written = ", ".join(told)
        near = " (right)" if one in defect.near else ""
        axis = "" if one.axis is None else str(one.axis)
        yield f"| {one.name}{near} | {one.operator} | {' | '.join(arrays)} | {axis} | {written} |".replace(
            "  ", " "
        )


def _numbers(given: Numbers) -> str:
    return f"of shape {show(given)}" if isinstance(given, tuple) else str(given)


def overview() -> str:
    lines = [
        "# Known defects",
        "",
        "Known defects of runtimes, measured with the probes (test models) of each defect. `ir-scatter doctor` runs",
        "the probes on the devices of a machine. `ir-scatter validate --for CPU,GPU` reports which nodes of a model",
        "are affected, and `ir-scatter convert --for CPU,GPU` avoids the defects. The newest release comes first, and",
        "a run of releases with the same result is a range. A release has a defect if the result of some probe is not",
        "right: *wrong*, *refused*, *crashed*, *accepted* although the probe is illegal, or *varies*, if results",
        "change from run to run as the specification permits. *absent*: no probe could show it, for example because",
        "the release does not have the operator. *untested*: never measured.",
    ]
    rows = history()
    for runner in dict.fromkeys(row.runner for row in rows):
        releases = _by_release(row for row in rows if row.runner == runner)
        lines += [
            "",
            f"## {runner}",
            "",
            "| defect | newest release | all releases, the newest first |",
            "|---|---|---|",
        ]
        for defect in all_defects():
            if any(result_of(defect, row) for row in rows if row.runner == runner):
                title = f"[{defect.code} {defect.name}](defects/{defect.code}.md)"
                cells = [(release, _cell(defect, of_release)) for release, of_release in releases.items()]
                lines.append(f"| {title} | {cells[0][1]} | {', '.join(_ranges(cells))} |")
    return "\n".join([*lines, ""])


def _ranges(cells: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield each run of equal outcomes: "wrong in 2026.4.1 to 2025.1.0", "absent in 2024.6.0"."""
    for outcome, run in groupby(cells, lambda cell: cell[1]):
        releases = [release for release, _ in run]
        span = releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
        yield f"{outcome} in {span}"


def _by_release(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by release, the newest first: one release may be recorded on several processors."""
    releases = dict[str, list[Row]]()
    for row in sorted(rows, key=lambda row: order(row.release), reverse=True):
        releases.setdefault(row.release, []).append(row)
    return releases


def _cell(defect: Defect, rows: Sequence[Row]) -> str:
    """Return what a release does with a defect; several results if processors differ in it."""
    results = dict.fromkeys(found for row in rows if (found := result_of(defect, row)))
    if results:
        return " or ".join(map(defect.word_of, results))
    return "absent" if any(is_measured(defect, row) for row in rows) else "untested"


@pytest.mark.parametrize("code", by_code())
def test_the_page_of_a_defect(code: str) -> None:
    path, expected = FOLDER / f"{code}.md", page(by_code()[code])
    if IS_UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(expected, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == expected


def test_the_table_of_defects() -> None:
    path = DOCS / "defects.md"
    if IS_UPDATE:
        path.write_text(overview(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == overview()


def test_every_page_is_of_a_defect() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} == {*by_code()}
