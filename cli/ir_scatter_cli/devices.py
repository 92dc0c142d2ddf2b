"""`ir-scatter devices`."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ir_scatter.report.characters import visible
from ir_scatter.report.registry import render
from ir_scatter_cli import exits
from ir_scatter_cli.files import demand_free
from ir_scatter_cli.fleet import fleet_options, open_fleet
from ir_scatter_cli.options import example, formats, option, section, sub_command
from ir_scatter_cli.output import is_animated, say, spinner, style, write

if TYPE_CHECKING:
    from ir_scatter.runners.releases.environments import Environment, Release


@sub_command()
@example("the runners that `ir-scatter compare --on` accepts here", "")
@example("for programs", "--format json")
@example("every device of a fleet", "--scheduler tls://lab:8786")
@example("install a release beside the current one", "--install openvino@2025.4")
@section("Machines")
@fleet_options()
@section("Releases")
@option("--install RELEASE...", "Install this release separately with pip; repeatable.")
@option("--remove RELEASE...", "Remove this release, or all of its patches; repeatable.")
@section("The list")
@formats("devices", "Format of the list.")
@option("-v, --verbose", "Show all details of each.")
@option("-o, --output FILE")
@option("--overwrite")
def command(**params: Any) -> int:
    """List the devices and runtimes that work here, and what the others need.

    The precision is the device's default. A RELEASE is openvino@2025.4 or onnxruntime@1.17.3; its
    runners are openvino@2025.4:CPU and onnxruntime@1.17.3. See `ir-scatter explain releases`.

    Exit codes: 2 wrong usage; 4 a release cannot be installed or removed.
    """
    from ir_scatter.compare.request import survey
    from ir_scatter.runners.releases.environments import installed

    verbose, output = params["verbose"], params["output"]
    if params["install"] or params["remove"]:
        if (
            params["verbose"]
            or params["output"] is not None
            or params["format"] != "text"
            or params["scheduler"]
        ):
            raise click.UsageError("--install and --remove go with no other options than each other")
        return _change(params["install"], params["remove"])
    demand_free("-o", params["output"], overwrite=params["overwrite"])
    with open_fleet(params) as fleet:
        if fleet is not None:
            devices = [
                replace(device, runner=f"{machine.name}/{device.runner}")
                for machine in fleet.machines
                for device in machine.devices
            ]
            text = render(
                "devices",
                params["format"],
                devices,
                machines=fleet.machines,
                verbose=verbose,
                **style(output),
            )
            write(text, output, is_new=not params["overwrite"])
            return exits.OK
    with spinner("testing every runner with a small model"):
        devices = survey()
    releases = installed()
    text = render(
        "devices", params["format"], devices, environments=releases, verbose=verbose, **style(output)
    )
    write(text, output, is_new=not params["overwrite"])
    return exits.OK


def install(release: "Release") -> "Environment":
    """Install a release with pip, and show progress."""
    from ir_scatter.runners.releases import environments

    with spinner(f"pip installs {release}") as update:
        return environments.install(release, update if is_animated() else say)


def _change(to_install: tuple[str, ...], to_remove: tuple[str, ...]) -> int:
    from ir_scatter.report.devices_text import megabytes
    from ir_scatter.runners.releases import environments

    removals, installations = (
        [environments.parse_release(text) for text in texts] for texts in (to_remove, to_install)
    )
    try:
        for release in removals:
            for environment in environments.remove(release):
                write(f"{environment.release} is removed: {megabytes(environment.size)}\n")
        for release in installations:
            environment = install(release)
            size, path = megabytes(environment.size), visible(str(environment.folder))
            write(f"{environment.release} is installed: {size} in {path}\n")
    except environments.CannotInstall as error:
        say(error)
        return exits.RUNTIME
    return exits.OK
