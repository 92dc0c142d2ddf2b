"""General operators of new forms that a device does not compute right. Defects are of scatter nodes alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment
from ir_scatter.defects.evidence import STAND_IN
from ir_scatter.ops.general import find, named


class MissingKernel(NamedTuple):
    """That a device does not compute a general operator in some element types, or computes it wrong.

    Attributes:
        operator: its type in OpenVINO.
        types: names of the element types of its first input.
        measured: the release and the device on which it was refused or wrong.
    """

    operator: str
    types: frozenset[str]
    measured: str


MISSING_KERNELS: Mapping[str, tuple[MissingKernel, ...]] = {
    "openvino:GPU": (
        MissingKernel(
            "GatherND",
            frozenset({"u8", "i8", "boolean"}),
            "2026.4.1, GPU plugin on the CPU OpenCL runtime: no layout format available",
        ),
        MissingKernel(
            "Convert",
            frozenset({"u2", "f4e2m1"}),
            "2026.4.1, GPU plugin on the CPU OpenCL runtime: u2 is wrong, f4e2m1 is refused",
        ),
    ),
    "onnxruntime": (
        MissingKernel(
            "Convert",
            frozenset({"i4", "u4", "f4e2m1"}),
            "1.32.0, CPU: i4 and u4 around TensorScatter are wrong, f4e2m1 is refused",
        ),
    ),
}
"""By the long name of a runner without a number.

Measured in twelve element types: GatherND on the GPU plugin; GatherND, Gather, Transpose, Reshape, Convert,
Add, Multiply and Maximum on the CPU plugin, which has kernels for all of them. Convert was measured around
the probes of DEV303 and DEV404. A missing row says nothing.
"""

LARGEST_RANKS: Mapping[str, int] = {"openvino:GPU": 8}
"""The most dimensions that general operators of a device read right, by the long name of a runner.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: a Reshape of an input with 7 or 8 dimensions is
right, of one with 9 or 10 it is wrong without an error.
"""


def misread_inputs(scatters: Sequence[ScatterNode], runner: str) -> Iterator[str]:
    """Yield the inputs of a node that no new form reads right on a device: "updates of 10 dimensions".

    Constants are folded before the device sees them.
    """
    most = LARGEST_RANKS.get(runner.removesuffix(STAND_IN))
    for scatter in scatters if most is not None else ():
        for operand in scatter.operands():
            rank = 0 if operand.shape is None else len(operand.shape)
            if most is not None and rank > most and not scatter.is_constant(operand.value):
                yield f"{operand.port.name} of {rank} dimensions"


def missing_kernels(fragment: Fragment, runner: str) -> Iterator[str]:
    """Yield what a device has no kernel for: "GatherND of u8"."""
    rows = MISSING_KERNELS.get(runner.removesuffix(STAND_IN), ())
    for new in fragment.news:
        op, source = find(new.domain, new.type), new.inputs[0] if new.inputs else None
        type = None if source is None else source.element_type
        if op is None or type is None:
            continue
        for row in rows:
            if op is named(row.operator) and type.name in row.types:
                yield f"{row.operator} of {type.name}"
