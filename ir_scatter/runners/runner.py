"""What every runner is, and those that work in a process of their own.

A module of this folder with a `FAMILY` is found by `runners.find`. One that runs OpenVINO in other
surroundings is a subclass of `OpenVinoRunner` with an `environment` and a `module` whose `main`
prepares its process and then calls that of `openvino_child`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.errors import BadFeed, UsageError
from ir_scatter.runners.outcome import NodeFacts, Outcome, Status, Tap

if TYPE_CHECKING:
    from ir_scatter.constants import Array
    from ir_scatter.runners.worker import Worker

PRECISIONS = ("default", "f16", "bf16", "f32")
TIME_LIMIT = 300.0
TAP_MEMORY = 1 << 30
MODEL_PRECISION = "model"
"""Where a runtime computes in the types of the model and nothing else can be asked for."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a runner can run here, and what it is.

    Attributes:
        runner: its long name.
        is_available: whether it can run a model.
        reason: why not.
        remedy: what to install.
        full_name: of the device.
        capabilities: of the device, "FP32", "BF16".
        default_precision: what it computes in if nothing is asked for.
        remarks: what must be known to judge its results.
        versions: of the packages involved.
    """

    runner: str
    is_available: bool
    reason: str = ""
    remedy: str = ""
    full_name: str = ""
    capabilities: tuple[str, ...] = ()
    default_precision: str = ""
    remarks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


class Runner(ABC):
    """Executes whole models.

    Attributes:
        name: the long one, "openvino:CPU".
    """

    name: str

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if they are not installed."""

    @abstractmethod
    def availability(self) -> Availability:
        """Return whether it can run here, and why not."""

    @abstractmethod
    def run(
        self,
        model_path: "str | Path",
        feeds: "Mapping[str, Array]",
        *,
        taps: Sequence[Tap] = (),
        precision: str = "f32",
        repeat: int = 1,
        profile: bool = False,
        tap_memory: int = TAP_MEMORY,
        timeout: float = TIME_LIMIT,
    ) -> Outcome:
        """Run a model.

        Args:
            model_path: of the file.
            feeds: one array for each input, by any of its names.
            taps: nodes whose inputs and output are wanted; they are those of the first run.
            precision: what it should compute in; "default" leaves that to the device.
            repeat: how often to run it.
            profile: say what the runtime made of the nodes, and how long each took.
            tap_memory: bytes of tapped tensors that may be held at once; more come in batches.
            timeout: in seconds, for everything together.

        Raises:
            BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
            UsageError: there is no such precision.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to end
        """End what is kept between runs."""


@dataclass(frozen=True, slots=True)
class Family:
    """Runners of one kind.

    Attributes:
        names: those that are listed: long names.
        make: gives the runner of a long name, or None if that belongs to no runner of this kind.
        order: of the lists.
    """

    names: tuple[str, ...]
    make: Callable[[str], Runner | None]
    order: int


class ChildRunner(Runner):
    """Asks a process that is kept between runs.

    Attributes:
        module: has the function `main`, which serves.
        packages: the distributions that it needs.
        install: what installs them.
        remarks: what must be known to judge its results.
        has_precision: whether a precision can be asked for.
    """

    module: str
    packages: tuple[str, ...]
    install: str
    remarks: tuple[str, ...] = ()
    has_precision: bool = False

    def environment(self) -> Mapping[str, str]:
        """Return what is added to the environment of the process."""
        return {}

    def options(self) -> Mapping[str, Any]:
        """Return what is added to every question."""
        return {}

    def problem(self) -> str:
        """Return why it cannot run here, as far as that is known without trying; "" if it may."""
        missing = [name for name in self.packages if not _is_installed(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    def remedy(self, reason: str) -> str:
        """Return what to install when something is missing."""
        return self.install

    @cached_property
    def worker(self) -> "Worker":
        """Return what holds the process."""
        from ir_scatter.runners.worker import Worker

        return Worker(self.module, self.environment)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if one is not installed."""
        try:
            return {name: metadata.version(name) for name in self.packages}
        except metadata.PackageNotFoundError:
            return {}

    def availability(self) -> Availability:
        """Return whether it can run here, by running a small model."""
        versions = self.versions()
        answer, _ = self._ask({"do": "describe"}, (), TIME_LIMIT)
        reason = "" if answer["status"] == Status.OK else answer["message"]
        return Availability(
            self.name,
            is_available=not reason,
            reason=reason,
            remedy=self.remedy(reason) if reason else "",
            full_name=answer.get("full_name", ""),
            capabilities=tuple(answer.get("capabilities", ())),
            default_precision=answer.get("default_precision", ""),
            remarks=self.remarks,
            versions=versions,
        )

    def run(
        self,
        model_path: "str | Path",
        feeds: "Mapping[str, Array]",
        *,
        taps: Sequence[Tap] = (),
        precision: str = "f32",
        repeat: int = 1,
        profile: bool = False,
        tap_memory: int = TAP_MEMORY,
        timeout: float = TIME_LIMIT,
    ) -> Outcome:
        """Run a model; see `Runner.run`."""
        if precision not in PRECISIONS:
            raise UsageError(f"precision is {precision!r}, expected {', '.join(PRECISIONS)}")
        question = {
            "do": "run",
            "model": os.path.abspath(model_path),
            "feeds": list(feeds),
            "taps": [[tap.scope, tap.output, tap.types, tap.shapes, tap.callers] for tap in taps],
            "precision": precision,
            "repeat": max(repeat, 1),
            "profile": profile,
            "tap_memory": tap_memory,
        }
        answer, arrays = self._ask(question, _checked(feeds), timeout)
        return self._outcome(answer, arrays, taps, feeds, precision)

    def close(self) -> None:
        """End the process."""
        if "worker" in self.__dict__:
            self.worker.close()

    def _ask(
        self, question: Mapping[str, Any], arrays: "Sequence[Array]", timeout: float
    ) -> "tuple[dict[str, Any], list[Array]]":
        from ir_scatter.runners.worker import Stopped

        problem = self.problem()
        if problem:
            return {"status": Status.UNAVAILABLE, "message": problem}, []
        try:
            answer, found = self.worker.ask({**self.options(), **question}, arrays, timeout)
        except Stopped as stopped:
            return {"status": stopped.status, "message": stopped.message}, []
        if answer["status"] == "bad-feed":
            raise BadFeed(answer["message"])
        if answer["status"] == "bug":
            raise RuntimeError(answer["message"])
        return answer, found

    def _outcome(
        self,
        answer: dict[str, Any],
        arrays: "list[Array]",
        taps: Sequence[Tap],
        feeds: "Mapping[str, Array]",
        precision: str,
    ) -> Outcome:
        from ir_scatter.runners.tapped import decode

        runs = [{name: arrays[number] for name, number in run.items()} for run in answer.get("runs", ())]
        return Outcome(
            self.name,
            Status(answer["status"]),
            answer.get("message", ""),
            tuple(runs),
            decode(taps, answer.get("tapped", ()), arrays, feeds),
            tuple(NodeFacts(**facts) for facts in answer.get("facts", ())),
            answer.get("seconds", 0.0),
            precision if self.has_precision else MODEL_PRECISION,
            self.versions(),
        )


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _checked(feeds: "Mapping[str, Array]") -> "list[Array]":
    """Return the feeds as arrays of types that models have.

    Raises:
        BadFeed: one is something else.
    """
    import numpy as np

    from ir_scatter.runners import arena

    found = []
    for name, feed in feeds.items():
        array = np.asarray(feed)
        try:
            arena.type_name(array)
        except KeyError:
            raise BadFeed(f"{name} is {array.dtype.name}, which no model has") from None
        found.append(array)
    return found
