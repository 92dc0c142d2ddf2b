"""Runs whole models in NumPy: `prepare` once, then `run` any number of times."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import (
    Forward,
    NotComputed,
    Plan,
    Plans,
    Step,
    failure,
    load,
    make_plans,
    unknown_operator,
)
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, in_own_dtype, too_many_dimensions
from ir_scatter.core.dataflow import GraphInput, feeds_by_input
from ir_scatter.core.diagnostics import Location, Severity
from ir_scatter.core.element_types import dtype
from ir_scatter.core.errors import (
    BadFeed,
    BrokenModel,
    Error,
    EvaluationFailed,
    IllegalCase,
    UnknownOperator,
    UnreadableModel,
)
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import Model
from ir_scatter.core.shapes import agree, show
from ir_scatter.core.tensors import Constant
from ir_scatter.core.words import with_article
from ir_scatter.evaluate.operator import TEXT_KINDS, CheckedCase, make_case, read_array, run
from ir_scatter.formats import dataflow_of
from ir_scatter.ops import general_kernels
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general import find as find_row
from ir_scatter.ops.kernels.certainty import count_hits
from ir_scatter.ops.lookup import Lookup, opset_number
from ir_scatter.ops.spec import Layout, Reduction, Role
from ir_scatter.reading import read
from ir_scatter.validate import validate

MOST_ELEMENTS = 1 << 31
"""Limit of elements per output of a general operator; a larger shape counts as a mistake."""

_Cell = TypeVar("_Cell")

Computed: TypeAlias = Array | NotComputed
"""An array; or, of a value that depends on an unknown or random operator, the node that is not computed."""


class ForwardArrays(Forward[Computed]):
    """Computes arrays; what depends on a node that NumPy does not compute stays unknown."""

    def lift(self, array: Array) -> Computed:
        return array

    def array(self, cell: Computed) -> Array:
        assert not isinstance(cell, NotComputed)
        return cell

    def move(self, function: Callable[..., Array], *cells: Computed) -> Computed:
        arrays = []
        for cell in cells:
            if isinstance(cell, NotComputed):
                return cell
            arrays.append(cell)
        return function(*arrays)

    def is_unknown(self, cell: Computed | None) -> bool:
        return isinstance(cell, NotComputed)

    def uncontrolled(
        self, step: Step, cells: list[Computed | None], control: Computed
    ) -> Sequence[Computed | None]:
        return [control] * len(step.outputs)

    def compute(self, step: Step, cells: list[Computed | None]) -> Sequence[Computed | None]:
        arrays = list[Array | None]()
        for cell in cells:
            if isinstance(cell, NotComputed):
                return [cell] * len(step.outputs)
            arrays.append(cell)
        end = end_of_computation(step, arrays)
        return self.compute_arrays(step, arrays) if end is None else [end] * len(step.outputs)

    def compute_arrays(self, step: Step, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
        """Return the outputs of a node without bodies that NumPy computes."""
        return compute_node(step, arrays)


def end_of_computation(step: Step, arrays: Sequence[Array | None]) -> NotComputed | None:
    """Return the value of the outputs if NumPy does not compute a node for want of a kernel, or a result.

    Random operators have no result that two runtimes share.
    """
    if isinstance(step.work, Lookup):
        return None
    op = step.work if isinstance(step.work, GeneralOp) else find_row(step.node.domain, step.node.type)
    is_random = op is not None and op.draws
    if op is not None and op.draws_if is not None:
        condition = arrays[op.draws_if] if op.draws_if < len(arrays) else None
        is_random = condition is not None and bool(condition.any())
    return NotComputed(step.node, is_random) if step.work is None or is_random else None


class _RepeatRecorder(ForwardArrays):
    """Records the scatter nodes without a reduction whose indices select an element more than once."""

    def __init__(self, plans: Plans) -> None:
        super().__init__(plans)
        self.repeated: dict[str, None] = {}

    def compute_arrays(self, step: Step, cells: Sequence[Array | None]) -> Sequence[Array | None]:
        outputs = compute_node(step, cells)
        if isinstance(step.work, Lookup) and step.node.scope not in self.repeated:
            case = case_of_node(scatter_node_of(step), cells)
            is_sequence = case.task.layout is Layout.SEQUENCE
            if case.task.reduction is Reduction.NONE and not is_sequence and _has_repeats(case):
                self.repeated[step.node.scope] = None
        return outputs


def _has_repeats(case: CheckedCase) -> bool:
    return bool((count_hits(case.task, case.data.shape, case.indices, case.updates.shape) > 1).any())


def compute_node(step: Step, arrays: Sequence[Array | None], *, wraps: bool = False) -> Sequence[Array]:
    """Return the outputs of a node without bodies; None stands for a missing input.

    With `wraps`, negative indices count from the end even if the specification forbids them, as in every
    runtime.

    Raises:
        EvaluationFailed: the node cannot be computed with these inputs.
    """
    node = step.node
    try:
        if not isinstance(step.work, GeneralOp):
            case = case_of_node(scatter_node_of(step), arrays)
            return [run(replace(case, task=replace(case.task, wraps=True)) if wraps else case)]
    except Error as error:
        raise failure(step, str(error), breaks_rule=isinstance(error, IllegalCase)) from error
    except MemoryError as error:
        raise failure(step, "there is not enough memory") from error
    attributes = {name: load(v) if isinstance(v, Constant) else v for name, v in node.attributes.items()}
    try:
        return general_kernels.compute(
            step.work, node.domain, arrays, attributes, opset=opset_number(node),
            output_count=len(step.outputs), element_limit=MOST_ELEMENTS,
        )  # fmt: skip
    except general_kernels.UnsupportedCase as error:
        raise failure(step, str(error)) from error


def scatter_node_of(step: Step) -> ScatterNode:
    """Return the scatter node of a step; it knows attributes, but nothing of its inputs."""
    assert isinstance(step.work, Lookup)
    return ScatterNode(step.node, step.work, Facts())


def by_role(lookup: Lookup, arrays: Sequence[_Cell | None]) -> dict[Role, _Cell]:
    assert lookup.spec is not None
    pairs = zip(lookup.spec.ports, arrays, strict=False)
    return {port.role: array for port, array in pairs if array is not None}


def case_of_node(scatter: ScatterNode, inputs: Sequence[Array | None]) -> CheckedCase:
    """Return the case of a scatter node with these inputs, in the order of the specification."""
    operator, arguments = arguments_of(scatter, by_role(scatter.lookup, inputs))
    return make_case(operator, **arguments)


def arguments_of(scatter: ScatterNode, operands: Mapping[Role, Array]) -> tuple[str, dict[str, Any]]:
    """Return the arguments of `evaluate` for a scatter node."""
    spec, source = scatter.spec, scatter.spec.axis
    of_axis = None if source is None else source.attribute
    roles = (Role.DATA, Role.INDICES, Role.UPDATES)
    arguments: dict[str, Any] = {role.value: operands.get(role) for role in roles}
    arguments |= {row.name: scatter.attribute(row.name) for row in spec.attributes if row.name != of_axis}
    if source is not None:
        arguments["axis"] = scatter.attribute(of_axis) if of_axis else operands.get(Role.AXIS)
    row = spec.attribute("reduction")
    word = None if row is None else scatter.attribute("reduction")
    if row is not None and word in row.undocumented:  # specified in a later version, accepted by runtimes
        spec = next(later for later in scatter.lookup.family if word in later.reductions)
    return str(spec.key), arguments


def check_feeds(inputs: Sequence[GraphInput], feeds: Mapping[str, Any]) -> list[Array]:
    """Return one array for each input of a model, in the dtype of the input's element type.

    A feed may use any name of an input.

    Raises:
        BadFeed: a feed is missing, unknown, given twice, or of the wrong type or shape.
    """
    if not isinstance(feeds, Mapping):
        raise BadFeed(f"the feeds are {with_article(type(feeds).__name__)}, expected arrays by name")
    names = feeds_by_input([(input.names, input.default is not None) for input in inputs], feeds)
    return [_array(input, name, feeds) for input, name in zip(inputs, names, strict=True)]


def _array(input: GraphInput, name: str, feeds: Mapping[str, Any]) -> Array:
    if not name:
        assert input.default is not None
        return load(input.default)
    try:
        array = in_own_dtype(read_array(feeds[name]))
    except OverflowError as error:
        raise BadFeed(f"{name} holds {error}") from None
    except Exception as error:  # any error of the object's own conversion
        raise BadFeed(f"{name} is not an array: {error}") from None
    element_type = input.element_type
    if element_type is not None and element_type.kind == "string":
        if array.dtype.kind not in TEXT_KINDS:
            raise BadFeed(f"{name} is {array.dtype.name}, expected strings")
        array = array.astype(object)
        if not all(isinstance(text, str) for text in array.flat):
            raise BadFeed(f"{name} holds more than strings")
    elif element_type is not None:
        expected = dtype(element_type)
        if expected is None:
            raise BadFeed(f"{name} is {element_type.name}, which NumPy has no type for")
        if array.dtype != expected:
            raise BadFeed(f"{name} is {array.dtype.name}, expected {expected.name}")
    if not agree(input.shape, array.shape):
        raise BadFeed(f"{name} has shape {show(array.shape)}, expected {show(input.shape)}")
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The plans of a model's main graph and of all its graphs; some nodes may not be computable."""

    path: str
    plan: Plan
    plans: Plans

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        return self.plan.inputs


