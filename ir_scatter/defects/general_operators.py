"""General operators that `convert` writes and that a device refuses or computes wrong."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.shapes import element_count
from ir_scatter.ops.general import find, named


class MissingKernel(NamedTuple):
    """A general operator that a device refuses or computes wrong for inputs of some element types.

    Attributes:
        operator: its type in OpenVINO.
        types: names of the element types of an input.
        measured: the release and the device on which it was refused or wrong.
        input: the number of that input: Select chooses from inputs after its condition.
        least_rank: the least rank of the result for which that holds.
    """

    operator: str
    types: frozenset[str]
    measured: str
    input: int = 0
    least_rank: int = 0


_IN_ONNXRUNTIME = "1.32.0, CPU: NOT_IMPLEMENTED when a model of this node alone is loaded, opsets 13, 18, 25"
_SMALL_TYPES = frozenset({"f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "i4", "u4"})
"""Types that the ONNX specification excludes for most operators: a model with one of them is invalid."""

_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "FloorMod", "Equal", "Less", "Negative")
_MOVING = ("Broadcast", "Concat", "Gather", "GatherElements", "GatherND", "Slice")

_ONNXRUNTIME: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_MOVING, _SMALL_TYPES),
    **dict.fromkeys(_ARITHMETIC, _SMALL_TYPES | {"bf16"}),
    "Broadcast": _SMALL_TYPES | {"bf16"},
    "Minimum": _SMALL_TYPES | {"bf16", "i16", "u16"},
    "Maximum": _SMALL_TYPES | {"bf16", "i16", "u16"},
    "NonZero": _SMALL_TYPES | {"bf16", "f64", "i8", "i16", "u16", "u32", "u64", "string"},
    "ReduceProd": _SMALL_TYPES | {"bf16", "u32", "u64"},
    "ReduceSum": _SMALL_TYPES | {"bf16", "u32", "u64"},
    "Reshape": frozenset({"f4e2m1", "f8e8m0", "i4", "u4"}),
    "Transpose": frozenset({"f4e2m1", "f8e8m0"}),
    "Unsqueeze": _SMALL_TYPES,
}
"""Element types that onnxruntime refuses, by general operator that rewrites write."""

_ON_CPU = (
    "2026.4.1, CPU: a model of this node alone is not compiled, or wrong, static or dynamic, of any rank"
)
_FLOATS_OF_8_BITS = frozenset({"f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"})
_VIEWS = ("Reshape", "Unsqueeze", "Broadcast", "Slice", "Transpose", "Gather", "GatherND", "GatherElements")
_EXTREMES = ("Minimum", "Maximum")

_CPU: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*_VIEWS, "ShapeOf"), frozenset({"u1"})),
    **dict.fromkeys((*_ARITHMETIC, *_EXTREMES), _FLOATS_OF_8_BITS | {"u1", "u2"}),
    **dict.fromkeys(("Equal", "Less"), _FLOATS_OF_8_BITS | {"u1", "u2", "string"}),
    **dict.fromkeys(("Broadcast", "Transpose"), frozenset({"u1", "u2", "f4e2m1"})),
    **dict.fromkeys(("GatherND", "GatherElements"), frozenset({"u1", "string"})),
    **dict.fromkeys(("ReduceSum", "ReduceProd"), frozenset({"u1", "u2", "string"})),
    "Broadcast": frozenset({"u1", "u2", "f4e2m1", "string"}),
    "Concat": frozenset({"u1", "u2", "f4e2m1"}),
    "Convert": frozenset({"u1", "string"}),
    "NonZero": _FLOATS_OF_8_BITS | {"u1", "u2", "string"},
    "Negative": _FLOATS_OF_8_BITS | {"u1", "u2", "u4", "u8", "u16", "u32", "u64"},
}
"""Element types that OpenVINO's CPU plugin refuses for general operators, or computes wrong."""

_ON_GPU = (
    "2026.4.1, GPU plugin on the CPU OpenCL runtime: a model of this node alone is not compiled, or wrong"
)
_RARE_ON_GPU = frozenset({"u2", "f8e4m3", "f4e2m1"})
_USUAL = frozenset({"f32", "f16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "boolean"})

_GPU: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*_ARITHMETIC, *_EXTREMES, "Broadcast", "Slice"), _RARE_ON_GPU),
    **dict.fromkeys(("Transpose", "GatherElements", "ReduceSum", "ReduceProd"), _RARE_ON_GPU),
    **dict.fromkeys(("Reshape", "Unsqueeze", "Gather"), frozenset({"f4e2m1", "string"})),
    "Concat": _RARE_ON_GPU | {"string"},
    "Convert": frozenset({"u2", "f4e2m1", "string"}),
    "GatherND": _RARE_ON_GPU | {"i8", "u8", "boolean", "i4", "u4"},
    "FloorMod": _RARE_ON_GPU | {"i8", "i16", "i32", "i64"},
    "Negative": _RARE_ON_GPU | {"u4", "u8", "u16", "u32", "u64"},
}
"""The same of OpenVINO's GPU plugin."""

