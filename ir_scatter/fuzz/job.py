"""What is asked of the fuzzer: runners, a campaign, findings in a folder; and findings run once more."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ir_scatter.core.errors import UsageError, explained
from ir_scatter.fuzz.campaign import Campaign, Plan, operators, read_report
from ir_scatter.fuzz.explain import Finding
from ir_scatter.fuzz.findings import RECORD, write_finding
from ir_scatter.runners import find, known
from ir_scatter.runners.base import Runner

REPORT = "fuzz.json"
_VALUES = ("any", "plain", "edge")
_REPLAY_LIMIT = 120.0
_OUTCOMES = {0: "gone", 1: "still there", 2: "cannot run"}


class Missing(UsageError):
    """A runner that was named cannot run here."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to fuzz, as a user says it; see `Plan`.

    Attributes:
        on: names of runners; without any all that run here.
        folder: where findings go; None for nowhere.
        resume: whether to go on from the report in the folder.
    """

    on: Sequence[str] = ()
    operators: Sequence[str] = ()
    seconds: float | None = None
    cases: int | None = None
    seed: int = 0
    values: str = "any"
    illegal: bool = False
    folder: Path | None = None
    resume: bool = False


DEFAULT_SECONDS = 60.0


def prepare(job: Job) -> Campaign:
    """Return a campaign that can be run.

    Raises:
        UsageError: the job does not make sense, or there is no such runner or operator.
        Missing: a runner that was named cannot run here.
        CannotWrite: the folder cannot be made.
    """
    if job.values not in _VALUES:
        raise UsageError(f"values is {job.values!r}, expected one of {', '.join(_VALUES)}")
    if job.resume and job.folder is None:
        raise UsageError("there is nothing to go on from without the folder of an earlier run")
    earlier = _earlier(job.folder) if job.folder is not None and job.resume else {}
    if job.folder is not None and not job.resume and (job.folder / REPORT).exists():
        raise UsageError(f"{job.folder} holds findings of an earlier run; --resume goes on from there")
    rows = operators(job.operators)
    runners = _available(job.on)
    if job.folder is not None:
        with explained(job.folder, "made"):
            job.folder.mkdir(parents=True, exist_ok=True)
    seconds = job.seconds if job.seconds is not None or job.cases is not None else DEFAULT_SECONDS
    plan = Plan(rows, seconds, job.cases, job.seed, job.values, is_illegal=job.illegal)
    return Campaign(plan, runners, earlier)


def _earlier(folder: Path) -> dict[str, Any]:
    """Return the report of an earlier run, with the findings that it was killed before it told of them."""
    report = read_report(folder / REPORT)
    findings = report.setdefault("findings", [])
    known = {one["signature"] for one in findings}
    for path in sorted(folder.glob(f"*/{RECORD}")):
        with suppress(ValueError):  # of a file that is not whole
            if path.parent.name not in known:
                findings.append(json.loads(path.read_text(encoding="utf-8")))
    return report


def _available(names: Sequence[str]) -> list[Runner]:
    found: dict[str, Runner] = {}
    for name in names or known():
        runner = find(name)
        if runner.name in found:
            continue
        told = runner.availability()
        if told.is_available:
            found[runner.name] = runner
        elif names:
            raise Missing(f"{runner.name} cannot run here: {told.why_not}")
    if not found:
        raise Missing("no runtime can run here; `ir-scatter devices` says why")
    return list(found.values())


def run(job: Job, campaign: Campaign) -> Generator[Finding, None, None]:
    """Yield findings as they come, each written to the folder of the job.

    Raises:
        CannotWrite: a finding cannot be written.
    """
    try:
        with closing(campaign.run()) as findings:
            for finding in findings:
                if job.folder is not None:
                    write_finding(finding, job.folder, campaign.versions)
                yield finding
    finally:
        for finding in campaign.findings:
            if finding.case is not None and job.folder is not None:  # more was learned of it since
                write_finding(finding, job.folder, campaign.versions)
        for runner in campaign.runners:
            runner.close()


class Replayed(NamedTuple):
    """What came of a finding that was run once more: "still there", "gone", "changed" or "cannot run"."""

    signature: str
    outcome: str
    message: str


def replay(folder: Path) -> Iterator[Replayed]:
    """Run every minimal case of a folder again, each by its own program.

    Raises:
        UsageError: the folder holds no findings.
    """
    programs = sorted(folder.glob("*/repro.py"))
    if not programs:
        raise UsageError(f"{folder} holds no findings, expected folders with a repro.py")
    told = {one["signature"]: one for one in read_report(folder / REPORT).get("findings", [])}
    for program in programs:
        signature = program.parent.name
        known = told.get(signature, {})
        runner = find(known["runner"].rpartition("/")[2]) if "runner" in known else None
        if runner is not None and runner.problem:
            yield Replayed(signature, "cannot run", runner.problem)
            continue
        environment = {**os.environ, **(runner.environment() if runner is not None else {})}
        command = [sys.executable, str(program)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_REPLAY_LIMIT, env=environment
            )
        except subprocess.TimeoutExpired:
            yield Replayed(signature, "changed", f"no answer within {_REPLAY_LIMIT:g} seconds")
            continue
        lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
        last = lines[-1] if lines else ""
        outcome = _OUTCOMES.get(done.returncode, "cannot run")
        words = {known.get("symptom", ""), *known.get("fresh", {})} - {""}
        if outcome == "still there" and words and last.partition(":")[0] not in words:
            outcome = "changed"
        yield Replayed(signature, outcome, last)
