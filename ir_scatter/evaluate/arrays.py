"""From what a caller passes to arrays of known element types."""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.elements import ELEMENT_TYPES, ElementType, dtype, in_own_dtype
from ir_scatter.errors import IllegalCase, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.constants import Array

_TEXT_KINDS = frozenset("OUST")
_TEXT_TYPES = frozenset({str, bytes, numpy.str_, numpy.bytes_})
_CODES = {"indices": "SCT204", "updates": "SCT202", "axis": "SCT205"}
_NUMBERS = {"signed": 0, "unsigned": 0, "float": 1, "complex": 2}
"""An untyped sequence may take a type that is as far on as its own, or further."""


def as_array(role: str, given: "ArrayLike") -> "Array":
    """Read an argument as an array.

    Raises:
        UsageError: it cannot be read as one, or holds objects that are not text.
        IllegalCase: no one type of 64 bits holds all of its whole numbers, and f64 changes some.
    """
    try:
        array = numpy.asarray(given)
    except Exception as error:
        raise UsageError(f"{role} cannot be read as an array: {error}") from None
    if array.dtype.kind == "O":
        _demand_text(role, array)
    changed = changed_numbers(given, array)
    if changed:
        raise IllegalCase(f"{role} holds {changed}", _CODES.get(role, "SCT201"))
    return array


def changed_numbers(given: Any, array: "Array") -> str:
    """Say which whole numbers f64 changed, which they became as no type of 64 bits holds them all.

    Args:
        given: what NumPy made an array of.
        array: that array.

    Returns:
        What is, and what was expected; "" if nothing was changed.
    """
    if hasattr(given, "dtype") or array.dtype != numpy.float64 or not (abs(array) >= 2.0**63).any():
        return ""
    whole = numpy.array(given, object)
    is_whole = all(issubclass(kind, int | numpy.integer) for kind in set(map(type, whole.reshape(-1))))
    if not is_whole or (array.astype(object) == whole).all():
        return ""
    return f"{whole.min()} and {whole.max()}, expected whole numbers that one type of 64 bits holds"


def as_index_array(given: "ArrayLike") -> "Array":
    """Read indices as an array; an empty sequence without a type of its own holds whole numbers."""
    array = in_own_dtype(as_array("indices", given))
    if array.size == 0 and not hasattr(given, "dtype"):
        return array.astype(numpy.int64)
    return array


def as_updates(given: "ArrayLike", data: "Array") -> "Array":
    """Read updates as an array.

    The elements of a sequence without a type of its own take the type of data where that is exact
    for whole numbers, and as near as the type allows for others.

    Args:
        given: the argument.
        data: in the own dtype of its element type.
    """
    array = in_own_dtype(as_array("updates", given))
    if array.dtype == data.dtype or hasattr(given, "dtype"):
        return array
    if array.size == 0:
        return array.astype(data.dtype)
    own, wanted = element_type(array.dtype), element_type(data.dtype)
    if own is None or wanted is None or not {own.kind, wanted.kind} <= _NUMBERS.keys():
        return array
    if _NUMBERS[own.kind] > _NUMBERS[wanted.kind]:
        return array
    with numpy.errstate(all="ignore"):
        converted = array.astype(data.dtype)
    return converted if _NUMBERS[own.kind] > 0 or _are_same(array, converted, wanted) else array


def _are_same(whole: "Array", converted: "Array", wanted: ElementType) -> bool:
    """Tell whether whole numbers are what they were after they took another type."""
    low, high = int(whole.min()), int(whole.max())
    if wanted.kind in {"signed", "unsigned"}:
        is_signed = wanted.kind == "signed"
        greatest: int = 2 ** (wanted.bits - is_signed) - 1
        least = -greatest - 1 if is_signed else 0
        return least <= low and high <= greatest
    wide = converted.real.astype(numpy.float64)
    limits = numpy.iinfo(whole.dtype)
    is_inside = (wide >= limits.min) & (wide < float(limits.max))
    # The greatest numbers of 64 bits have no f64: what is rounded up to the next power is not the same.
    is_inside |= (wide == limits.max) & (whole.dtype.itemsize < 8)
    return bool(is_inside.all()) and bool((wide.astype(whole.dtype) == whole).all())


def same_text(data: "Array", updates: "Array") -> "tuple[Array, Array]":
    """Give two arrays of text one dtype that holds both: fixed-width text of the greater width."""
    if data.dtype == updates.dtype or data.dtype.kind not in _TEXT_KINDS:
        return data, updates
    kinds = {data.dtype.kind, updates.dtype.kind}
    common = numpy.promote_types(data.dtype, updates.dtype) if len(kinds) == 1 else numpy.dtype(object)
    return data.astype(common), updates.astype(common)


@cache
def element_type(found: "numpy.dtype[Any]") -> ElementType | None:
    """Return the element type of a dtype, None if it has none."""
    if found.kind in _TEXT_KINDS:
        return ELEMENT_TYPES["string"]
    native = found.newbyteorder("=")
    for row in ELEMENT_TYPES.values():
        if row.kind != "string" and dtype(row) == native:
            return row
    return None


def _demand_text(role: str, array: "Array") -> None:
    strange = set(map(type, array.reshape(-1).tolist())) - _TEXT_TYPES
    if strange:
        names = ", ".join(sorted(kind.__name__ for kind in strange))
        raise UsageError(f"{role} holds objects of type {names}, expected numbers or text")
