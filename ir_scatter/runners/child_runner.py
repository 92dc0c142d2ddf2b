"""Runners that work in a process of their own, which is kept between runs.

One that runs OpenVINO in other surroundings is a subclass of `OpenVinoRunner` with an `environment`
and a `module` whose `main` prepares its process and then calls that of `openvino_child`.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ir_scatter.core.errors import BadFeed, UsageError
from ir_scatter.formats import IR, NAMES, ONNX_FORMAT, format_of
from ir_scatter.runners.ahead import Ahead
from ir_scatter.runners.outcome import OTHER_FORMAT, NodeFacts, Outcome, Status, Tap, Tapped
from ir_scatter.runners.runner import (
    MODEL_PRECISION,
    PRECISIONS,
    TAP_MEMORY,
    TIME_LIMIT,
    Availability,
    Runner,
)

if TYPE_CHECKING:
    from ir_scatter.core.tensors import Array
    from ir_scatter.runners.worker import Worker


class ChildRunner(Runner):
    """Asks a process that is kept between runs.

    Attributes:
        module: has the function `main`, which serves.
        packages: the distributions that it needs.
        install: what installs them.
        remarks: what must be known to judge its results.
        has_precision: whether a precision can be asked for.
        questions_per_process: after how many of them a new process takes over.
        can_prepare: whether its process can make a model ready that it has no inputs for yet.
        formats: of the files that it reads.
    """

    module: str
    packages: tuple[str, ...]
    install: str
    remarks: tuple[str, ...] = ()
    has_precision: bool = False
    questions_per_process: int | None = None
    can_prepare: bool = False
    formats: tuple[str, ...] = (IR, ONNX_FORMAT)
    _ahead: Ahead | None = None

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

    def full_name(self, told: str) -> str:
        """Return the full name of the device, from that which the runtime tells."""
        return told

    def remedy(self, reason: str) -> str:
        """Return what to install when something is missing."""
        return self.install

    @cached_property
    def worker(self) -> "Worker":
        """Return what holds the process."""
        from ir_scatter.runners.worker import Worker

        return Worker(self.module, self.environment, self.questions_per_process)

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
            full_name=self.full_name(answer.get("full_name", "")),
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
        if not self._problem and not self._reads(model_path):
            known = " and ".join(NAMES[format] for format in self.formats)
            found = NAMES[format_of(os.fspath(model_path))]
            refusal = {"status": Status.UNSUPPORTED, "message": f"the file is {found}, expected {known}"}
            return replace(self._outcome(refusal, [], (), feeds, precision), reason=OTHER_FORMAT)
        ahead = self._answer_ahead(model_path, precision)
        if ahead.get("status", Status.OK) != Status.OK:
            return self._outcome(ahead, [], (), feeds, precision)
        question = {
            "do": "run",
            "model": os.path.abspath(model_path),
            "feeds": list(feeds),
            "taps": [[tap.scope, tap.output, tap.types, tap.shapes, tap.callers] for tap in taps],
            "precision": precision,
            "repeat": max(repeat, 1),
            "profile": profile,
            "tap_memory": tap_memory,
            "part": 0,
        }
        answer, arrays = self._ask(question, _checked(feeds), timeout)
        answer["seconds"] = answer.get("seconds", 0.0) + ahead.get("seconds", 0.0)
        if "died" in ahead:  # while it was made ready
            answer.setdefault("died", ahead["died"])
        made = len(answer.get("tapped", ()))
        first = self._outcome(answer, arrays, taps[:made], feeds, precision)
        if first.status is not Status.OK or not taps:
            return first
        return self._rest(first, answer["too_large"], question, taps, feeds, timeout)

    def _rest(
        self,
        first: Outcome,
        too_large: int,
        question: dict[str, Any],
        taps: Sequence[Tap],
        feeds: "Mapping[str, Array]",
        timeout: float,
    ) -> Outcome:
        """Ask for the taps that the first answer has no room for, until all are there."""
        found, remarks, seconds = list(first.tapped), dict.fromkeys(first.remarks), first.seconds
        large = {found[0].tap.scope: too_large} if too_large else {}
        while len(found) < len(taps):
            rest = taps[len(found) :]
            more = {"taps": question["taps"][len(found) :], "part": len(found), "repeat": 1}
            answer, arrays = self._ask({**question, **more}, _checked(feeds), timeout)
            made = len(answer.get("tapped", ()))
            part = self._outcome(answer, arrays, rest[:made], feeds, first.precision)
            if part.status is not Status.OK:
                reason = f"the run with taps: {part.status} {part.message}".rstrip()
                part = replace(part, tapped=tuple(Tapped(tap, problem=reason) for tap in rest))
            elif answer["too_large"]:
                large[rest[0].scope] = answer["too_large"]
            found += part.tapped
            remarks |= dict.fromkeys(part.remarks)
            seconds += part.seconds
        if large:
            limit = f"more than --tap-memory allows ({question['tap_memory']})"
            remarks[f"tapping {', '.join(large)} takes up to {max(large.values())} bytes, {limit}"] = None
        return replace(first, tapped=tuple(found), remarks=tuple(remarks), seconds=seconds)

    def prepare(
        self, model_path: "str | Path", *, precision: str = "f32", timeout: float = TIME_LIMIT
    ) -> None:
        """Begin to read and compile a model; see `Runner.prepare`."""
        if not self.can_prepare or self._problem or self._ahead is not None:
            return
        path = os.path.abspath(model_path)
        question = {"do": "prepare", "model": path, "precision": precision, "profile": True}
        self._ahead = Ahead((path, precision), lambda: self._ask(question, (), timeout)[0])

    def close(self) -> None:
        """End the process."""
        ahead, self._ahead = self._ahead, None
        if "worker" in self.__dict__:
            self.worker.close()
            if ahead is not None:
                ahead.stop(self.worker.close)

    def _answer_ahead(self, model_path: "str | Path", precision: str) -> dict[str, Any]:
        """Return what came of making this model ready, once; nothing if that was not asked for."""
        ahead, self._ahead = self._ahead, None
        answer = None if ahead is None else ahead.wait()
        is_this = ahead is not None and ahead.about == (os.path.abspath(model_path), precision)
        return answer if is_this and answer is not None else {}

    def _reads(self, model_path: "str | Path") -> bool:
        """Tell whether a file is of a format that the runtime reads."""
        return len(self.formats) == len(NAMES) or format_of(os.fspath(model_path)) in self.formats

    @cached_property
    def _problem(self) -> str:
        return self.problem()

    @cached_property
    def _versions(self) -> Mapping[str, str]:
        return self.versions()

    def _ask(
        self, question: Mapping[str, Any], arrays: "Sequence[Array]", timeout: float
    ) -> "tuple[dict[str, Any], list[Array]]":
        from ir_scatter.runners.worker import Stopped

        if self._problem:
            return {"status": Status.UNAVAILABLE, "message": self._problem}, []
        try:
            answer, found = self.worker.ask({**self.options(), **question}, arrays, timeout)
        except Stopped as stopped:
            return {"status": stopped.status, "message": stopped.message}, []
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
            self._versions,
            remarks=tuple(_remarks(answer)),
        )


def _remarks(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield what else there is to say of a run."""
    if "died" in answer:
        yield f"{answer['died']}, after other work; a new one was started and did it"


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
