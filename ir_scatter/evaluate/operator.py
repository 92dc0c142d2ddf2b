"""Evaluates one operator: reads arguments as arrays, checks them against the rules, and runs the kernel."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, in_native_dtype
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.element_types import from_dtype
from ir_scatter.core.errors import IllegalCase, IllegalIndex, UsageError
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode
from ir_scatter.core.model import OpKey, Value
from ir_scatter.core.shapes import show_numbers
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.core.words import with_article
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.targets import IndexOutOfRange, Operation, Task, find_illegal
from ir_scatter.ops.lookup import SPECS, by_text, find, newest
from ir_scatter.ops.spec import IndexRange, Kind, OpSpec, Role
from ir_scatter.rules import all_rules
from ir_scatter.rules.base import Findings

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

TEXT_KINDS = frozenset("OUST")
"""NumPy's `dtype.kind` of arrays that can hold strings."""
_TEXT_TYPES = frozenset({str, bytes, np.str_, np.bytes_})
_CODES = {"indices": "SCT204", "updates": "SCT202", "axis": "SCT205"}
_NUMBERS = {"signed": 0, "unsigned": 0, "float": 1, "complex": 2}
"""Order of kinds of numbers: a list may be converted to a type of the same or a higher kind."""


def as_array(role: str, argument: "ArrayLike") -> Array:
    """Read an argument as an array.

    Raises:
        UsageError: it cannot be read as an array, or holds objects that are not text.
        IllegalCase: its integers fit no 64-bit integer type, and f64 would change some of them.
    """
    try:
        array = read_array(argument)
    except OverflowError as error:
        raise IllegalCase(f"{role} holds {error}", _CODES.get(role, "SCT201")) from None
    except Exception as error:
        raise UsageError(f"{role} cannot be read as an array: {error}") from None
    strange = set(map(type, array.reshape(-1).tolist())) - _TEXT_TYPES if array.dtype.kind == "O" else set()
    if strange:
        names = ", ".join(sorted(kind.__name__ for kind in strange))
        raise UsageError(f"{role} holds objects of type {names}, expected numbers or text")
    return array


def read_array(argument: Any) -> Array:
    """Read an argument like `numpy.asarray`, except for integers that NumPy would convert to f64 or objects.

    Such integers, if they have no element type of their own, become i64 if one is negative, else u64.

    Raises:
        OverflowError: they do not fit one 64-bit type; the message has the numbers and the expectation.
        TypeError: elements are masked; the values under the mask would count.
        Exception: any error of NumPy, or of the argument itself.
    """
    parts = argument if isinstance(argument, list | tuple) else (argument,)
    masked = sum(int(np.count_nonzero(part.mask)) for part in parts if isinstance(part, np.ma.MaskedArray))
    if masked:
        raise TypeError(f"{masked} of its elements are masked, expected none")
    array = np.asarray(argument)
    is_untyped = not hasattr(argument, "dtype") and array.size > 0
    if not is_untyped or not (array.dtype == np.float64 or array.dtype.kind == "O"):
        return array
    if array.dtype.kind == "f" and not bool((array == np.floor(array)).all()):
        return array
    whole = np.array(argument, object)
    kinds = set(map(type, whole.reshape(-1)))
    if not all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return array
    numbers = [int(number) for number in whole.reshape(-1)]
    low, high = min(numbers), max(numbers)
    if not -(2**63) <= low <= high < 2**64 or (low < 0 and high >= 2**63):
        extremes = f"{low} and {high}" if low != high else f"{low}"
        raise OverflowError(f"{extremes}, expected whole numbers that one type of 64 bits holds")
    return np.array(numbers, np.int64 if low < 0 else np.uint64).reshape(whole.shape)


def as_updates(argument: "ArrayLike", data: Array) -> Array:
    """Read updates as an array.

    A list or other sequence without an element type is converted to the type of data: integers if that is
    exact, other numbers rounded. It stays unconverted if a finite number would overflow, or if the type lacks
    an infinity or NaN in it.
    """
    array = in_native_dtype(as_array("updates", argument))
    if array.dtype == data.dtype or hasattr(argument, "dtype"):
        return array
    if array.size == 0:
        return array.astype(data.dtype)
    source, target = from_dtype(array.dtype), from_dtype(data.dtype)
    if source is None or target is None or not {source.kind, target.kind} <= _NUMBERS.keys():
        return array
    if _NUMBERS[source.kind] > _NUMBERS[target.kind]:
        return array
    with np.errstate(all="ignore"):
        converted = array.astype(data.dtype)
        if _NUMBERS[source.kind] == 0:  # Python compares integers and floats exactly
            is_whole = _NUMBERS[target.kind] == 0
            plain = converted if is_whole else converted.real.astype(np.float64)
            is_kept = plain.astype(object).tolist() == array.tolist()
            return converted if is_kept else array
        back = converted.astype(array.dtype)
    is_same = (np.isnan(array) == np.isnan(back)) & (np.isinf(array) == np.isinf(back))
    return converted if is_same.all() else array


