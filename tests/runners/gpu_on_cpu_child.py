"""Runs single operators with OpenVINO's GPU plugin on the CPU OpenCL runtime, in a process of its own.

    python gpu_on_cpu_child.py FOLDER

The folder has a `NUMBER.npz` for each case: arrays by role, and in `told`, as JSON, the operator, its axis
and its attributes. Beside it comes a `NUMBER.out.npz` with `output` or `error`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.runners import gpu_on_cpu


def _factories() -> dict[str, Any]:
    from openvino import opset3, opset4, opset12, opset15

    return {
        "ScatterUpdate-3": opset3.scatter_update,
        "ScatterElementsUpdate-3": opset3.scatter_elements_update,
        "ScatterElementsUpdate-12": opset12.scatter_elements_update,
        "ScatterNDUpdate-3": opset4.scatter_nd_update,
        "ScatterNDUpdate-15": opset15.scatter_nd_update,
        "MatMul-1": lambda *inputs: opset3.matmul(*inputs, False, False),
        "NonZero-3": lambda data: opset3.non_zero(data, "i32"),
        "Convolution-1": lambda *inputs: opset3.convolution(*inputs, [1, 1], [0, 0], [0, 0], [1, 1]),
    }


def _run(core: Any, case: dict[str, Any]) -> Any:
    from openvino import Model, opset3

    told = json.loads(str(case.pop("told")))
    arrays = list(case.values())
    parameters = [opset3.parameter(array.shape, array.dtype) for array in arrays]
    axis = [] if told["axis"] is None else [opset3.constant(np.int32(told["axis"]))]
    node = _factories()[told["operator"]](*parameters, *axis, **told["attributes"])
    model = Model([node], parameters)
    compiled = core.compile_model(model, "GPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return compiled(arrays)[0]


def _main(folder: Path) -> None:
    gpu_on_cpu.prepare()
    import openvino

    core = openvino.Core()
    name = core.get_property("GPU", "FULL_DEVICE_NAME")
    (folder / "devices.json").write_text(json.dumps([name, core.available_devices]))
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as archive:
            case = dict(archive)
        try:
            found = {"output": _run(core, case)}
        except Exception as error:
            found = {"error": np.array(str(error))}
        np.savez(path.with_suffix(".out.npz"), **found)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
