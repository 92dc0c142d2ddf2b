"""General operators of new forms that a device does not compute right. Defects are of scatter nodes alone."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

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
