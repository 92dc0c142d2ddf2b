"""`ir-scatter scheduler`."""

import asyncio
from typing import Any

from ir_scatter_cli import exits
from ir_scatter_cli.fleet import address_of, tls_options
from ir_scatter_cli.options import example, option, section, sub_command
from ir_scatter_cli.output import say


@sub_command()
@example("for this machine only", "--listen tcp://127.0.0.1:8786")
@example("for a lab, with the certificates of Dask's configuration", "--listen tls://lab:8786")
@section("Address")
@option("--listen ADDRESS", "tls://HOST:PORT; tcp:// on loopback.", required=True)
@option("--dashboard HOST:PORT", "Serve Dask's dashboard at this address, without authentication.")
@section("Security")
@tls_options
def command(**params: Any) -> int:
    """Run the scheduler of a fleet, which distributes jobs to its machines, until it is stopped.

    It is Dask's scheduler; its dashboard is off without --dashboard. Anyone with a certificate can run
    arbitrary code on every machine of the fleet; see `ir-scatter explain fleet`.

    Exit codes: 2 wrong usage; 4 it cannot listen on the address; 130 interrupted; 143 terminated.
    """
    address = address_of(params["listen"], params)
    from ir_scatter.jobs.worker import serve_scheduler

    try:
        asyncio.run(serve_scheduler(address, say, params["dashboard"] or ""))
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    return exits.OK
