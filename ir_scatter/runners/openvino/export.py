"""An ONNX model as OpenVINO reads it, written as an IR."""

import json
import sys
from typing import Any

from ir_scatter.runners.child import ask
from ir_scatter.runners.openvino.messages import sentence


def export(source: str, target: str) -> str:
    """Read a model with OpenVINO and write it as an IR with all of its precision.

    Args:
        source: the `.onnx`.
        target: the `.xml`; the `.bin` is written beside it.

    Returns:
        Why that does not work, "" if it does.
    """
    answer, problem = ask(__name__, {"source": source, "target": target})
    return problem if answer is None else str(answer["problem"])


def _answer(question: dict[str, Any]) -> dict[str, str]:
    """Read and write; runs in the child process."""
    import openvino

    try:
        model = openvino.Core().read_model(question["source"])
        openvino.save_model(model, question["target"], compress_to_fp16=False)
    except Exception as error:  # whatever the runtime says is the answer
        return {"problem": sentence(error)}
    return {"problem": ""}


if __name__ == "__main__":
    json.dump(_answer(json.load(sys.stdin)), sys.stdout)
