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
@example("make certificates for a lab, once", "--make-certificates lab")
@example("on each machine", "tls://lab:8786")
@example("with a folder that all machines share", "tls://lab:8786 --shared-path /nfs/models")
@click.argument("address", required=False, metavar="ADDRESS")
@section("Worker")
@option("--name NAME", "Prefix of its runners.  [default: the host name]")
@option("-j, --jobs N", "Number of jobs at a time.", default=1)
@section("Files")
@option("--cache DIR", "Folder for models.  [default: in the user's cache]")
@option("--cache-limit SIZE", "Largest size of the cache.  [default: 20GiB]", default="20GiB")
@option(
    "--shared-path DIR...", "Folder with the same files on all machines, which are not sent then; repeatable."
)
@section("Security")
@tls_options
@option("--make-certificates DIR", "Write certificates for a lab, and do nothing else.")
def command(address: str | None, **params: Any) -> int:
    """Run the jobs of a scheduler on this machine and its devices, until it is stopped.

    First, every runner is tested with a small model. If the connection is lost, the worker waits for the
    scheduler to return.

    Exit codes: 2 wrong usage; 4 the scheduler cannot be reached; 130 interrupted; 143 terminated.
    """
    if params["make_certificates"]:
        from ir_scatter.jobs.security import make_certificates

        for path in make_certificates(params["make_certificates"]):
            write(f"{path}\n")
        return exits.OK
    if address is None:
        raise UsageError("the scheduler's address is missing, expected one like tls://lab:8786")
    name = params["name"] or platform.node()
    if not re.fullmatch(r"[\w.-]+", name):
        raise UsageError(f"--name is {name!r}, expected letters, digits, '.', '-' and '_'")
    shared = tuple(str(Path(path).resolve()) for path in params["shared_path"])
    for shared_path in shared:
        if not Path(shared_path).is_dir():
            raise UsageError(f"--shared-path: {shared_path} is not a folder")
    scheduler = address_of(address, params)
    require_dask()
    from ir_scatter.jobs.machine import this_machine
    from ir_scatter.jobs.security import demand_reachable
    from ir_scatter.jobs.store import Store
    from ir_scatter.jobs.worker import serve_worker
    from ir_scatter_cli import worker_child

    demand_reachable(scheduler)
    cache = cache_folder()
    folder = Path(params["cache"]) if params["cache"] else cache and cache / "fleet"
    if folder is None:
        raise UsageError("there is no home folder for the cache; name a folder with --cache")
    with explained(folder, "used"):
        store = Store(folder.absolute(), params["cache_limit"], shared)
    with spinner("testing every runner with a small model"):
        machine = this_machine(name, params["jobs"])
    say(f"{name} has {', '.join(machine.runners) or 'no runner'}")
    try:
        asyncio.run(serve_worker(scheduler, machine, store, say, worker_child.__name__))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
