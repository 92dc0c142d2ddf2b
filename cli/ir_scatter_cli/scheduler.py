"""`ir-scatter scheduler`."""

import asyncio
from typing import Any

from ir_scatter_cli import exits
from ir_scatter_cli.fleet import address_of, tls_options
from ir_scatter_cli.options import example, option, section, sub_command
from ir_scatter_cli.output import say


@sub_command()
@example("on this machine alone", "--listen tcp://127.0.0.1:8786")
@example("for a lab; certificates as Dask is configured", "--listen tls://lab:8786")
@section("Where")
@option("--listen ADDRESS", "tls://HOST:PORT; tcp:// on loopback.", required=True)
@option("--dashboard HOST:PORT", "Serve Dask's pages there, to whoever asks.")
@section("Who may connect")
@tls_options
def command(**given: Any) -> int:
    """Run the scheduler of a fleet, which knows its machines and hands jobs on, until it is stopped.

    It is Dask's own, without its pages. Whoever holds a certificate for it can run any code on every
    machine of the fleet: `ir-scatter explain fleet` says what that means.

    Exit codes: 2 wrong usage; 4 it cannot listen there; 130 stopped.
    """
    address = address_of(given["listen"], given)
    from ir_scatter.jobs.worker import serve_scheduler

    try:
        asyncio.run(serve_scheduler(address, say, given["dashboard"] or ""))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
