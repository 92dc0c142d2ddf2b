"""Runners that work in a process of their own, which is kept between runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.core.process import Child, Failure
from ir_scatter.formats import FORMATS, format_of
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.runners.base import (
    MODEL_PRECISION,
    OTHER_FORMAT,
    PRECISIONS,
    TAP_MEMORY,
    TIME_LIMIT,
    Availability,
    Outcome,
    Runner,
    RunRequest,
    Status,
    Tap,
    Tapped,
)

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.runners.engine import Answer


class ChildRunner(Runner):
    """Asks a process that is kept between runs.

    One that runs a runtime in other surroundings is a subclass with an `environment` and a `module` whose
    `handlers` prepare the process and then are those of the other.

    Attributes:
        module: has the function `handlers`; see `core.process`. It gives at least "run" and "describe".
        packages: the distributions that it needs.
        install: what installs them.
        device: of a runtime that has several.
        remarks: what must be known to judge its results.
        has_precision: whether a precision can be asked for.
        questions_per_process: after how many of them a new process takes over.
        can_prepare: whether its process can make a model ready that it has no inputs for yet.
        formats: of the files that it reads.
    """

    module: str
    packages: tuple[str, ...]
    install: str
    device: str = ""
    remarks: tuple[str, ...] = ()
    has_precision: bool = False
    questions_per_process: int | None = None
    can_prepare: bool = False
    formats: tuple[str, ...] = (IR, ONNX_FORMAT)

    def environment(self) -> Mapping[str, str]:
        """Return what is added to the environment of the process."""
        return {}

    def problem(self) -> str:
        """Return why it cannot run here, as far as that is known without trying; "" if it may."""
        missing = [name for name in self.packages if not _version(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    def full_name(self, told: str) -> str:
        """Return the full name of the device, from that which the runtime tells."""
        return told

    def remedy(self) -> str:
        return self.install

    @cached_property
    def child(self) -> Child:
        return Child(self.module, self.environment, self.questions_per_process)

    @cached_property
    def _problem(self) -> str:
        return self.problem()

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return self.versions()

    def versions(self) -> Mapping[str, str]:
        found = {name: _version(name) for name in self.packages}
        return found if all(found.values()) else {}

    def availability(self) -> Availability:
        """Return whether it can run here, by running a small model."""
        base = Availability(self.name, True, remarks=self.remarks, versions=self.versions())
        try:
            told, _ = self.ask("describe", self.device)
        except Failure as failure:
            return replace(base, is_available=False, reason=failure.message, remedy=self.remedy())
        return replace(base, **{**told, "full_name": self.full_name(told.get("full_name", ""))})

    def prepare(self, model_path: "str | Path", *, precision: str = "f32") -> None:
        if self.can_prepare and not self._problem:
            path = os.path.abspath(model_path)
            self.child.tell("prepare", RunRequest(path, self.device, precision, profile=True))

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
        """Run a model, and again for taps that memory did not allow before."""
        if precision not in PRECISIONS:
            raise UsageError(f"precision is {precision!r}, expected {', '.join(PRECISIONS)}")
        base = Outcome(
            self.name,
            Status.OK,
            precision=precision if self.has_precision else MODEL_PRECISION,
            versions=self._versions,
        )
        if not self._problem and len(self.formats) < len(FORMATS):
            found = format_of(os.fspath(model_path))
            if found not in self.formats:
                known = " and ".join(FORMATS[format].title for format in self.formats)
                message = f"the file is {FORMATS[found].title}, expected {known}"
                return replace(base, status=Status.UNSUPPORTED, message=message, reason=OTHER_FORMAT)
        feeds = _checked(feeds)
        path, taps, tapped = os.path.abspath(model_path), tuple(taps), list[Tapped]()
        seconds, ends, large = 0.0, list[str](), dict[str, int]()
        while len(tapped) < len(taps) or not ends:
            is_rest, rest = bool(ends), taps[len(tapped) :]
            times = 1 if is_rest else max(repeat, 1)
            request = RunRequest(path, self.device, precision, profile, rest, times, tap_memory, is_rest)
            answer: Answer
            try:
                answer, died = self.ask("run", request, feeds, limit=timeout)
            except Failure as failure:
                if not is_rest:
                    return replace(base, status=Status(failure.status), message=failure.message)
                reason = f"the run with taps: {failure.status} {failure.message}".rstrip()
                tapped += [Tapped(tap, problem=reason) for tap in rest]
                break
            if not is_rest:
                base = replace(base, runs=tuple(answer.runs), facts=answer.facts)
            if answer.too_large:
                large[rest[0].scope] = answer.too_large
            tapped += answer.tapped(rest, feeds)
            seconds += answer.seconds
            ends.append(died)
        remarks = [f"{end}, after other work; a new one was started and did it" for end in ends if end]
        if large:
            limit = f"more than --tap-memory allows ({tap_memory})"
            remarks.append(f"tapping {', '.join(large)} takes up to {max(large.values())} bytes, {limit}")
        return replace(base, tapped=tuple(tapped), remarks=tuple(dict.fromkeys(remarks)), seconds=seconds)

    def ask(self, name: str, *arguments: Any, limit: float = TIME_LIMIT) -> tuple[Any, str]:
        """Return what a handler in the process returns; see `Child.ask`."""
        if self._problem:
            raise Failure("unavailable", self._problem)
        return self.child.ask(name, *arguments, limit=limit)

    def close(self) -> None:
        if "child" in self.__dict__:
            self.child.close()


def _version(name: str) -> str:
    """Return the version of a distribution, "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _checked(feeds: "Mapping[str, Array]") -> "dict[str, Array]":
    """Return the feeds as arrays of types that models have.

    Raises:
        BadFeed: one is something else.
    """
    import numpy as np

    from ir_scatter.core.element_types import from_dtype

    found = {}
    for name, feed in feeds.items():
        array = np.asarray(feed)
        if array.dtype.kind == "S" or from_dtype(array.dtype) is None:
            raise BadFeed(f"{name} is {array.dtype.name}, which no model has")
        found[name] = array.astype(object) if array.dtype.kind in "UT" else array
    return found
