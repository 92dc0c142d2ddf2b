"""How far apart elements may be: by element type, by the precision that was computed in, by request."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ir_scatter.compare.verdicts import Tolerance
from ir_scatter.errors import UsageError

if TYPE_CHECKING:
    from ir_scatter.constants import Array

EXACT = Tolerance()
FRACTION_BITS = {
    "float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3,
    "float8_e5m2": 2, "float8_e5m2fnuz": 2, "float8_e8m0fnu": 0, "float4_e2m1fn": 1, "float6_e2m3fn": 3,
    "float6_e3m2fn": 2, "complex64": 23, "complex128": 52,
}  # fmt: skip
"""Bits of the fraction, by the name of the dtype."""

PRECISION_BITS = {"f16": 10, "bf16": 7, "f32": 23}
_MODEL_STEPS = 64
"""Units in the last place that a chain of operators may be off."""
_NODE_STEPS = 2


def default_tolerance(array: "Array", precision: str = "", *, is_node: bool = False) -> Tolerance:
    """Return what is allowed for a tensor.

    Whole numbers, booleans and strings must be equal. A node may be off by two units in the last place
    of the coarser of its type and the precision that was asked for, beside what rounding in
    another order makes of its reduction; the output of a model by 64.

    Args:
        array: the tensor.
        precision: "f32", "f16", "bf16"; of "model" and "default" nothing is known.
        is_node: whether it is the output of a single node.
    """
    bits = FRACTION_BITS.get(array.dtype.name)
    if bits is None:
        return EXACT
    bits = min(bits, PRECISION_BITS.get(precision, bits))
    steps = _NODE_STEPS if is_node else _MODEL_STEPS
    share = steps * 2.0 ** -(bits + 1)
    return Tolerance(share, share)


class Tolerances:
    """The tolerances that the user asks for, and the defaults.

    Attributes:
        named: by the output's or node's name; "" for all others.
    """

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Read `NAME=ABS,REL` or `ABS,REL`.

        Raises:
            UsageError: a text is no tolerance.
        """
        self.named: Mapping[str, Tolerance] = dict(map(_parse, texts))

    def find(
        self, names: Sequence[str | None], array: "Array", precision: str = "", *, is_node: bool = False
    ) -> Tolerance:
        """Return the tolerance of the first name that has one, otherwise the default."""
        for name in (*names, ""):
            if name is not None and name in self.named:
                return self.named[name]
        return default_tolerance(array, precision, is_node=is_node)


def _parse(text: str) -> tuple[str, Tolerance]:
    name, equals, numbers = text.rpartition("=")
    parts = numbers.split(",")
    try:
        absolute, relative = map(float, parts if len(parts) > 1 else [*parts, "0"])
    except ValueError:
        absolute = relative = -1.0
    if not (absolute >= 0 and relative >= 0) or (equals and not name):
        raise UsageError(f"{text!r} is no tolerance, expected OUTPUT=ABSOLUTE,RELATIVE")
    return name, Tolerance(absolute, relative)
