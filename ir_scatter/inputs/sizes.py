"""Draws the dynamic dimensions of a model's inputs: all different first, and then as nodes want them.

As no two dimensions have the same size by chance, the sizes that a node finds fault with say which
dimensions of which inputs have to change.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count, zip_longest
from math import gcd, prod

from ir_scatter.analysis.interpreter import Step
from ir_scatter.core.arrays import Array
from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.shapes import Bounds, Dim, Shape, agree, narrow, show
from ir_scatter.evaluate.model import by_role, site_of
from ir_scatter.inputs.constraints import Use, axis_of, reached
from ir_scatter.inputs.trace import Stuck
from ir_scatter.ops.constraints import Meaning
from ir_scatter.ops.general import constraints_of, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer
from ir_scatter.ops.index_values import expected_updates
from ir_scatter.ops.lookup import Lookup
from ir_scatter.ops.spec import IndicesLimit, Layout, Role

_SMALLEST = 2
MOST_ELEMENTS = 1 << 22
"""Elements of all inputs up to which larger sizes are tried."""

_MOST_REACHED = 1 << 12
"""No dimension is made larger for the sake of a position."""

_EQUAL = (2, 3, 1, 4, 8)
"""Sizes that are tried for all dynamic dimensions at once."""

_LARGER = (16, 32, 64)
"""And those that are tried if shapes are not known everywhere."""

_BY_POSITION = (2, 3, 4, 5, 6, 7, 8)
"""Sizes that are tried for the first dimension of every input, for the second, and so on."""

_Pairs = list[tuple[int, int]]


@dataclass(slots=True, eq=False)
class _Variable:
    """A dimension that can be chosen, or several that must be the same.

    Attributes:
        low: the least size.
        high: the greatest, None without a bound.
        size: the one that is chosen.
        is_settled: whether a constant wants it as it is.
    """

    low: int
    high: int | None
    size: int = 0
    is_settled: bool = False

    def choose(self, size: int, *, is_near: bool = False) -> bool:
        """Take a size if it is within the bounds, or else, if that will do, the nearest that is."""
        if is_near:
            size = max(size if self.high is None else min(size, self.high), self.low)
        if self.is_settled or size < self.low or (self.high is not None and size > self.high):
            return False
        self.size = size
        return True


class Sizes:
    """The dimensions of all inputs; those of one symbol are the same variable."""

    def __init__(self, shapes: Sequence[tuple[Dim, ...]], avoided: Collection[int] = ()) -> None:
        """Take the shapes of inputs, and sizes of constants, which had better not come by chance."""
        self._avoided = avoided
        self._symbols: dict[str, _Variable] = {}
        self._dims = [[self._variable(dim) for dim in shape] for shape in shapes]
        self._variables = list(
            dict.fromkeys(dim for shape in self._dims for dim in shape if isinstance(dim, _Variable))
        )

    def _variable(self, dim: Dim) -> "int | _Variable":
        if not isinstance(dim, Bounds) or dim.low == dim.high:
            return dim.low if isinstance(dim, Bounds) else dim
        found = _Variable(dim.low, dim.high)
        return found if dim.symbol is None else self._symbols.setdefault(dim.symbol, found)

    def symbols(self) -> dict[str, int]:
        """Return the sizes that are chosen for symbols."""
        return {symbol: variable.size for symbol, variable in self._symbols.items()}

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes as they are chosen."""
        return [
            tuple(dim.size if isinstance(dim, _Variable) else dim for dim in shape) for shape in self._dims
        ]

    @property
    def are_too_large(self) -> bool:
        """Tell whether there are more elements than should be tried."""
        return sum(map(prod, self.shapes())) > MOST_ELEMENTS

    def attempts(self, *, is_blind: bool) -> Iterator[None]:
        """Choose sizes in one way after another: all different, then all equal.

        Args:
            is_blind: whether shapes are not known everywhere: then the same size for the same
                dimension of all inputs comes second.
        """
        known = {dim for shape in self._dims for dim in shape if isinstance(dim, int)}
        self._choose_different({*known, *self._avoided})
        if self.are_too_large:
            self._choose_different(known)
        yield
        if not self._variables:
            return
        if is_blind:
            self._unsettle()
            for shape in self._dims:
                for dim, size in zip(shape, _BY_POSITION, strict=False):
                    if isinstance(dim, _Variable):
                        dim.choose(size, is_near=True)
            yield
        for size in (*_EQUAL, *_LARGER) if is_blind else _EQUAL:
            self._unsettle()
            for variable in self._variables:
                variable.choose(size, is_near=True)
            yield

    def _choose_different(self, taken: Collection[int]) -> None:
        """Choose a size for each variable that no other has, and nothing else as far as is known."""
        used = set(taken)
        for variable in sorted(self._variables, key=lambda variable: variable.high is None):
            least = max(_SMALLEST, variable.low)
            variable.choose(next(size for size in count(least) if size not in used), is_near=True)
            used.add(variable.size)

    def _unsettle(self) -> None:
        for variable in self._variables:
            variable.is_settled = False

    def mend(self, stuck: Stuck) -> bool:
        """Give a node that is stuck the sizes that it wants; tell whether some size has changed."""
        if not stuck.arrays:
            return False
        equal, limits, least = _demands(stuck)
        changes = [self._make_all_equal(equal), self.grow(least)]
        above = [(size, most) for size, most in limits if size > most and not any(changes)]
        changes += [self._change(size, most) or self._change(most, size) for size, most in above]
        if not any(changes):
            changes.append(any(self._change(*pair) for pair in _counts(stuck.step, stuck.arrays)))
        if not any(changes):
            changes.append(self._make_all_equal(_aligned(stuck.step, stuck.arrays)))
        return any(changes)

    def grow(self, least: Sequence[tuple[int, int]]) -> bool:
        """Make sizes larger; tell whether some size has changed."""
        largest: dict[int, int] = {}
        for size, wanted in least:
            if size < wanted <= _MOST_REACHED:
                largest[size] = max(wanted, largest.get(size, 0))
        return sum(self._change(size, wanted) for size, wanted in largest.items()) > 0

    def make_room(self, use: Use) -> bool:
        """Make indices fewer where they are more than there are positions, or else data larger."""
        if not use.room:
            return any(self._change(size, 0) for size in use.shape)
        if not use.is_crowded:
            return False
        for size in use.shape if len(use.lanes) == use.lane_size else (use.lane_size,):
            wanted = max(use.room // max(use.lane_size // max(size, 1), 1), 1)
            if wanted < size and self._change(size, wanted):
                return True
        return len(use.highs) == 1 and self.grow([(int(use.highs[0]) + 1, use.lane_size)])

    def _change(self, size: int, wanted: int) -> bool:
        """Give every variable of one size another; tell whether some variable took it."""
        found = [variable for variable in self._variables if variable.size == size and size != wanted]
        return sum(variable.choose(wanted) for variable in found) > 0

    def _make_all_equal(self, pairs: Iterable[tuple[int, int]]) -> bool:
        """Change variables of one of two sizes so that both are the same; tell whether some did.

        A size that no variable has is that of a constant: what becomes equal to it stays so.
        """
        renamed: dict[int, int] = {}
        for pair in pairs:
            left, right = (renamed.get(size, size) for size in pair)
            sizes = {variable.size for variable in self._variables}
            if left not in sizes:
                left, right = right, left
            found = [variable for variable in self._variables if variable.size == left != right]
            if right in sizes and self._change(right, left):
                left, right = right, left
            elif not sum(variable.choose(right) for variable in found):
                continue
            elif right not in sizes:
                for variable in found:
                    variable.is_settled = variable.size == right
            renamed = {size: right if now == left else now for size, now in renamed.items()} | {left: right}
        return bool(renamed)


def _demands(stuck: Stuck) -> tuple[_Pairs, _Pairs, _Pairs]:
    """Return sizes that must be equal, and sizes with what they must not exceed, or must reach."""
    step, arrays, cause = stuck.step, stuck.arrays, stuck.error.__cause__
    if isinstance(step.work, Lookup):
        return _scatter_demands(step, step.work, arrays)
    if not isinstance(cause, ShapesDiffer):
        shapes = [None if array is None else array.shape for array in arrays]
        numbers = [None if array is None else array.reshape(-1) for array in arrays]
        case = ShapeCase(shapes, lambda port: numbers[port].tolist(), step.node.attributes)  # type: ignore[union-attr]
        try:
            output_shapes(step.node.domain, step.node.type, case)
        except ShapesDiffer as error:
            cause = error
    if isinstance(cause, ShapesDiffer):
        return cause.pairs, [], cause.least
    return list(_meeting(step, arrays)), [], []


def _scatter_demands(
    step: Step, lookup: Lookup, arrays: Sequence[Array | None]
) -> tuple[_Pairs, _Pairs, _Pairs]:
    site, operands = site_of(step), by_role(lookup, arrays)
    if not {Role.DATA, Role.UPDATES} <= operands.keys():
        return [], [], []
    array, layout = operands.get(Role.INDICES), site.spec.layout
    data, updates = operands[Role.DATA].shape, operands[Role.UPDATES].shape
    indices, axis = () if array is None else array.shape, axis_of(site, operands)
    if layout is Layout.TUPLES:
        if indices and indices[-1] > len(data):
            return [], [(indices[-1], len(data))], []
    elif axis is None or not -len(data) <= axis < len(data):
        return [], [], []
    at = (axis or 0) % max(len(data), 1)
    wanted = [shape for shape in expected_updates(layout, data, indices, [at]) if shape is not None]
    sizes = [list(zip(shape, updates, strict=True)) for shape in wanted if len(shape) == len(updates)]
    equal = [(one, other) for pairs in sizes for one, other in pairs if isinstance(one, int)]
    limits: _Pairs = []
    if layout is Layout.ELEMENTS and site.spec.indices_limit is not IndicesLimit.NOWHERE:
        free = at if site.spec.indices_limit is IndicesLimit.OFF_AXIS else None
        pairs = enumerate(zip(indices, data, strict=False))
        limits = [pair for number, pair in pairs if number != free]
    elif layout is Layout.SEQUENCE:
        equal += [(indices[0], data[0])] if indices else []
        limits = [(updates[at], data[at])] if at < len(updates) else []
    named = [(array, data[at])] if layout is not Layout.TUPLES else []
    if array is not None and layout is Layout.TUPLES:
        named = [(array[..., place], size) for place, size in enumerate(data[: array.shape[-1]])]
    return equal, limits, [pair for column, size in named for pair in reached(column, size)]


def _meeting(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield sizes that stand beside each other, and differ, where arrays are joined or repeated."""
    kind, free = step.node.type.lower(), None
    shapes = [array.shape for array in arrays if array is not None]
    if kind == "concat" and shapes:
        free = len(shapes[0]) - 1 - int(step.node.attributes.get("axis", 0)) % max(len(shapes[0]), 1)
    elif kind in {"broadcast", "expand"} and len(arrays) > 1:
        wanted, places = _whole(arrays[1]), _whole(arrays[2]) if len(arrays) > 2 else []
        if places:
            wanted = [wanted[place] for place in places if -len(wanted) <= place < len(wanted)]
        shapes = [*shapes[:1], tuple(wanted)]
    else:
        return
    for left, right in combinations(shapes, 2):
        for number, (one, other) in enumerate(zip_longest(reversed(left), reversed(right), fillvalue=1)):
            is_one_way = kind == "broadcast" and one != 1
            if number != free and one != other and (is_one_way or 1 not in {one, other}):
                yield one, other


def _whole(array: Array | None) -> list[int]:
    return [] if array is None or array.dtype.kind not in "iu" else array.reshape(-1).tolist()


def _counts(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield dimensions of which another size would give as many elements as a new shape has."""
    data, target = _reshaped(step, arrays)
    if not data or not target:
        return
    old = [size for number, size in enumerate(data) if number >= len(target) or target[number] != 0]
    wanted = prod(number for number in target if number > 0)
    for number, size in enumerate(old):
        others = prod(old[:number] + old[number + 1 :])
        if others and (min(target) < 0 or wanted % others == 0):
            yield size, wanted // gcd(wanted, others)


def _aligned(step: Step, arrays: Sequence[Array | None]) -> Iterator[tuple[int, int]]:
    """Yield the sizes that make a shape the new one, but for dimensions of 1 in front."""
    data, target = _reshaped(step, arrays)
    if min(target, default=0) > 0:
        pairs = zip_longest(reversed(data), reversed(target), fillvalue=1)
        yield from ((size, wanted) for size, wanted in pairs if size != wanted)


def _reshaped(step: Step, arrays: Sequence[Array | None]) -> tuple[tuple[int, ...], list[int]]:
    """Return the old and the new shape of a node that reshapes; nothing for another."""
    meanings = {need.meaning for need in constraints_of(step.node.domain, step.node.type)}
    if Meaning.RESHAPED not in meanings or len(arrays) < 2 or arrays[0] is None:
        return (), []
    return arrays[0].shape, _whole(arrays[1])


def partial_shapes(inputs: Sequence[GraphInput], given: Mapping[str, Shape]) -> list[Shape]:
    """Return what is known of the shapes of inputs, by the model and by the caller.

    Raises:
        BadFeed: a name is that of no input, or a shape contradicts the model's.
    """
    by_name = {name: number for number, input in enumerate(inputs) for name in reversed(input.names)}
    shapes = [input.shape for input in inputs]
    for name, shape in given.items():
        if name not in by_name:
            known = ", ".join(input.names[0] for input in inputs) or "none"
            raise BadFeed(f"the model has no input {name!r}, expected one of {known}")
        number = by_name[name]
        if not agree(shapes[number], shape):
            raise BadFeed(f"{name} has shape {show(shapes[number])}, which {show(shape)} does not fit")
        shapes[number] = narrow(shapes[number], shape)
    return shapes
