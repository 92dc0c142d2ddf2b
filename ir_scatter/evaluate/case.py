"""One use of an operator: arguments by role, made into arrays and a task for the kernels."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from ir_scatter.core.element_types import in_own_dtype
from ir_scatter.core.errors import IllegalCase, IllegalIndex, UsageError
from ir_scatter.core.model import Input, OpKey
from ir_scatter.core.shapes import show_numbers, with_article
from ir_scatter.evaluate import legality
from ir_scatter.evaluate.arrays import as_array, as_index_array, as_updates, element_type, same_text
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.kernels.targets import IndexOutOfRange, Task, find_illegal
from ir_scatter.ops.lookup import SPECS, by_text
from ir_scatter.ops.spec import IndexRange, Kind, OpSpec, Role

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.core.constants import Array
    from ir_scatter.core.element_types import ElementType

_Form = tuple[Any, tuple[int, ...]]
"""What rules see of an array: dtype and shape."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Legal inputs and attributes for one operator, but for the numbers in indices.

    Attributes:
        spec: the row of the operator.
        task: what the kernels are to do.
        data: in the own dtype of its element type.
        indices: in the own dtype of their element type; None where they are left out.
        updates: of the dtype of data.
        result: the dtype of the output: that of data as it was given.
    """

    spec: OpSpec
    task: Task
    data: "Array"
    indices: "Array | None"
    updates: "Array"
    result: "numpy.dtype[Any]"


def prepare(
    operator: str,
    data: "ArrayLike | None",
    indices: "ArrayLike | None",
    updates: "ArrayLike | None",
    axis: "ArrayLike | None",
    attributes: Mapping[str, Any],
) -> Case:
    """Read the arguments and hold them against the rules.

    Raises:
        UsageError: the operator or an argument does not exist, or one is missing or no array.
        IllegalCase: types, ranks, shapes, axis or attributes break the document.
    """
    spec = _find(operator)
    _demand_present(spec, {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates, Role.AXIS: axis})
    assert data is not None
    assert updates is not None
    given = as_array("data", data)
    old = in_own_dtype(given)
    new = as_updates(updates, old)
    index_array = None if indices is None else as_index_array(indices)
    task = _task(
        spec.key,
        (old.dtype, old.shape),
        None if index_array is None else (index_array.dtype, index_array.shape),
        (new.dtype, new.shape),
        *_read_axis(spec, axis),
        _read_attributes(spec, attributes),
    )
    data_array, new = same_text(old, new)
    result = given.dtype if data_array.dtype == old.dtype else data_array.dtype
    return Case(spec, task, data_array, index_array, new, result)


def run(case: Case) -> "Array":
    """Compute the output of a case.

    Raises:
        IllegalIndex: an index is not legal.
    """
    try:
        found = scatter(case.task, case.data, case.indices, case.updates)
    except IndexOutOfRange:
        raise illegal_index(case) from None
    return found if found.dtype == case.result else found.astype(case.result)


def illegal_index(case: Case) -> IllegalIndex:
    """Say which indices of a case are not legal."""
    assert case.indices is not None
    found = find_illegal(case.task, case.data, case.indices, case.updates)
    assert found is not None
    port = case.spec.port(Role.INDICES)
    name = port.name if port else "indices"
    where = f"{name}{show_numbers(found.position)}" if found.position else name
    expected = f"{found.low} to {found.high}" if found.low <= found.high else "none: the dimension is empty"
    more = "" if found.count == 1 else f" ({found.count} such values)"
    is_forbidden = found.value < 0 and found.low == 0 <= found.high
    version = f" in {case.spec.key}" if is_forbidden else ""
    message = f"{where} is {found.value}, expected {expected}{version}{more}"
    return IllegalIndex(message, found.position, found.value, (found.low, found.high), found.count)


def _find(operator: str) -> OpSpec:
    spec = by_text(operator) if isinstance(operator, str) else None
    if spec is None:
        known = ", ".join(map(str, SPECS))
        raise UsageError(f"operator is {operator!r}, expected one of {known}")
    return spec


def _demand_present(spec: OpSpec, given: Mapping[Role, object]) -> None:
    for port in spec.ports:
        if given[port.role] is None and not port.is_optional:
            roles = ", ".join(row.role for row in spec.ports)
            raise UsageError(f"{port.role} is missing, expected {roles}")


def _read_axis(spec: OpSpec, axis: "ArrayLike | None") -> tuple[int | None, _Form | None]:
    """Return the axis if it is a whole number, and the dtype and shape that it was given in."""
    if axis is None:
        return None, None
    if isinstance(axis, int) and not isinstance(axis, bool):
        if not -(2**63) <= axis < 2**63:
            raise IllegalCase(f"axis is {axis}, expected a number of 64 bits at most", "SCT301")
        return axis, (numpy.dtype(numpy.int64), ())
    array = in_own_dtype(as_array("axis", axis))
    if array.shape not in {(), (1,)} and spec.port(Role.AXIS) is None:
        raise UsageError(f"axis has shape {show_numbers(array.shape)}, expected [] or [1]")
    type = element_type(array.dtype)
    is_number = array.size == 1 and type is not None and type.kind in {"signed", "unsigned"}
    return int(array.reshape(-1)[0]) if is_number else None, (array.dtype, array.shape)


def _read_attributes(spec: OpSpec, given: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the attributes that are given, those of the table of the documented type.

    A bool may be written as a word, as in a file.
    """
    written = []
    for name, value in given.items():
        row = spec.attribute(name)
        if value is None and (row is not None or name in _names_of_attributes()):
            continue
        written.append((name, value if row is not None or isinstance(value, str | int) else repr(value)))
        if row is not None and row.kind is Kind.BOOLEAN and not isinstance(value, bool | numpy.bool_ | str):
            raise UsageError(f"{name} is {with_article(type(value).__name__)}, expected a bool")
        if row is not None and row.kind is Kind.WORD and not isinstance(value, str):
            raise UsageError(f"{name} is {with_article(type(value).__name__)}, expected a string")
    return tuple(written)


