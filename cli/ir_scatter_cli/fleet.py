"""Options of commands that work on other machines, and what they make of them."""

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

_Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


def tls_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--tls-ca, --tls-cert, --tls-key and --insecure."""
    for declared, help in {
        "--insecure": "Let tcp:// reach beyond this machine.",
        "--tls-key FILE": "The key of the certificate.",
        "--tls-cert FILE": "The certificate of this machine.",
        "--tls-ca FILE": "The authority that signed the certificates.",
    }.items():
        command = option(declared, help)(command)
    return command


def fleet_options(*, resume: str = "") -> _Decorator:
    """--scheduler and what belongs to it; with a help text, --resume."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        if resume:
            command = option("--resume", resume)(command)
        return option("--scheduler ADDRESS", "Work on the machines of this scheduler.")(tls_options(command))

    return add


def require_dask() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        reason = (
            "is not installed" if isinstance(error, ModuleNotFoundError) else f"cannot be imported: {error}"
        )
        raise UsageError(f"Dask {reason}: pip install 'ir-scatter[fleet]'") from None


def address_of(text: str, given: Mapping[str, Any]) -> "Address":
    """Return where a scheduler is, as options say it."""
    require_dask()
    from ir_scatter.jobs.security import Address

    ca, cert, key = (given[f"tls_{name}"] or "" for name in ("ca", "cert", "key"))
    return Address(text, ca, cert, key, given["insecure"])


@contextmanager
def used_fleet(given: Mapping[str, Any]) -> Iterator["Fleet | None"]:
    """Give the fleet of --scheduler, whose runners are meant by their names; None without that option.

    Machines that are not used are told; in the end, what each has done.
    """
    if given["scheduler"] is None:
        for name in ("tls_ca", "tls_cert", "tls_key", "insecure"):
            if given[name]:
                raise UsageError(f"--{name.replace('_', '-')} goes with --scheduler")
        yield None
        return
    address = address_of(given["scheduler"], given)
    from ir_scatter import runners
    from ir_scatter.core.files import cache_folder
    from ir_scatter.jobs.fleet import Fleet
    from ir_scatter.jobs.runner import FleetRunners

    cache = cache_folder()
    fleet = Fleet(address, results_folder=cache and cache / "finished", resume=given.get("resume", False))
    try:
        for line in fleet.strangers.values():
            say(f"not used: {line}")
        with runners.used(FleetRunners(fleet)):
            yield fleet
        fleet.forget()
        if told := fleet.share_lines():
            say(f"jobs done: {'; '.join(told)}")
    finally:
        fleet.close()


def lost(fleet: "Fleet", count: int, noun: str) -> int:
    """Say that the scheduler is gone, and what was not done; return the exit code."""
    from ir_scatter.core.words import counted

    verb = "was" if count == 1 else "were"
    say(f"{fleet.gone}: {counted(count, noun)} {verb} not finished; --resume goes on with the rest")
    return exits.RUNTIME