class RunResult(NamedTuple):
    """What a run of a model computes.

    Attributes:
        outputs: arrays by name.
        not_computed: the outputs that depend on an unknown or random operator, with that node.
        repeated: the scopes of scatter nodes without a reduction that repeat a target.
    """

    outputs: dict[str, Array]
    not_computed: dict[str, NotComputed]
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Program(Sketch):
    """A model that can be run, maybe only in part: what depends on an unknown operator is not computed.

    Attributes:
        unknown: the error that names its unknown operators; None if all are known.
    """

    unknown: Error | None = None

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Compute the outputs by name; none shares memory with a feed. Raises what `evaluate_model` does."""
        outputs, not_computed, _ = self._run(feeds, ForwardArrays(self.plans))
        for name, end in not_computed.items():
            if self.unknown is not None:
                raise self.unknown
            message = f"output {name} depends on {end.source}"
            raise UnknownOperator(f"NumPy does not compute {message}", end.node.location)
        return outputs

    def run_in_part(self, feeds: Mapping[str, Any]) -> RunResult:
        """Compute the outputs that depend on no unknown operator, and note which targets repeat."""
        recorder = _RepeatRecorder(self.plans)
        return self._run(feeds, recorder)._replace(repeated=tuple(recorder.repeated))

    def _run(self, feeds: Mapping[str, Any], forward: ForwardArrays) -> RunResult:
        arrays = check_feeds(self.inputs, feeds)
        result = self.named(forward.run(self.plan, arrays))
        for name, array in result.outputs.items():
            if any(np.may_share_memory(array, feed) for feed in arrays):
                result.outputs[name] = array.copy()
        return result

    def named(self, cells: Sequence[Computed | None]) -> RunResult:
        result = RunResult({}, {})
        for output, cell in zip(self.plan.outputs, cells, strict=True):
            if cell is None:
                message = f"output {output.name} is a missing input of a function"
                raise EvaluationFailed(message, Location(self.path))
            if isinstance(cell, NotComputed):
                result.not_computed[output.name] = cell
            else:
                result.outputs[output.name] = cell
        return result


def _demand_ranks(plan: Plan, path: str) -> None:
    """Raise EvaluationFailed if an input has more dimensions than an array of NumPy can have."""
    for input in plan.inputs:
        problem = too_many_dimensions(len(input.shape or ()))
        if problem:
            raise EvaluationFailed(f"{path}: input {input.names[0]} {problem}", Location(path))


def make_sketch(model: "Model | str | Path") -> Sketch:
    """Return the plans of a model; unknown operators and broken rules are allowed.

    Raises:
        UnreadableModel: it cannot be read, an output has no source, or nested function calls expand to too
            many graphs.
        EvaluationFailed: an input has more dimensions than NumPy's arrays.
    """
    loaded = model if isinstance(model, Model) else read(model)
    with collector_paused():
        try:
            main = dataflow_of(loaded)
        except UnknownOperator as error:
            raise UnreadableModel("not-looked-at", str(error), error.location) from None
        plans = make_plans(main, loaded.path, is_sketch=True)
    _demand_ranks(plans[main], loaded.path)
    return Sketch(loaded.path, plans[main], plans)


def prepare(model: "Model | str | Path") -> Program:
    """Check a model and plan its computation; it may have operators that NumPy does not compute.

    Raises:
        UnreadableModel: it cannot be read.
        BrokenModel: its operators, or the file itself, break rules.
        UnknownOperator: nested function calls expand to too many graphs.
        EvaluationFailed: an input has more dimensions than NumPy's arrays.
    """
    loaded = model if isinstance(model, Model) else read(model)
    errors = tuple(finding for finding in validate(loaded) if finding.severity is Severity.ERROR)
    if errors:
        first = errors[0]
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise BrokenModel(f"{loaded.path}: {first.code} {first.message}{more}", errors)
    with collector_paused():
        main = dataflow_of(loaded)
        plans = make_plans(main, loaded.path)
    _demand_ranks(plans[main], loaded.path)
    return Program(loaded.path, plans[main], plans, unknown_operator(plans))
