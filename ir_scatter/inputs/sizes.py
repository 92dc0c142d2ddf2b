"""Draws the dynamic dimensions of a model's inputs: all different first, and then as nodes want them.

As no two dimensions have the same size by chance, the sizes that a node finds fault with say which
dimensions of which inputs have to change.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle, zip_longest
from math import gcd, prod

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import Bounds, Dim
from ir_scatter.inputs.constraints import NodeInRun, Pairs, Use
from ir_scatter.ops.attributes import Attributes, zero_copies
from ir_scatter.ops.constraints import Meaning

_SMALLEST = 2
MOST_ELEMENTS = 1 << 22
"""Elements of all inputs up to which larger sizes are tried."""

_MOST_REACHED = 1 << 12
"""No dimension is made larger for the sake of a position."""

_EQUAL = [(2,), (3,), (1,), (4,), (8,)]
"""Sizes that are tried for all dynamic dimensions at once."""

_LARGER = [(16,), (32,), (64,)]
"""And those that are tried if shapes are not known everywhere."""

_BY_POSITION = (2, 3, 4, 5, 6, 7, 8)
"""Sizes that are tried for the first dimension of every input, for the second, and so on."""


@dataclass(slots=True, eq=False)
class _Variable:
    """A dimension that can be chosen, or several of one symbol."""

    low: int
    high: int | None
    size: int = 0

    def choose(self, size: int, *, is_near: bool = False) -> bool:
        """Take a size if it is within the bounds, or else, if that will do, the nearest that is."""
        if is_near:
            size = max(size if self.high is None else min(size, self.high), self.low)
        if size < self.low or (self.high is not None and size > self.high):
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
        variables = [dim for shape in self._dims for dim in shape if isinstance(dim, _Variable)]
        self._variables = list(dict.fromkeys(variables))

    def _variable(self, dim: Dim) -> "int | _Variable":
        if not isinstance(dim, Bounds) or dim.low == dim.high:
            return dim.low if isinstance(dim, Bounds) else dim
        found = _Variable(dim.low, dim.high)
        return found if dim.symbol is None else self._symbols.setdefault(dim.symbol, found)

    def symbols(self) -> dict[str, int]:
        return {symbol: variable.size for symbol, variable in self._symbols.items()}

    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(dim if isinstance(dim, int) else dim.size for dim in shape) for shape in self._dims]

    @property
    def are_too_large(self) -> bool:
        return sum(map(prod, self.shapes())) > MOST_ELEMENTS

    def attempts(self, *, is_blind: bool) -> Iterator[None]:
        """Choose sizes in one way after another: all different, then all equal.

        Where shapes are not known everywhere the same size for the same dimension of all inputs comes second.
        """
        known = {dim for shape in self._dims for dim in shape if isinstance(dim, int)}
        self._choose_different({*known, *self._avoided})
        if self.are_too_large:
            self._choose_different(known)
        if self.are_too_large:
            for variable in self._variables:
                variable.choose(1, is_near=True)
        yield
        ways = [_BY_POSITION, *_EQUAL, *_LARGER] if is_blind else _EQUAL
        for way in ways if self._variables else ():
            for shape in self._dims:
                for dim, size in zip(shape, cycle(way)):
                    if isinstance(dim, _Variable):
                        dim.choose(size, is_near=True)
            yield

    def _choose_different(self, taken: Collection[int]) -> None:
        """Choose a size for each variable that no other has, and nothing else as far as is known."""
        used = set(taken)
        for variable in sorted(self._variables, key=lambda variable: variable.high is None):
            least = max(_SMALLEST, variable.low)
            variable.choose(next(size for size in count(least) if size not in used), is_near=True)
            used.add(variable.size)

    def mend(self, node: NodeInRun) -> bool:
        """Give a node that is stuck the sizes that it wants; tell whether some size has changed."""
        equal, least = node.unmet()
        if self._make_all_equal(equal) or self.grow(least):
            return True
        return any(self._change(wanted, size) for size, wanted in least) or self._fit_reshape(node)

    def grow(self, least: Iterable[tuple[int, int]]) -> bool:
        """Make sizes larger; tell whether some size has changed."""
        largest: dict[int, int] = {}
        for size, wanted in least:
            if size < wanted <= _MOST_REACHED:
                largest[size] = max(wanted, largest.get(size, 0))
        return sum(self._change(size, wanted) for size, wanted in largest.items()) > 0

    def make_room(self, use: Use) -> bool:
        """Make data larger where there are more indices than positions, or else indices fewer."""
        if not len(use.highs):  # without coordinates all tuples name the same
            return any(self._change(size, 1) for size in use.shape if size > 1)
        if not use.room:
            return any(self._change(size, 0) for size in use.shape)
        if not use.is_crowded:  # if they are as they are, those from the end may meet others no more
            return not use.has_terms and any(self._change(high + 1, high + 2) for high in use.highs.tolist())
        if len(use.highs) == 1 and self.grow([(int(use.highs[0]) + 1, use.lane_size)]):
            return True
        for size in use.shape if len(use.lanes) == use.lane_size else (use.lane_size,):
            wanted = max(use.room // max(use.lane_size // max(size, 1), 1), 1)
            if wanted < size and self._change(size, wanted):
                return True
        return False

    def _change(self, size: int, wanted: int) -> bool:
        """Give every variable of one size another; tell whether some variable took it."""
        found = [variable for variable in self._variables if variable.size == size != wanted]
        return sum(variable.choose(wanted) for variable in found) > 0

    def _make_all_equal(self, pairs: Pairs) -> bool:
        """Change variables of one of two sizes so that both are the same; tell whether some did."""
        renamed: dict[int, int] = {}
        for pair in pairs:
            left, right = (renamed.get(size, size) for size in pair)
            sizes = {variable.size for variable in self._variables}
            if left not in sizes:
                left, right = right, left
            if right in sizes and self._change(right, left):
                left, right = right, left
            elif not self._change(left, right):
                continue
            renamed = {size: right if now == left else now for size, now in renamed.items()} | {left: right}
        return bool(renamed)

    def _fit_reshape(self, node: NodeInRun) -> bool:
        """Let data have as many elements as its new shape, or else the new shape but for 1s in front."""
        target = node.numbers(1) if any(need.meaning is Meaning.RESHAPED for need in node.needs) else None
        if not target or node.arrays[0] is None:
            return False
        data = node.arrays[0].shape
        is_onnx, attributes = node.step.node.domain != OPENVINO, Attributes(node.step.node.attributes)
        if 0 in target and prod(data) and not zero_copies(attributes, is_onnx=is_onnx):
            return any(self._change(size, 0) for size in data)  # without elements
        old = [size for place, size in enumerate(data) if place >= len(target) or target[place] != 0]
        wanted = prod(number for number in target if number > 0)
        for place, size in enumerate(old):
            others = prod(old[:place] + old[place + 1 :])
            fits = others and (min(target) < 0 or wanted % others == 0)
            if fits and self._change(size, wanted // gcd(wanted, others)):
                return True
        pairs = zip_longest(reversed(data), reversed(target), fillvalue=1)
        return min(target) > 0 and self._make_all_equal([pair for pair in pairs if pair[0] != pair[1]])
