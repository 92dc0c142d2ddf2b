"""`ir-scatter worker`."""

import asyncio
import platform
import re
from pathlib import Path
from typing import Any

import click

from ir_scatter.core.cache import cache_folder
from ir_scatter.core.errors import CannotWrite, UsageError
from ir_scatter_cli import exits, options
from ir_scatter_cli.fleet import address_of, require_dask, tls_options
from ir_scatter_cli.output import say, spinner, write

_EXAMPLES = {
    "certificates for a lab, once": "ir-scatter worker --make-certificates lab",
    "on each machine": "ir-scatter worker tls://lab:8786",
    "where all see the models": "ir-scatter worker tls://lab:8786 --shared-path /nfs/models",
}


@click.command("worker", cls=options.Command, examples=_EXAMPLES)
@click.argument("address", required=False, metavar="ADDRESS")
@options.section("What it is")
@click.option("--name", metavar="NAME", help="What stands before its runners.  [default: that of the host]")
@options.number("-j", "--jobs", default=1, help="Do so many jobs at a time.")
@options.section("What it keeps")
@options.file("--cache", metavar="DIR", help="Keep models there.  [default: in the user's cache]")
@options.size("--cache-limit", "20GiB", "So much at most.  [default: 20GiB]")
@options.texts("--shared-path", "DIR", "It has the same files everywhere; repeatable.")
@options.section("Who may connect")
@tls_options
@options.file("--make-certificates", metavar="DIR", help="Write certificates for a lab, and do nothing else.")
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
    from ir_scatter.jobs.machine import this_machine
    from ir_scatter.jobs.security import demand_reachable
    from ir_scatter.jobs.store import Store
    from ir_scatter.jobs.worker import serve_worker

    demand_reachable(where)
    cache = cache_folder()
    folder = Path(given["cache"]) if given["cache"] else cache and cache / "fleet"
    if folder is None:
        raise UsageError("there is no home for a cache; --cache names a folder")
    try:
        store = Store(folder.absolute(), given["cache_limit"], shared)
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be used: {(error.strerror or '').lower()}") from None
    with spinner() as tell:
        if tell is not None:
            tell("every runner runs a small model")
        machine = this_machine(name, given["jobs"])
    say(f"{name} has {', '.join(machine.runners) or 'no runner'}")
    try:
        asyncio.run(serve_worker(where, machine, store, say))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
