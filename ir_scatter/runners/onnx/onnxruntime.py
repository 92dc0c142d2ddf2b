"""onnxruntime on the processor, with its graph optimizations as they are by default."""

from ir_scatter.formats.base import ONNX_FORMAT
from ir_scatter.runners.child_runner import ChildRunner
from ir_scatter.runners.runner import Family, Runner

NAME = "onnxruntime"


class OnnxRuntimeRunner(ChildRunner):
    """The provider for processors."""

    name = NAME
    module = "ir_scatter.runners.onnx.onnxruntime_child"
    packages = ("onnxruntime",)
    install = "pip install onnxruntime"
    formats = (ONNX_FORMAT,)


def _make(name: str) -> Runner | None:
    return OnnxRuntimeRunner() if name == NAME else None


FAMILY = Family((NAME,), _make, 30)
