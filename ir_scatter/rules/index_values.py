"""Rules about the number of indices and their values."""

from dataclasses import replace

from ir_scatter.analysis.conditions import index_count, index_excess, position_count
from ir_scatter.analysis.relative_sizes import LARGE, Relative, RelativeSizes
from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.analysis.signature import Fact
from ir_scatter.analysis.symbolic import breach_of_range
from ir_scatter.core.diagnostics import Related, Severity
from ir_scatter.core.element_types import NUMERIC
from ir_scatter.core.parameters import Parameter
from ir_scatter.core.shapes import element_count
from ir_scatter.core.words import counted, listed
from ir_scatter.ops.general_bounds import Interval, show_bounds
from ir_scatter.ops.index_values import BadIndices, negative
from ir_scatter.ops.spec import IndexRange, Layout, Reduction, Role
from ir_scatter.rules.base import Finding, Findings, Rule, newest_version

_OF_FAULTS = frozenset(
    {Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.INDEX_FAULTS}
)
"""The facts about a node that checks of constant index values read."""


def _constant_note(scatter: ScatterNode, role: Role, bad: BadIndices | None = None) -> tuple[Related, ...]:
    """Return a note about the constant that an input comes from, with the position of the bad index in it."""
    operand = scatter.operand(role)
    constant = scatter.facts.origin(operand.value) if operand else None
    if operand is None or constant is None:
        return ()
    detail = ""
    if bad is not None and constant.shape == scatter.indices_shape:
        detail = f": {bad.value} at {list(bad.position)}, {bad.count} in all"
    elif bad is not None and (array := constant.load()) is not None:
        import numpy

        for position in numpy.argwhere(array == bad.value)[:1].tolist():
            detail = f": {bad.value} at {position}, {bad.count} in all"
    kind = "Const" if scatter.spec.drops_attributes else "constant"
    message = f'{operand.port.name} comes from {kind} "{constant.name}"{detail}'
    return (Related(message, constant.location, constant.span),)


def _bad_indices(scatter: ScatterNode, bad: BadIndices, expected: str, help: str) -> Finding:
    name = scatter.indices.port.name if scatter.indices else "indices"
    where = f"{name}{list(bad.position)}" if bad.position else name
    more = "" if bad.count == 1 else f" ({bad.count} such values)"
    related = _constant_note(scatter, Role.INDICES, bad)
    message = f"{where} is {bad.value}, {expected}{more}"
    return Finding(message, role=Role.INDICES, related=related, label=expected, help=help)


def _check_computed(scatter: ScatterNode, *, is_negative: bool) -> Findings:
    """Report computed indices that are out of range for every possible input.

    With `is_negative`, report instead those that are negative where that is illegal. It is a warning if the
    node may not run, or if its indices may be empty.
    """
    outside, indices = scatter.computed_outside, scatter.indices
    if outside is None or indices is None or outside.is_negative is not is_negative:
        return
    if scatter.reach.is_never:
        return
    size, name = outside.size, indices.port.name
    if outside.column is not None:
        name = f"{name}[..., {outside.column}]"
    subject = name if outside.occurrence.is_all else f"an element of {name}"
    low = 0 if is_negative or not scatter.wraps else -(size or 0)
    expected = "expected 0 at least" if size is None else f"expected {low} to {size - 1}"
    expected += f" in {scatter.spec.key}" if is_negative else ""
    numbers = show_bounds(*outside.bounds)
    if outside.relative is not None:
        numbers, expected = _in_terms_of_size(scatter, outside.bounds, outside.relative)
    conditions = [scatter.reach.when, "" if outside.occurrence.is_certain else "indices are not empty"]
    condition = listed([text for text in conditions if text])
    message = f"{subject} is {numbers}, {expected}{condition and f', if {condition}'}"
    related = tuple(filter(None, [scatter.outside_source]))
    yield Finding(message, role=Role.INDICES, related=related, label=expected, is_tolerated=bool(condition))


def _check_repeated(scatter: ScatterNode) -> Findings:
    """Report computed indices that repeat a target for every input; too many of them are another finding."""
    why = scatter.certainly_repeats
    if not why or scatter.computed_outside is not None or scatter.reach.is_never:
        return
    if index_excess(scatter) is not None or scatter.has_equal_updates:
        return
    assert scatter.indices is not None
    condition = f", if {scatter.reach.when}" if scatter.reach.when else ""
    message = (
        f"{scatter.indices.port.name} repeat a target for every input: {why}{condition}, expected different "
        "targets: with reduction none the order is undefined"
    )
    yield Finding(message, role=Role.INDICES, label="a target twice")


