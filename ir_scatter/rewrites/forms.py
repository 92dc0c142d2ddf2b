"""Alternative forms of a node, for devices that refuse it or have a defect.

    cast to i32:  Convert(Scatter(Convert(data, i32), indices, Convert(updates, i32)), u8)
    reduced:      Scatter(data, indices, old values + updates), where no two updates have one target

These rewrites are not part of routes: `convert --for` tries them if no route avoids all known defects.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from ir_scatter.analysis.conditions import Condition
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType
from ir_scatter.core.model import OpKey, Value
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from ir_scatter.rewrites import (
    forms_of_inputs,
    forms_of_reductions,
    forms_of_shapes,
    from_elements,
    from_tuples,
)
from ir_scatter.rewrites.base import Build, Rewrite, View
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.refusals import TYPE_UNKNOWN, Reason, Refusal

_I32 = ELEMENT_TYPES["i32"]
_WIDER = {"boolean": ("i32",), "unsigned": ("i32",), "signed": ("i32",), "float": ("f32",)}
"""The types to cast to, by kind of element type; the wider type represents every value exactly."""

_SELECTING = frozenset({Reduction.NONE, Reduction.MIN, Reduction.MAX})
"""Reductions whose result is an old value or an update, so that it fits the narrow type."""

_COLUMN = "as-column"
COPIED, LEFT_OUT, AXIS_FOUND = "copied-before", "left-out", "axis-found"
CAST_TO_F32, U32_AS_I32 = "cast-to-f32", "u32-as-i32"
"""Names of forms that avoid defects of a node's inputs or surroundings."""
_AS_COLUMNS = frozenset({"mean-counted", "extreme-from-updates", U32_AS_I32, "cast-to-i32", CAST_TO_F32})
MEAN = "mean-counted"

_PLAIN = frozenset({Layout.SLICES, Layout.ELEMENTS, Layout.TUPLES})
_TUPLES, _ALONG_AXIS = frozenset({Layout.TUPLES}), frozenset({Layout.SLICES, Layout.ELEMENTS})
_ELEMENTS = frozenset({Layout.ELEMENTS})

_CHEAP: Mapping[str, tuple[frozenset[Layout], Build]] = {
    LEFT_OUT: (_PLAIN, forms_of_inputs.left_out),
    AXIS_FOUND: (_ALONG_AXIS, forms_of_shapes.axis_found),
    "one-tuple": (_TUPLES, forms_of_shapes.one_tuple),
    "static-depth": (_TUPLES, forms_of_shapes.static_depth),
    _COLUMN: (_PLAIN, forms_of_shapes.as_column),
    "merged": (_PLAIN, forms_of_shapes.merged),
    MEAN: (_ELEMENTS, forms_of_reductions.mean_counted),
    "difference-counted": (_TUPLES, forms_of_reductions.difference_counted),
    "extreme-from-updates": (_ELEMENTS, forms_of_reductions.extreme_from_updates),
}
"""Forms without additional moves of data, by name: supported layouts of nodes, and the function."""

_COSTLY: Mapping[str, tuple[frozenset[Layout], Build]] = {
    COPIED: (_PLAIN, forms_of_inputs.copied_before),
    U32_AS_I32: (_PLAIN, forms_of_inputs.u32_as_i32),
    "by-positions": (_PLAIN, forms_of_inputs.by_positions),
}
"""Forms that move all of data once more."""

_BOOLEAN_REDUCTIONS = {
    Reduction.SUM: Reduction.MAX,
    Reduction.MAX: Reduction.MAX,
    Reduction.PROD: Reduction.MIN,
    Reduction.MIN: Reduction.MIN,
    Reduction.NONE: Reduction.NONE,
}
"""The reduction on the numbers 0 and 1 that equals a reduction on booleans: OR is max, AND is min."""

_ROUNDING = frozenset({Reduction.SUM, Reduction.SUB, Reduction.PROD, Reduction.MEAN})
"""Floating-point reductions that round once in the wider type, instead of after each step."""


class NodeForm(NamedTuple):
    """An alternative form of a node: rewrites of an operator version into itself, applied in order."""

    rewrites: tuple[Rewrite, ...]

    @property
    def name(self) -> str:
        return "+".join(rewrite.name for rewrite in self.rewrites)

    @property
    def moves_data(self) -> bool:
        return any(rewrite.moves_data for rewrite in self.rewrites)


