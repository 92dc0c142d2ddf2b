"""What is asked of the fuzzer: runners, a campaign, findings in a folder."""

import json
import os
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import UsageError, explained
from ir_scatter.core.files import read_regular
from ir_scatter.fuzz.campaign import Campaign, Plan, operators, read_report
from ir_scatter.fuzz.explain import Finding
from ir_scatter.fuzz.findings import RECORD, write_finding
from ir_scatter.runners import HERE, Directory
from ir_scatter.runners.base import Runner

REPORT, PAGE = "fuzz.json", "index.html"
MARK = b'<p class="brand">ir-scatter fuzz</p>'
"""What every page of findings has, and no other page."""
_VALUES = ("any", "plain", "edge")


class Missing(UsageError):
    """A runner that was named cannot run here."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to fuzz, as a user says it; see `Plan`.

    Attributes:
        on: names of runners; without any all that run here.
        folder: where findings go; None for nowhere.
        resume: whether to go on from the report in the folder.
        overwrite: whether to replace a page in the folder that is none of ours.
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
    overwrite: bool = False


DEFAULT_SECONDS = 60.0


def prepare(job: Job, directory: Directory = HERE) -> Campaign:
    """Return a campaign that can be run; the directory resolves the names of its runners.

    Raises:
        UsageError: the job does not make sense, or there is no such runner or operator.
        Missing: a runner that was named cannot run here.
        CannotWrite: the folder cannot be made.
    """
    if job.values not in _VALUES:
        raise UsageError(f"values is {job.values!r}, expected one of {', '.join(_VALUES)}")
    if job.resume and job.folder is None:
        raise UsageError("there is nothing to go on from without the folder of an earlier run")
    earlier = earlier_report(job.folder) if job.folder is not None and job.resume else {}
    if job.folder is not None and not job.resume and (job.folder / REPORT).exists():
        raise UsageError(f"{job.folder} holds findings of an earlier run; --resume goes on from there")
    if job.folder is not None and not job.overwrite:
        _demand_own_page(job.folder / PAGE)
    rows = operators(job.operators)
    runners = _available(job.on, directory)
    if job.folder is not None:
        with explained(job.folder, "made"):
            job.folder.mkdir(parents=True, exist_ok=True)
    seconds = job.seconds if job.seconds is not None or job.cases is not None else DEFAULT_SECONDS
    plan = Plan(rows, seconds, job.cases, job.seed, job.values, is_illegal=job.illegal)
    return Campaign(plan, runners, earlier)


def _demand_own_page(path: Path) -> None:
    """Demand that a page to be replaced is one that this library wrote.

    Raises:
        UsageError: it is not.
    """
    if os.path.lexists(path):
        with suppress(OSError):
            if MARK in read_regular(path):
                return
        raise UsageError(f"-o: {path} exists, expected a folder without one or --overwrite")


def earlier_report(folder: Path) -> dict[str, Any]:
    """Return the report of an earlier run, with the findings that it was killed before it told of them.

    Raises:
        UsageError: the report is damaged, or no report.
    """
    report = read_report(folder / REPORT)
    findings = report.setdefault("findings", [])
    try:
        known = {one["signature"] for one in findings if isinstance(one["signature"], str)}
    except (TypeError, KeyError):
        known = set()
    if not isinstance(findings, list) or len(known) < len(findings):
        raise UsageError(f"{folder / REPORT} is no report of fuzz")
    for path in sorted(folder.glob(f"*/{RECORD}")):
        with suppress(OSError, ValueError, RecursionError):  # of a file that is not whole
            record = json.loads(read_regular(path).decode("utf-8"))
            is_ours = isinstance(record, dict) and record.get("signature") == path.parent.name
            if path.parent.name not in known and is_ours:
                findings.append(record)
    return report


def _available(names: Sequence[str], directory: Directory) -> list[Runner]:
    found: dict[str, Runner] = {}
    for name in names or directory.known():
        runner = directory.find(name)
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