@cache
def _names_of_attributes() -> frozenset[str]:
    """Return what an attribute of any operator is called."""
    return frozenset(row.name for spec in SPECS.values() for row in spec.attributes)


@lru_cache(maxsize=4096)
def _task(
    key: OpKey,
    data: _Form,
    indices: _Form | None,
    updates: _Form,
    axis: int | None,
    axis_form: _Form | None,
    attributes: tuple[tuple[str, Any], ...],
) -> Task:
    """Hold a combination of types, shapes and attributes against the rules, each once.

    Raises:
        UsageError: something has no element type, or the axis is no number.
        IllegalCase: a rule is broken.
    """
    spec = SPECS[key]
    forms = {Role.DATA: data, Role.INDICES: indices, Role.UPDATES: updates}
    inputs = [_input(spec, port.role, forms[port.role]) for port in spec.ports if port.role in forms]
    written = dict(attributes)
    if axis_form is not None:
        if spec.axis is not None and spec.axis.attribute is None:
            inputs.append(_axis_input(spec, axis, axis_form))
        elif axis is None:
            raise UsageError("axis is no whole number, expected one")
        else:
            written["axis"] = axis
    site = legality.make_site(spec, tuple(inputs), written)
    legality.demand_legal(site)
    assert site.reduction is not None
    return Task(
        spec.layout,
        site.axis or 0,
        site.reduction,
        keeps_initial=site.attribute("use_init_val") is not False,
        wraps=spec.index_range is IndexRange.WRAPPING,
        is_circular=site.attribute("mode") == "circular",
    )


def _input(spec: OpSpec, role: Role, form: _Form | None) -> Input:
    if form is None:
        return Input(None, is_present=False)
    dtype, shape = form
    return legality.variable(role, _element_type(spec, role, dtype), shape)


def _axis_input(spec: OpSpec, axis: int | None, form: _Form) -> Input:
    dtype, shape = form
    type = _element_type(spec, Role.AXIS, dtype)
    if axis is None:
        return legality.variable(Role.AXIS, type, shape)
    stored = dtype if dtype.kind in "iu" else numpy.int64
    return legality.constant(Role.AXIS, type, numpy.full(shape, axis, stored))


def _element_type(spec: OpSpec, role: Role, dtype: Any) -> "ElementType":
    found = element_type(dtype)
    if found is None:
        raise UsageError(f"{role} is {dtype}, which is the dtype of no element type")
    return found
