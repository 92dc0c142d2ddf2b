"""What executes models or parts of them: a folder for each runtime, always in a child process.

A folder has a module `runner` with `FAMILIES`; there is no list of them.
"""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ir_scatter.runners.base import Availability, Family, Runner

_PREFIX = "openvino:"
"""What a short name leaves out."""

_RUNNERS: "dict[str, Runner]" = {}


def find(name: str, also: "Sequence[str]" = ()) -> "Runner":
    """Return the runner of a name, always the same one: it keeps its process between runs.

    Args:
        name: long or short, in any case: "openvino:CPU", "gpu.1", "AUTO:GPU,CPU", "onnxruntime".
        also: names that the caller knows himself, for the message.

    Raises:
        UsageError: there is no runner of this name.
    """
    wanted = name.strip()
    for tried in (wanted, _PREFIX + wanted):
        for family in _families():
            long = next((one for one in family.names if one.lower() == tried.lower()), tried)
            runner = _RUNNERS.get(long) or family.make(long)
            if runner is not None:
                return _RUNNERS.setdefault(runner.name, runner)
    from ir_scatter.core.errors import UsageError
    from ir_scatter.core.suggestions import did_you_mean

    names = [*also, *known()]
    guess = did_you_mean(name, [word for long in names for word in (long, short(long))])
    raise UsageError(f"there is no runner {name!r}{guess}, expected {', '.join(names)} or {_PREFIX}DEVICE")


def known() -> "list[str]":
    """Return the long names of the runners that a user may want to hear of."""
    return [name for family in _families() for name in family.names]


def short(name: str) -> str:
    """Return the name of a runner as users write it: "CPU"."""
    return name.removeprefix(_PREFIX)


def survey() -> "list[Availability]":
    """Return of every known runner whether it can run here; each is tried in its own process."""
    from concurrent.futures import ThreadPoolExecutor

    def tried(name: str) -> "Availability":
        runner = find(name)
        found = runner.availability()
        runner.close()
        return found

    with ThreadPoolExecutor() as pool:
        return list(pool.map(tried, known()))


@cache
def _families() -> "tuple[Family, ...]":
    from importlib import import_module
    from pkgutil import iter_modules

    folders = [module.name for module in iter_modules(__path__) if module.ispkg]
    found = [import_module(f"{__name__}.{folder}.runner").FAMILIES for folder in folders]
    return tuple(sorted((family for families in found for family in families), key=lambda one: one.order))
