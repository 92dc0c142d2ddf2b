"""What executes models or parts of them: one file for each runtime, always in a child process."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ir_scatter.runners.runner import Availability, Family, Runner

_MODULES = (
    "openvino.device",
    "openvino.gpu_on_cpu",
    "openvino.fold",
    "onnx.onnxruntime",
    "onnx.reference",
)
"""The files that have a runner each; a line here makes a new one known."""

_PREFIX = "openvino:"
"""What a short name leaves out."""


def find(name: str, also: "Sequence[str]" = ()) -> "Runner":
    """Return the runner of a name, always the same one: it keeps its process between runs.

    Args:
        name: long or short, in any case: "openvino:CPU", "gpu.1", "AUTO:GPU,CPU", "onnxruntime".
        also: names that the caller knows himself, for the message.

    Raises:
        UsageError: there is no runner of this name.
    """
    from ir_scatter.core.errors import UsageError

    made = _find(name.strip())
    if made is not None:
        return made
    from difflib import get_close_matches

    names = [*also, *known()]
    words = {word.lower(): word for long in names for word in (long, long.removeprefix(_PREFIX))}
    close = get_close_matches(name.lower(), words, 1)
    guess = f" (did you mean {words[close[0]]}?)" if close else ""
    raise UsageError(f"there is no runner {name!r}{guess}, expected {', '.join(names)} or {_PREFIX}DEVICE")


def known() -> "list[str]":
    """Return the long names of the runners that a user may want to hear of."""
    return [name for family in _families() for name in family.names]


def survey() -> "list[Availability]":
    """Return of every known runner whether it can run here; each is tried in its own process."""
    found = []
    for name in known():
        runner = find(name)
        found.append(runner.availability())
        runner.close()
    return found


@cache
def _families() -> "tuple[Family, ...]":
    """Collect the `FAMILY` of each runner."""
    from importlib import import_module

    families: list[Family] = [import_module(f"{__name__}.{name}").FAMILY for name in _MODULES]
    return tuple(sorted(families, key=lambda family: family.order))


@cache
def _find(name: str) -> "Runner | None":
    for tried in (name, _PREFIX + name):
        for family in _families():
            for long in family.names:
                if long.lower() == tried.lower():
                    return _kept(family.make(long))
    for tried in (name, _PREFIX + name):
        for family in _families():
            runner = family.make(tried)
            if runner is not None:
                return _kept(runner)
    return None


_RUNNERS: "dict[str, Runner]" = {}


def _kept(runner: "Runner | None") -> "Runner | None":
    """Return the runner that already has this name, if there is one."""
    return runner and _RUNNERS.setdefault(runner.name, runner)
