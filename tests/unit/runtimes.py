"""What a runtime computes for some models."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_CHILD = Path(__file__).with_name("runtime_child.py")

Arrays = Sequence[npt.NDArray[Any]]


@dataclass(frozen=True)
class Outcome:
    """The outputs of a model in its order, or why there are none."""

    outputs: list[npt.NDArray[Any]]
    error: str = ""


def run_all(
    runtime: str, jobs: Mapping[str, tuple[Path, Arrays]], folder: Path, timeout: float = 120
) -> dict[str, Outcome]:
    """Run models in one child process; a job that ends the process is left behind by a new one."""
    found: dict[str, Outcome] = {}
    rest = list(jobs)
    while rest:
        done = _run(runtime, {name: jobs[name] for name in rest}, folder, timeout)
        found |= done
        rest = rest[len(done) :]
        if rest:
            found[rest[0]] = Outcome([], "the process ended")
            rest = rest[1:]
    return found


def _run(
    runtime: str, jobs: Mapping[str, tuple[Path, Arrays]], folder: Path, timeout: float
) -> dict[str, Outcome]:
    listed = []
    for number, (model, inputs) in enumerate(jobs.values()):
        archive = folder / f"{runtime}-{number}-inputs.npz"
        np.savez(archive, *inputs)
        outputs = folder / f"{runtime}-{number}-outputs.npz"
        listed.append({"model": str(model), "inputs": str(archive), "outputs": str(outputs)})
    file = folder / f"{runtime}-jobs.json"
    file.write_text(json.dumps(listed))
    done = subprocess.run(
        [sys.executable, _CHILD, runtime, file], capture_output=True, timeout=timeout, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {
        name: Outcome([], line["error"]) if line["error"] else Outcome(_load(job["outputs"]))
        for name, job, line in zip(jobs, listed, lines, strict=False)
    }


def _load(path: str) -> list[npt.NDArray[Any]]:
    with np.load(path) as archive:
        return [archive[name] for name in archive.files]
