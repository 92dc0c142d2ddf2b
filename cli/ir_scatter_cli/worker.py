"""`ir-scatter worker`."""

import asyncio
import platform
import re
from pathlib import Path
from typing import Any

import click

from ir_scatter.core.errors import UsageError, explained
from ir_scatter.core.files import cache_folder
from ir_scatter_cli import exits
from ir_scatter_cli.fleet import address_of, require_dask, tls_options
from ir_scatter_cli.options import example, option, section, sub_command
from ir_scatter_cli.output import say, spinner, write


@sub_command()
@example("certificates for a lab, once", "--make-certificates lab")
@example("on each machine", "tls://lab:8786")
@example("where all see the models", "tls://lab:8786 --shared-path /nfs/models")
@click.argument("address", required=False, metavar="ADDRESS")
@section("What it is")
@option("--name NAME", "What stands before its runners.  [default: that of the host]")
@option("-j, --jobs N", "Do so many jobs at a time.", default=1)
@section("What it keeps")
@option("--cache DIR", "Keep models there.  [default: in the user's cache]")
@option("--cache-limit SIZE", "So much at most.  [default: 20GiB]", default="20GiB")
@option("--shared-path DIR...", "It has the same files everywhere; repeatable.")
@section("Who may connect")
@tls_options
@option("--make-certificates DIR", "Write certificates for a lab, and do nothing else.")
def command(address: str | None, **given: Any) -> int:
    """Do the jobs of a scheduler on this machine, with its devices, until it is stopped.

    It says first what it has: every runner runs a small model. If the scheduler goes away, it is waited for.

    Exit codes: 2 wrong usage; 4 the scheduler cannot be reached; 130 stopped.
    """
    if given["make_certificates"]:
        from ir_scatter.jobs.security import make_certificates

        for path in make_certificates(given["make_certificates"]):
            write(f"{path}\n")
        return exits.OK
    if address is None:
        raise UsageError("there is no address of a scheduler, expected one like tls://lab:8786")
    name = given["name"] or platform.node()
    if not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"--name is {name!r}, expected letters, digits, '.', '-' and '_'")
    shared = tuple(str(Path(one).resolve()) for one in given["shared_path"])
    for one in shared:
        if not Path(one).is_dir():
            raise UsageError(f"--shared-path: {one} is no folder")
    where = address_of(address, given)
    require_dask()
    from ir_scatter import all_jobs
    from ir_scatter.jobs.machine import this_machine
    from ir_scatter.jobs.security import demand_reachable
    from ir_scatter.jobs.store import Store
    from ir_scatter.jobs.worker import serve_worker

    demand_reachable(where)
    cache = cache_folder()
    folder = Path(given["cache"]) if given["cache"] else cache and cache / "fleet"
    if folder is None:
        raise UsageError("there is no home for a cache; --cache names a folder")
    with explained(folder, "used"):
        store = Store(folder.absolute(), given["cache_limit"], shared)
    with spinner("every runner runs a small model"):
        machine = this_machine(name, given["jobs"])
    say(f"{name} has {', '.join(machine.runners) or 'no runner'}")
    try:
        asyncio.run(serve_worker(where, machine, store, say, all_jobs.__name__))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
