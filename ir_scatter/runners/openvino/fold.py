"""OpenVINO's constant folding: the second implementation of its operators."""

from ir_scatter.runners.child_runner import ChildRunner
from ir_scatter.runners.openvino.device import PREFIX
from ir_scatter.runners.runner import Family, Runner

NAME = f"{PREFIX}fold"


class FoldRunner(ChildRunner):
    """Feeds a model with constants, and lets the pass ConstantFolding compute it."""

    name = NAME
    module = "ir_scatter.runners.openvino.fold_child"
    packages = ("openvino",)
    install = "pip install openvino"
    remarks = ("It computes in the types of the model, and not every operator.",)


def _make(name: str) -> Runner | None:
    return FoldRunner() if name == NAME else None


FAMILY = Family((NAME,), _make, 20)
