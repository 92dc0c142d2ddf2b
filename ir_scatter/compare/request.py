"""Who is asked: runners by the names that users write, and which of them count as missing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ir_scatter import runners
from ir_scatter.compare.voices import NUMPY
from ir_scatter.formats import IR

if TYPE_CHECKING:
    from ir_scatter.runners.base import Availability, Runner

_DEVICE = "openvino:"
_BY_NAME_ONLY = frozenset({"openvino:fold", "openvino:GPU@cpu", "onnx-reference"})
"""Voices that are no devices, or stand in for one."""


@dataclass(frozen=True, slots=True, eq=False)
class Voices:
    """Who is asked.

    Attributes:
        runners: in the order in which they were named.
        with_numpy: whether the evaluator is one of them.
        skipped: runners that cannot run here, and why; they are passed over.
    """

    runners: "tuple[Runner, ...]"
    with_numpy: bool
    skipped: tuple[tuple[str, str], ...] = ()


def find_voices(names: Sequence[str], *, format: str | None = None, skip_missing: bool = False) -> Voices:
    """Return who is asked.

    Without names that is NumPy and everything found here that takes the model: OpenVINO's devices,
    and onnxruntime for ONNX.

    Args:
        names: long or short, "CPU", "openvino:CPU", "numpy".
        format: of the model; None if there are several.
        skip_missing: pass over runners that cannot run here.

    Raises:
        UsageError: there is no runner of a name.
    """
    if not names:
        return _everything(format)
    kept: dict[str, Runner] = {}
    skipped = []
    for name in names:
        if name.strip().lower() == NUMPY:
            continue
        runner = runners.find(name, (NUMPY,))
        if skip_missing:
            availability = runner.availability()
            if not availability.is_available:
                skipped.append((runner.name, _reason(availability)))
                continue
        kept[runner.name] = runner
    with_numpy = any(name.strip().lower() == NUMPY for name in names)
    return Voices(tuple(kept.values()), with_numpy, tuple(skipped))


def _everything(format: str | None) -> Voices:
    found, skipped = [], []
    for name in runners.known():
        if name in _BY_NAME_ONLY or (not name.startswith(_DEVICE) and format == IR):
            continue
        runner = runners.find(name)
        availability = runner.availability()
        if availability.is_available:
            found.append(runner)
        else:
            skipped.append((name, _reason(availability)))
    return replace(Voices(tuple(found), True), skipped=tuple(skipped))


def _reason(availability: "Availability") -> str:
    return "; ".join(part for part in (availability.reason, availability.remedy) if part)


def survey() -> "list[Availability]":
    """Return of every known voice whether it can run here: NumPy first."""
    from ir_scatter.runners.base import Availability
    from ir_scatter.version import versions

    numpy = Availability(
        NUMPY,
        is_available=True,
        full_name="the evaluator of ir-scatter: what the documents say",
        default_precision="model",
        versions={name: version for name, version in versions().items() if name in {"ir-scatter", "numpy"}},
    )
    return [numpy, *runners.survey()]
