"""What was measured of known defects: probe by probe, on which release and which device."""

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
    """What an answer rests on, the best first."""

    PROBED = "probed here"
    RECORDED = "recorded"
    INFERRED = "inferred"
    STAND_IN = "stand-in"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True)
class Row:
    """What one release of a runtime made of the probes on one device.

    Attributes:
        runtime: "openvino", and `device`, "CPU"; "" where the runtime has no devices.
        release: its version.
        name, driver: what the device says of itself.
        instructions: the instruction set of the processor, where that computed, as `instruction_set` names
            it; "" in records from before it was written down, and for other devices.
        results: by the keys of the probes.
        about: what else was written down: exact packages and their hashes, the Python, the day.
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
        told = {"runtime": self.runtime, "release": self.release, "device": self.device, "name": self.name}
        instructions = {"instructions": self.instructions} if self.instructions else {}
        return {
            **told,
            "driver": self.driver,
            **instructions,
            **self.about,
            "results": dict(sorted(self.results.items())),
        }


class Evidence(NamedTuple):
    """Whether a target has a defect: what the probes gave, None if nobody knows; and what that rests on."""

    basis: Basis
    result: Result | None = None
    """RIGHT where the defect is not there, or else what the probes that show it gave."""
    told: str = ""
    """Where it was seen, "2026.4.1 on Xeon"."""

    @property
    def is_bad(self) -> bool:
        return self.result not in {None, Result.RIGHT}


class Target(NamedTuple):
    """A runner by its long name without a number, "openvino:GPU", and a release or the beginning of one."""

    runner: str
    release: str

    def __str__(self) -> str:
        return f"{self.runner} {self.release}".rstrip()


def key_of(defect: Defect, probe: Probe) -> str:
    return f"{defect.code}/{probe.name}"


def order(release: str) -> tuple[int, ...]:
    """Return what releases are ordered by."""
    return tuple(map(int, re.findall(r"\d+", release)))


def read_rows(path: Path | None) -> list[Row]:
    """Return the rows of a file; none if it is not there or no history."""
    if path is None:
        return []
    try:
        told = json.loads(read_regular(path).decode("utf-8"))
        if told["schema"] != SCHEMA:
            return []
        return [_row(one) for one in told["rows"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _row(told: Mapping[str, Any]) -> Row:
    known = {"runtime", "release", "device", "name", "driver", "instructions", "results"}
    results = {key: Result(word) for key, word in told["results"].items()}
    about = {key: value for key, value in told.items() if key not in known}
    name, driver = str(told.get("name", "")), str(told.get("driver", ""))
    instructions = str(told.get("instructions", ""))
    return Row(told["runtime"], told["release"], told["device"], results, name, driver, about, instructions)


def text_of(rows: Iterable[Row]) -> str:
    """Return the file of rows, in the order of runners and releases."""
    ordered = sorted(rows, key=lambda row: (row.runner, order(row.release), row.name, row.instructions))
    told = {"schema": SCHEMA, "rows": [row.as_json() for row in ordered]}
    return json.dumps(told, indent=1, ensure_ascii=True) + "\n"


@cache
def history() -> tuple[Row, ...]:
    """Return what was recorded on other machines."""
    return tuple(read_rows(HISTORY))


def result_of(defect: Defect, row: Row, names: Collection[str] = ()) -> Result | None:
    """Return the worst that a row says of a defect, by all of its probes or some; RIGHT if none shows it.

    That the operator is not there is a refusal, and tells nothing of values.
    """
    meant = [probe for probe in defect.probes if not names or probe.name in names]
    found = [row.results.get(key_of(defect, probe)) for probe in meant]
    tells = defect.symptom.result is Result.REFUSED
    measured = [one for one in found if one is not None and (tells or one is not Result.ABSENT)]
    return min(measured, key=[*Result].index, default=None)


def evidence(
    defect: Defect,
    target: Target,
    here: Sequence[Row],
    recorded: Sequence[Row],
    probes: Collection[str] = (),
    emulator: str = "",
) -> Evidence:
    """Return what is known of a defect on a target.

    Args:
        defect: one of the target's runner.
        target: a device and a release.
        here: rows that this machine measured.
        recorded: those of others.
        probes: the names of those that show it; empty for all.
        emulator: the runner that emulates the device of the target, whose results count if that has none.
    """
    for runner in filter(None, (target.runner, emulator)):
        is_emulated = runner != target.runner
        for rows, basis in ((here, Basis.PROBED), (recorded, Basis.RECORDED)):
            of_runner = [row for row in rows if row.runner == runner]
            for row in sorted(of_runner, key=lambda row: order(row.release), reverse=True):
                result = result_of(defect, row, probes)
                if result is not None and _is_meant(target.release, row.release):
                    return Evidence(Basis.STAND_IN if is_emulated else basis, result, _place(row, defect))
        inferred = _inferred(defect, target, [*here, *recorded], runner, probes)
        if inferred is not None:
            return inferred._replace(basis=Basis.STAND_IN) if is_emulated else inferred
    return Evidence(Basis.UNTESTED)


def _inferred(
    defect: Defect, target: Target, rows: Iterable[Row], runner: str, probes: Collection[str]
) -> Evidence | None:
    """Infer from a release before and one after, if both gave the same."""
    known = {
        order(row.release): (row, result)
        for row in rows
        if row.runner == runner and (result := result_of(defect, row, probes)) is not None
    }
    own = order(target.release)
    before = max((one for one in known if one < own), default=None)
    after = min((one for one in known if one > own), default=None)
    if before is None or after is None or known[before][1] is not known[after][1]:
        return None
    (first, result), (last, _) = known[before], known[after]
    return Evidence(Basis.INFERRED, result, f"as in {first.release} and {last.release}")


def _is_meant(wanted: str, release: str) -> bool:
    """Tell whether a release is the one that is wanted, or begins with it: 2025.4 is 2025.4.1."""
    return order(release)[: len(order(wanted))] == order(wanted)


def _place(row: Row, defect: Defect) -> str:
    """Say where a row was measured; with the driver, unless that comes with the release.

    Of a defect that depends on the instruction set that is said as well, if it was written down.

    Which driver is there now is not asked, as that takes a runtime: what doctor saw last of a device counts,
    and a reader can tell whether it is the one that is installed.
    """
    has_own = row.device and row.driver and row.release not in row.driver
    driver = f", driver {row.driver}" if has_own else ""
    set_ = f", {row.instructions}" if row.instructions and defect.depends_on_instructions else ""
    return f"{row.release} on {row.name}{set_}{driver}" if row.name else row.release
