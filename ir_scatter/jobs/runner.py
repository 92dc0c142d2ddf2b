"""Runners on other machines: every run is sent to a machine as a job."""

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
    """A runner on a certain machine of a fleet, or on any machine that has it."""

    def __init__(self, fleet: Fleet, host: str, there: Runner) -> None:
        self._fleet, self._host, self._there = fleet, host, there
        self.name = f"{host}/{there.name}" if host else there.name
        self.device, self.formats, self.declines = there.device, there.formats, there.declines
        self.has_precision, self.packages, self.install = there.has_precision, there.packages, there.install
        self.is_default, self.emulates, self.folded_by = there.is_default, there.emulates, there.folded_by
        self.leaves_to = there.leaves_to
        self.is_virtual, self.issue_form = there.is_virtual, there.issue_form
        self.problem = ""

    @property
    def machines(self) -> list[Machine]:
        """The machines that may run models for this runner."""
        machines = (machine for machine in self._fleet.machines if self._host in {"", machine.name})
        return [machine for machine in machines if machine.offers(self._there.name)]

    @cached_property
    def about(self) -> Availability:
        """The description of the device on the first of the machines."""
        devices = [device for machine in self.machines for device in machine.devices]
        devices = [device for device in devices if device.runner == self._there.name]
        return replace(devices[0], runner=self.name) if devices else Availability(self.name, True)

    @property
    def versions(self) -> Mapping[str, str]:
        return self.about.versions

    @property
    def remarks(self) -> tuple[str, ...]:  # type: ignore[override]
        """Remarks on the device, and on the machine if the runner's name contains one."""
        of_machine = [f"on {machine.name}: {machine.summary}" for machine in self.machines if self._host]
        return (*self._there.remarks, *of_machine)

    def availability(self) -> Availability:
        return self.about

    def start(self) -> None:
        """Do nothing: the workers are running already."""

    def run(self, model_path: str | Path, feeds: Mapping[str, Array], **options: Any) -> Outcome:
        path = str(model_path)
        plain_options = {**options, "taps": tuple(options.get("taps", ()))}
        job = Job(RUN, (self._there.name, path, dict(feeds), plain_options), path)
        try:
            outcome, machine = self._send(job)
        except NotDone as error:
            return Outcome(self.name, Status.CRASHED, str(error), versions=self.versions)
        assert isinstance(outcome, Outcome)
        where = () if self._host or not machine else (f"computed on {machine}",)
        return replace(outcome, runner=self.name, remarks=(*outcome.remarks, *where))

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
        """Do nothing: other runners share the workers."""


class FleetRunners:
    """Resolves runner names on a fleet: "lab-arc/openvino:GPU", or "openvino:GPU" on any machine."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._made = fleet, dict[str, FleetRunner]()

    def find(self, name: str, also: Sequence[str] = ()) -> Runner:
        host, rest = split(name.strip())
        there = runners.find(rest, also)
        long = f"{host}/{there.name}" if host else there.name
        self._fleet.demand(long)
        return self._made.setdefault(long, FleetRunner(self._fleet, host, there))

    def known(self) -> list[str]:
        """Return the names of all runners of all machines."""
        return [f"{machine.name}/{runner}" for machine in self._fleet.machines for runner in machine.runners]
