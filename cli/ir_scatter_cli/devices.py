"""`ir-scatter devices`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ir_scatter_cli import exits, options
from ir_scatter_cli.fleet import fleet_options, used_fleet
from ir_scatter_cli.output import report, say, spinner, write

if TYPE_CHECKING:
    from ir_scatter.runners.releases.environments import Environment, Release

_EXAMPLES = {
    "what `ir-scatter compare --on` can name here": "ir-scatter devices",
    "for programs": "ir-scatter devices --format json",
    "every device of a fleet": "ir-scatter devices --scheduler tls://lab:8786",
    "a release beside the one that is installed": "ir-scatter devices --install openvino@2025.4",
}


@click.command("devices", cls=options.Command, examples=_EXAMPLES)
@options.section("Where")
@fleet_options()
@options.section("Releases")
@options.texts("--install", "RELEASE", "Let pip install it, apart; repeatable.")
@options.texts("--remove", "RELEASE", "Remove it, or all patches; repeatable.")
@options.section("The list")
@options.format("devices", "How to write the list.")
@options.flag("-v", "--verbose", help="Say all there is to know of each.")
@options.output
def command(
    format: str,
    verbose: bool,
    output: str | None,
    install: tuple[str, ...],
    remove: tuple[str, ...],
    **given: Any,
) -> int:
    """List what can run here, and what the others need.

    The precision is what a device computes in if nobody asks for another one. A RELEASE is
    openvino@2025.4, onnxruntime@1.17.3: who computes is then openvino@2025.4:CPU, onnxruntime@1.17.3.
    `ir-scatter explain releases` says more.

    Exit codes: 2 wrong usage; 4 a release cannot be installed or removed.
    """
    from ir_scatter.compare.request import survey
    from ir_scatter.runners.releases.environments import installed

    if install or remove:
        if verbose or output is not None or format != "text" or given["scheduler"]:
            raise click.UsageError("--install and --remove list nothing, and go with each other alone")
        return _change(install, remove)
    with used_fleet(given) as fleet:
        if fleet is not None:
            found = [
                replace(device, runner=f"{one.name}/{device.runner}")
                for one in fleet.machines
                for device in one.devices
            ]
            report("devices", format, found, output, verbose=verbose, machines=fleet.machines)
            return exits.OK
    with spinner() as tell:
        if tell is not None:
            tell("every runner runs a small model")
        found = survey()
    report("devices", format, found, output, verbose=verbose, environments=installed())
    return exits.OK


def install(release: "Release") -> "Environment":
    """Let pip install a release, and show that it is at work."""
    from ir_scatter.runners.releases import environments

    with spinner() as tell:
        if tell is not None:
            tell(f"pip installs {release}")
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
            write(f"{one.release} is installed: {megabytes(one.size)} in {one.folder}\n")
    except environments.CannotInstall as error:
        say(error)
        return exits.RUNTIME
    return exits.OK
