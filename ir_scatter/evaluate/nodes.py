"""Computes one node without bodies: a plain operator, or one of the scatter family."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ir_scatter.analysis.facts import Facts, opset_number
from ir_scatter.analysis.scatter_node import Site
from ir_scatter.core.constants import Constant
from ir_scatter.core.errors import Error, IllegalCase
from ir_scatter.evaluate.failures import failure
from ir_scatter.evaluate.machine import Machine, load
from ir_scatter.evaluate.plan import Step
from ir_scatter.ops import general_kernels as plain
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_kernels.base import Array
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import OpSpec, Role

MOST_ELEMENTS = 1 << 31
"""No output of a plain operator is larger: such a shape is taken for a mistake."""

_Cell = TypeVar("_Cell")


class ArrayMachine(Machine[Array]):
    """Runs plans on arrays, and nothing more."""

    def lift(self, array: Array) -> Array:
        """Return the array."""
        return array

    def array(self, cell: Array) -> Array:
        """Return the array."""
        return cell

    def move(self, function: Callable[..., Array], *cells: Array) -> Array:
        """Apply the function."""
        return function(*cells)

    def compute(self, step: Step, cells: list[Array | None]) -> Sequence[Array | None]:
        """Return the outputs of a node without bodies."""
        return compute_node(step, cells)


def compute_node(step: Step, arrays: Sequence[Array | None]) -> Sequence[Array]:
    """Return the outputs of a node without bodies.

    Args:
        step: the node.
        arrays: in the order of the document; None for an optional one that was left out.

    Raises:
        EvaluationFailed: it cannot be computed with these inputs.
    """
    work = step.work
    if isinstance(work, GeneralOp):
        return _compute_general(step, work, arrays)
    assert isinstance(work, Lookup)
    try:
        return [scatter(site_of(step), by_role(work, arrays))]
    except Error as error:
        raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
    except MemoryError as error:
        raise failure(step, "there is not enough memory") from error


def _compute_general(step: Step, op: GeneralOp, arrays: Sequence[Array | None]) -> Sequence[Array]:
    written = step.node.attributes
    attributes = {name: load(v) if isinstance(v, Constant) else v for name, v in written.items()}
    try:
        return plain.compute(
            op,
            step.node.domain,
            arrays,
            attributes,
            opset=opset_number(step.node),
            output_types=[None] * len(step.outputs),
            element_limit=MOST_ELEMENTS,
        )
    except plain.UnsupportedCase as error:
        raise failure(step, str(error)) from error


def site_of(step: Step) -> Site:
    """Return a scatter node as rules see it; only its attributes are of use here."""
    assert isinstance(step.work, Lookup)
    return Site(step.node, step.work, Facts())


def by_role(lookup: Lookup, arrays: Sequence[_Cell | None]) -> dict[Role, _Cell]:
    """Return the inputs that are there by role."""
    assert lookup.spec is not None
    pairs = zip(lookup.spec.ports, arrays, strict=False)
    return {port.role: array for port, array in pairs if array is not None}


def scatter(site: Site, operands: dict[Role, Array]) -> Array:
    """Return the output of a scatter node.

    Raises:
        Error: an operand is against the document.
    """
    from ir_scatter.evaluate import evaluate

    operator, arguments = arguments_of(site, operands)
    return evaluate(operator, **arguments)


def arguments_of(site: Site, operands: dict[Role, Array]) -> tuple[str, dict[str, Any]]:
    """Return the arguments of `evaluate` for a scatter node."""
    spec, source = site.spec, site.spec.axis
    of_axis = None if source is None else source.attribute
    attributes: dict[str, Any] = {
        row.name: site.attribute(row.name) for row in spec.attributes if row.name != of_axis
    }
    if source is not None:
        attributes["axis"] = site.attribute(of_axis) if of_axis else operands.get(Role.AXIS)
    given = {role.value: operands.get(role) for role in (Role.DATA, Role.INDICES, Role.UPDATES)}
    return str(_row_for(site).key), {**given, **attributes}


def _row_for(site: Site) -> OpSpec:
    """Return the row, or the later one that has the word of `reduction`, which runtimes take as meant."""
    row = site.spec.attribute("reduction")
    word = None if row is None else site.attribute("reduction")
    if row is None or word not in row.undocumented:
        return site.spec
    return next(spec for spec in site.lookup.family if word in spec.reductions)