def make_scatter_node(
    spec: OpSpec, inputs: Sequence[Value | None], attributes: Mapping[str, Any]
) -> ScatterNode:
    """Return a scatter node for rules, without a graph around it."""
    (domain, type), opset, output = spec.key[:2], spec.opsets[0], Value("output", None, None)
    lookup = find(domain, type, opset)
    assert lookup is not None
    alone = Fragment(inputs, [NewNode(type, domain, type, opset, tuple(inputs), attributes, output)])
    return ScatterNode(alone.nodes[0], lookup, Facts())


@cache
def _checks() -> list[tuple[str, Callable[[ScatterNode], Findings]]]:
    rules = [rule for rule in all_rules() if rule.is_legality and rule.needs_row]
    return [(rule.code, rule.check) for rule in rules if rule.check and rule.severity is Severity.ERROR]


_Form = tuple[Any, tuple[int, ...]]
"""(dtype, shape) of an array: all that the rules need to know of it."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedCase(Operation):
    """Inputs and attributes that passed all checks except those of index values.

    `result` is the dtype of the output.
    """

    spec: OpSpec
    result: np.dtype[Any]


def make_case(
    operator: str,
    *,
    data: "ArrayLike | None",
    indices: "ArrayLike | None",
    updates: "ArrayLike | None",
    axis: "ArrayLike | None" = None,
    **attributes: Any,
) -> CheckedCase:
    """Read the arguments of `evaluate` and check them against the rules.

    Raises:
        UsageError: the operator or an argument does not exist, or an argument is missing or not an array.
        IllegalCase: types, ranks, shapes, axis or attributes violate the specification.
    """
    spec = by_text(operator) or newest(operator) if isinstance(operator, str) else None
    if spec is None:
        guess = did_you_mean(str(operator), [word for key in SPECS for word in (key.type, str(key))])
        raise UsageError(f"operator is {operator!r}, expected one of {', '.join(map(str, SPECS))}{guess}")
    present = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates, Role.AXIS: axis}
    for port in spec.ports:
        if present[port.role] is None and not port.is_optional:
            roles = ", ".join(row.role for row in spec.ports)
            raise UsageError(f"{port.role} is missing, expected {roles}")
    assert data is not None
    assert updates is not None
    data_array = as_array("data", data)
    old = in_native_dtype(data_array)
    new = as_updates(updates, old)
    index_array = None if indices is None else in_native_dtype(as_array("indices", indices))
    if index_array is not None and index_array.size == 0 and not hasattr(indices, "dtype"):
        index_array = index_array.astype(np.int64)  # an empty list counts as integers
    arrays = (old, index_array, new)
    forms = tuple([None if array is None else (array.dtype, array.shape) for array in arrays])
    task = _task(spec.key, forms, *_read_axis(spec, axis), _read_attributes(spec, attributes))
    result = data_array.dtype
    if old.dtype != new.dtype and old.dtype.kind in TEXT_KINDS:
        common: np.dtype[Any] = np.dtype(object)
        if old.dtype.kind == new.dtype.kind:  # fixed-width text: the greater width
            with suppress(TypeError):  # variable-width strings with different objects for a missing string
                common = np.promote_types(old.dtype, new.dtype)
        result = data_array.dtype if common == old.dtype else common
        old, new = old.astype(common), new.astype(common)
    return CheckedCase(task, old, index_array, new, spec, result)


def run(case: CheckedCase) -> Array:
    """Compute the output of a scatter operator for checked arguments.

    Raises:
        IllegalIndex: an index is not legal.
    """
    try:
        output = scatter(case.task, case.data, case.indices, case.updates)
    except IndexOutOfRange:
        assert case.indices is not None
        illegal = find_illegal(case.task, case.data, case.indices, case.updates)
    else:
        return output if output.dtype == case.result else output.astype(case.result)
    assert illegal is not None
    port = case.spec.port(Role.INDICES)
    name = port.name if port else "indices"
    where = f"{name}{show_numbers(illegal.position)}" if illegal.position else name
    low, high, value, count = illegal.low, illegal.high, illegal.value, illegal.count
    expected = f"{low} to {high}" if low <= high else "no index: the dimension is empty"
    version = f" in {case.spec.key}" if value < 0 and low == 0 <= high else ""
    more = "" if count == 1 else f" ({count} such values)"
    message = f"{where} is {value}, expected {expected}{version}{more}"
    raise IllegalIndex(message, illegal.position, value, (low, high), count) from None


def _read_axis(spec: OpSpec, axis: "ArrayLike | None") -> tuple[int | None, _Form | None]:
    """Return the axis (None if it is not an integer), and the dtype and shape of the argument."""
    if axis is None:
        return None, None
    if isinstance(axis, int) and not isinstance(axis, bool):
        if not -(2**63) <= axis < 2**63:
            raise IllegalCase(f"axis is {axis}, expected a number of 64 bits at most", "SCT301")
        return axis, (np.dtype(np.int64), ())
    array = in_native_dtype(as_array("axis", axis))
    if array.shape not in {(), (1,)} and spec.port(Role.AXIS) is None:
        raise UsageError(f"axis has shape {show_numbers(array.shape)}, expected [] or [1]")
    type = from_dtype(array.dtype)
    is_number = array.size == 1 and type is not None and type.kind in {"signed", "unsigned"}
    return int(array.reshape(-1)[0]) if is_number else None, (array.dtype, array.shape)


def _read_attributes(spec: OpSpec, arguments: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the attributes that are not None; booleans may be text, as in a model file: "true"."""
    written = []
    for name, value in arguments.items():
        row = spec.attribute(name)
        if value is None and any(spec.attribute(name) for spec in SPECS.values()):
            continue
        written.append((name, value if row is not None or isinstance(value, str | int) else repr(value)))
        if row is not None and row.kind is Kind.BOOLEAN and not isinstance(value, bool | np.bool_ | str):
            raise UsageError(f"{name} is {with_article(type(value).__name__)}, expected a bool")
        if row is not None and row.kind is Kind.WORD and not isinstance(value, str):
            raise UsageError(f"{name} is {with_article(type(value).__name__)}, expected a string")
    return tuple(written)


