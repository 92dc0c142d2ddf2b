"""Measures how large rounding errors are: a model is computed in its own types and, beside it, in f64.

The rounding errors of a model are measured, not derived. Each tensor is computed twice by the same kernels.
The distance of the two results is the rounding error that accumulated up to this tensor:

    x        f32: 0.1, 0.2       f64: the same numbers
    Exp      f32: e              f64: E         error |e - E|, about 1e-7
    MatMul   f32: e W            f64: E W       error of Exp and of the sums

A runtime that sums in another order makes other errors, and NumPy's error at one element may be small by
chance. So each element gets a bound: a small multiple (`FACTOR`) of the greatest error among the elements of
the tensor that are about as large, or smaller. A difference within the bound is "explained" by rounding. A
mask tells which elements passed an operator that rounds; all others were only moved, and must be equal.

A device that computes in f16 or bf16 is imitated: all elements, or those of some operators, are rounded to
that type. Near a jump (comparisons, Round, TopK) a difference of inputs within the bound may change an output
completely. Such elements are "near ties": they are marked as unspecified, like contested elements.

This holds for model outputs. The output of a tapped scatter node is judged by the error bound of its own
reduction instead.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ir_scatter.analysis.interpreter import Plans, Step
from ir_scatter.compare.guard import (
    ContestedElements,
    MarkedTensor,
    Observations,
    Unspecified,
    Watcher,
    mark_general,
    mark_scatter,
    unspecified_where,
    whole_tensor,
)
from ir_scatter.compare.measure import FRACTION_BITS, PRECISION_BITS, median_magnitude
from ir_scatter.core.arrays import Array, in_native_dtype
from ir_scatter.core.element_types import ELEMENT_TYPES, dtype, from_dtype
from ir_scatter.core.errors import Error
from ir_scatter.core.model import OPENVINO
from ir_scatter.evaluate.certainty import DetailedResult
from ir_scatter.evaluate.model import Program, by_role, check_feeds, compute_node
from ir_scatter.evaluate.operator import CheckedCase
from ir_scatter.ops.general import GeneralOp
from ir_scatter.ops.general_rounding import Jump, is_basic, jump_of, quotient_port, rounds, scores_port
from ir_scatter.ops.kernels.apply import scatter
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import Role

FACTOR, FACTOR_COARSE = 8, 4
"""Bound of rounding as a multiple of NumPy's greatest error: runtimes sum in other orders, and their
functions may be less accurate than NumPy's. The second factor is for f16 and bf16: there the rounding of
tensors prevails, which is the same everywhere."""

_NEIGHBOURS = 16
"""Minimum elements among which the greatest error is taken: the error of a single one may be small by chance.
"""

_SAMPLE = 1 << 18
"""Maximum elements whose errors are sorted: enough for their greatest, and fast for large tensors."""

LARGEST_SHARE, LARGEST_SHARE_COARSE = 0.01, 0.25
"""A bound explains nothing above this share of an element, or of the median magnitude if that is larger. The
second share is for f16 and bf16, which have few bits."""

_ONE_IN = 8
"""With a seed, one in this many numbers is changed upwards by its last bit, and one downwards."""

_EXCESS = 2
"""Ratio of errors with random last bits to errors of rounding. Random bits change inputs of an operator by
0.5 units in the last place (root mean square), rounding changes its output by 0.3."""

_WIDEST_BITS = 52
_SMALLEST_NORMAL = 2.0**-126
"""Smallest normal number of f32; devices may flush smaller ones to 0."""


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision in which a runner may compute.

    Attributes:
        name: "f16" or "bf16"; "" for the types of the model.
        operators: OpenVINO types of the operators computed in this precision, whose ONNX counterparts are
            included. None for all operators; then all tensors are stored in it too.
    """

    name: str = ""
    operators: frozenset[str] | None = None

    def applies(self, step: Step) -> bool:
        if not self.name or self.operators is None:
            return bool(self.name)
        work = step.work
        return isinstance(work, GeneralOp) and work.type_in(OPENVINO) in self.operators

    def round(self, array: Array) -> Array:
        """Round floating-point numbers to the precision, and return them in their own type."""
        bits = FRACTION_BITS.get(array.dtype.name)
        if bits is None or array.dtype.kind == "c" or bits <= PRECISION_BITS[self.name]:
            return array
        coarse = dtype(ELEMENT_TYPES[self.name])
        with np.errstate(all="ignore"):
            return array.astype(coarse).astype(array.dtype)


