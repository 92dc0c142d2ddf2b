"""Uses of OpenVINO's operators drawn at random, legal ones and others, and models of them."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.core.model import OperatorUse
from ir_scatter.core.shapes import Shape
from ir_scatter.ops.general import constraints_of
from ir_scatter.ops.openvino_opsets import KINDS, Signature
from tests.models.ir_text import IrText, Output

TYPES = ("f32", "f16", "i64", "i32", "boolean", "u8")
SIZES = (1, 2, 3, 3, 6, "?")
ATTRIBUTES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "Concat": {"axis": ("0", "1", "-1", "2", "-4", "x", "1.5", "", "+1")},
    "Split": {"num_splits": ("1", "2", "3", "0", "-1", "x", "", "+2")},
    "Gather": {"batch_dims": ("0", "0", "1", "-1", "x", "9", "+0")},
    "GatherND": {"batch_dims": ("0", "0", "1", "-1", "x")},
    "GatherElements": {"axis": ("0", "1", "-1", "5", "x")},
    "Softmax": {"axis": ("0", "1", "x")},
    "ShapeOf": {"output_type": ("i64", "i32", "f32", "x", "I64", "")},
    "NonZero": {"output_type": ("i64", "i32", "f32", "x", "I64", "")},
    "Convert": {"destination_type": ("i64", "f32", "x", "F16", "dynamic", "FP32", "")},
    "Reshape": {"special_zero": ("true", "false", "true", "x")},
    "Broadcast": {"mode": ("numpy", "bidirectional", "explicit", "x", "none", "pdpd")},
    "StridedSlice": dict.fromkeys(
        ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"),
        ("", "0,0", "0,1", "0,0,1", "x", "0,,1", "-1", "+0"),
    ),
    "MatMul": {"transpose_a": ("true", "false"), "transpose_b": ("true", "false")},
    "ReduceSum": {"keep_dims": ("true", "false")},
    "TopK": {"axis": ("0", "1", "-1", "4"), "mode": ("max",), "sort": ("value",)},
    "OneHot": {"axis": ("0", "1", "-1", "4")},
    "Pad": {"pad_mode": ("constant",)},
    **{
        type: {"auto_broadcast": ("numpy", "numpy", "none", "x", "NUMPY")}
        for type in ("Add", "Multiply", "Less", "Select", "LogicalAnd", "Mod", "FakeQuantize")
    },
}


class Drawn(NamedTuple):
    """A use, and what its inputs are: the numbers of a Const, or None for a Parameter."""

    use: OperatorUse
    constants: list[list[int] | None]
    ranks: list[int]


def shape_of(chance: random.Random) -> list[int | str]:
    return [chance.choice(SIZES) for _ in range(chance.choice((0, 1, 2, 2, 2, 3, 3)))]


def drawn(chance: random.Random, signature: Signature) -> Drawn:
    """Draw a use of an operator, one of whose faults is rare."""
    count = max(signature.least or 0, min(len(signature.inputs), 3 if chance.random() < 0.7 else 9))
    if signature.repeats:
        count = chance.randint(1, 3)
    if chance.random() < 0.05:
        count = chance.randint(0, 5)
    decide = {need.port for need in constraints_of("openvino", signature.type) if need.decides_shape}
    common, other = chance.choice(TYPES[:4]), shape_of(chance)
    types, shapes, constants = list[str](), list[list[int | str] | None](), list[list[int] | None]()
    for port in range(count):
        letter = (signature.inputs + "_" * 9)[port] if not signature.repeats else "T"
        kinds, _ = KINDS.get(letter.lower(), (None, ""))
        fit = [name for name in TYPES if kinds is None or ELEMENT_TYPES[name].kind in kinds] or ["f32"]
        type = common if letter.isupper() and common in fit else chance.choice(fit)
        if chance.random() < 0.03:
            type = chance.choice(TYPES)
        shape: list[int | str] | None = [*other]
        if chance.random() < 0.3 and shape:
            shape[chance.randrange(len(shape))] = chance.choice(SIZES)
        if chance.random() < 0.15:
            shape = shape_of(chance)
        numbers = None
        if port in decide or (letter == "i" and chance.random() < 0.7):
            if chance.random() < 0.93:
                type = type if type in {"i64", "i32"} else "i64"
                length = chance.choice((1, len(other), len(other), 2, 0))
                numbers = [chance.randint(-2, 3) for _ in range(length)]
                if chance.random() < 0.4:
                    numbers = chance.sample(range(8), length) if length > len(other) else [*range(length)]
                    chance.shuffle(numbers)
                shape = [] if len(numbers) == 1 and chance.random() < 0.5 else [len(numbers)]
                if chance.random() < 0.05:
                    shape = [1, len(numbers)]
            elif chance.random() < 0.7:
                shape = [chance.choice((1, 2, 3))]
        types.append(type)
        shapes.append(None if chance.random() < 0.02 and numbers is None else shape)
        constants.append(numbers)
    attributes = {
        name: chance.choice(words[:2] if chance.random() < 0.6 else words)
        for name, words in ATTRIBUTES.get(signature.type, {}).items()
        if chance.random() < 0.95
    }
    opset = chance.choice(signature.opsets)
    partial: list[Shape] = []
    from ir_scatter.core.shapes import UNKNOWN_DIM

    for one in shapes:
        partial.append(None if one is None else tuple(s if isinstance(s, int) else UNKNOWN_DIM for s in one))
    use = OperatorUse(
        signature.type, f"opset{opset}", attributes, [ELEMENT_TYPES[type] for type in types], partial,
        lambda port: constants[port] if port < len(constants) else None,
    )  # fmt: skip
    return Drawn(use, constants, [len(one or ()) for one in shapes])


def write(found: Drawn, folder: Path, name: str = "use") -> Path:
    """Write a model of one node and what it takes."""
    ir, use = IrText(), found.use
    sources = list[Output]()
    for port, (type, shape, numbers) in enumerate(zip(use.types, use.shapes, found.constants, strict=True)):
        assert type is not None
        if numbers is None:
            dims = None if shape is None else [dim if isinstance(dim, int) else "?" for dim in shape]
            sources.append(ir.parameter(f"p{port}", type.name, dims))
        else:
            assert shape is not None
            sizes = [dim for dim in shape if isinstance(dim, int)]
            sources.append(ir.const(f"c{port}", type.name, numbers, sizes))
    output = ir.add("n", use.type, str(use.opset), sources, [("f32", ())], use.attributes)
    ir.add("result", "Result", "opset1", [output], [])
    return Path(ir.write(folder, name))