def _in_terms_of_size(scatter: ScatterNode, offsets: Interval, limit: Relative) -> tuple[str, str]:
    """Return (actual, expected) as texts for indices that are bounded by a dynamic size n.

    Example: ("n to n + 2", "expected 0 to n - 1").
    """
    dim = scatter.facts.result_of(RelativeSizes).dim(limit.size)
    symbol = "" if isinstance(dim, int) else dim.symbol or ""
    name = symbol or "n"

    def format_sum(offset: float) -> str:
        return f"{name} {'+' if offset > 0 else '-'} {abs(int(offset))}" if offset else name

    if offsets.low == offsets.high:
        numbers = format_sum(offsets.low)
    else:
        end = f"to {format_sum(offsets.high)}" if offsets.high < LARGE else "or more"
        numbers = f"{format_sum(offsets.low)} {end}"
    size = format_sum(limit.offset)
    low = f"-({size})" if limit.offset else f"-{size}"
    where = "" if symbol else f", where n is dimension {limit.size.axis} of {limit.size.value.name or 'data'}"
    return numbers, f"expected {low if scatter.wraps else 0} to {format_sum(limit.offset - 1)}{where}"


@Rule("SCT302", "index-out-of-range", reads=_OF_FAULTS)
def index_out_of_range(scatter: ScatterNode) -> Findings:
    """Index out of range: data has no such position.

    Why: runtimes refuse it at best; some write outside of the tensor's memory.
    Applies to: every operator, if indices are constant, can be computed from constants, or are out of range
    for all possible inputs, also for a dynamic size: indices 0 to n for n positions. On a dimension of size s
    an index outside of [-s, s-1] is illegal in every version. For TensorScatter in linear mode all updates
    from the start position must fit. A warning if the inputs decide whether the node runs or whether indices
    are empty.
    Runtimes: OpenVINO's CPU plugin crashes or silently writes outside of the tensor for ScatterUpdate on
    small integer data and for ScatterElementsUpdate below -s; onnxruntime refuses it at inference.
    Example: index 7 on a dimension of size 5.
    Fix: check the producer of the indices: off by one, the size of another axis, or a padding value.
    """
    bad = scatter.out_of_range
    if bad is not None:
        size = bad.size or 0
        low = -size if scatter.wraps else 0
        expected = f"{low} to {size - 1}" if size else "no index: the dimension is empty"
        yield _bad_indices(scatter, bad, f"expected {expected}", _help_for_range(scatter, bad, low))
    yield from _check_computed(scatter, is_negative=False)


def _help_for_range(scatter: ScatterNode, bad: BadIndices, low: int) -> str:
    """Return the advice for an index out of range, by its likely cause.

    Likely causes are indices that count from 1, an index one past the end, and a padding value.
    """
    array, size = scatter.index_array, bad.size or 0
    if not size or array is None or not bad.position:
        return ""
    column = array[..., bad.position[-1]] if scatter.spec.layout is Layout.TUPLES else array
    drop = Parameter("guard", "drop", "convert")
    dropped = f"; if {size} means that nothing is written, convert it with {drop}"
    more = dropped if bad.value == size else ""
    if bad.value == size == int(column.max()) and int(column.min()) >= 1:
        return f"subtract 1 from the indices if they count from 1{more}"
    nearest = {size: f"{size - 1} for the last position", low - 1: f"{low} for the first position"}
    legal = nearest.get(bad.value, f"an index from {low} to {size - 1}")
    return f"write {legal}, or check if these indices belong to another axis{more}"