MODEL_TYPES = Precision()


@dataclass(frozen=True, slots=True, eq=False)
class RoundedTensor(MarkedTensor):
    """A tensor, and beside it the same tensor computed without rounding.

    Attributes:
        wide: the values without rounding, f64; None if no element was rounded.
        rounded: marks the elements that were rounded; None if there are none.
    """

    wide: Array | None = None
    rounded: Unspecified | None = None


@dataclass(frozen=True, slots=True, eq=False)
class OutputRounding:
    """The rounding errors of one output of a model, element by element.

    Attributes:
        values: the output, computed with rounding.
        bound: f64: the greatest difference that rounding explains; 0 for elements that were not rounded.
        is_too_large: mask of the elements whose bound is so large that it explains nothing.
        precision: the name of the precision in which the output was computed.
        mark: the elements that the specification does not determine: they depend on contested elements or on
            near ties.
    """

    values: Array
    bound: Array
    is_too_large: Array
    precision: str
    mark: Unspecified | None


Roundings = Mapping[str, OutputRounding]
"""The rounding errors of a model's outputs, by output name."""


def measure_rounding(
    program: Program,
    feeds: Mapping[str, Any],
    times: int = 1,
    precision: Precision = MODEL_TYPES,
    seeds: Sequence[int] = (),
    deadline: float | None = None,
) -> list[Roundings]:
    """Compute a model with and without rounding; return the rounding errors of its outputs per inference.

    Args:
        program: the model.
        feeds: its inputs by name.
        times: number of consecutive inferences.
        precision: that of the computation with rounding.
        seeds: each adds a computation in which random last bits of operators' inputs change.
        deadline: when to stop, in seconds of `time.monotonic`; None for never.

    Raises:
        EvaluationFailed: NumPy cannot compute the model.
    """
    arrays = check_feeds(program.inputs, feeds)
    watcher = RoundingWatcher(program.plans, precision)
    watcher.deadline = deadline
    runs = [_run(program, watcher, arrays) for _ in range(times)]
    errors = [{name: _error(tensor) for name, tensor in run.items()} for run in runs]
    for seed in seeds:
        again = RoundingWatcher(program.plans, precision, np.random.default_rng(seed))
        again.deadline = deadline
        for errors_of_run, run in zip(
            errors, [_run(program, again, arrays) for _ in range(times)], strict=True
        ):
            for name, tensor in run.items():
                error, before = _error(tensor), errors_of_run.get(name)
                if before is not None and error.shape == before.shape:
                    errors_of_run[name] = np.maximum(error / _EXCESS, before)
    return [
        {
            name: _output_rounding(tensor, of_run[name], precision, watcher.elements)
            for name, tensor in run.items()
        }
        for run, of_run in zip(runs, errors, strict=True)
    ]


def _run(program: Program, watcher: "RoundingWatcher", arrays: Sequence[Array]) -> dict[str, RoundedTensor]:
    tensors = watcher.run(program.plan, [watcher.lift(array) for array in arrays])
    return {
        output.name: as_rounded(tensor)
        for output, tensor in zip(program.plan.outputs, tensors, strict=True)
        if tensor is not None and tensor.array is not None
    }


def _output_rounding(
    tensor: RoundedTensor, error: Array, precision: Precision, elements: ContestedElements
) -> OutputRounding:
    array, mark = tensor.array, tensor.mark
    assert array is not None
    mark = None if mark is None else replace(mark, contested=elements)
    type = from_dtype(array.dtype)
    name = precision.name or ("" if type is None else type.name)
    bound = bound_of(tensor, precision, error)
    if tensor.wide is None:
        return OutputRounding(array, bound, np.zeros(array.shape, np.bool_), name, mark)
    share = LARGEST_SHARE_COARSE if precision.name else LARGEST_SHARE
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(tensor.wide), median_magnitude(tensor.wide))
        return OutputRounding(array, bound, ~(bound <= share * scale), name, mark)


# Bounds.


