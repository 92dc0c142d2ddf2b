"""Counts what `convert --for` does about each known defect: the probe's model is run before and after.

A probe is an input that triggers its defect, so a device must fail before; it counts as fixed if the same device
gives the right result for the same input after. `python -m tests.defects.fixes CPU GPU@cpu` prints the tables.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ir_scatter import convert, runners
from ir_scatter.cases.case import Case
from ir_scatter.cases.from_probe import case_of
from ir_scatter.cases.judge import judge
from ir_scatter.core.arrays import Array
from ir_scatter.defects import all_defects
from ir_scatter.defects.base import Defect, Probe, Symptom
from ir_scatter.defects.evidence import Target, key_of
from ir_scatter.formats import FORMATS
from ir_scatter.portability import concerns
from ir_scatter.runners.base import Runner, Status

RUNNERS = ("openvino:CPU", "openvino:fold", "openvino:GPU@cpu")
NO_FAULT = frozenset({"DEV111", "DEV405/none"})
"""Defects, or probes, whose result the specification leaves open, which is no reason to rewrite."""

_CPU = "openvino:CPU"
_IN_A_ROW = 50


class Fate(StrEnum):
    """What `convert --for` did about a probe that fails before."""

    FIXED = "fixed"
    REFUSED = "refused"
    AT_RISK = "written at risk"
    SILENT = "left silently"


class Fix(NamedTuple):
    """The fate of one probe on one device, and the reason or the new form in words."""

    probe: str
    fate: Fate
    detail: str = ""


def written(probe: Probe, folder: Path) -> tuple[Case, Path]:
    case = case_of(probe)
    files = FORMATS[case.format].nodes([case.node()])
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, data in files.items():
        (folder / f"model{suffix}").write_bytes(data)
    return case, folder / f"model{next(iter(files))}"


def symptom_of(probe: Probe, case: Case, path: Path, runner: Runner) -> tuple[Symptom | None, str]:
    """Run the file of a probe as often as the probe asks; return the first symptom, and a message."""
    first = list[Array]()
    for begin in range(0, probe.times, _IN_A_ROW):
        feeds = [case.feeds()] * min(probe.times - begin, _IN_A_ROW)
        answers = runner.stream(
            path, feeds, timeout=120, threads=probe.threads, keeps_states=probe.keeps_state
        )
        for answer in answers:
            if answer.status in {Status.UNAVAILABLE, Status.UNSUPPORTED}:
                return Symptom.REFUSED, f"{answer.status}: {answer.message}"
            judgement = judge(case, answer, first)
            if judgement.symptom is not None:
                return judgement.symptom, judgement.message
            first = first or [judgement.got] if judgement.got is not None else first
    return None, ""


def fix_of(defect: Defect, probe: Probe, runner: Runner, folder: Path, *, at_any_cost: bool) -> Fix | None:
    """Return what becomes of a probe's model; None if the device computes it right as it is."""
    key = key_of(defect, probe)
    case, path = written(probe, folder)
    before, message = symptom_of(probe, case, path, runner)
    if before is None or "is not folded" in message:
        return None
    conversion = convert(path, targets=[runner.name], verify=2, at_any_cost=at_any_cost)
    if conversion.refused:
        refused = conversion.refused[0]
        return Fix(key, Fate.REFUSED, f"{refused.code} {refused.message}")
    after: Symptom | None = before
    message = "unchanged"
    if not conversion.is_empty:
        conversion.write(new := path.with_stem("after"))
        after, message = symptom_of(probe, case, new, runner)
        if after is Symptom.REFUSED and "is not folded" in message:  # then a device computes the node
            cpu = runners.find(_CPU)
            after, message = symptom_of(probe, case, new, cpu)
            cpu.close()
    ways = ", ".join(way for one in conversion.converted for way in one.rewrites)
    if after is None:
        return Fix(key, Fate.FIXED, ways)
    codes = {risk.defect for risk in conversion.risks}
    fate = Fate.AT_RISK if defect.code in codes else Fate.SILENT
    return Fix(key, fate, f"{ways}: {after}, {message}"[:160])


def fixes_on(
    runner: Runner, folder: Path, codes: Collection[str] = (), *, at_any_cost: bool = False
) -> Iterator[Fix]:
    """Yield the fate of each legal-input probe that a device fails."""
    target = Target(runner.name, next(iter(runner.versions.values()), ""))
    for defect in all_defects():
        if defect.code in NO_FAULT or not concerns(target, defect) or (codes and defect.code not in codes):
            continue
        for probe in defect.probes:
            if probe.breaks or key_of(defect, probe) in NO_FAULT:
                continue
            fix = fix_of(defect, probe, runner, folder / key_of(defect, probe), at_any_cost=at_any_cost)
            if fix is not None:
                yield fix


def main(words: list[str]) -> None:
    """Print the table of some devices; words that begin with DEV select defects."""
    codes = {word for word in words if word.startswith("DEV")}
    at_any_cost = "--at-any-cost" in words
    names = [word for word in words if not word.startswith(("DEV", "-"))] or RUNNERS
    counts = Counter[Fate]()
    with TemporaryDirectory() as folder:
        for name in names:
            runner = runners.find(name)
            of_runner = Counter[Fate]()
            place = Path(folder) / runner.name.replace(":", "_")
            for fix in fixes_on(runner, place, codes, at_any_cost=at_any_cost):
                of_runner[fix.fate] += 1
                print(f"| {runner.name} | {fix.probe} | {fix.fate} | {fix.detail} |", flush=True)
            runner.close()
            counts += of_runner
            print(f"{runner.name}: {dict(of_runner)}", flush=True)
    total = sum(counts.values())
    print(f"all: {dict(counts)}, {counts[Fate.FIXED] / max(total, 1):.1%} of {total} fixed")


if __name__ == "__main__":
    main(sys.argv[1:])
