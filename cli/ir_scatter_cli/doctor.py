"""`ir-scatter doctor`."""

import sys
from collections.abc import Sequence
from typing import Any

import click

from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.options import example, formats, option, sub_command
from ir_scatter_cli.output import report, say, spinner


@sub_command()
@example("every device that is found here", "")
@example("the same of another release", "--on CPU --release 2025.4.0")
@example("every device of a fleet", "--scheduler tls://lab:8786")
@example("a page to look at", "--format html -o doctor.html")
@example("two of them, for a bug report", "--on CPU --on onnxruntime --format json")
@option("--on RUNNER...", "Only this device; repeatable.", offers="runners")
@option("--release R...", "Of the runtime; repeatable.", "releases")
@option("--yes", "Install releases that are missing, without a question.")
@option("--record", "Enter what is found in the history that the package ships.")
@formats("doctor", "How to write what was found.")
@option("-v, --verbose", "Say what is right, too.")
@option("-o, --output FILE")
@option("--overwrite")
@fleet_options()
def command(on: tuple[str, ...], output: str | None, **given: Any) -> int:
    """Run small probes of every known defect on each device, and say which are here.

    What is found is kept, so that `ir-scatter validate --for` knows this machine. A release that is not
    there is installed in an environment of its own, after a question; where nobody can be asked, --yes
    does it.

    Exit codes: 0 as recorded, or nothing was recorded; 1 something differs from the record; 2 wrong usage;
    4 a device that was named cannot run here, or did not answer all probes, or a release is missing.
    """
    from ir_scatter.core.words import counted
    from ir_scatter.defects.evidence import HISTORY
    from ir_scatter.doctor import examine, names_of_releases

    demand_free("-o", output, overwrite=given["overwrite"])
    record = HISTORY if given["record"] else None
    with used_fleet(given) as fleet:
        names = names_of_releases(on, given["releases"])
        if given["releases"] and fleet is None and not _are_there(names, is_asked_for=given["yes"]):
            return exits.RUNTIME
        with spinner() as tell:
            found = list(examine(names, tell, record, fleet, is_demanded=bool(on)))
    report("doctor", given["format"], found, output, is_new=not given["overwrite"], verbose=given["verbose"])
    missing = [one.device for one in found if not one.device.is_available]
    for device in missing:
        say(f"{device.runner} cannot run here: {device.reason}")
    if missing:
        return exits.RUNTIME
    incomplete = [one for one in found if one.unanswered]
    for one in incomplete:
        count = counted(one.unanswered, "probe")
        say(f"{one.device.runner}: {count} not answered, so nothing is said of these, and nothing is kept")
    if any(one.differs for one in found):
        return exits.FINDINGS
    return exits.RUNTIME if incomplete else exits.OK


def _are_there(names: Sequence[str], *, is_asked_for: bool) -> bool:
    """Tell whether the releases of runners are installed, maybe now; what is missing is said."""
    from ir_scatter.runners.releases.environments import CannotInstall, find
    from ir_scatter.runners.releases.runner import release_of
    from ir_scatter_cli.devices import install

    for release in dict.fromkeys(filter(None, map(release_of, names))):
        if find(release) is not None:
            continue
        is_wanted = is_asked_for
        if not is_wanted and sys.stdin.isatty() and sys.stderr.isatty():
            question = f"{release} is not installed. Let pip install it, apart (about 250 MB)?"
            is_wanted = click.confirm(question, default=True, err=True)
        if not is_wanted:
            say(f"{release} is not installed: ir-scatter devices --install {release}")
            return False
        try:
            install(release)
        except CannotInstall as error:
            say(error)
            return False
    return True
