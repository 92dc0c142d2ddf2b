"""Runs models in a process of its own, as a runtime may end it: `runtime_child.py NAME JOBS.json`.

A job is a model, an npz with its inputs in the order of the model, and where the outputs go. What
was done is said on standard output, one line of JSON for each job.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_Arrays = list[npt.NDArray[Any]]


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


def _onnxruntime() -> Callable[[str, _Arrays], _Arrays]:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)

    def run(model: str, inputs: _Arrays) -> _Arrays:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        names = [input.name for input in session.get_inputs()]
        found: _Arrays = session.run(None, dict(zip(names, inputs, strict=True)))
        return found

    return run


def _openvino() -> Callable[[str, _Arrays], _Arrays]:
    import openvino

    core = openvino.Core()

    def run(model: str, inputs: _Arrays) -> _Arrays:
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        found = compiled(dict(enumerate(inputs)))
        return [found[output] for output in compiled.outputs]

    return run


def _openvino_ir() -> Callable[[str, _Arrays], _Arrays]:
    """Save an ONNX model as an IR beside it first."""
    import openvino

    run_ir = _openvino()

    def run(model: str, inputs: _Arrays) -> _Arrays:
        path = Path(model).with_suffix(".xml")
        openvino.save_model(openvino.Core().read_model(model), path, compress_to_fp16=False)
        return run_ir(str(path), inputs)

    return run


if __name__ == "__main__":
    main(*sys.argv[1:])
