"""`ir-scatter scheduler`."""

import asyncio
from typing import Any

import click

from ir_scatter_cli import exits, options
from ir_scatter_cli.fleet import address_of, tls_options
from ir_scatter_cli.output import say

_EXAMPLES = {
    "on this machine alone": "ir-scatter scheduler --listen tcp://127.0.0.1:8786",
    "for a lab; certificates as Dask is configured": "ir-scatter scheduler --listen tls://lab:8786",
}


@click.command("scheduler", cls=options.Command, examples=_EXAMPLES)
@options.section("Where")
@click.option("--listen", required=True, metavar="ADDRESS", help="tls://HOST:PORT; tcp:// on loopback.")
@click.option("--dashboard", metavar="HOST:PORT", help="Serve Dask's pages there, to whoever asks.")
@options.section("Who may connect")
@tls_options
def command(listen: str, dashboard: str | None, **given: Any) -> int:
    """Run the scheduler of a fleet, which knows its machines and hands jobs on, until it is stopped.

    It is Dask's own, without its pages. Whoever holds a certificate for it can run any code on every
    machine of the fleet: `ir-scatter explain fleet` says what that means.

    Exit codes: 2 wrong usage; 4 it cannot listen there; 130 stopped.
    """
    address = address_of(listen, given)
    from ir_scatter.jobs.worker import serve_scheduler

    try:
        asyncio.run(serve_scheduler(address, say, dashboard or ""))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