@Rule("SCT303", "negative-index", reads=_OF_FAULTS)
def negative_index(scatter: ScatterNode) -> Findings:
    """Negative index: this version of the operator does not allow it.

    Why: only later versions count negative indices from the end; the specification of this one forbids them.
    Applies to: ScatterUpdate-3, ScatterNDUpdate-3, and TensorScatter in linear mode. A warning for
    ScatterElementsUpdate-3, because runtimes count from the end as intended.
    Runtimes: ScatterUpdate: OpenVINO's CPU plugin refuses it or writes outside of the tensor, the GPU plugin
    writes to wrong positions. ScatterNDUpdate-3: CPU counts from the end, GPU writes to wrong positions.
    ScatterElementsUpdate-3: both count from the end.
    Example: index -1 of ScatterUpdate on a dimension of size 5: write 4.
    Fix: add the size of the dimension to negative indices, or use ScatterNDUpdate-15 or
    ScatterElementsUpdate-12, which allow them.
    """
    if scatter.spec.index_range is not IndexRange.NON_NEGATIVE:
        return
    yield from _check_computed(scatter, is_negative=True)
    if scatter.index_array is None or scatter.limits is None:
        return
    bad = negative(scatter.index_array, scatter.limits)
    if bad is not None:
        high = "" if bad.size is None else f" to {bad.size - 1}"
        expected = f"expected 0{high or ' at least'} in {scatter.spec.key}"
        help = "" if bad.size is None else f"write {bad.value + bad.size}, which is {bad.value} from the end"
        if scatter.spec.layout is Layout.SEQUENCE:
            help = f"start at 0{high}"
        finding = _bad_indices(scatter, bad, expected, help)
        later = scatter.lookup.family[-1]
        if scatter.wraps and later.index_range is IndexRange.WRAPPING:
            help = f"{later.key} counts from the end"
            finding = replace(finding, help=help, fixed_by=newest_version(scatter))
        yield finding


_OF_PROOFS = frozenset(
    {
        Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.CONSTANCY,
        Fact.INDEX_FAULTS, Fact.INDICES, Fact.PRODUCERS, Fact.NAMES,
    }
)  # fmt: skip
"""The facts that proofs about indices read: everything upstream of the node."""


@Rule("SCT310", "index-may-be-out-of-range", reads=_OF_PROOFS, needs_given=True, is_legality=False)
def index_may_be_out_of_range(scatter: ScatterNode) -> Findings:
    """Index may be out of range for inputs that satisfy the conditions given for them.

    Why: the model is legal, but not for every input that its caller may pass: runtimes then refuse the run,
    write outside of the tensor, or skip the update.
    Applies to: every operator whose indices are computed from inputs, if conditions on these are given
    (`--given "position in 0..31"`). Without them nothing is reported: `ir-scatter contract` shows the
    conditions that inputs must satisfy.
    Runtimes: see SCT302.
    Example: indices are a position from 0 to 16, and the cache has 16 positions.
    Fix: give a narrower range, and check inputs before each run (`ir-scatter contract --format python`).
    """
    if scatter.has_constant_indices or not scatter.facts.given:
        return
    breach, is_certain = breach_of_range(scatter)
    if breach:
        given = ", ".join(scatter.facts.given)
        message = f"indices of {scatter.node.scope} {breach}, for {given}"
        yield Finding(message, role=Role.INDICES, is_tolerated=not is_certain)


@Rule("SCT304", "repeated-targets", Severity.WARNING, reads=_OF_FAULTS | {Fact.CONSTANCY})
def repeated_targets(scatter: ScatterNode) -> Findings:
    """Duplicate indices: an element is targeted more than once, for every input, and there is no reduction.

    Why: the specification does not define the order of writes, so the result may change from run to run and
    from device to device.
    Applies to: every operator with reduction none, if indices are constant, or copies of fewer ones, unless
    all updates of a target are proven equal, as in a fill.
    Runtimes: OpenVINO's CPU plugin gives different results from run to run for ScatterUpdate and
    ScatterNDUpdate; for ScatterElementsUpdate the last update won in all measurements.
    Example: indices [3, 1, 3] of ScatterUpdate.
    Fix: remove the repetition, or set the reduction you intend.
    """
    if scatter.reduction is not Reduction.NONE or scatter.out_of_range is not None:
        return
    yield from _check_repeated(scatter)
    repeats = scatter.repeats
    if repeats is None or scatter.has_equal_updates:
        return
    noun = "tuples" if scatter.spec.layout is Layout.TUPLES else "indices"
    message = (
        f"{repeats.count} of {repeats.total} {noun} repeat a target, first at {list(repeats.first)} that of "
        f"{list(repeats.earlier)}, expected different targets: with reduction none the order is undefined"
    )
    help = (
        "" if scatter.spec.reductions else "remove the repetition: probably only the last update is intended"
    )
    related = _constant_note(scatter, Role.INDICES)
    yield Finding(message, role=Role.INDICES, related=related, label="a target twice", help=help)


