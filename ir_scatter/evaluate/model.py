"""Runs whole models in NumPy: `prepare` a model once, then `run` it any number of times.

A *sketch* holds the plans of a model that may contain operators which NumPy does not compute. A *program* is
a sketch that was checked and can be run.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.interpreter import (
    Forward,
    LoopProgress,
    NotComputed,
    Plan,
    Plans,
    Shortcut,
    Step,
    body_argument,
    failure,
    load,
    make_plans,
    unknown_operator,
)
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.core.arrays import Array, in_native_dtype, too_many_dimensions
from ir_scatter.core.dataflow import GraphInput, Key, Repeat, feeds_by_input
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
from ir_scatter.evaluate.bound import BindNode, bind_body
from ir_scatter.evaluate.operator import TEXT_KINDS, CheckedCase, make_case, read_array, run
from ir_scatter.formats import dataflow_of
from ir_scatter.ops import general_kernels
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general import find as find_row
from ir_scatter.ops.general_kernels import BoundKernel
from ir_scatter.ops.general_kernels.bound import Unbound
from ir_scatter.ops.kernels.apply import bind_scatter
from ir_scatter.ops.kernels.certainty import count_hits
from ir_scatter.ops.lookup import Lookup, opset_number
from ir_scatter.ops.spec import Layout, Reduction, Role
from ir_scatter.reading import read
from ir_scatter.validate import validate

MOST_ELEMENTS = 1 << 31
"""Maximum elements per output of an operator other than scatter; a larger shape is treated as an error."""

_Cell = TypeVar("_Cell")

Computed: TypeAlias = Array | NotComputed
"""An array, or for a value that cannot be computed, the node that prevents it: an unknown or random
operator, or a case that no specification defines."""


def advance_arrays(
    forward: Forward[_Cell],
    work: Repeat,
    carried: Sequence[_Cell | None],
    captured: Sequence[_Cell | None],
    fast: Shortcut,
    done: int,
    limit: int | None,
    array_of: Callable[[_Cell], Array | None],
    bind: BindNode,
) -> LoopProgress[Array] | None:
    """Run iterations of a loop on arrays by bound functions; None if a cell has more content than an array.

    Args:
        forward: the run of the model.
        work: see `Forward.advance`, as for the other arguments.
        carried: see `Forward.advance`.
        captured: see `Forward.advance`.
        fast: see `Forward.advance`.
        done: see `Forward.advance`.
        limit: see `Forward.advance`.
        array_of: returns the array of a cell, or None if the cell has further content, such as a mask.
        bind: binds a node of the body.
    """

    def plain(cell: _Cell | None) -> Array | None:
        array = None if cell is None else array_of(cell)
        if cell is not None and array is None:
            raise Unbound
        return array

    def constant(key: Key) -> Array:
        array = plain(forward.fetch(plan, {}, key))
        assert array is not None
        return array

    plan, most = forward.plans[work.body], forward.most_iterations - forward.iterations
    try:
        arrays, around = [*map(plain, carried)], [*map(plain, captured)]
    except Unbound:
        return None
    if fast.body is None:
        sources = zip(work.inputs, plan.inputs, arrays, strict=True)
        arguments = [body_argument(input, declared, array, done) for input, declared, array in sources]
        fast.body = bind_body(work, plan, arguments, around, constant, bind) or False
    return fast.body.run(arrays, done, limit, most) if fast.body else None


class ForwardArrays(Forward[Computed]):
    """Computes a model on arrays; values that depend on a node which NumPy cannot compute stay unknown."""

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

    def advance(
        self,
        step: Step,
        work: Repeat,
        carried: Sequence[Computed | None],
        captured: Sequence[Computed | None],
        outputs: Sequence[Computed | None],
        fast: Shortcut,
        done: int,
        limit: int | None,
    ) -> LoopProgress[Computed] | None:
        progress = advance_arrays(
            self, work, carried, captured, fast, done, limit, _array_or_none, self.bind_node
        )
        return cast("LoopProgress[Computed] | None", progress)

    def bind_node(self, step: Step, arrays: Sequence[Array | None], fixed: Sequence[bool]) -> BoundKernel:
        """Return a function that computes a node of a loop body for inputs of these types and shapes."""
        if end_of_computation(step, arrays) is not None:
            raise Unbound
        return bind_node(step, arrays, fixed)

    def compute(self, step: Step, cells: list[Computed | None]) -> Sequence[Computed | None]:
        arrays = list[Array | None]()
        for cell in cells:
            if isinstance(cell, NotComputed):
                return [cell] * len(step.outputs)
            arrays.append(cell)
        end = end_of_computation(step, arrays)
        if end is None:
            try:
                return self.compute_arrays(step, arrays)
            except EvaluationFailed as error:
                end = end_by_refusal(step, error)
        return [end] * len(step.outputs)

    def compute_arrays(self, step: Step, arrays: Sequence[Array | None]) -> Sequence[Array | None]:
        """Compute a node that has no bodies and a kernel."""
        return compute_node(step, arrays)


def _array_or_none(cell: Computed) -> Array | None:
    return None if isinstance(cell, NotComputed) else cell


def end_of_computation(step: Step, arrays: Sequence[Array | None]) -> NotComputed | None:
    """Return a placeholder for the outputs of a node without a kernel or with random results, else None."""
    if isinstance(step.work, Lookup):
        return None
    op = step.work if isinstance(step.work, GeneralOp) else find_row(step.node.domain, step.node.type)
    is_random = op is not None and op.draws
    if op is not None and op.draws_if is not None:
        condition = arrays[op.draws_if] if op.draws_if < len(arrays) else None
        is_random = condition is not None and bool(condition.any())
    return NotComputed(step.node, is_random) if step.work is None or is_random else None


def end_by_refusal(step: Step, error: EvaluationFailed) -> NotComputed:
    """Return a placeholder for the outputs of a node whose kernel does not support its inputs.

    Raises:
        EvaluationFailed: `error` has another cause: a scatter node, or lack of memory.
    """
    if not isinstance(error.__cause__, general_kernels.UnsupportedCase):
        raise error
    return NotComputed(step.node, refusal=error)


class _RepeatRecorder(ForwardArrays):
    """Computes a model; records scatter nodes without a reduction that update an element repeatedly."""

    def __init__(self, plans: Plans) -> None:
        super().__init__(plans)
        self.repeated: dict[str, None] = {}

    def bind_node(self, step: Step, arrays: Sequence[Array | None], fixed: Sequence[bool]) -> BoundKernel:
        if end_of_computation(step, arrays) is not None:
            raise Unbound
        return bind_node(step, arrays, fixed, refuses_repeats=step.node.scope not in self.repeated)

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
    try:
        return general_kernels.compute(
            step.work, node.domain, arrays, attributes_of(step), opset=opset_number(node),
            output_count=len(step.outputs), element_limit=MOST_ELEMENTS,
        )  # fmt: skip
    except general_kernels.UnsupportedCase as error:
        raise failure(step, str(error)) from error


def bind_node(
    step: Step, arrays: Sequence[Array | None], fixed: Sequence[bool], *, refuses_repeats: bool = False
) -> BoundKernel:
    """Compute a node without bodies, and bind it to the types and shapes of its inputs.

    Args:
        step: the node.
        arrays: its inputs.
        fixed: for each input whether it never changes.
        refuses_repeats: whether a scatter node raises `Unbound` if some element has several allowed values.

    Raises:
        Unbound: it cannot be bound.
        Error: it cannot be computed with these inputs.
    """
    if isinstance(step.work, GeneralOp):
        return general_kernels.bind(
            step.work, step.node.domain, arrays, attributes_of(step), fixed=fixed,
            opset=opset_number(step.node), output_count=len(step.outputs), element_limit=MOST_ELEMENTS,
        )  # fmt: skip
    case = case_of_node(scatter_node_of(step), arrays)
    assert isinstance(step.work, Lookup)
    assert step.work.spec is not None
    ports = step.work.spec.ports
    numbers = {port.role: number for number, port in enumerate(ports) if number < len(arrays)}
    axis = numbers.get(Role.AXIS)
    operands = (case.data, case.indices, case.updates)
    places = [numbers.get(role, len(arrays)) for role in (Role.DATA, Role.INDICES, Role.UPDATES)]
    given = [arrays[place] if place < len(arrays) else None for place in places]
    are_alike = all(
        array is operand or (array is not None and operand is not None and array.dtype is operand.dtype)
        for array, operand in zip(given, operands, strict=True)
    )
    if not are_alike or case.result != case.data.dtype or (axis is not None and not fixed[axis]):
        raise Unbound
    function = bind_scatter(case.task, *operands)
    check = _unspecified_check(case) if refuses_repeats else None

    def compute(*inputs: Array | None) -> Array:
        data, indices, updates = [inputs[place] if place < len(inputs) else None for place in places]
        if check is not None:
            check(data, indices, updates)
        return function(data, indices, updates)

    output = compute(*arrays)
    is_direct = check is None and places == [0, 1, 2] and len(arrays) == len(places)
    return BoundKernel(function if is_direct else compute, True, (output,))


def _unspecified_check(case: CheckedCase) -> Callable[..., None] | None:
    """Return a function that raises Unbound if several results are allowed for an element.

    None if the specification always allows one only.
    """
    task, shape, new = case.task, case.data.shape, case.updates.shape
    if task.layout is Layout.SEQUENCE or case.indices is None:
        return None
    if task.reduction is Reduction.NONE:
        depth = case.indices.shape[-1] if task.layout is Layout.TUPLES else 1
        if case.indices.size <= depth:
            return None

        def check_repeats(data: Array, indices: Array, updates: Array) -> None:
            if (count_hits(task, shape, indices, new) > 1).any():
                raise Unbound

        return check_repeats
    if task.reduction not in {Reduction.MIN, Reduction.MAX} or case.data.dtype.kind in "iub":
        return None

    def check_nan(data: Array, indices: Array, updates: Array) -> None:
        if (data != data).any() or (updates != updates).any():
            raise Unbound

    return check_nan


def attributes_of(step: Step) -> Mapping[str, Any]:
    """Return the attributes of a node; attributes that are tensors become arrays."""
    loaded: Mapping[str, Any] | None = step.memo.get("attributes")
    if loaded is None:
        attributes = step.node.attributes
        loaded = {name: load(v) if isinstance(v, Constant) else v for name, v in attributes.items()}
        step.memo["attributes"] = loaded
    return loaded


def scatter_node_of(step: Step) -> ScatterNode:
    """Return the scatter node of a step with its attributes, but without facts about its inputs."""
    scatter: ScatterNode | None = step.memo.get("scatter")
    if scatter is None:
        assert isinstance(step.work, Lookup)
        scatter = step.memo["scatter"] = ScatterNode(step.node, step.work, Facts())
    return scatter


def by_role(lookup: Lookup, arrays: Sequence[_Cell | None]) -> dict[Role, _Cell]:
    assert lookup.spec is not None
    pairs = zip(lookup.spec.ports, arrays, strict=False)
    return {port.role: array for port, array in pairs if array is not None}


def case_of_node(scatter: ScatterNode, inputs: Sequence[Array | None]) -> CheckedCase:
    """Return the checked arguments of a scatter node; `inputs` are in the order of its ports."""
    operator, arguments = arguments_of(scatter, by_role(scatter.lookup, inputs))
    return make_case(operator, **arguments)


def arguments_of(scatter: ScatterNode, operands: Mapping[Role, Array]) -> tuple[str, dict[str, Any]]:
    """Return the operator and the keyword arguments with which `evaluate` computes a scatter node."""
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
        array = in_native_dtype(read_array(feeds[name]))
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
    """The plans of a model's main graph and of all its bodies; some nodes may not be computable."""

    path: str
    plan: Plan
    plans: Plans

    @property
    def inputs(self) -> tuple[GraphInput, ...]:
        return self.plan.inputs


