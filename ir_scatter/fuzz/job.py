"""Prepares and runs the fuzzer for a user's request, and writes findings to a folder."""

import json
import os
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ir_scatter.core.errors import UsageError, explained
from ir_scatter.core.files import read_regular
from ir_scatter.core.parameters import Invocation, Parameter
from ir_scatter.fuzz.campaign import Campaign, FuzzPlan, operators, read_report
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.findings import RECORD, write_finding
from ir_scatter.runners import HERE, Directory
from ir_scatter.runners.base import Runner

REPORT, PAGE = "fuzz.json", "index.html"
MARK = b'<p class="brand">ir-scatter fuzz</p>'
"""Bytes that identify a page written by fuzz, before it is replaced."""
_VALUES = ("any", "plain", "edge")


class UnavailableRunner(UsageError):
    """Error: a requested runner cannot run on this machine."""


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    """A user's request; see `FuzzPlan` for the other attributes.

    Attributes:
        on: names of runners; empty for all that run here.
        folder: the folder for findings; None to write nothing.
        resume: whether to continue from the report in the folder.
        overwrite: whether a page in the folder that fuzz did not write may be replaced.
        new_only: whether to leave out findings that known defects explain.
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
    new_only: bool = False


DEFAULT_SECONDS = 60.0


def prepare(request: FuzzRequest, directory: Directory = HERE) -> Campaign:
    """Return a campaign that is ready to run; `directory` resolves the names of its runners.

    Raises:
        UsageError: the request is contradictory, or names an unknown runner or operator.
        UnavailableRunner: a requested runner cannot run here.
        CannotWrite: the folder cannot be created.
    """
    if request.values not in _VALUES:
        raise UsageError(f"values is {request.values!r}, expected one of {', '.join(_VALUES)}")
    if request.resume and request.folder is None:
        raise UsageError("resume needs the folder of an earlier run")
    earlier = earlier_report(request.folder) if request.folder is not None and request.resume else {}
    if request.folder is not None and not request.resume and (request.folder / REPORT).exists():
        raise UsageError(
            f"{request.folder} contains findings of an earlier run; continue with {Parameter('resume', True)}"
        )
    if request.folder is not None and not request.overwrite:
        _demand_own_page(request.folder / PAGE)
    rows = operators(request.operators)
    runners = _available(request.on, directory)
    if request.folder is not None:
        with explained(request.folder, "made"):
            request.folder.mkdir(parents=True, exist_ok=True)
    seconds = request.seconds if request.seconds is not None or request.cases is not None else DEFAULT_SECONDS
    plan = FuzzPlan(
        rows,
        seconds,
        request.cases,
        request.seed,
        request.values,
        is_illegal=request.illegal,
        is_new_only=request.new_only,
    )
    return Campaign(plan, runners, earlier)


def _demand_own_page(path: Path) -> None:
    """Check that fuzz wrote the page that will be replaced.

    Raises:
        UsageError: another program wrote it.
    """
    if os.path.lexists(path):
        with suppress(OSError):
            if MARK in read_regular(path):
                return
        output, overwrite = Parameter("output"), Parameter("overwrite", True)
        raise UsageError(f"{output}: {path} exists, expected a folder without one or {overwrite}")


def earlier_report(folder: Path) -> dict[str, Any]:
    """Return the report of an earlier run, with all findings that it wrote, even if it was killed.

    Raises:
        UsageError: the file is damaged, or is not a report.
    """
    report = read_report(folder / REPORT)
    findings = report.setdefault("findings", [])
    try:
        signatures = {finding["signature"] for finding in findings if isinstance(finding["signature"], str)}
    except (TypeError, KeyError):
        signatures = set()
    if not isinstance(findings, list) or len(signatures) < len(findings):
        raise UsageError(f"{folder / REPORT} is not a report of fuzz")
    for path in sorted(folder.glob(f"*/{RECORD}")):
        with suppress(OSError, ValueError, RecursionError):  # skip an incomplete file
            record = json.loads(read_regular(path).decode("utf-8"))
            is_ours = isinstance(record, dict) and record.get("signature") == path.parent.name
            if path.parent.name not in signatures and is_ours:
                findings.append(record)
    return report


def _available(names: Sequence[str], directory: Directory) -> list[Runner]:
    runners: dict[str, Runner] = {}
    for name in names or directory.known():
        runner = directory.find(name)
        if runner.name in runners:
            continue
        availability = runner.availability()
        if availability.is_available:
            runners[runner.name] = runner
        elif names:
            raise UnavailableRunner(f"{runner.name} cannot run here: {availability.why_not}")
    if not runners:
        raise UnavailableRunner(f"no runtime can run here; `{Invocation('devices', {})}` says why")
    return list(runners.values())


def run(request: FuzzRequest, campaign: Campaign) -> Generator[FuzzFinding, None, None]:
    """Yield findings during the run; each is already in the requested folder.

    Raises:
        CannotWrite: a finding cannot be written.
    """
    try:
        with closing(campaign.run()) as findings:
            for finding in findings:
                if finding not in campaign.reported:
                    continue
                if request.folder is not None:
                    write_finding(finding, request.folder, campaign.versions)
                yield finding
    finally:
        for finding in campaign.reported:
            # write it again: its counts have grown since
            if finding.case is not None and request.folder is not None:
                write_finding(finding, request.folder, campaign.versions)
        for runner in campaign.runners:
            runner.close()