MISSING_KERNELS: Mapping[str, tuple[MissingKernel, ...]] = {
    "openvino:GPU": (
        *(MissingKernel(operator, types, _ON_GPU) for operator, types in _GPU.items()),
        MissingKernel("Select", _RARE_ON_GPU, _ON_GPU, input=1),
        MissingKernel("Select", _USUAL, _ON_GPU, input=1, least_rank=6),
        MissingKernel("Broadcast", _USUAL, _ON_GPU, least_rank=7),
        MissingKernel("NonZero", _USUAL | _RARE_ON_GPU | {"f64", "bf16", "i4", "u4"}, _ON_GPU),
    ),
    "openvino:CPU": (
        *(MissingKernel(operator, types, _ON_CPU) for operator, types in _CPU.items()),
        MissingKernel("Select", _FLOATS_OF_8_BITS | {"u1", "u2", "string"}, _ON_CPU, input=1),
    ),
    "onnxruntime": (
        MissingKernel(
            "Convert",
            frozenset({"i4", "u4", "f4e2m1"}),
            "1.32.0, CPU: i4 and u4 around TensorScatter are wrong, f4e2m1 is refused",
        ),
        MissingKernel(
            "Select", _SMALL_TYPES | {"bf16", "boolean", "i16", "u16", "u64"}, _IN_ONNXRUNTIME, input=1
        ),
        *(MissingKernel(operator, types, _IN_ONNXRUNTIME) for operator, types in _ONNXRUNTIME.items()),
    ),
}
"""The general operators that a device lacks, by the long name of the runner.

On the CPU plugin every operator that rewrites emit was measured in 21 types and ranks 0 to 6, with static,
bounded and open shapes; u1 and nf4, which NumPy does not have, were compiled only. Subtract of u8 and u4
stops at 0 there, which rewrites know. On the GPU plugin 18 types were measured in rank 2, and seven in ranks
0 to 6, with static shapes; Select, Broadcast and NonZero with bounded and open ones too. In onnxruntime the
operators were loaded in every type, in three opsets, with static shapes of rank 2. If a case was not
measured, a missing row does not mean that it works.
"""

ADDS_IN_F32 = frozenset({"openvino:GPU"})
"""Devices that add a product of i32 to another number as f32.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: 21844 * 65536 + 87381 gives 1431655808 instead of
1431655765.
"""

LARGEST_RANKS: Mapping[str, int] = {"openvino:GPU": 8}
"""Largest rank of inputs that general operators of a device read correctly, by the long name of a runner.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: a Reshape of an input with 7 or 8 dimensions is
right, of one with 9 or 10 it is wrong without an error.
"""


def misread_inputs(scatters: Sequence[ScatterNode], runner: str) -> Iterator[str]:
    """Yield the inputs of a node whose rank is too large for general operators: "updates of 10 dimensions".

    Constants do not count: they are folded before the device sees them.
    """
    most = LARGEST_RANKS.get(runner)
    for scatter in scatters if most is not None else ():
        for operand in scatter.operands():
            rank = 0 if operand.shape is None else len(operand.shape)
            if most is not None and rank > most and not scatter.is_constant(operand.value):
                yield f"{operand.port.name} of {rank} dimensions"


REFUSES_EMPTY_INPUTS = frozenset({"openvino:GPU"})
"""Runners that refuse general operators of an input without elements, by their long names without a number.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: of such an input, with a static shape, Reshape and
Unsqueeze are refused ("Output shape is not provided"), and any operator if another shape of the model is
dynamic or the rank is 7 ("Unexpected layout of input memory for parameter").
"""


def empty_inputs(scatters: Sequence[ScatterNode], runner: str) -> Iterator[str]:
    """Yield the inputs of a node that a device refuses for general operators: "updates without elements"."""
    for scatter in scatters if runner in REFUSES_EMPTY_INPUTS else ():
        for operand in scatter.operands():
            if element_count(operand.shape) == 0 and not scatter.is_constant(operand.value):
                yield f"{operand.port.name} without elements"


def missing_kernels(fragment: Fragment, runner: str) -> Iterator[str]:
    """Yield the operators of a new form of a node that a device lacks: "GatherND of u8"."""
    rows = MISSING_KERNELS.get(runner, ())
    for new in fragment.news:
        op = find(new.domain, new.type)
        for row in rows:
            source = new.inputs[row.input] if row.input < len(new.inputs) else None
            if op is None or source is None or source.element_type is None or op is not named(row.operator):
                continue
            rank = None if new.output.shape is None else len(new.output.shape)
            is_large = not row.least_rank or (rank is not None and rank >= row.least_rank)
            if source.element_type.name in row.types and is_large:
                size = f" with {rank} dimensions" if row.least_rank else ""
                yield f"{row.operator} of {source.element_type.name}{size}"
