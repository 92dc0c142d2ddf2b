"""Runtimes that execute models, each in its own folder here and in a child process.

A runner is a runtime on one device, such as "openvino:CPU". Each folder has a module `runner` with
`FAMILIES`, which `_families` finds by scanning. All facts about a runtime are attributes of its `Runner`
and `Family`: no module outside of this folder contains the name of a runtime.
"""

from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ir_scatter.runners.base import Availability, Family, Runner

_RUNNERS: "dict[str, Runner]" = {}


class Directory(Protocol):
    """Finds runners by name, on this machine (`HERE`) or in a fleet of machines."""

    def find(self, name: str, also: "Sequence[str]" = ()) -> "Runner": ...

    def known(self) -> "list[str]": ...


class _ThisMachine:
    def find(self, name: str, also: "Sequence[str]" = ()) -> "Runner":
        return find(name, also)

    def known(self) -> "list[str]":
        return known()


HERE: Directory = _ThisMachine()


_SUGGESTIONS = {
    **dict.fromkeys(("ort", "onnx", "onnx-runtime", "cuda", "cpuexecutionprovider"), "onnxruntime"),
    **dict.fromkeys(("ov", "openvino", "intel", "x86"), "CPU"),
    **dict.fromkeys(("igpu", "dgpu", "arc", "xpu"), "GPU"),
    **dict.fromkeys(("np", "python", "reference"), "onnx-reference"),
}
"""Common other names of runtimes and devices, with the runner to suggest."""


def find(name: str, also: "Sequence[str]" = ()) -> "Runner":
    """Return the runner with a name on this machine.

    Each call returns the same object, which keeps its child process.

    Args:
        name: long or short, in any case: "openvino:CPU", "gpu.1", "AUTO:GPU,CPU", "onnxruntime".
        also: further valid names to suggest in the error message.

    Raises:
        UsageError: there is no runner of this name.
    """
    runner = find_or_none(name)
    if runner is not None:
        return runner
    from ir_scatter.core.errors import UsageError
    from ir_scatter.core.parameters import Parameter
    from ir_scatter.core.suggestions import did_you_mean

    if "/" in name:
        raise UsageError(
            f"{name!r} names a runner of another machine, which requires {Parameter('scheduler')}"
        )
    names = [*also, *known()]
    meant = _SUGGESTIONS.get(name.strip().lower())
    guess = f" (did you mean {meant}?)" if meant else ""
    guess = guess or did_you_mean(name, [word for long in names for word in (long, short(long))])
    devices = " or ".join(f"{prefix}DEVICE" for prefix in _prefixes())
    raise UsageError(f"there is no runner {name!r}{guess}, expected {', '.join(names)} or {devices}")


def find_or_none(name: str) -> "Runner | None":
    """Return the runner with a name on this machine; None if there is no such runner."""
    word = name.strip()
    for full in (word, *(prefix + word for prefix in _prefixes())):
        for family in _families():
            long = next((listed for listed in family.names if listed.lower() == full.lower()), full)
            runner = _RUNNERS.get(long) or family.make(long)
            if runner is not None:
                return _RUNNERS.setdefault(runner.name, runner)
    return None


def known() -> "list[str]":
    """Return the long names of all listed runners, including those that cannot run on this machine."""
    return [name for family in _families() for name in family.names]


def default_runners(format: str | None = None, directory: Directory = HERE) -> "list[str]":
    """Return the long names of the runners to use if the caller names none.

    Args:
        format: only runners that read files of this format; None for all.
        directory: finds runners by name.
    """
    named = ((name, directory.find(name)) for name in directory.known())
    return [
        name for name, runner in named if runner.is_default and (format is None or format in runner.formats)
    ]


def short(name: str) -> str:
    """Return the short name of a runner: "openvino:CPU" -> "CPU"."""
    for prefix in _prefixes():
        name = name.removeprefix(prefix)
    return name


def original(name: str) -> str:
    """Return the long name of the runner that the named runner emulates.

    A runner that emulates none returns its own long name.
    """
    runner = find_or_none(name)
    return name if runner is None else runner.emulates or name


def emulator(name: str) -> str:
    """Return the long name of a listed runner that emulates the named one; "" if there is none."""
    return next((runner.name for runner in _listed() if runner.emulates == name), "")


def packages() -> "list[str]":
    """Return the packages of the runtimes to use if the caller names none."""
    return list(dict.fromkeys(runner.package for runner in _listed() if runner.is_default))


def survey() -> "list[Availability]":
    """Return the availability of every listed runner on this machine, each tested in its own process."""
    from concurrent.futures import ThreadPoolExecutor

    def availability(name: str) -> "Availability":
        runner = find(name)
        available = runner.availability()
        runner.close()
        return available

    with ThreadPoolExecutor() as pool:
        return list(pool.map(availability, known()))


def _listed() -> "list[Runner]":
    runners = (find_or_none(name) for family in _families() for name in family.names)
    return [runner for runner in runners if runner is not None]


def _prefixes() -> "list[str]":
    """Return the prefixes of long names that users may omit: "openvino:"."""
    return list(dict.fromkeys(family.prefix for family in _families() if family.prefix))


@cache
def _families() -> "tuple[Family, ...]":
    from importlib import import_module
    from pkgutil import iter_modules

    folders = [module.name for module in iter_modules(__path__) if module.ispkg]
    families = [
        family for folder in folders for family in import_module(f"{__name__}.{folder}.runner").FAMILIES
    ]
    return tuple(sorted(families, key=lambda family: family.order))
