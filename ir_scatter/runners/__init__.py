"""What executes models or parts of them: a folder for each runtime, always in a child process.

A folder has a module `runner` with `FAMILIES`; there is no list of them.
"""

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ir_scatter.runners.base import Availability, Family, Runner

_PREFIX = "openvino:"
"""What a short name leaves out."""

_RUNNERS: "dict[str, Runner]" = {}
_ELSEWHERE: "list[Elsewhere]" = []


class Elsewhere(Protocol):
    """Other machines, whose runners are meant as long as this is in use."""

    def find(self, name: str, also: "Sequence[str]") -> "Runner": ...

    def known(self) -> "list[str]": ...


@contextmanager
def used(elsewhere: Elsewhere) -> "Iterator[None]":
    """Let names of runners mean those of other machines in this block."""
    _ELSEWHERE.append(elsewhere)
    try:
        yield
    finally:
        _ELSEWHERE.remove(elsewhere)


def find(name: str, also: "Sequence[str]" = ()) -> "Runner":
    """Return the runner of a name, always the same one: it keeps its process between runs.

    Args:
        name: long or short, in any case: "openvino:CPU", "gpu.1", "AUTO:GPU,CPU", "onnxruntime".
        also: names that the caller knows himself, for the message.

    Raises:
        UsageError: there is no runner of this name.
    """
    return _ELSEWHERE[-1].find(name, also) if _ELSEWHERE else find_here(name, also)


def find_here(name: str, also: "Sequence[str]" = ()) -> "Runner":
    """Return the runner of a name on this machine."""
    wanted = name.strip()
    for tried in (wanted, _PREFIX + wanted):
        for family in _families():
            long = next((one for one in family.names if one.lower() == tried.lower()), tried)
            runner = _RUNNERS.get(long) or family.make(long)
            if runner is not None:
                return _RUNNERS.setdefault(runner.name, runner)
    from ir_scatter.core.errors import UsageError
    from ir_scatter.core.suggestions import did_you_mean

    if "/" in name:
        raise UsageError(f"{name!r} names a runner of another machine, which goes with --scheduler")
    names = [*also, *known_here()]
    guess = did_you_mean(name, [word for long in names for word in (long, short(long))])
    raise UsageError(f"there is no runner {name!r}{guess}, expected {', '.join(names)} or {_PREFIX}DEVICE")


def known() -> "list[str]":
    """Return the long names of the runners that a user may want to hear of."""
    return _ELSEWHERE[-1].known() if _ELSEWHERE else known_here()


def default_runners(format: str | None = None) -> "list[str]":
    """Return the long names of the runners that are used if the caller names none.

    Args:
        format: only runners that read files of this format; None for all.
    """
    named = ((name, find(name)) for name in known())
    return [
        name for name, runner in named if runner.is_default and (format is None or format in runner.formats)
    ]


def known_here() -> "list[str]":
    return [name for family in _families() for name in family.names]


def short(name: str) -> str:
    """Return the name of a runner as users write it: "CPU"."""
    return name.removeprefix(_PREFIX)


def survey() -> "list[Availability]":
    """Return of every known runner whether it can run here; each is tried in its own process."""
    from concurrent.futures import ThreadPoolExecutor

    def tried(name: str) -> "Availability":
        runner = find_here(name)
        found = runner.availability()
        runner.close()
        return found

    with ThreadPoolExecutor() as pool:
        return list(pool.map(tried, known_here()))


@cache
def _families() -> "tuple[Family, ...]":
    from importlib import import_module
    from pkgutil import iter_modules

    folders = [module.name for module in iter_modules(__path__) if module.ispkg]
    found = [import_module(f"{__name__}.{folder}.runner").FAMILIES for folder in folders]
    return tuple(sorted((family for families in found for family in families), key=lambda one: one.order))