class RunResult(NamedTuple):
    """The results of one run of a model.

    Attributes:
        outputs: arrays by output name.
        not_computed: the other outputs, each with the node that NumPy cannot compute.
        repeated: the scopes of scatter nodes without a reduction that update an element more than once.
    """

    outputs: dict[str, Array]
    not_computed: dict[str, NotComputed]
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Program(Sketch):
    """A model that can be run; outputs that depend on an unknown operator are not computed.

    Attributes:
        unknown: the error that names its unknown operators; None if there are none.
    """

    unknown: Error | None = None

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Compute all outputs by name, in new memory; raise the same errors as `evaluate_model`."""
        outputs, not_computed, _ = self._run(feeds, ForwardArrays(self.plans))
        for end in not_computed.values():
            raise self.error_of(end)
        return outputs

    def error_of(self, end: NotComputed) -> Error:
        """Return the error for an output that cannot be computed because of the node in `end`."""
        message = f"NumPy does not compute {end.source}"
        return end.refusal or self.unknown or UnknownOperator(message, end.node.location)

    def run_in_part(self, feeds: Mapping[str, Any]) -> RunResult:
        """Compute the outputs that depend on no unknown operator; report nodes that repeat indices."""
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
    """Raise EvaluationFailed if an input has more dimensions than NumPy supports."""
    for input in plan.inputs:
        problem = too_many_dimensions(len(input.shape or ()))
        if problem:
            raise EvaluationFailed(f"{path}: input {input.names[0]} {problem}", Location(path))


def make_sketch(model: "Model | str | Path") -> Sketch:
    """Return the plans of a model; unknown operators and broken rules are allowed.

    Raises:
        UnreadableModel: it cannot be read, an output has no source, or nested function calls expand to too
            many graphs.
        EvaluationFailed: an input has more dimensions than NumPy supports.
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


def prepare(model: "Model | str | Path", *, ignore: Collection[str] = ()) -> Program:
    """Check a model and plan its computation; it may have operators that NumPy does not compute.

    Args:
        model: a model, or the path of one.
        ignore: rules that the model may break: the run ends there.

    Raises:
        UnreadableModel: it cannot be read.
        BrokenModel: its operators, or the file itself, break rules.
        UnknownOperator: nested function calls expand to too many graphs.
        EvaluationFailed: an input has more dimensions than NumPy supports.
    """
    loaded = model if isinstance(model, Model) else read(model)
    errors = tuple(
        finding for finding in validate(loaded, ignore=ignore) if finding.severity is Severity.ERROR
    )
    if errors:
        first = errors[0]
        if first.rule == "weights-missing":
            raise UnreadableModel(first.rule, first.message, first.location)
        more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise BrokenModel(f"{loaded.path}: {first.code} {first.message}{more}", errors)
    with collector_paused():
        main = dataflow_of(loaded)
        plans = make_plans(main, loaded.path)
    _demand_ranks(plans[main], loaded.path)
    return Program(loaded.path, plans[main], plans, unknown_operator(plans))
