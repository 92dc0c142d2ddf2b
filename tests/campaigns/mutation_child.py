"""A process that looks at many files: with this library, or with onnxruntime; one line for each."""

import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

SECONDS = 30
_MEMORY = 6 << 30


def ours(path: str) -> dict[str, Any]:
    """Read, validate, inspect and convert a file."""
    import ir_scatter
    from ir_scatter.core.errors import Error
    from ir_scatter.core.files import Source
    from ir_scatter.inspect import inspect
    from ir_scatter.lint import Options, check_file

    checked = check_file(Source(path), Options())
    assert not checked.bug, checked.bug
    result = checked.result
    assert result is not None
    if not result.is_readable:
        return {"readable": False, "nodes": 0, "errors": [one.code for one in result.diagnostics]}
    model = ir_scatter.read(path)
    inspect(model)
    for target in (None, "ScatterND", "ScatterElements"):
        try:
            ir_scatter.convert(model, target, verify=1).diff()
        except Error:
            continue
    errors = [one.code for one in result.diagnostics if one.severity.name == "ERROR"]
    return {"readable": True, "nodes": result.scatter_nodes, "errors": errors}


def theirs(path: str) -> dict[str, Any]:
    """Open a file with onnxruntime, and run it where all inputs have a small and known shape."""
    import numpy as np
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"opened": False, "said": str(error)}
    types = {"float": "f4", "int64": "i8", "int32": "i4", "double": "f8", "float16": "f2", "bool": "?"}
    inputs = onnx.load(path, load_external_data=False).graph.input
    known = {one.name for one in inputs if one.type.tensor_type.HasField("shape")}
    feeds = {}
    for one in session.get_inputs():
        kind, shape = types.get(one.type[7:-1]), one.shape
        if (
            kind is None
            or one.name not in known
            or not all(isinstance(size, int) for size in shape)
            or np.prod(shape, dtype=float) > 1e6
        ):
            return {"opened": True, "ran": None, "said": ""}
        feeds[one.name] = np.zeros(shape, kind)
    try:
        session.run(None, feeds)
    except Exception as error:
        return {"opened": True, "ran": False, "said": str(error)}
    return {"opened": True, "ran": True, "said": ""}


def main() -> None:
    """Answer for each path on standard input."""
    look = {"ours": ours, "theirs": theirs}[sys.argv[1]]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    for line in sys.stdin:
        signal.alarm(SECONDS)  # whoever hangs dies, which the parent sees
        path = line.rstrip("\n")
        try:
            answer = look(path)
        except BaseException:
            answer = {"bug": traceback.format_exc()}
        signal.alarm(0)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    assert Path(__file__).exists()
    main()
