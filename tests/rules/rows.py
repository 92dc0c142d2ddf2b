"""The facts of every row of the table, written down a second time from FACTS.md.

Nothing here reads the table: what the tests expect comes from this file alone.
"""

from dataclasses import dataclass

SLICES, ELEMENTS, TUPLES, CACHE = "slices", "elements", "tuples", "cache"

IR_INTEGERS = ("i64", "i32", "i16", "i8", "i4", "u64", "u32", "u16", "u8", "u4", "u1")
IR_NUMBERS = ("f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4", *IR_INTEGERS)
IR_TYPES = (*IR_NUMBERS, "boolean", "string")
ONNX_FIFTEEN = (
    "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float", "double",
    "string", "bool", "complex64", "complex128",
)  # fmt: skip
ONNX_SIXTEEN = (*ONNX_FIFTEEN, "bfloat16")
ONNX_TWENTY_FOUR = (
    *ONNX_SIXTEEN, "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",
    "float4e2m1", "float8e8m0",
)  # fmt: skip
ONNX_TYPES = ONNX_TWENTY_FOUR

IR_WORDS_12 = ("none", "sum", "prod", "min", "max", "mean")
IR_WORDS_15 = ("none", "sum", "sub", "prod", "min", "max")
ONNX_WORDS_16 = ("none", "add", "mul")
ONNX_WORDS_18 = (*ONNX_WORDS_16, "max", "min")


@dataclass(frozen=True)
class Row:
    """One operator version, valid from the first to the last of its opsets.

    Words are those of `reduction`, none without it; where an index wraps, negative ones are legal; later
    versions have attributes that this one has not.
    """

    type: str
    version: int
    opsets: tuple[int, int]
    family: str
    is_ir: bool
    data_types: tuple[str, ...]
    index_types: tuple[str, ...]
    words: tuple[str, ...] = ()
    wraps: bool = False
    later: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.type}-{self.version}"

    @property
    def has_axis_input(self) -> bool:
        return self.is_ir and self.family in (SLICES, ELEMENTS)


def _onnx(
    type: str,
    version: int,
    last: int,
    family: str,
    types: tuple[str, ...],
    words: tuple[str, ...] = (),
    later: tuple[str, ...] = (),
) -> Row:
    indices = ("int32", "int64") if family == ELEMENTS else ("int64",)
    return Row(type, version, (version, last), family, False, types, indices, words, True, later)


_REDUCTION = ("reduction",)
_BOTH = ("reduction", "use_init_val")
_I32_I64 = ("i32", "i64")

ROWS = (
    Row("ScatterUpdate", 3, (3, 16), SLICES, True, IR_NUMBERS, IR_INTEGERS),
    Row("ScatterElementsUpdate", 3, (3, 11), ELEMENTS, True, IR_NUMBERS, IR_INTEGERS, later=_BOTH),
    Row("ScatterElementsUpdate", 12, (12, 16), ELEMENTS, True, IR_TYPES, IR_INTEGERS, IR_WORDS_12, True),
    Row("ScatterNDUpdate", 3, (4, 14), TUPLES, True, IR_NUMBERS, _I32_I64, later=_REDUCTION),
    Row("ScatterNDUpdate", 15, (15, 16), TUPLES, True, (*IR_NUMBERS, "boolean"), _I32_I64, IR_WORDS_15, True),
    _onnx("Scatter", 9, 10, ELEMENTS, ONNX_FIFTEEN),
    _onnx("Scatter", 11, 28, ELEMENTS, ONNX_FIFTEEN),
    _onnx("ScatterElements", 11, 12, ELEMENTS, ONNX_FIFTEEN, later=_REDUCTION),
    _onnx("ScatterElements", 13, 15, ELEMENTS, ONNX_SIXTEEN, later=_REDUCTION),
    _onnx("ScatterElements", 16, 17, ELEMENTS, ONNX_SIXTEEN, ONNX_WORDS_16),
    _onnx("ScatterElements", 18, 28, ELEMENTS, ONNX_SIXTEEN, ONNX_WORDS_18),
    _onnx("ScatterND", 11, 12, TUPLES, ONNX_FIFTEEN, later=_REDUCTION),
    _onnx("ScatterND", 13, 15, TUPLES, ONNX_SIXTEEN, later=_REDUCTION),
    _onnx("ScatterND", 16, 17, TUPLES, ONNX_SIXTEEN, ONNX_WORDS_16),
    _onnx("ScatterND", 18, 28, TUPLES, ONNX_SIXTEEN, ONNX_WORDS_18),
    _onnx("TensorScatter", 24, 28, CACHE, ONNX_TWENTY_FOUR),
)
