"""How far apart elements may be: by element type, by the precision that was computed in, by request."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart two elements may be: |got - expected| <= absolute + relative * |expected|."""

    absolute: float = 0.0
    relative: float = 0.0


EXACT = Tolerance()
FRACTION_BITS = {
    "float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e4m3fn": 3, "float8_e4m3fnuz": 3,
    "float8_e5m2": 2, "float8_e5m2fnuz": 2, "float8_e8m0fnu": 0, "float4_e2m1fn": 1, "float6_e2m3fn": 3,
    "float6_e3m2fn": 2, "complex64": 23, "complex128": 52,
}  # fmt: skip
"""Bits of the fraction, by the name of the dtype."""

PRECISION_BITS = {"f16": 10, "bf16": 7, "f32": 23}
_WIDE = 23
"""Types with more bits are not what a precision is asked for: an f64 that is computed as f32 is found."""

_LEAST = {52: 2.0**-1022, 23: 2.0**-126, 7: 2.0**-126, 10: 2.0**-24}
"""By bits: what may be lost as too small. Below the normal numbers many devices know only 0; those of
f16 are numbers like others."""

_DEEP, _SHALLOW = 1024, 32
"""Units in the last place that the output of a model may be off, for types of many and of few bits."""
_SAMPLE = 1 << 16


def default_tolerance(array: Array, precision: str = "", *, is_node: bool = False) -> Tolerance:
    """Return what is allowed where nobody asked for anything else.

    Whole numbers, booleans and strings must be equal. Of a node, beside what rounding makes of its
    reduction: it moves elements as they are, and in a coarser precision each is rounded. Of a model, whatever
    operators are in between, a share of each element, and the same share of an element of middling
    size, as sums of large numbers that cancel out leave the rounding of the large ones.

    The precision is what was computed in, "f32", "f16", "bf16"; of others nothing is known.
    """
    own = FRACTION_BITS.get(array.dtype.name)
    if own is None:
        return EXACT
    bits = computed_bits(own, precision)
    if is_node:
        return Tolerance(_LEAST.get(bits, 0.0), 2.0**-bits if bits < own else 0.0)
    share = (_DEEP if bits >= _WIDE else _SHALLOW) * 2.0 ** -(bits + 1)
    return Tolerance(share * _middling(array), share)


def computed_bits(own: int, precision: str) -> int:
    """Return the bits of the fraction that a computation has: those of the type, or fewer."""
    return own if own > _WIDE else min(own, PRECISION_BITS.get(precision, own))


def coarser(*precisions: str) -> str:
    return min(precisions, key=lambda word: PRECISION_BITS.get(word, 99))


def _middling(array: Array) -> float:
    """Return the median magnitude of the elements that are finite and not 0; of many a sample."""
    flat = array.reshape(-1)
    flat = flat[:: max(flat.size // _SAMPLE, 1)]
    with np.errstate(all="ignore"):
        sizes = np.abs(flat if flat.dtype.kind in "fc" else flat.astype(np.float64)).astype(np.float64)
    known = sizes[np.isfinite(sizes) & (sizes > 0)]
    return float(np.median(known)) if known.size else 1.0


class Tolerances:
    """The tolerances that the user asks for, by the name of an output or node; "" for all others."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Read `NAME=ABS,REL` or `ABS,REL`; raise UsageError if a text is no tolerance."""
        self.named: Mapping[str, Tolerance] = dict(map(_parse, texts))

    def find(self, *names: str | None) -> Tolerance | None:
        """Return the tolerance that was asked for by one of these names, or for all; None without one."""
        known = (self.named[name] for name in (*names, "") if name is not None and name in self.named)
        return next(known, None)

    def demand_known(self, names: Collection[str]) -> None:
        """Raise UsageError if a tolerance is for something that does not exist."""
        for name in self.named:
            if name and name not in names:
                close = get_close_matches(name, names, 1)
                guess = f" (did you mean {close[0]}?)" if close else ""
                raise UsageError(f"--tolerance: there is no output and no scatter node {name!r}{guess}")


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
