"""Describes machines of a fleet: name, hardware, runners, and the differences of two machines."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from ir_scatter import runners
from ir_scatter.defects.evidence import read_rows
from ir_scatter.jobs.wire import RequestRefused, decode, encode
from ir_scatter.portability import cache_file
from ir_scatter.runners.base import Availability, plain_name
from ir_scatter.runners.releases.environments import THIS_PYTHON, installed
from ir_scatter.version import __version__, versions

ANNOUNCED = "ir-scatter"
"""The key under which a worker announces its machine, in Dask's startup information."""
OPERATION = "ir_scatter"
"""The name of the Dask operation by which workers receive our requests."""

_INSTRUCTIONS = ("amx_int8", "amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "asimd")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that runs jobs (one Dask worker).

    Attributes:
        name: the prefix of its runners, as in "lab-arc/openvino:GPU".
        host: the name of the computer.
        system: operating system and architecture.
        cpu: the processor.
        instructions: instruction sets of the CPU, only those by which runtimes choose kernels.
        version: the version of this library.
        packages: the versions of other packages.
        slots: number of jobs that run at the same time.
        devices: all runners, including those that cannot run there.
        releases: other releases that are installed there, "openvino@2025.4.0".
        fingerprint: hash of the results of `doctor` there; "" if it did not run.
    """

    name: str
    host: str
    system: str
    cpu: str
    instructions: tuple[str, ...]
    python: str
    version: str
    packages: Mapping[str, str]
    slots: int
    devices: tuple[Availability, ...]
    releases: tuple[str, ...] = ()
    fingerprint: str = ""

    def offers(self, runner: str) -> bool:
        """Return whether a runner, named without a machine, can run here: "openvino:GPU"."""
        runtime = runner.partition(":")[0]
        if "@" in runtime and not any(f"{release}.".startswith(f"{runtime}.") for release in self.releases):
            return False
        name = runners.find(plain_name(runner)).listed_name
        return any(device.is_available and device.runner == name for device in self.devices)

    @property
    def runners(self) -> list[str]:
        return [device.runner for device in self.devices if device.is_available]

    @property
    def summary(self) -> str:
        packages = [f"{name} {self.packages[name]}" for name in runners.packages() if name in self.packages]
        doctor = f"doctor {self.fingerprint}" if self.fingerprint else "doctor has not run"
        return ", ".join([self.cpu, " ".join(self.instructions[:1]), *packages, doctor])

    @property
    def kind(self) -> tuple[tuple[str, str], ...]:
        """(name, value) pairs of all properties that results may depend on.

        Machines with equal pairs should give equal results.
        """
        devices = [
            (device.runner, f"{device.full_name} {device.driver}".strip())
            for device in self.devices
            if device.is_available
        ]
        about = [("system", self.system), ("CPU", self.cpu), ("instructions", " ".join(self.instructions))]
        packages = [(name, version) for name, version in self.packages.items() if name != "ir-scatter"]
        return (*about, *packages, *devices, ("doctor", self.fingerprint or "not run"))


def announcement(machine: Machine) -> dict[str, Any]:
    """Convert the description of a machine to plain data, for `read_announcement`."""
    return {"version": machine.version, "machine": encode(machine)[0]}


def read_announcement(message: Any) -> Machine:
    """Return the machine that a worker announced.

    Raises:
        RequestRefused: the worker has another release of this library, or belongs to another program.
    """
    version = message.get("version") if isinstance(message, dict) else "none"
    if version != __version__:
        remedy = f"pip install ir-scatter=={__version__} there"
        raise RequestRefused(f"has ir-scatter {version}, this machine has {__version__}: {remedy}")
    machine = decode(message.get("machine", b""))
    if not isinstance(machine, Machine):
        raise RequestRefused("sent a description that is not a machine")
    return machine


def differences(first: Machine, second: Machine) -> list[str]:
    """Return the differences of two machines as texts: "openvino 2026.4.1, 2025.4.0"."""
    here, there = dict(first.kind), dict(second.kind)
    names = dict.fromkeys((*here, *there))
    return [
        f"{name} {here.get(name, 'none')}, {there.get(name, 'none')}"
        for name in names
        if here.get(name) != there.get(name)
    ]


def groups(machines: Sequence[Machine]) -> list[list[Machine]]:
    """Group machines of the same kind."""
    by_kind: dict[object, list[Machine]] = {}
    for machine in machines:
        by_kind.setdefault(machine.kind, []).append(machine)
    return list(by_kind.values())


def this_machine(name: str, slots: int) -> Machine:
    """Describe this machine; every runner runs a small model, to find out whether it works here."""
    devices = tuple(runners.survey())
    used = {
        package: version
        for device in devices
        if device.is_available
        for package, version in device.versions.items()
    }
    cpu, flags = _processor()
    return Machine(
        name,
        platform.node(),
        f"{platform.system()} {platform.machine()}",
        cpu,
        tuple(instruction for instruction in _INSTRUCTIONS if instruction in flags),
        platform.python_version(),
        __version__,
        {**versions(), **used},
        slots,
        devices,
        tuple(str(row.release) for row in installed() if row.python == THIS_PYTHON),
        _fingerprint(devices),
    )


def _processor() -> tuple[str, set[str]]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # not Linux
        return platform.processor(), set()
    fields = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())
    }
    flags = fields.get("flags", "") or fields.get("Features", "")
    name = fields.get("model name") or platform.processor()
    return f"{name}, {os.cpu_count()} processors", set(flags.split())


def _fingerprint(devices: Sequence[Availability]) -> str:
    """Return twelve characters, equal on two machines if `doctor` found the same on both."""
    used = {(device.runner, version) for device in devices for version in device.versions.values()}
    rows = [row for row in read_rows(cache_file()) if (row.runner, row.release) in used]
    if not rows:
        return ""
    results = sorted((row.runner, row.release, sorted(row.results.items())) for row in rows)
    return sha256(json.dumps(results).encode()).hexdigest()[:12]
