"""Measurements of known defects: the result of each probe (test input), by release and device."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.core.files import read_regular
from ir_scatter.defects.base import Defect, Probe, Result

HISTORY = Path(__file__).with_name("history.json")
SCHEMA = 1


class Basis(StrEnum):
    """The source of an answer about a defect, the best first."""

    PROBED = "probed here"
    RECORDED = "recorded"
    INFERRED = "inferred"
    STAND_IN = "stand-in"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True)
class Row:
    """The results of all probes (test inputs) for one release of a runtime on one device.

    Attributes:
        runtime, device: "openvino" and "CPU"; device is "" for a runtime without devices.
        release: its version.
        name, driver: as the device reports them.
        instructions: the processor's instruction set, if the model ran on the processor; see
            `instruction_set`. "" in older records, and for other devices.
        results: results by the keys of the probes.
        about: further fields of the record: exact packages and their hashes, the Python version, the day.
    """

    runtime: str
    release: str
    device: str
    results: Mapping[str, Result]
    name: str = ""
    driver: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    instructions: str = ""

    @property
    def runner(self) -> str:
        return f"{self.runtime}:{self.device}" if self.device else self.runtime

    def as_json(self) -> dict[str, Any]:
        place = {"runtime": self.runtime, "release": self.release, "device": self.device, "name": self.name}
        instructions = {"instructions": self.instructions} if self.instructions else {}
        return {
            **place,
            "driver": self.driver,
            **instructions,
            **self.about,
            "results": dict(sorted(self.results.items())),
        }


class Evidence(NamedTuple):
    """What is known about a defect on a target (runner and release), and from which measurement."""

    basis: Basis
    result: Result | None = None
    """RIGHT if the defect is absent, otherwise the worst result of the probes; None if unknown."""
    told: str = ""
    """Where and when the result was measured: "2026.4.1 on Xeon"."""

    @property
    def is_bad(self) -> bool:
        return self.result not in {None, Result.RIGHT}


class Target(NamedTuple):
    """A runner and a release: ("openvino:GPU", "2026.4")."""

    runner: str
    release: str

    def __str__(self) -> str:
        return f"{self.runner} {self.release}".rstrip()


def key_of(defect: Defect, probe: Probe) -> str:
    return f"{defect.code}/{probe.name}"


def order(release: str) -> tuple[int, ...]:
    """Return the sort key of a release: "2026.4.1" -> (2026, 4, 1)."""
    return tuple(map(int, re.findall(r"\d+", release)))


def read_rows(path: Path | None) -> list[Row]:
    """Return the rows of a history file; [] if the file is missing or has another format."""
    if path is None:
        return []
    try:
        document = json.loads(read_regular(path).decode("utf-8"))
        if document["schema"] != SCHEMA:
            return []
        return [_row(record) for record in document["rows"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _row(record: Mapping[str, Any]) -> Row:
    fields = {"runtime", "release", "device", "name", "driver", "instructions", "results"}
    return Row(
        runtime=record["runtime"],
        release=record["release"],
        device=record["device"],
        results={key: Result(word) for key, word in record["results"].items()},
        name=str(record.get("name", "")),
        driver=str(record.get("driver", "")),
        about={key: value for key, value in record.items() if key not in fields},
        instructions=str(record.get("instructions", "")),
    )


def text_of(rows: Iterable[Row]) -> str:
    """Return the text of a history file, with rows in the order of runners and releases."""
    ordered = sorted(rows, key=lambda row: (row.runner, order(row.release), row.name, row.instructions))
    document = {"schema": SCHEMA, "rows": [row.as_json() for row in ordered]}
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


@cache
def history() -> tuple[Row, ...]:
    """Return the rows that ship with the package; they were recorded on other machines."""
    return tuple(read_rows(HISTORY))


def result_of(defect: Defect, row: Row, names: Collection[str] = ()) -> Result | None:
    """Return the worst result in a record of a defect's probes, or of the named ones.

    RIGHT if no probe shows the defect, None if nothing was measured. An operator that the release lacks
    counts as a refusal for defects that are refusals, and as no measurement for others.
    """
    probes = [probe for probe in defect.probes if not names or probe.name in names]
    results = [row.results.get(key_of(defect, probe)) for probe in probes]
    is_refusal = defect.symptom.result is Result.REFUSED
    measured = [
        result for result in results if result is not None and (is_refusal or result is not Result.ABSENT)
    ]
    return min(measured, key=[*Result].index, default=None)


def evidence(
    defect: Defect,
    target: Target,
    here: Sequence[Row],
    recorded: Sequence[Row],
    probes: Collection[str] = (),
    emulator: str = "",
) -> Evidence:
    """Return what is known about a defect on a target (runner and release), from the best source.

    Args:
        defect: a defect of the target's runner.
        target: a device and a release.
        here: rows that this machine measured.
        recorded: rows of other machines.
        probes: the names of the probes that count; empty for all.
        emulator: the runner that emulates the target's device; its results count if the target has none.
    """
    for runner in filter(None, (target.runner, emulator)):
        is_emulated = runner != target.runner
        for rows, basis in ((here, Basis.PROBED), (recorded, Basis.RECORDED)):
            of_runner = [row for row in rows if row.runner == runner]
            for row in sorted(of_runner, key=lambda row: order(row.release), reverse=True):
                result = result_of(defect, row, probes)
                if result is not None and _matches(target.release, row.release):
                    return Evidence(Basis.STAND_IN if is_emulated else basis, result, _place(row, defect))
        inferred = _inferred(defect, target, [*here, *recorded], runner, probes)
        if inferred is not None:
            return inferred._replace(basis=Basis.STAND_IN) if is_emulated else inferred
    return Evidence(Basis.UNTESTED)


def _inferred(
    defect: Defect, target: Target, rows: Iterable[Row], runner: str, probes: Collection[str]
) -> Evidence | None:
    """Infer the result if the nearest measured releases before and after gave the same; otherwise None."""
    by_release = {
        order(row.release): (row, result)
        for row in rows
        if row.runner == runner and (result := result_of(defect, row, probes)) is not None
    }
    release = order(target.release)
    before = max((earlier for earlier in by_release if earlier < release), default=None)
    after = min((later for later in by_release if later > release), default=None)
    if before is None or after is None or by_release[before][1] is not by_release[after][1]:
        return None
    (first, result), (last, _) = by_release[before], by_release[after]
    return Evidence(Basis.INFERRED, result, f"as in {first.release} and {last.release}")


def _matches(beginning: str, release: str) -> bool:
    """Return whether a release begins with these numbers: "2025.4" matches 2025.4.1, "2025.40" does not."""
    return order(release)[: len(order(beginning))] == order(beginning)


def _place(row: Row, defect: Defect) -> str:
    """Return where a row was measured: release, device and, if it has its own release, the driver.

    For a defect that depends on the instruction set, the recorded instruction set is added.

    The driver is that of the last `doctor` run, named for comparison: the installed driver may differ by now,
    and asking for it would start a runtime.
    """
    has_own = row.device and row.driver and row.release not in row.driver
    driver = f", driver {row.driver}" if has_own else ""
    set_ = f", {row.instructions}" if row.instructions and defect.depends_on_instructions else ""
    return f"{row.release} on {row.name}{set_}{driver}" if row.name else row.release
