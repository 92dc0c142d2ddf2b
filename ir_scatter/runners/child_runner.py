"""Runners that work in a process of their own, which is kept between runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.formats import FORMATS, format_of
from ir_scatter.formats.base import IR, ONNX_FORMAT
from ir_scatter.runners.base import (
    MODEL_PRECISION,
    OTHER_FORMAT,
    PRECISIONS,
    TAP_MEMORY,
    TIME_LIMIT,
    Availability,
    NodeFacts,
    Outcome,
    Runner,
    RunRequest,
    Status,
    Tap,
    Tapped,
)

if TYPE_CHECKING:
    from ir_scatter.core.arrays import Array
    from ir_scatter.runners.transport import Answer, ChildTransport


class ChildRunner(Runner):
    """Asks a process that is kept between runs.

    One that runs a runtime in other surroundings is a subclass with an `environment` and a `module` whose
    `handlers` prepare the process and then are those of the other.

    Attributes:
        module: has the function `handlers`; see `ChildTransport`.
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
        missing = [name for name in self.packages if not _is_installed(name)]
        return f"{', '.join(missing)} is not installed" if missing else ""

    def full_name(self, told: str) -> str:
        """Return the full name of the device, from that which the runtime tells."""
        return told

    def remedy(self, reason: str) -> str:
        """Return what to install when something is missing."""
        return self.install

    @cached_property
    def transport(self) -> "ChildTransport":
        """Return what reaches the process."""
        from ir_scatter.runners.transport import ChildTransport

        return ChildTransport(self.module, self.environment, self.questions_per_process)

    def versions(self) -> Mapping[str, str]:
        """Return the versions of the packages involved; empty if one is not installed."""
        try:
            return {name: metadata.version(name) for name in self.packages}
        except metadata.PackageNotFoundError:
            return {}

    def availability(self) -> Availability:
        """Return whether it can run here, by running a small model."""
        versions = self.versions()
        answer, _ = self.ask({"do": "describe", "device": self.device})
        reason = "" if answer["status"] == Status.OK else answer["message"]
        return Availability(
            self.name,
            is_available=not reason,
            reason=reason,
            remedy=self.remedy(reason) if reason else "",
            full_name=self.full_name(answer.get("full_name", "")),
            capabilities=tuple(answer.get("capabilities", ())),
            default_precision=answer.get("default_precision", ""),
            remarks=self.remarks,
            versions=versions,
        )

    def prepare(self, model_path: "str | Path", *, precision: str = "f32") -> None:
        """Begin to read and compile a model; see `Runner.prepare`."""
        if self.can_prepare and not self._problem:
            request = self._request(model_path, precision=precision, profile=True)
            self.transport.tell({"do": "prepare", **request._asdict()})

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
        request = self._request(
            model_path,
            feeds=tuple(feeds),
            taps=tuple(taps),
            precision=precision,
            repeat=max(repeat, 1),
            profile=profile,
            tap_memory=tap_memory,
        )
        if not self._problem and not self._reads(model_path):
            known = " and ".join(FORMATS[format].title for format in self.formats)
            found = FORMATS[format_of(os.fspath(model_path))].title
            refusal = {"status": Status.UNSUPPORTED, "message": f"the file is {found}, expected {known}"}
            return replace(self._outcome((refusal, []), request, feeds), reason=OTHER_FORMAT)
        first, too_large = self._run(request, feeds, timeout)
        if first.status is not Status.OK:
            return first
        parts = [first]
        tapped = list(first.tapped)
        large = {tapped[0].tap.scope: too_large} if too_large else {}
        while len(tapped) < len(taps):
            rest = request._replace(taps=request.taps[len(tapped) :], repeat=1, is_rest=True)
            part, too_large = self._run(rest, feeds, timeout)
            if part.status is not Status.OK:
                reason = f"the run with taps: {part.status} {part.message}".rstrip()
                part = replace(part, tapped=tuple(Tapped(tap, problem=reason) for tap in rest.taps))
            elif too_large:
                large[rest.taps[0].scope] = too_large
            parts.append(part)
            tapped += part.tapped
        remarks = dict.fromkeys(remark for part in parts for remark in part.remarks)
        if large:
            limit = f"more than --tap-memory allows ({tap_memory})"
            remarks[f"tapping {', '.join(large)} takes up to {max(large.values())} bytes, {limit}"] = None
        seconds = sum(part.seconds for part in parts)
        return replace(first, tapped=tuple(tapped), remarks=tuple(remarks), seconds=seconds)

    def ask(
        self, question: Mapping[str, Any], arrays: "Sequence[Array]" = (), timeout: float = TIME_LIMIT
    ) -> "Answer":
        """Return what the process answers; see `Transport`."""
        if self._problem:
            return {"status": Status.UNAVAILABLE, "message": self._problem}, []
        return self.transport.ask(question, arrays, timeout)

    def close(self) -> None:
        """End the process."""
        if "transport" in self.__dict__:
            self.transport.close()

    def _request(self, model_path: "str | Path", **options: Any) -> RunRequest:
        return RunRequest(os.path.abspath(model_path), device=self.device, **options)

    def _reads(self, model_path: "str | Path") -> bool:
        """Tell whether a file is of a format that the runtime reads."""
        return len(self.formats) == len(FORMATS) or format_of(os.fspath(model_path)) in self.formats

    def _run(self, request: RunRequest, feeds: "Mapping[str, Array]", timeout: float) -> tuple[Outcome, int]:
        """Return what came of a run, and the bytes that taps held, if they are more than is allowed."""
        answer = self.ask({"do": "run", **request._asdict()}, _checked(feeds), timeout)
        return self._outcome(answer, request, feeds), answer[0].get("too_large", 0)

    @cached_property
    def _problem(self) -> str:
        return self.problem()

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return self.versions()

    def _outcome(self, answered: "Answer", request: RunRequest, feeds: "Mapping[str, Array]") -> Outcome:
        from ir_scatter.runners.tapping import decode

        answer, arrays = answered
        runs, tapped = decode(request.taps, answer, arrays, feeds)
        died = (
            f"{answer['died']}, after other work; a new one was started and did it"
            if "died" in answer
            else ""
        )
        return Outcome(
            self.name,
            Status(answer["status"]),
            answer.get("message", ""),
            tuple(runs),
            tuple(tapped),
            tuple(NodeFacts(**facts) for facts in answer.get("facts", ())),
            answer.get("seconds", 0.0),
            request.precision if self.has_precision else MODEL_PRECISION,
            self._versions,
            remarks=(died,) if died else (),
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

    from ir_scatter.runners.arrays import type_name

    found = []
    for name, feed in feeds.items():
        array = np.asarray(feed)
        try:
            type_name(array)
        except KeyError:
            raise BadFeed(f"{name} is {array.dtype.name}, which no model has") from None
        found.append(array)
    return found
