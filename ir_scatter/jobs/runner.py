"""Runners of other machines: what a runner is asked goes there as a job."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ir_scatter import runners
from ir_scatter.core.arrays import Array
from ir_scatter.jobs import Job, NotDone
from ir_scatter.jobs.fleet import Fleet, split
from ir_scatter.jobs.machine import Machine
from ir_scatter.jobs.model_runs import RUN, STREAM
from ir_scatter.runners.base import Availability, Outcome, Runner, Status, Streamed


class FleetRunner(Runner):
    """A runner of a machine, or of any that has it."""

    def __init__(self, fleet: Fleet, host: str, there: Runner) -> None:
        self._fleet, self._host, self._there = fleet, host, there
        self.name = f"{host}/{there.name}" if host else there.name
        self.device, self.formats, self.declines = there.device, there.formats, there.declines
        self.has_precision, self.packages, self.install = there.has_precision, there.packages, there.install
        self.is_default = there.is_default
        self.problem = ""

    @property
    def machines(self) -> list[Machine]:
        """Those that can be meant."""
        found = (one for one in self._fleet.machines if self._host in {"", one.name})
        return [one for one in found if one.offers(self._there.name)]

    @cached_property
    def about(self) -> Availability:
        """What the first of the machines says of the device."""
        told = [
            device for one in self.machines for device in one.devices if device.runner == self._there.name
        ]
        return replace(told[0], runner=self.name) if told else Availability(self.name, True)

    @property
    def versions(self) -> Mapping[str, str]:
        return self.about.versions

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """What is to be known of the device, and of the machine if one is named."""
        of_machine = [f"on {one.name}: {one.summary}" for one in self.machines if self._host]
        return (*self._there.remarks, *of_machine)

    def availability(self) -> Availability:
        return self.about

    def start(self) -> None:
        """Nothing waits to be started here."""

    def run(self, model_path: str | Path, feeds: Mapping[str, Array], **options: Any) -> Outcome:
        path = str(model_path)
        given = {**options, "taps": tuple(options.get("taps", ()))}
        try:
            found, machine = self._send(Job(RUN, (self._there.name, path, dict(feeds), given), path))
        except NotDone as error:
            return Outcome(self.name, Status.CRASHED, str(error), versions=self.versions)
        assert isinstance(found, Outcome)
        where = () if self._host or not machine else (f"computed on {machine}",)
        return replace(found, runner=self.name, remarks=(*found.remarks, *where))

    def stream(
        self, model_path: str | Path, feeds: Sequence[Mapping[str, Array]], **options: Any
    ) -> list[Streamed]:
        path = str(model_path)
        try:
            return list(self._send(Job(STREAM, (self._there.name, path, list(feeds), options), path))[0])
        except NotDone as error:
            return [Streamed(Status.CRASHED, message=str(error)) for _ in feeds]

    def _send(self, job: Job) -> tuple[Any, str]:
        future = self._fleet.submit(job._replace(machine=self._host), (self._there.name,))
        return future.result(), future.machine

    def close(self) -> None:
        """Its processes are for others, too."""


class FleetRunners:
    """Names of runners mean those of a fleet: "lab-arc/openvino:GPU", or "openvino:GPU" of any machine."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._made = fleet, dict[str, FleetRunner]()

    def find(self, name: str, also: Sequence[str]) -> Runner:
        host, rest = split(name.strip())
        there = runners.find_here(rest, also)
        long = f"{host}/{there.name}" if host else there.name
        self._fleet.demand(long)
        return self._made.setdefault(long, FleetRunner(self._fleet, host, there))

    def known(self) -> list[str]:
        """Return every runner of every machine."""
        return [f"{one.name}/{runner}" for one in self._fleet.machines for runner in one.runners]
