"""What a machine says of itself: who it is, what can run there, and how far it is like others."""

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
from ir_scatter.jobs.wire import Refused, decode, encode
from ir_scatter.portability import cache_file, plain_name
from ir_scatter.runners.base import Availability
from ir_scatter.runners.openvino.runner import PREFIX, VIRTUAL_DEVICES
from ir_scatter.runners.releases.environments import THIS_PYTHON, installed
from ir_scatter.version import __version__, versions

ANNOUNCED = "ir-scatter"
"""What a worker's announcement stands under."""
OPERATION = "ir_scatter"
"""What it is asked."""

_INSTRUCTIONS = ("amx_int8", "amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "asimd")


@dataclass(frozen=True, slots=True)
class Machine:
    """One worker.

    Attributes:
        name: what stands before its runners, "lab-arc/openvino:GPU".
        host, system, cpu: of the computer.
        instructions: the sets that a CPU has, of those that kernels are chosen by.
        version: of this library.
        packages: the versions of others.
        slots: how many jobs it does at a time.
        devices: every runner, whether it can run there or not.
        releases: other releases that are installed there, "openvino@2025.4.0".
        fingerprint: of what `doctor` found there; "" if it did not run.
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
        """Tell whether a runner, without the name of a machine, can run there."""
        runtime, _, device = runner.partition(":")
        if "@" in runtime and not any(f"{one}.".startswith(f"{runtime}.") for one in self.releases):
            return False
        wanted = f"{PREFIX}CPU" if device.startswith(VIRTUAL_DEVICES) else plain_name(runner)
        return any(one.is_available and one.runner == wanted for one in self.devices)

    @property
    def runners(self) -> list[str]:
        return [one.runner for one in self.devices if one.is_available]

    @property
    def summary(self) -> str:
        packages = [
            f"{name} {self.packages[name]}" for name in ("openvino", "onnxruntime") if name in self.packages
        ]
        doctor = f"doctor {self.fingerprint}" if self.fingerprint else "doctor has not run"
        return ", ".join([self.cpu, " ".join(self.instructions[:1]), *packages, doctor])

    @property
    def kind(self) -> tuple[tuple[str, str], ...]:
        """What results may hang on, by words; machines of the same kind should give the same ones."""
        devices = [
            (one.runner, f"{one.full_name} {one.driver}".strip()) for one in self.devices if one.is_available
        ]
        about = [("system", self.system), ("CPU", self.cpu), ("instructions", " ".join(self.instructions))]
        packages = [(name, version) for name, version in self.packages.items() if name != "ir-scatter"]
        return (*about, *packages, *devices, ("doctor", self.fingerprint or "not run"))


def announcement(machine: Machine) -> dict[str, Any]:
    """Return what a worker says of its machine, for `announced`."""
    return {"version": machine.version, "machine": encode(machine)[0]}


def announced(told: Any) -> Machine:
    """Return the machine that a worker spoke of.

    Raises:
        Refused: it is of another release, or none of ours.
    """
    version = told.get("version") if isinstance(told, dict) else "none"
    if version != __version__:
        remedy = f"pip install ir-scatter=={__version__} there"
        raise Refused(f"has ir-scatter {version}, and here is {__version__}: {remedy}")
    found = decode(told.get("machine", b""))
    if not isinstance(found, Machine):
        raise Refused("says of itself what nobody understands")
    return found


def differences(first: Machine, second: Machine) -> list[str]:
    """Return what differs between two machines: "openvino 2026.4.1, 2025.4.0"."""
    here, there = dict(first.kind), dict(second.kind)
    names = dict.fromkeys((*here, *there))
    return [
        f"{name} {here.get(name, 'none')}, {there.get(name, 'none')}"
        for name in names
        if here.get(name) != there.get(name)
    ]


def groups(machines: Sequence[Machine]) -> list[list[Machine]]:
    """Return machines in groups of the same kind."""
    found: dict[object, list[Machine]] = {}
    for one in machines:
        found.setdefault(one.kind, []).append(one)
    return list(found.values())


def this_machine(name: str, slots: int) -> Machine:
    """Look at this machine: every runner runs a small model."""
    devices = tuple(runners.survey())
    used = {
        package: version for one in devices if one.is_available for package, version in one.versions.items()
    }
    cpu, flags = _processor()
    return Machine(
        name,
        platform.node(),
        f"{platform.system()} {platform.machine()}",
        cpu,
        tuple(one for one in _INSTRUCTIONS if one in flags),
        platform.python_version(),
        __version__,
        {**versions(), **used},
        slots,
        devices,
        tuple(str(one.release) for one in installed() if one.python == THIS_PYTHON),
        _fingerprint(devices),
    )


def _processor() -> tuple[str, set[str]]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:  # another system
        return platform.processor(), set()
    told = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())
    }
    flags = told.get("flags", "") or told.get("Features", "")
    return f"{told.get('model name') or platform.processor()}, {os.cpu_count()} processors", set(
        flags.split()
    )


def _fingerprint(devices: Sequence[Availability]) -> str:
    """Return twelve letters that are the same where doctor found the same of what is installed."""
    used = {(one.runner, version) for one in devices for version in one.versions.values()}
    rows = [one for one in read_rows(cache_file()) if (one.runner, one.release) in used]
    if not rows:
        return ""
    told = sorted((one.runner, one.release, sorted(one.results.items())) for one in rows)
    return sha256(json.dumps(told).encode()).hexdigest()[:12]
