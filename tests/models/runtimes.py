"""What a runtime computes for some models, in a process of its own, as it may end that.

This file is that process as well: `runtimes.py NAME JOBS.json`. A job is a model, an npz with its inputs in
the order of the model, and where the outputs go; each is answered by one line of JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Sequence[Array]


@dataclass(frozen=True)
class Outcome:
    """The outputs of a model in its order, or why there are none."""

    outputs: list[Array]
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
        [sys.executable, __file__, runtime, file], capture_output=True, timeout=timeout, check=False
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {
        name: Outcome([], line["error"]) if line["error"] else Outcome(_load(job["outputs"]))
        for name, job, line in zip(jobs, listed, lines, strict=False)
    }


def _load(path: str) -> list[Array]:
    with np.load(path) as archive:
        return [archive[name] for name in archive.files]


def main(runtime: str, jobs: str) -> None:
    """Do all jobs, one after the other."""
    runtimes = {"onnxruntime": _onnxruntime, "openvino": _openvino, "openvino_ir": _openvino_ir}
    run = runtimes[runtime]()
    for job in json.loads(Path(jobs).read_text()):
        with np.load(job["inputs"]) as archive:
            inputs = [archive[name] for name in archive.files]
        try:
            outputs = run(job["model"], inputs)
        except Exception as error:
            line = {"error": str(error)}
        else:
            np.savez(job["outputs"], *outputs)
            line = {"error": ""}
        print(json.dumps(line), flush=True)


def _onnxruntime() -> Callable[[str, list[Array]], list[Array]]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)

    def run(model: str, inputs: list[Array]) -> list[Array]:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [input.name for input in session.get_inputs()]
        found: list[Array] = session.run(None, dict(zip(names, inputs, strict=True)))
        return found

    return run


def _openvino() -> Callable[[str, list[Array]], list[Array]]:
    import openvino

    core = openvino.Core()

    def run(model: str, inputs: list[Array]) -> list[Array]:
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = compiled(dict(enumerate(inputs)))
        return [found[output] for output in compiled.outputs]

    return run


def _openvino_ir() -> Callable[[str, list[Array]], list[Array]]:
    """Save an ONNX model as an IR beside it first."""
    import openvino

    run_ir = _openvino()

    def run(model: str, inputs: list[Array]) -> list[Array]:
        path = Path(model).with_suffix(".xml")
        openvino.save_model(openvino.Core().read_model(model), path, compress_to_fp16=False)
        return run_ir(str(path), inputs)

    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
