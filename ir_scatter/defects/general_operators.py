"""General operators of new forms for which a device has no kernel. Defects are of scatter nodes alone."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ir_scatter.core.fragment import Fragment
from ir_scatter.defects.evidence import STAND_IN
from ir_scatter.ops.general import find, named


class MissingKernel(NamedTuple):
    """That a device compiles no node of a general operator in some element types.

    Attributes:
        operator: its type in OpenVINO.
        types: names of the element types of its first input.
        measured: the release and the device on which it was refused.
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
    )
}
"""By the long name of a runner without a number.

Measured in twelve element types: GatherND on the GPU plugin; GatherND, Gather, Transpose, Reshape, Convert,
Add, Multiply and Maximum on the CPU plugin, which has kernels for all of them. A missing row says nothing.
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
