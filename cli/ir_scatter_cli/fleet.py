"""Options of commands that run on other machines: the scheduler's address and certificates."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from ir_scatter.core.errors import UsageError
from ir_scatter_cli import exits
from ir_scatter_cli.options import option
from ir_scatter_cli.output import say

if TYPE_CHECKING:
    from ir_scatter.jobs.fleet import Fleet
    from ir_scatter.jobs.security import Address
    from ir_scatter.runners import Directory

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def tls_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --tls-ca, --tls-cert, --tls-key and --insecure."""
    for declared, help in {
        "--insecure": "Allow unencrypted connections (tcp://) to other machines.",
        "--tls-key FILE": "Private key of the certificate.",
        "--tls-cert FILE": "Certificate of this machine.",
        "--tls-ca FILE": "Certificate of the signing authority.",
    }.items():
        command = option(declared, help)(command)
    return command


def fleet_options(*, resume: str = "") -> _Decorator:
    """Add --scheduler and the TLS options; also --resume if its help text is given."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        if resume:
            command = option("--resume", resume)(command)
        return option("--scheduler ADDRESS", "Run on the machines of this scheduler.")(tls_options(command))

    return add


def require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        reason = (
            "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported: {error}"
        )
        raise UsageError(f"Dask {reason}: pip install 'ir-scatter[fleet]'") from None


def address_of(text: str, params: Mapping[str, Any]) -> "Address":
    """Return the address of a scheduler, with the certificates of the TLS options."""
    require_dask()
    from ir_scatter.jobs.security import Address

    ca, cert, key = (params[f"tls_{name}"] or "" for name in ("ca", "cert", "key"))
    return Address(text, ca, cert, key, params["insecure"])


@contextmanager
def open_fleet(params: Mapping[str, Any]) -> Iterator["Fleet | None"]:
    """Yield the fleet of --scheduler; None without that option.

    Prints unusable machines and, at the end, the number of jobs of each machine.
    """
    if params["scheduler"] is None:
        for name in ("tls_ca", "tls_cert", "tls_key", "insecure"):
            if params[name]:
                raise UsageError(f"--{name.replace('_', '-')} goes with --scheduler")
        yield None
        return
    address = address_of(params["scheduler"], params)
    from ir_scatter.core.files import cache_folder
    from ir_scatter.jobs.fleet import Fleet

    cache = cache_folder()
    fleet = Fleet(address, results_folder=cache and cache / "finished", resume=params.get("resume", False))
    try:
        for line in fleet.strangers.values():
            say(f"not used: {line}")
        yield fleet
        fleet.forget()
        if reports := fleet.share_lines():
            say(f"jobs done: {'; '.join(reports)}")
    finally:
        fleet.close()


def directory_of(fleet: "Fleet | None") -> "Directory":
    """Return the resolver of runner names: on the machines of a fleet, or on this machine without one."""
    if fleet is None:
        from ir_scatter.runners import HERE

        return HERE
    from ir_scatter.jobs.runner import FleetRunners

    return FleetRunners(fleet)


def report_lost(fleet: "Fleet", count: int, noun: str) -> int:
    """Print that the scheduler was lost, and the number of unfinished jobs; return the exit code."""
    from ir_scatter.core.words import counted

    verb = "was" if count == 1 else "were"
    say(f"{fleet.gone}: {counted(count, noun)} {verb} not finished; continue with --resume")
    return exits.RUNTIME
