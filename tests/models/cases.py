"""Random cases of one operator: shapes, types, attributes and indices, legal or with one rule broken."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ir_scatter.cases.broken import WAYS, break_case
from ir_scatter.cases.case import Case, Limits
from ir_scatter.cases.draw import Draws, draw_case, draw_form, types_of
from ir_scatter.core.errors import UsageError
from ir_scatter.ops.spec import OpSpec, Reduction, Role
from tests.formats.ir_files import write_one

BROKEN = tuple(WAYS)
"""The rules that a case can break on purpose."""

_TRIES = 200


def random_case(
    spec: OpSpec,
    seed: "int | np.random.Generator" = 0,
    *,
    reduction: Reduction | None = None,
    element_type: str | None = None,
    index_type: str | None = None,
    broken: str | None = None,
    may_repeat: bool = False,
    is_wild: bool = False,
) -> Case:
    """Draw a case of an operator; what is not given is drawn too. Its axis alone is constant.

    Args:
        spec: the row of the operator.
        seed: for the random numbers, or where they come from.
        reduction: one that the row has.
        element_type: of data and updates, "f32".
        index_type: of indices, "i64".
        broken: a rule to break, one of `BROKEN`; None for a legal case.
        may_repeat: whether targets may repeat with reduction none.
        is_wild: whether ranks may go up to 8, and tuples have no coordinates.

    Raises:
        UsageError: the row lacks the reduction or a type, or no case of it breaks the rule.
    """
    if broken is not None and broken not in WAYS:
        raise UsageError(f"broken is {broken!r}, expected one of {', '.join(BROKEN)}")
    known = set(spec.reductions.values()) or {Reduction.NONE}
    if reduction is not None and reduction not in known:
        raise UsageError(f"reduction is {reduction}, which {spec.key} does not have")
    limits = Limits(
        None if reduction is None else frozenset({reduction}),
        None if element_type is None else frozenset({element_type}),
        None if index_type is None else frozenset({index_type}),
        may_repeat=may_repeat, ranks=8 if is_wild else 4, is_wild=is_wild, constants=False, values="plain",
    )  # fmt: skip
    excluded = spec.reduction_excludes.get(reduction, frozenset()) if reduction else frozenset[str]()
    for role, wanted, what in (
        (Role.DATA, element_type, f"{spec.key} with reduction {reduction}"),
        (Role.INDICES, index_type, f"indices of {spec.key}"),
    ):
        allowed = [
            row.name for row in types_of(spec, role, None, excluded if role is Role.DATA else frozenset())
        ]
        if wanted is not None and wanted not in allowed:
            raise UsageError(f"the type of {what} is {wanted}, expected {', '.join(allowed)}")
    random = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(seed)
    for _ in range(_TRIES):
        draws = Draws(int(random.integers(1 << 62)))
        case = replace(draw_case(draws, draw_form(draws, spec, limits)), constants=frozenset({Role.AXIS}))
        found = case if broken is None else break_case(draws, case, broken)
        if found is not None:
            return found
    raise UsageError(f"no case of {spec.key} breaks {broken}")


def write(case: Case, folder: Path, *, is_constant: bool = False) -> Path:
    """Write a model; its axis is a constant, and so is everything else on request."""
    constants = frozenset(Role) if is_constant else frozenset({Role.AXIS})
    return write_one(case.format, replace(case, constants=constants).node(), folder)