def as_rounded(tensor: MarkedTensor) -> RoundedTensor:
    if isinstance(tensor, RoundedTensor):
        return tensor
    return RoundedTensor(tensor.array, tensor.mark, tensor.declared, tensor.end)


def _error(tensor: RoundedTensor) -> Array:
    """Return |values - values without rounding| as f64; infinite if only one of the two is finite."""
    array = tensor.array
    assert array is not None
    if tensor.wide is None:
        return np.zeros(array.shape)
    with np.errstate(all="ignore"):
        narrow = array.astype(np.float64)
        same = (narrow == tensor.wide) | (np.isnan(narrow) & np.isnan(tensor.wide))
        error = np.where(same, 0.0, np.abs(narrow - tensor.wide))
        return np.asarray(np.where(np.isnan(error), np.inf, error))


def bound_of(tensor: RoundedTensor, precision: Precision, error: Array | None = None) -> Array:
    """Return the greatest difference that rounding explains, per element: 0 for those not rounded."""
    array, wide = tensor.array, tensor.wide
    assert array is not None
    if wide is None or tensor.rounded is None or not array.size:
        return np.zeros(array.shape)
    error = _error(tensor) if error is None else error
    mask = np.ones(array.shape, np.bool_)
    if tensor.rounded.origins is not None:
        mask = np.broadcast_to(tensor.rounded.origins != 0, array.shape)
    if not mask.any():
        return np.zeros(array.shape)
    with np.errstate(all="ignore"):
        sizes = np.abs(wide)
    bits = FRACTION_BITS.get(array.dtype.name, _WIDEST_BITS)
    if precision.operators is None:  # else the error shows which elements such an operator reaches
        bits = min(bits, PRECISION_BITS.get(precision.name, bits))
    unit = 2.0 ** -(bits + 1)
    is_typical = mask  # an element that a near tie decides about may be off by anything
    if tensor.mark is not None:
        is_typical = mask & (False if tensor.mark.origins is None else tensor.mark.origins == 0)
    floor = _greatest_errors(sizes, error, is_typical)
    with np.errstate(all="ignore"):
        factor = FACTOR_COARSE if precision.name else FACTOR
        bound = factor * np.maximum(np.maximum(error, floor), unit * sizes)
        bound = np.where(np.isfinite(sizes), bound + _SMALLEST_NORMAL, 0.0)
        bound = np.where(np.isfinite(sizes) | (error == 0), bound, np.inf)
        return np.asarray(np.where(mask, bound, 0.0))


