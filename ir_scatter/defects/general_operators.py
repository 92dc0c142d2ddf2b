"""General operators that `convert` writes, and that a device refuses or computes incorrectly."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.shapes import element_count
from ir_scatter.ops.general import find, named


class MissingKernel(NamedTuple):
    """A general operator that a device refuses or computes incorrectly for some element types.

    Attributes:
        operator: its type in OpenVINO.
        types: names of the element types of an input.
        measured: the release and device of the measurement, and what happened.
        input: number of the input whose type matters: for Select, one after the condition.
        least_rank: minimum rank of the output for which this holds.
        rank_of_input: the only rank of that input for which this holds; None for all ranks.
    """

    operator: str
    types: frozenset[str]
    measured: str
    input: int = 0
    least_rank: int = 0
    rank_of_input: int | None = None


_IN_ONNXRUNTIME = "1.32.0, CPU: NOT_IMPLEMENTED when a model of this node alone is loaded, opsets 13, 18, 25"
_SMALL_TYPES = frozenset({"f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "i4", "u4"})
"""Types that the ONNX specification excludes for most operators: a model that uses them there is invalid."""

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
"""Element types that OpenVINO's CPU plugin refuses or computes incorrectly, by general operator."""

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
    "FloorMod": _RARE_ON_GPU | {"f32", "f16", "i8", "i16", "i32", "i64"},
    "Negative": _RARE_ON_GPU | {"u4", "u8", "u16", "u32", "u64"},
}
"""Element types that OpenVINO's GPU plugin refuses or computes incorrectly, by general operator."""

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
        MissingKernel(
            "NonZero",
            frozenset({"f32", "f16", "i32", "i64", "u8", "boolean"}),
            "1.32.0, CPU: gives shape [1, n] for a 0-D number, instead of [0, n]",
            rank_of_input=0,
        ),
    ),
}
"""The general operators that a device lacks, by the long name of the runner.

CPU plugin: every operator that rewrites emit was measured in 21 types and ranks 0 to 6, with static, bounded
and dynamic shapes. u1 and nf4, which NumPy does not have, were only compiled. Subtract of u8 and u4 stops at
0 there; the rewrites avoid that. GPU plugin: 18 types were measured in rank 2, and seven in ranks 0 to 6,
with static shapes; Select, Broadcast and NonZero also with bounded and dynamic ones. onnxruntime: the
operators were loaded in every type, in three opsets, with static shapes of rank 2; in 13 types and opset 18
they were run with ranks 0 to 6 and 8, of which only NonZero depends on the rank. Cases that were not measured
have no row, but may fail as well. Concat of f4e2m1 on the CPU plugin has a row, though it is right if shapes
are static and each input fills whole bytes.
"""

ADDS_IN_F32 = frozenset({"openvino:GPU"})
"""Devices that add a product of i32 to another number as f32.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: 21844 * 65536 + 87381 gives 1431655808 instead of
1431655765.
"""

LARGEST_RANKS: Mapping[str, int] = {"openvino:GPU": 8}
"""Maximum rank of inputs that a device's general operators read correctly, by the long name of a runner.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime: Reshape is right for inputs with 7 or 8
dimensions, and silently wrong for inputs with 9 or 10.
"""


def misread_inputs(scatters: Sequence[ScatterNode], runner: str) -> Iterator[str]:
    """Yield the inputs of a node whose rank is too large for general operators: "updates of 10 dimensions".

    Constants do not count: they are folded, so that the device never reads them.
    """
    most = LARGEST_RANKS.get(runner)
    for scatter in scatters if most is not None else ():
        for operand in scatter.operands():
            rank = 0 if operand.shape is None else len(operand.shape)
            if most is not None and rank > most and not scatter.is_constant(operand.value):
                yield f"{operand.port.name} of {rank} dimensions"


REFUSES_EMPTY_INPUTS = frozenset({"openvino:GPU"})
"""Runners whose general operators refuse an input without elements, by long names without device number.

Measured on 2026.4.1, GPU plugin on the CPU OpenCL runtime. Reshape and Unsqueeze refuse such an input with a
static shape ("Output shape is not provided"). Any operator does if another shape of the model is dynamic, or
the rank is 7 ("Unexpected layout of input memory for parameter").
"""


def empty_inputs(scatters: Sequence[ScatterNode], runner: str) -> Iterator[str]:
    """Yield the inputs of a node that are empty, which a device refuses: "updates without elements"."""
    for scatter in scatters if runner in REFUSES_EMPTY_INPUTS else ():
        for operand in scatter.operands():
            if element_count(operand.shape) == 0 and not scatter.is_constant(operand.value):
                yield f"{operand.port.name} without elements"


def missing_kernels(fragment: Fragment, runner: str) -> Iterator[str]:
    """Yield the operators in a rewrite of a node that a device lacks: "GatherND of u8"."""
    rows = MISSING_KERNELS.get(runner, ())
    for new in fragment.news:
        op = find(new.domain, new.type)
        for row in rows:
            source = new.inputs[row.input] if row.input < len(new.inputs) else None
            if op is None or source is None or source.element_type is None or op is not named(row.operator):
                continue
            rank = None if new.output.shape is None else len(new.output.shape)
            is_large = not row.least_rank or (rank is not None and rank >= row.least_rank)
            rank_of_input = None if source.shape is None else len(source.shape)
            is_of_rank = row.rank_of_input in {None, rank_of_input}
            if source.element_type.name in row.types and is_large and is_of_rank:
                size = f" with {rank} dimensions" if row.least_rank else ""
                size = size if row.rank_of_input is None else f" with {rank_of_input} dimensions"
                yield f"{row.operator} of {source.element_type.name}{size}"
