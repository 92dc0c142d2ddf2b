"""`ir-scatter devices`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.report.characters import visible
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.options import example, formats, option, section, sub_command
from ir_scatter_cli.output import report, say, spinner, write

if TYPE_CHECKING:
    from ir_scatter.runners.releases.environments import Environment, Release


@sub_command()
@example("what `ir-scatter compare --on` can name here", "")
@example("for programs", "--format json")
@example("every device of a fleet", "--scheduler tls://lab:8786")
@example("a release beside the one that is installed", "--install openvino@2025.4")
@section("Where")
@fleet_options()
@section("Releases")
@option("--install RELEASE...", "Let pip install it, apart; repeatable.")
@option("--remove RELEASE...", "Remove it, or all patches; repeatable.")
@section("The list")
@formats("devices", "How to write the list.")
@option("-v, --verbose", "Say all there is to know of each.")
@option("-o, --output FILE")
@option("--overwrite")
def command(**given: Any) -> int:
    """List what can run here, and what the others need.

    The precision is what a device computes in if nobody asks for another one. A RELEASE is
    openvino@2025.4, onnxruntime@1.17.3: who computes is then openvino@2025.4:CPU, onnxruntime@1.17.3.
    `ir-scatter explain releases` says more.

    Exit codes: 2 wrong usage; 4 a release cannot be installed or removed.
    """
    from ir_scatter.compare.request import survey
    from ir_scatter.runners.releases.environments import installed

    how = {name: given[name] for name in ("output", "verbose")}
    if given["install"] or given["remove"]:
        if given["verbose"] or given["output"] is not None or given["format"] != "text" or given["scheduler"]:
            raise click.UsageError("--install and --remove list nothing, and go with each other alone")
        return _change(given["install"], given["remove"])
    demand_free("-o", given["output"], overwrite=given["overwrite"])
    with used_fleet(given) as fleet:
        if fleet is not None:
            found = [
                replace(device, runner=f"{one.name}/{device.runner}")
                for one in fleet.machines
                for device in one.devices
            ]
            report("devices", given["format"], found, machines=fleet.machines, **how)
            return exits.OK
    with spinner("every runner runs a small model"):
        found = survey()
    report("devices", given["format"], found, environments=installed(), **how)
    return exits.OK


def install(release: "Release") -> "Environment":
    """Let pip install a release, and show that it is at work."""
    from ir_scatter.runners.releases import environments

    with spinner(f"pip installs {release}") as tell:
        return environments.install(release, tell or say)


def _change(to_install: tuple[str, ...], to_remove: tuple[str, ...]) -> int:
    from ir_scatter.report.devices_text import megabytes
    from ir_scatter.runners.releases import environments

    removed, made = (
        [environments.parse_release(text) for text in texts] for texts in (to_remove, to_install)
    )
    try:
        for release in removed:
            for one in environments.remove(release):
                write(f"{one.release} is removed: {megabytes(one.size)}\n")
        for release in made:
            one = install(release)
            write(f"{one.release} is installed: {megabytes(one.size)} in {visible(str(one.folder))}\n")
    except environments.CannotInstall as error:
        say(error)
        return exits.RUNTIME
    return exits.OK