@Rule("SCT306", "more-indices-than-positions", Severity.WARNING, reads=_OF_FAULTS | {Fact.CONSTANCY})
def more_indices_than_positions(scatter: ScatterNode) -> Findings:
    """More indices than positions they can target, and there is no reduction.

    Why: some element is targeted more than once: only one of its updates survives, and the specification does
    not say which one. The author may have intended a sum or a mean.
    Applies to: every operator with reduction none whose indices are not constant, unless all updates are
    proven equal.
    Runtimes: see SCT304. torch's exporter (2.14) writes `scatter_reduce` with `reduce="mean"` without a
    reduction.
    Example: 7 indices of ScatterUpdate on a dimension of size 5.
    Fix: set the reduction you intend, or use fewer indices.
    """
    numbers = index_excess(scatter)
    if numbers is None or scatter.has_equal_updates:
        return
    count, positions = numbers
    lost = count - positions
    indices = f"{count} indices" if index_count(scatter) == count else f"{count} indices or more"
    most = "" if position_count(scatter) == positions else "at most "
    message = (
        f"{indices} for {most}{counted(positions, 'position')}: without a reduction at least "
        f"{counted(lost, 'update')} {'is' if lost == 1 else 'are'} lost"
    )
    yield Finding(message, role=Role.INDICES)


@Rule(
    "SCT307", "indices-not-checked", Severity.NOTE, reads={Fact.INPUTS, Fact.CONSTANCY, Fact.UNREAD_INDICES}
)
def indices_not_checked(scatter: ScatterNode) -> Findings:
    """Constant indices were not checked because there are too many.

    Why: without this note, no finding would look like correct indices.
    Applies to: constant indices with more elements than --max-index-elements.
    Runtimes: not affected.
    Example: a constant of 100 million indices.
    Fix: raise --max-index-elements.
    """
    if scatter.indices is None or scatter.has_constant_indices or not scatter.facts.skipped:
        return
    constant = scatter.facts.origin(scatter.indices.value)
    if constant is not None and constant in scatter.facts.skipped:
        message = (
            f"the values of {scatter.indices.port.name} were not checked: more than "
            f"{counted(scatter.facts.max_elements, 'element')}"
        )
        help = f"check them with {Parameter('max_index_elements', element_count(constant.shape))}"
        yield Finding(message, role=Role.INDICES, help=help)


@Rule(
    "SCT309",
    "sum-looks-lost",
    Severity.NOTE,
    reads={
        Fact.OPERATOR, Fact.ATTRIBUTES, Fact.AXIS, Fact.INPUTS, Fact.SHAPES, Fact.TYPES, Fact.CONSTANCY,
        Fact.INDEX_FAULTS, Fact.VALUES, Fact.PRODUCERS,
    },
    is_legality=False,
)  # fmt: skip
def sum_looks_lost(scatter: ScatterNode) -> Findings:
    """A sum may be intended: without a reduction, repeated input indices overwrite each other in zeros.

    Why: a scatter into zeros often stands for a sum of updates by index, as `tf.scatter_nd` computes it. Here
    the updates of a target overwrite each other.
    Applies to: every operator with reduction none that writes into zeros, if indices are a model input
    (for a function, at each call), possibly reshaped or with an offset, unless all updates are equal or there
    is only one index. Computed indices, such as those of TopK and NonZero, are assumed to be distinct.
    Runtimes: OpenVINO's TensorFlow frontend imports ScatterNd, which adds, as ScatterNDUpdate without a
    reduction.
    Example: ScatterNDUpdate-3 with zeros as data and a model input as indices.
    Fix: set the reduction to sum (add in ONNX) if targets may repeat; otherwise ignore this note.
    """
    # The cheapest conditions come first, because this check runs for every node of a model.
    if scatter.has_constant_indices or scatter.spec.layout is Layout.SEQUENCE:
        return
    data, indices = scatter.data, scatter.indices
    if data is None or indices is None or scatter.reduction is not Reduction.NONE:
        return
    if data.element_type is None or data.element_type.name not in NUMERIC or index_count(scatter) in {0, 1}:
        return
    if not scatter.scatters_inputs_into_zeros:
        return
    if index_excess(scatter) is not None or scatter.has_equal_updates:
        return
    message = (
        "data is all zeros, and indices are an input that may repeat a target: without a reduction updates "
        "overwrite each other, but a sum may be intended"
    )
    help = ""
    if Reduction.SUM not in scatter.spec.reductions.values():
        help = f"use {scatter.lookup.family[-1].key} with the reduction sum if targets may repeat"
    yield Finding(message, role=Role.INDICES, help=help)