@cache
def alternative_forms(key: OpKey) -> tuple[NodeForm, ...]:
    """Return the alternative forms of an operator version, cheap ones first.

    Some forms also exist with an additional last dimension of 1, because a device may misread constants of
    rank 1.
    """
    single = _rewrites(SPECS[key])
    column = next((rewrite for rewrite in single if rewrite.name == _COLUMN), None)
    forms = [NodeForm((rewrite,)) for rewrite in single]
    if column is not None:
        forms += [
            NodeForm((rewrite, column) if rewrite.name == U32_AS_I32 else (column, rewrite))
            for rewrite in single
            if rewrite.name in _AS_COLUMNS
        ]
    return tuple(sorted(forms, key=lambda form: form.moves_data))


def _rewrites(spec: OpSpec) -> tuple[Rewrite, ...]:
    return (
        *(
            Rewrite(name, spec, spec, build, carries=None)
            for name, (layouts, build) in _CHEAP.items()
            if spec.layout in layouts
        ),
        *_casts(spec),
        *([] if spec.layout not in _JOINED else [_joined(spec)]),
        *(
            Rewrite(name, spec, spec, build, carries=None, moves_data=True)
            for name, (layouts, build) in _COSTLY.items()
            if spec.layout in layouts
        ),
    )


def _casts(spec: OpSpec) -> Iterator[Rewrite]:
    port = spec.port(Role.DATA)
    for name in dict.fromkeys(name for names in _WIDER.values() for name in names):
        if port is not None and name in port.element_types:
            yield _cast(spec, ELEMENT_TYPES[name])
    yield Rewrite("indices-cast", spec, spec, _with_i32_indices, carries=None)


def _cast(spec: OpSpec, wide: ElementType) -> Rewrite:
    def build(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
        type = view.data.element_type
        if type is None:
            return TYPE_UNKNOWN
        reduction = _reduction_in(view, type, wide)
        if reduction is None:
            message = f"reduction {view.reduction} of {type.name} gives other results in {wide.name}"
            return Refusal(Reason.NO_SUCH_REDUCTION, message)
        data = build.convert(view.data, wide, f"data_{wide.name}")
        updates = build.convert(view.updates, wide, f"updates_{wide.name}")
        wider = build.rebuilt(view.scatter, {Role.DATA: data, Role.UPDATES: updates}, reduction)
        return build.convert(wider, type, f"updated_{type.name}")

    return Rewrite(f"cast-to-{wide.name}", spec, spec, build, carries=None, moves_data=True)


def _reduction_in(view: View, type: ElementType, wide: ElementType) -> Reduction | None:
    """Return the reduction with equal results in a wider type; None without one."""
    if wide.name not in _WIDER.get(type.kind, ()) or type.bits >= wide.bits:
        return None
    if type.kind == "boolean":
        reduction = _BOOLEAN_REDUCTIONS.get(view.reduction)
    elif view.reduction in _SELECTING or (type.kind == "float" and view.reduction in _ROUNDING):
        reduction = view.reduction
    else:
        return None  # whole numbers wrap around in the narrow type, but not in the wide one
    has_word = reduction is Reduction.NONE or reduction in view.scatter.spec.reductions.values()
    return reduction if has_word else None


def _with_i32_indices(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
    operand = view.scatter.operand(Role.INDICES)
    type = None if operand is None else operand.value.element_type
    if operand is None or type is None:
        return TYPE_UNKNOWN
    if type.bits >= _I32.bits:
        return Refusal(Reason.NO_FORM, f"indices are {type.name}, expected a type of fewer than 32 bits")
    indices = build.convert(operand.value, _I32, "indices_i32")
    return build.rebuilt(view.scatter, {Role.INDICES: indices}, view.reduction)


def _joined(spec: OpSpec) -> Rewrite:
    def build(view: View, build: Builder, _: OpSpec) -> Value | Refusal:
        if view.reduction is Reduction.NONE:
            return Refusal(Reason.NO_FORM, "the node has no reduction to compute before it")
        updates = _JOINED[spec.layout](view, build)
        if isinstance(updates, Refusal):
            return updates
        return build.rebuilt(view.scatter, {Role.UPDATES: updates}, Reduction.NONE)

    return Rewrite("reduced-before", spec, spec, build, carries=None, requires=_unique)


def _unique(_view: View, _target: OpSpec) -> tuple[Condition, ...]:
    return (Condition.UNIQUE,)


_JOINED = {Layout.ELEMENTS: from_elements.joined_updates, Layout.TUPLES: from_tuples.joined_updates}
"""Functions that reduce updates with the old values at their targets, by layout."""
