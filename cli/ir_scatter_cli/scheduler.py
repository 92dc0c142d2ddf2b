"""`ir-scatter scheduler`."""

import asyncio
from typing import Any

import click

from ir_scatter_cli import exits
from ir_scatter_cli.fleet import TLS, address_of, tls_options
from ir_scatter_cli.options import Command
from ir_scatter_cli.output import say

_EXAMPLES = {
    "on this machine alone": "ir-scatter scheduler --listen tcp://127.0.0.1:8786",
    "for a lab; certificates as Dask is configured": "ir-scatter scheduler --listen tls://lab:8786",
}
_SECTIONS = {"Where": "--listen --dashboard", "Who may connect": TLS}


@click.command("scheduler", cls=Command, examples=_EXAMPLES, sections=_SECTIONS)
@click.option("--listen", required=True, metavar="ADDRESS", help="tls://HOST:PORT; tcp:// on loopback.")
@click.option("--dashboard", metavar="HOST:PORT", help="Serve Dask's pages there, to whoever asks.")
@tls_options
def command(listen: str, dashboard: str | None, **options: Any) -> int:
    """Run the scheduler of a fleet, which knows its machines and hands jobs on, until it is stopped.

    It is Dask's own, without its pages. Whoever holds a certificate for it can run any code on every
    machine of the fleet: `ir-scatter explain fleet` says what that means.

    Exit codes: 2 wrong usage; 4 it cannot listen there; 130 stopped.
    """
    address = address_of(listen, options)
    from ir_scatter.jobs.worker import serve_scheduler

    try:
        asyncio.run(serve_scheduler(address, say, dashboard or ""))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