@lru_cache(maxsize=4096)
def _task(
    key: OpKey,
    operands: tuple[_Form | None, ...],
    axis: int | None,
    axis_form: _Form | None,
    attributes: tuple[tuple[str, Any], ...],
) -> Task:
    """Check a combination of types, shapes and attributes against the rules; results are cached."""
    spec = SPECS[key]
    forms = dict(zip((Role.DATA, Role.INDICES, Role.UPDATES), operands, strict=True))
    inputs = [_value(port.role, forms[port.role]) for port in spec.ports if port.role in forms]
    written = dict(attributes)
    if axis_form is not None:
        if spec.axis is not None and spec.axis.attribute is None:
            inputs.append(_value(Role.AXIS, axis_form, axis))
        elif axis is None:
            raise UsageError("axis is not a whole number, expected one")
        else:
            written["axis"] = axis
    node = make_scatter_node(spec, inputs, written)
    for code, check in _checks():
        for finding in check(node):
            # A tolerated finding, forbidden but accepted by runtimes, is a warning of `validate`, and passes.
            if not finding.is_tolerated and code not in spec.tolerated:
                raise IllegalCase(finding.message, code)
    assert node.reduction is not None
    return Task(
        spec.layout,
        node.axis or 0,
        node.reduction,
        keeps_initial=node.attribute("use_init_val") is not False,
        wraps=spec.index_range is IndexRange.WRAPPING,
        is_circular=node.attribute("mode") == "circular",
    )


def _value(role: Role, form: _Form | None, number: int | None = None) -> Value | None:
    """Return a value with the type and shape of an input, for the rules; `number` is its element if known."""
    if form is None:
        return None
    dtype, shape = form
    type = from_dtype(dtype)
    if type is None:
        raise UsageError(f"{role} is {dtype}, which is the dtype of no element type")
    if number is None:
        return Value(role, type, shape)
    array = np.full(shape, number, dtype if dtype.kind in "iu" else np.int64)
    return Value(role, type, shape, constant=NewConstant(role, type, array))
