"""`ir-scatter doctor`."""

from typing import Any

import click

from ir_scatter_cli import exits, options
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.output import report, say, spinner

_EXAMPLES = {
    "every device that is found here": "ir-scatter doctor",
    "the same of another release": "ir-scatter doctor --on CPU --release 2025.4.0",
    "every device of a fleet": "ir-scatter doctor --scheduler tls://lab:8786",
    "two of them, for a bug report": "ir-scatter doctor --on CPU --on onnxruntime --format json",
}


@click.command("doctor", cls=options.Command, examples=_EXAMPLES)
@options.words("--on", "on", kind="runners", metavar="RUNNER", help="Only this device; repeatable.")
@click.option("--release", "releases", multiple=True, metavar="R", help="Of the runtime; repeatable.")
@options.flag("--record", help="Enter what is found in the history that the package ships.")
@options.format("doctor", "How to write what was found.")
@options.flag("-v", "--verbose", help="Say what is right, too.")
@options.output
@fleet_options()
def command(on: tuple[str, ...], output: str | None, **given: Any) -> int:
    """Run small probes of every known defect on each device, and say which are here.

    What is found is kept, so that `ir-scatter validate --for` knows this machine.

    Exit codes: 0 as recorded, or nothing was recorded; 1 something differs from the record; 2 wrong usage;
    4 a device that was named cannot run here.
    """
    from ir_scatter.defects.evidence import HISTORY
    from ir_scatter.doctor import examine

    record = HISTORY if given["record"] else None
    with used_fleet(given) as fleet, spinner() as tell:
        found = list(examine(on, given["releases"], tell, record, fleet))
    report("doctor", given["format"], found, output, verbose=given["verbose"])
    missing = [one.device for one in found if not one.device.is_available]
    for device in missing:
        say(f"{device.runner} cannot run here: {device.reason}")
    if missing:
        return exits.RUNTIME
    return exits.FINDINGS if any(one.differs for one in found) else exits.OK
