"""`ir-scatter doctor`."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.fleet import directory_of, fleet_options, open_fleet
from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import say, spinner, style, write


@sub_command()
@example("every device found on this machine", "")
@example("another release of the runtime", "--on CPU --release 2025.4.0")
@example("every device of a fleet", "--scheduler tls://lab:8786")
@example("as an HTML page", "--format html -o doctor.html")
@example("two devices, for a bug report", "--on CPU --on onnxruntime --format json")
@option("--on RUNNER...", "Test only this device; repeatable.", offers="runners")
@option("--release R...", "Release of the runtime; repeatable.", "releases")
@option("--yes", "Install missing releases without asking.")
@option("--record", "Record the results in the history shipped with the package.")
@formats("doctor", "Format of the results.")
@option("-v, --verbose", "Also list defects that are absent.")
@option("-o, --output FILE")
@option("-q, --quiet")
@option("--overwrite")
@fleet_options()
def command(on: tuple[str, ...], output: str | None, **params: Any) -> int:
    """Test each device for every known defect with small probe models.

    The results are saved, and `ir-scatter validate --for` uses them. A missing release is installed in
    its own environment, after a question; without a terminal, only with --yes.

    Exit codes: 0 as recorded, or nothing was recorded; 1 something differs from the record; 2 wrong usage;
    4 a device is not available or did not answer all probes, or a release is missing; 130 interrupted,
    143 terminated, after writing the results of the devices tested before.
    """
    from ir_scatter.compare.phases import report_to
    from ir_scatter.core.words import counted
    from ir_scatter.defects.evidence import HISTORY
    from ir_scatter.doctor import Diagnosis, examine, names_of_releases

    demand_free("-o", output, overwrite=params["overwrite"])
    record = HISTORY if params["record"] else None
    with open_fleet(params) as fleet:
        directory = directory_of(fleet)
        names = names_of_releases(on, params["releases"], directory)
        if params["releases"] and fleet is None and not _ensure_installed(names, assume_yes=params["yes"]):
            return exits.RUNTIME
        diagnoses, interrupted, phase = list[Diagnosis](), False, "nothing"
        with spinner(quiet=params["quiet"]) as update:

            def report(next_phase: str) -> None:
                nonlocal phase
                phase = next_phase
                update(next_phase)

            try:
                with report_to(report):
                    for diagnosis in examine(names, record, fleet, is_demanded=bool(on), directory=directory):
                        diagnoses.append(diagnosis)
            except KeyboardInterrupt:
                interrupted = True
    text = render("doctor", params["format"], diagnoses, verbose=params["verbose"], **style(output))
    write(text, output, is_new=not params["overwrite"])
    if interrupted:
        say(f"interrupted at {phase}; {counted(len(diagnoses), 'device')} tested before")
        return exits.INTERRUPTED
    missing = [diagnosis.device for diagnosis in diagnoses if not diagnosis.device.is_available]
    for device in missing:
        say(f"{device.runner} cannot run here: {device.reason}")
    if missing:
        return exits.RUNTIME
    incomplete = [diagnosis for diagnosis in diagnoses if diagnosis.unanswered]
    for diagnosis in incomplete:
        count = counted(diagnosis.unanswered, "probe")
        say(f"{diagnosis.device.runner}: no answer to {count}; results are incomplete and were not saved")
    if any(diagnosis.differs for diagnosis in diagnoses):
        return exits.FINDINGS
    return exits.RUNTIME if incomplete else exits.OK


def _ensure_installed(names: Sequence[str], *, assume_yes: bool) -> bool:
    """Install missing releases of runners, if allowed; return whether all are installed."""
    from ir_scatter.runners.releases.environments import CannotInstall, find
    from ir_scatter.runners.releases.runner import release_of
    from ir_scatter_cli.devices import install

    for release in dict.fromkeys(filter(None, map(release_of, names))):
        if find(release) is not None:
            continue
        may_install = assume_yes
        if not may_install and sys.stdin.isatty() and sys.stderr.isatty():
            question = f"{release} is not installed. Install it separately with pip (about 250 MB)?"
            may_install = click.confirm(question, default=True, err=True)
        if not may_install:
            say(f"{release} is not installed: ir-scatter devices --install {release}")
            return False
        try:
            install(release)
        except CannotInstall as error:
            say(error)
            return False
    return True
