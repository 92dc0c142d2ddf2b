"""From what a caller passes to arrays of known element types."""

from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, dtype, in_own_dtype
from ir_scatter.core.errors import IllegalCase, UsageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.core.tensors import Array

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
        array = read_array(given)
    except OverflowError as error:
        raise IllegalCase(f"{role} holds {error}", _CODES.get(role, "SCT201")) from None
    except Exception as error:
        raise UsageError(f"{role} cannot be read as an array: {error}") from None
    if array.dtype.kind == "O":
        _demand_text(role, array)
    return array


def read_array(given: Any) -> "Array":
    """Read what a caller passes as `numpy.asarray` does, but for whole numbers that it makes f64 or objects.

    Whole numbers without an element type of their own become u64 if none is negative, i64 otherwise.

    Raises:
        OverflowError: no one type of 64 bits holds all of them; the message says what is and was expected.
        Exception: whatever NumPy, or the object that is given, raises.
    """
    array = numpy.asarray(given)
    is_untyped = not hasattr(given, "dtype") and array.size > 0
    if not is_untyped or not (array.dtype == numpy.float64 or array.dtype.kind == "O"):
        return array
    if array.dtype.kind == "f" and not bool((array == numpy.floor(array)).all()):
        return array
    whole = numpy.array(given, object)
    kinds = set(map(type, whole.reshape(-1)))
    if not all(issubclass(kind, int | numpy.integer) and kind is not bool for kind in kinds):
        return array
    numbers = [int(number) for number in whole.reshape(-1)]
    low, high = min(numbers), max(numbers)
    if not -(2**63) <= low <= high < 2**64 or (low < 0 and high >= 2**63):
        found = f"{low} and {high}" if low != high else f"{low}"
        raise OverflowError(f"{found}, expected whole numbers that one type of 64 bits holds")
    return numpy.array(numbers, numpy.int64 if low < 0 else numpy.uint64).reshape(whole.shape)


def as_index_array(given: "ArrayLike") -> "Array":
    """Read indices as an array; an empty sequence without a type of its own holds whole numbers."""
    array = in_own_dtype(as_array("indices", given))
    if array.size == 0 and not hasattr(given, "dtype"):
        return array.astype(numpy.int64)
    return array


def as_updates(given: "ArrayLike", data: "Array") -> "Array":
    """Read updates as an array.

    The elements of a sequence without a type of its own take the type of data where that is exact
    for whole numbers, and as near as the type allows for others; not where it has no room for a number
    that is finite, or nothing for an infinity or NaN.

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
        if _NUMBERS[own.kind] == 0:
            return converted if _are_same(array, converted, wanted) else array
        back = converted.astype(array.dtype)
    is_kept = (numpy.isnan(array) == numpy.isnan(back)) & (numpy.isinf(array) == numpy.isinf(back))
    return converted if is_kept.all() else array


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
    common: numpy.dtype[Any] = numpy.dtype(object)
    if data.dtype.kind == updates.dtype.kind:
        with suppress(TypeError):  # texts of variable width with different words for a missing one
            common = numpy.promote_types(data.dtype, updates.dtype)
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