def _greatest_errors(sizes: Array, error: Array, mask: Array) -> Array:
    """Return for each element the greatest error among the elements at most twice as large as it."""
    chosen = np.flatnonzero(mask & np.isfinite(sizes) & np.isfinite(error))
    chosen = chosen[:: max(1, chosen.size // _SAMPLE)]
    if not chosen.size:
        return np.zeros(sizes.shape)
    of_sizes, errors = sizes.reshape(-1)[chosen], error.reshape(-1)[chosen]
    order = np.argsort(of_sizes, kind="stable")
    of_sizes, greatest = of_sizes[order], np.maximum.accumulate(errors[order])
    least = of_sizes[min(_NEIGHBOURS, of_sizes.size) - 1]
    limits = np.maximum(2 * np.nan_to_num(sizes, nan=0.0), least)
    places = np.searchsorted(of_sizes, limits.reshape(-1), side="right") - 1
    return np.asarray(greatest[places].reshape(sizes.shape))


# The computation.


class RoundingWatcher(Watcher):
    """Computes a model with and without rounding, and marks elements that depend on near ties."""

    def __init__(
        self, plans: Plans, precision: Precision = MODEL_TYPES, random: np.random.Generator | None = None
    ) -> None:
        super().__init__(plans, Observations())
        self._precision, self._random = precision, random
        self._scatter: tuple[CheckedCase, DetailedResult] | None = None

    def lift(self, array: Array) -> RoundedTensor:
        return RoundedTensor(array)

    def move(self, function: Callable[..., Array], *cells: MarkedTensor) -> RoundedTensor:
        moved, tensors = super().move(function, *cells), [as_rounded(cell) for cell in cells]
        if moved.array is None or all(tensor.wide is None for tensor in tensors):
            return as_rounded(moved)
        wide = function(*map(_widened, tensors))
        rounded = super().move(function, *(MarkedTensor(each.array, each.rounded) for each in tensors)).mark
        return RoundedTensor(moved.array, moved.mark, wide=wide, rounded=rounded)

    def advance(self, *arguments: Any, **named: Any) -> None:
        """Return None: loops run without the shortcut, which does not compute values without rounding."""

    def note_scatter(self, case: CheckedCase, result: DetailedResult) -> None:
        self._scatter = case, result

    def compute(self, step: Step, cells: list[MarkedTensor | None]) -> Sequence[MarkedTensor | None]:
        inputs = [None if cell is None else as_rounded(cell) for cell in cells]
        is_coarse = self._precision.applies(step)
        does_round = isinstance(step.work, GeneralOp) and rounds(step.work)
        arguments: list[MarkedTensor | None] = [*inputs]
        if is_coarse or (does_round and self._random is not None):
            arguments = [self._perturb(each, is_coarse=is_coarse) for each in inputs]
        self._scatter = None
        outputs = [output or MarkedTensor(None) for output in super().compute(step, arguments)]
        arrays = [output.array for output in outputs]
        if any(array is None for array in arrays) or any(
            tensor is not None and tensor.array is None for tensor in inputs
        ):
            return [as_rounded(output) for output in outputs]
        if is_coarse:
            arrays = [None if array is None else self._precision.round(array) for array in arrays]
        does_round = does_round or is_coarse
        marks = self._near_ties(step, inputs, arrays, [output.mark for output in outputs])
        has_floats = any(array is not None and _is_rounded_type(array) for array in arrays)
        is_exact = all(each is None or each.wide is None for each in inputs) and not does_round
        if not has_floats or (is_exact and not isinstance(step.work, Lookup)):
            return [RoundedTensor(array, mark) for array, mark in zip(arrays, marks, strict=True)]
        wide = self._without_rounding(step, inputs, arrays)
        rounded = self._marks_of_rounding(step, inputs, arrays, wide, does_round=does_round)
        return [
            RoundedTensor(array, mark)
            if array is None or of_array is None or not _is_rounded_type(array)
            else RoundedTensor(array, mark, wide=wide_array, rounded=of_array)
            for array, mark, wide_array, of_array in zip(arrays, marks, wide, rounded, strict=True)
        ]

    def _perturb(self, tensor: RoundedTensor | None, *, is_coarse: bool) -> RoundedTensor | None:
        """Change random last bits of an input, and round it to a coarser precision."""
        if tensor is None or tensor.array is None or not _is_rounded_type(tensor.array):
            return tensor
        array = tensor.array
        if self._random is not None:
            unit = 2.0 ** -FRACTION_BITS[array.dtype.name]
            draws = self._random.integers(0, _ONE_IN, array.shape)
            steps = (draws == 0).astype(np.int8) - (draws == 1).astype(np.int8)
            with np.errstate(all="ignore"):
                array = (array.astype(np.float64) * (1 + unit * steps)).astype(array.dtype)
        is_stored = is_coarse and self._precision.operators is None  # inputs are stored in that precision too
        return replace(tensor, array=self._precision.round(array) if is_stored else array)

    def _without_rounding(
        self, step: Step, inputs: Sequence[RoundedTensor | None], arrays: Sequence[Array | None]
    ) -> list[Array | None]:
        """Return the outputs computed in f64; if a kernel refuses f64, from inputs in their own types."""
        operands = [None if tensor is None else _widened(tensor) for tensor in inputs]
        computed: Sequence[Array | None]
        if isinstance(step.work, Lookup):
            assert self._scatter is not None
            case, result = self._scatter
            computed = [_scatter_without_rounding(step, case, result, operands)]
        elif isinstance(step.work, GeneralOp) and step.work.copies:
            computed = operands[:1]
        else:
            try:
                computed = compute_node(step, operands)
            except Error:
                narrow = [
                    None
                    if operand is None or tensor is None or tensor.array is None
                    else operand.astype(tensor.array.dtype)
                    for operand, tensor in zip(operands, inputs, strict=True)
                ]
                try:
                    computed = compute_node(step, narrow)
                except Error:
                    computed = arrays
        with np.errstate(all="ignore"):
            return [
                None
                if array is None
                else wide.astype(np.float64)
                if wide is not None and wide.shape == array.shape
                else array.astype(np.float64)
                if _is_rounded_type(array)
                else None
                for array, wide in zip(arrays, [*computed, *[None] * len(arrays)], strict=False)
            ]

    def _marks_of_rounding(
        self,
        step: Step,
        inputs: Sequence[RoundedTensor | None],
        arrays: Sequence[Array | None],
        wide: Sequence[Array | None],
        *,
        does_round: bool,
    ) -> list[Unspecified | None]:
        """Return a mark for each output: which elements were rounded by this node or upstream."""
        work, before = step.work, [_as_mark(tensor) for tensor in inputs]
        if isinstance(work, Lookup):
            assert self._scatter is not None
            case, result = self._scatter
            mark = mark_scatter(step, case, result, by_role(work, before), ContestedElements())
            mask = result.bound_from_values() > 0
            if self._precision.applies(step):
                mask = np.ones(mask.shape, np.bool_)
            if mark is not None and mark.origins is not None:
                mask |= mark.origins != 0
            return [unspecified_where(mask) if mask.any() else None]
        if does_round and not (
            isinstance(work, GeneralOp) and is_basic(work) and not self._precision.applies(step)
        ):
            return [None if array is None else whole_tensor("", array.shape) for array in arrays]
        marks = mark_general(step, before, arrays)
        if not does_round:
            return marks
        result_marks = list[Unspecified | None]()
        for array, exact, mark in zip(arrays, wide, marks, strict=True):
            if array is None or exact is None:
                result_marks.append(None)
                continue
            with np.errstate(all="ignore"):
                narrow = array.astype(np.float64)
                mask = ~((narrow == exact) | (np.isnan(narrow) & np.isnan(exact)))
            if mark is not None:
                mask |= True if mark.origins is None else mark.origins != 0
            result_marks.append(unspecified_where(mask) if mask.any() else None)
        return result_marks

    # Near ties.

    def _near_ties(
        self,
        step: Step,
        inputs: Sequence[RoundedTensor | None],
        arrays: Sequence[Array | None],
        marks: Sequence[Unspecified | None],
    ) -> list[Unspecified | None]:
        """Add marks for elements that may jump if an input changes within its bound."""
        jump = jump_of(step.work) if isinstance(step.work, GeneralOp) else None
        first = inputs[0] if inputs else None
        if jump is None or first is None or first.array is None:
            return [*marks]
        assert isinstance(step.work, GeneralOp)
        is_exact = all(each is None or each.wide is None for each in inputs)
        if jump is not Jump.ORDER and is_exact and quotient_port(step.work) is None:
            return [*marks]
        masks: Sequence[Array | None] = [None] * len(arrays)
        why = f"{step.node.type} {step.node.scope}: rounding decides"
        with suppress(Error, ValueError):
            if jump is Jump.COMPARISON:
                masks = [self._compared_ties(inputs)]
            elif jump is Jump.STEP:
                masks = self._steps(step, inputs, arrays)
            elif jump is Jump.ORDER:
                why = f"{step.node.type} {step.node.scope}: equal values, order not specified"
                masks = _order_ties(step, first, bound_of(first, self._precision), arrays)
            else:
                ties = self._selected_ties(step, inputs, first)
                masks = [ties.reshape(-1)[None, None]] * len(arrays)
        return [
            mark if array is None else _with_ties(mark, ties, array.shape, why)
            for array, mark, ties in zip(arrays, marks, masks, strict=False)
        ]

    def _compared_ties(self, inputs: Sequence[RoundedTensor | None]) -> Array:
        first, second = inputs[0], inputs[1]
        assert first is not None
        assert second is not None
        bounds = bound_of(first, self._precision), bound_of(second, self._precision)
        with np.errstate(all="ignore"):
            limit = np.add(*bounds)
            left, right = _widened(first), _widened(second)
            distance = np.where(left == right, 0.0, np.abs(left.astype(np.float64) - right))
            return np.asarray((distance <= limit) & (limit > 0))

    def _selected_ties(
        self, step: Step, inputs: Sequence[RoundedTensor | None], first: RoundedTensor
    ) -> Array:
        """Return which elements, or scores, may be selected or not."""
        assert isinstance(step.work, GeneralOp)
        port = scores_port(step.work)
        if step.node.type == "NonMaxSuppression":
            return self._suppression_ties(step, inputs)
        scores = None if port is None else inputs[port]
        if scores is None or scores.array is None:
            return _selection_ties(step, first, bound_of(first, self._precision))
        bound = bound_of(scores, self._precision)
        wide, axis = _widened(scores), scores.array.ndim - 1
        ties = _sorted_ties(scores.array, bound, axis, wide) & (bound > 0)
        if step.node.type.startswith("CTC"):  # only the best class of a step matters
            ties &= wide >= wide.max(axis, keepdims=True) - 2 * bound
        return np.asarray(ties)

    def _suppression_ties(self, step: Step, inputs: Sequence[RoundedTensor | None]) -> Array:
        """Return a mask of the scores of NonMaxSuppression whose selection rounding may change.

        Such a score is near another score or the threshold, or its box overlaps another one by nearly the
        threshold. The overlap of two boxes changes by at most eight times the bound of their corners, divided
        by their smallest side.
        """
        boxes, scores, _, overlap, least = [*inputs, *[None] * 5][:5]
        assert boxes is not None
        assert scores is not None
        assert scores.array is not None
        limit = None if least is None or least.array is None else _scalar(least)
        wide, bound = _widened(scores), bound_of(scores, self._precision)
        ties = _sorted_ties(scores.array, bound, wide.ndim - 1, wide) & (bound > 0)
        if limit is not None:
            ties &= wide >= limit - bound
            ties |= (np.abs(wide - limit) <= bound) & (bound > 0)
        corners, errors = _widened(boxes), bound_of(boxes, self._precision)
        if overlap is None or overlap.array is None or not (errors > 0).any():
            return np.asarray(ties)
        is_centred = str(step.node.attributes.get("center_point_box", 0)) == "1"
        is_centred |= str(step.node.attributes.get("box_encoding", "")) == "center"
        with np.errstate(all="ignore"):
            for batch, error in zip(corners, errors.max(axis=-1), strict=True):
                shares, sides = _overlaps(batch, is_centred=is_centred)
                margins = 8 * np.maximum(error[:, None], error[None, :]) / sides
                near = np.abs(shares - _scalar(overlap)) <= margins
                np.fill_diagonal(near, False)
                ties |= (near & (margins > 0)).any(axis=0)
        return np.asarray(ties)

    def _steps(
        self, step: Step, inputs: Sequence[RoundedTensor | None], arrays: Sequence[Array | None]
    ) -> list[Array | None]:
        """Return masks of output elements that jump when the input changes by its bound; None: no jump."""
        first = inputs[0]
        assert first is not None
        if all(array is None or _converts(step, array) for array in arrays):
            return [None] * len(arrays)
        if first.wide is None:
            return self._quotient_ties(step, inputs, len(arrays))
        bound = bound_of(first, self._precision)
        others = [None if tensor is None else _widened(tensor) for tensor in inputs[1:]]
        ends = []
        with np.errstate(all="ignore"):
            for sign in (-1, 1):
                moved = (first.wide + sign * bound).astype(np.float64)
                ends.append(compute_node(step, [moved, *others]))
            masks = list[Array | None]()
            for low, high in zip(*ends, strict=True):
                differs = low != high
                if low.dtype.kind == "f" and low.shape == bound.shape:
                    differs &= ~(np.abs(high - low) <= 4 * bound)
                masks.append(np.asarray(differs))
        return masks

    def _quotient_ties(
        self, step: Step, inputs: Sequence[RoundedTensor | None], count: int
    ) -> list[Array | None]:
        """Return which quantised elements change if the quotient changes by a few last bits."""
        assert isinstance(step.work, GeneralOp)
        port = quotient_port(step.work)
        tensor = None if port is None or port >= len(inputs) else inputs[port]
        if port is None or tensor is None or tensor.array is None or not _is_rounded_type(tensor.array):
            return [None] * count
        arrays = [None if each is None else _widened(each) for each in inputs]
        unit = FACTOR * 2.0 ** -(FRACTION_BITS[tensor.array.dtype.name] + 1)
        ends = []
        with np.errstate(all="ignore"):
            for sign in (-1, 1):
                changed = _widened(tensor) * (1 + sign * unit)
                ends.append(compute_node(step, [*arrays[:port], changed, *arrays[port + 1 :]]))
        return [np.asarray(low != high) for low, high in zip(*ends, strict=True)]


def _converts(step: Step, array: Array) -> bool:
    """Return whether a node only changes the floating-point type of its input."""
    return isinstance(step.work, GeneralOp) and step.work.copies and _is_rounded_type(array)


def _with_ties(
    mark: Unspecified | None, ties: Array | None, shape: tuple[int, ...], why: str
) -> Unspecified | None:
    """Add near ties to a mark; if their shape is not the output's, the output's shape depends on them."""
    if ties is None or not ties.any():
        return mark
    if ties.shape != shape:
        return Unspecified(None, why)
    if mark is None:
        return unspecified_where(ties, why)
    if mark.origins is None:
        return mark
    return Unspecified(np.where(ties, np.int64(-1), mark.origins), mark.why or why)


def _sorted_ties(array: Array, bound: Array, axis: int | None, wide: Array | None = None) -> Array:
    """Return a mask of the elements with a neighbour along the axis that is equal, or within both bounds."""
    values = array if wide is None else wide
    values = values.astype(np.float64) if values.dtype.kind != "f" else values
    if axis is None:
        flat = _sorted_ties(values.reshape(-1), bound.reshape(-1), 0)
        return flat.reshape(array.shape)
    order = np.argsort(values, axis=axis, kind="stable")
    ordered, limits = np.take_along_axis(values, order, axis), np.take_along_axis(bound, order, axis)
    with np.errstate(all="ignore"):
        gaps = np.diff(ordered, axis=axis)
        lower, upper = _cut(limits, axis, slice(None, -1)), _cut(limits, axis, slice(1, None))
        near = (gaps <= lower + upper) | (
            _cut(ordered, axis, slice(None, -1)) == _cut(ordered, axis, slice(1, None))
        )
    ties = np.zeros(array.shape, np.bool_)
    _cut(ties, axis, slice(None, -1))[...] |= near
    _cut(ties, axis, slice(1, None))[...] |= near
    result = np.zeros(array.shape, np.bool_)
    np.put_along_axis(result, order, ties, axis)
    return result


def _selection_ties(step: Step, tensor: RoundedTensor, bound: Array) -> Array:
    """Return a mask of the elements that NonZero or Unique may select or not, because of rounding.

    They are near 0 (NonZero) or near another element. Elements that are exactly 0, or exactly equal, both
    with and without rounding are no ties: other runtimes compute the same, as for the zeros of Relu.
    """
    array = tensor.array
    assert array is not None
    wide = array if tensor.wide is None else tensor.wide
    if step.node.type == "NonZero":
        with np.errstate(all="ignore"):
            is_zero = (array == 0) & (wide == 0)
            return np.asarray((np.abs(wide) <= bound) & ~is_zero)
    if step.node.type != "Unique":
        return _sorted_ties(array, bound, axis=None, wide=tensor.wide)
    narrow, exact, limits = array.reshape(-1), wide.reshape(-1), bound.reshape(-1)
    order = np.lexsort((narrow, exact))
    with np.errstate(all="ignore"):
        gaps = np.diff(exact[order])
        near = gaps <= limits[order][:-1] + limits[order][1:]
        near &= (gaps != 0) | (np.diff(narrow[order]) != 0)
    ties = np.zeros(array.size, np.bool_)
    ties[order[:-1]] |= near
    ties[order[1:]] |= near
    return ties.reshape(array.shape)


def _scalar(tensor: RoundedTensor) -> float:
    return float(_widened(tensor).reshape(-1)[0])


def _overlaps(boxes: Array, *, is_centred: bool) -> tuple[Array, Array]:
    """Return for each pair of boxes [n, 4] intersection over union, and the smallest side of both: [n, n]."""
    first, second = boxes[:, :2], boxes[:, 2:]
    low, high = np.minimum(first, second), np.maximum(first, second)
    if is_centred:
        low, high = first - second / 2, first + second / 2
    sides = high - low
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    common = np.maximum(shared, 0).prod(axis=-1)
    areas = sides.prod(axis=-1)
    smallest = sides.min(axis=-1)
    return common / (areas[:, None] + areas - common), np.minimum(smallest[:, None], smallest)


def _cut(array: Array, axis: int, part: slice) -> Array:
    return array[(*[slice(None)] * axis, part)]


def _order_ties(
    step: Step, tensor: RoundedTensor, bound: Array, arrays: Sequence[Array | None]
) -> list[Array | None]:
    """Return a mask per output of TopK, ArgMax or ArgMin: elements that depend on the order of near ties.

    ONNX sorts equal elements by their positions, and so does OpenVINO with `stable`. This does not determine
    the order of elements that only rounding makes equal.
    """
    array, attributes = tensor.array, step.node.attributes
    assert array is not None
    is_topk = step.node.type.lower() == "topk"
    default = -1 if is_topk else 0
    axis = int(attributes.get("axis", default)) % max(array.ndim, 1)
    is_specified = step.node.domain != OPENVINO or str(attributes.get("stable", "")).lower() in {"true", "1"}
    ties = _sorted_ties(array, bound, axis, tensor.wide)
    if is_specified:  # equal elements that were not rounded stay in order
        ties &= bound > 0
    if not ties.any():
        return [None] * len(arrays)
    if not is_topk:
        extreme = np.max if "max" in step.node.type.lower() else np.min
        values = array if tensor.wide is None else tensor.wide
        best = extreme(values, axis=axis, keepdims=True)
        with np.errstate(all="ignore"):
            at_best = ties & (np.abs(values.astype(np.float64) - best) <= 2 * bound)
        mask = at_best.any(axis=axis, keepdims=True)
        return [mask if each is None or each.ndim == mask.ndim else mask.squeeze(axis) for each in arrays]
    positions = arrays[1] if len(arrays) > 1 else None
    if positions is None:
        return [None] * len(arrays)
    of_positions = np.take_along_axis(ties, positions.astype(np.int64), axis)
    words = str(attributes.get("sort", "value")).lower()
    is_sorted = words == "value" and str(attributes.get("sorted", 1)) not in {"0", "False"}
    if is_sorted:
        return [None, of_positions]
    whole = np.broadcast_to(of_positions.any(axis=axis, keepdims=True), of_positions.shape)
    return [whole, whole]


# Types.


def _is_rounded_type(array: Array) -> bool:
    """Return whether an array has a floating-point type with fewer fraction bits than f64."""
    bits = FRACTION_BITS.get(array.dtype.name)
    return bits is not None and bits < _WIDEST_BITS and array.dtype.kind != "c"


def _widened(tensor: RoundedTensor) -> Array:
    """Return the values without rounding as f64; arrays of other types are returned unchanged."""
    array = tensor.array
    assert array is not None
    if tensor.wide is not None:
        return tensor.wide
    return array.astype(np.float64) if _is_rounded_type(array) else array


def _as_mark(tensor: RoundedTensor | None) -> MarkedTensor | None:
    """Return a tensor whose mark is the mask of rounded elements."""
    return None if tensor is None else MarkedTensor(tensor.array, tensor.rounded)


def _scatter_without_rounding(
    step: Step, case: CheckedCase, result: DetailedResult, operands: Sequence[Array | None]
) -> Array:
    """Return a scatter node's output computed in f64.

    Elements differ from the rounded output by at least the error bound of the node's reduction. The order of
    a sum is not specified, and the order that NumPy uses may be exact by chance.
    """
    assert isinstance(step.work, Lookup)
    roles = by_role(step.work, operands)
    data, updates = in_native_dtype(roles[Role.DATA]), in_native_dtype(roles[Role.UPDATES])
    if data.dtype != np.float64:
        return data
    with np.errstate(all="ignore"):
        exact = scatter(case.task, data, case.indices, updates)
        bound, narrow = result.bound_from_values(), result.values.astype(np.float64)
        error = exact - narrow
        more = np.where(error < 0, -1.0, 1.0) * np.maximum(bound - np.abs(error), 0.0)
        return np.asarray(np.where(np.isfinite(more), exact + more, exact))
