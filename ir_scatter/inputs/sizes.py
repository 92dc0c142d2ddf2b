"""Chooses sizes for the dynamic dimensions of model inputs: all different at first, then as nodes require.

As all sizes differ at first, the size in a node's error identifies the input dimension that must change.

Example:
    inputs     a [?, ?], b [?]     chosen as [2, 3] and [4]
    Add(a, b)  3 and 4 should be equal: the dimension with size 4 gets size 3
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, cycle, zip_longest
from math import gcd, lcm, prod

from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import Bounds, Dim
from ir_scatter.inputs.constraints import InputUse, NodeInRun, Pairs
from ir_scatter.ops.attributes import Attributes, zero_copies
from ir_scatter.ops.constraints import Meaning

_SMALLEST_SIZE = 2
_MANY_ALIKE = 4
"""At least this many inputs of the same partly known shape are assumed to be caches of a network's layers."""
_FEW_NODES = 3
"""Up to this many failing nodes are fixed one by one, because sizes for one node may also fix the next."""
MOST_ELEMENTS = 1 << 22
"""Maximum elements of all inputs together."""

_LARGEST_SIZE = 1 << 12
"""Maximum size to which a dimension is enlarged so that positions are in range."""

_EQUAL_SIZES = [(2,), (3,), (1,), (4,), (8,)]
"""Sizes to try for all dynamic dimensions at once."""

_LARGER_SIZES = [(16,), (32,), (64,)]
"""Further sizes to try if some shapes are unknown."""

_SIZES_BY_POSITION = (2, 3, 4, 5, 6, 7, 8)
"""Sizes to try for the first dimension of every input, for the second, and so on."""


@dataclass(slots=True, eq=False)
class _Variable:
    """The size of a dynamic dimension, shared by all dimensions with the same symbol."""

    low: int
    high: int | None
    size: int = 0
    multiple: int = 1
    """The size should be a multiple of this number, unless a node needs another size."""

    def choose(self, size: int, *, is_near: bool = False) -> bool:
        """Set the size if it is within the bounds; with `is_near`, the nearest size within them.

        Return whether it was set.
        """
        if is_near:
            size = -(-size // self.multiple) * self.multiple
            size = max(size if self.high is None else min(size, self.high), self.low)
        if size < self.low or (self.high is not None and size > self.high):
            return False
        self.size = size
        return True


class Sizes:
    """The dimensions of all inputs; dimensions with the same symbol share a variable."""

    def __init__(
        self,
        shapes: Sequence[tuple[Dim, ...]],
        avoided: Collection[int] = (),
        multiples: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        """Set up a variable for each dynamic dimension.

        Args:
            shapes: the shapes of the inputs.
            avoided: sizes of constants; initial sizes differ from them.
            multiples: (input, axis) -> the size should be a multiple of this number.
        """
        self._avoided = avoided
        self._symbols: dict[str, _Variable] = {}
        self._dims = [[self._variable(dim) for dim in shape] for shape in shapes]
        for (input, axis), multiple in (multiples or {}).items():
            dim = self._dims[input][axis] if axis < len(self._dims[input]) else None
            if isinstance(dim, _Variable):
                dim.multiple = lcm(dim.multiple, multiple)
        variables = [dim for shape in self._dims for dim in shape if isinstance(dim, _Variable)]
        self._variables = list(dict.fromkeys(variables))
        self._alike = self._alike_variables()
        self._seen = set[tuple[int, ...]]()
        """Combinations of sizes that made some node fail."""

    def _variable(self, dim: Dim) -> "int | _Variable":
        if not isinstance(dim, Bounds) or dim.low == dim.high:
            return dim.low if isinstance(dim, Bounds) else dim
        variable = _Variable(dim.low, dim.high)
        return variable if dim.symbol is None else self._symbols.setdefault(dim.symbol, variable)

    def _alike_variables(self) -> "dict[_Variable, tuple[object, ...]]":
        """Return a key for each dynamic dimension of cache-like inputs; equal keys get equal sizes.

        A network has one cache input per layer, all of the same partly known shape. An IR has no symbols that
        would show that all caches have the same batch and length.
        """
        patterns = [tuple(dim if isinstance(dim, int) else None for dim in shape) for shape in self._dims]
        return {
            dim: (pattern, axis)
            for pattern, shape in zip(patterns, self._dims, strict=True)
            if patterns.count(pattern) >= _MANY_ALIKE and any(pattern)
            for axis, dim in enumerate(shape)
            if isinstance(dim, _Variable)
        }

    def symbols(self) -> dict[str, int]:
        return {symbol: variable.size for symbol, variable in self._symbols.items()}

    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(dim if isinstance(dim, int) else dim.size for dim in shape) for shape in self._dims]

    @property
    def are_too_large(self) -> bool:
        return sum(map(prod, self.shapes())) > MOST_ELEMENTS

    def attempts(self, *, has_unknown_shapes: bool) -> Iterator[None]:
        """Set initial sizes in several ways, one per step: all different first, then all equal.

        With unknown shapes, sizes by position come second: every input gets [2, 3, 4, ...].
        """
        fixed = {dim for shape in self._dims for dim in shape if isinstance(dim, int)}
        self._choose_different({*fixed, *self._avoided})
        if self.are_too_large:
            self._choose_different(fixed)
        if self.are_too_large:
            for variable in self._variables:
                variable.choose(1, is_near=True)
        yield
        patterns = [_SIZES_BY_POSITION, *_EQUAL_SIZES, *_LARGER_SIZES] if has_unknown_shapes else _EQUAL_SIZES
        for pattern in patterns if self._variables else ():
            for shape in self._dims:
                for dim, size in zip(shape, cycle(pattern)):
                    if isinstance(dim, _Variable):
                        dim.choose(size, is_near=True)
            yield

    def _choose_different(self, taken: Collection[int]) -> None:
        """Give each variable a different size that is not in `taken`; equal keys of `_alike` share a size."""
        used, firsts = set(taken), dict[tuple[object, ...], int]()
        for variable in sorted(self._variables, key=lambda variable: variable.high is None):
            alike = self._alike.get(variable)
            if alike in firsts and variable.choose(firsts[alike]):
                continue
            step = variable.multiple
            least = -(-max(_SMALLEST_SIZE * step, variable.low) // step) * step
            variable.choose(next(size for size in count(least, step) if size not in used), is_near=True)
            used.add(variable.size)
            if alike is not None:
                firsts[alike] = variable.size

    def fix_node(self, node: NodeInRun) -> bool:
        """Change sizes so that a failing node may succeed; return whether some size has changed."""
        equal, least = node.size_conflicts()
        if self._make_equal(equal) or self.grow(least):
            return True
        return any(self._change(needed, size) for size, needed in least) or self._fit_reshape(node)

    def fix_nodes(self, nodes: Sequence[NodeInRun]) -> bool:
        """Change sizes so that failing nodes may succeed; return whether some size has changed.

        Many nodes are fixed at once. Otherwise, a network of many equal blocks would need one run per block.
        """
        if len(nodes) > _FEW_NODES:
            pairs = [pair for node in nodes for pair in node.size_conflicts()[0]]
            if self._make_equal(pairs):
                return True
        return any(map(self.fix_node, nodes))

    def _make_equal(self, equal: Pairs) -> bool:
        """Make pairs of sizes equal; return whether a size has changed.

        If that leads to sizes that failed before, change a summand instead, see `_change_summand`.
        """
        before = [variable.size for variable in self._variables]
        self._seen.add(tuple(before))
        if not self._make_all_equal(equal):
            return False
        after = [variable.size for variable in self._variables]
        if tuple(after) in self._seen:  # two sums were made equal in turn to a size that both must have
            self._restore(before)
            if not self._change_summand(equal):
                self._restore(after)
        return True

    def grow(self, least: Iterable[tuple[int, int]]) -> bool:
        """Enlarge dimensions, given pairs (size, needed size); return whether some size has changed."""
        largest: dict[int, int] = {}
        for size, needed in least:
            if size < needed <= _LARGEST_SIZE:
                largest[size] = max(needed, largest.get(size, 0))
        return sum(self._change(size, needed) for size, needed in largest.items()) > 0

    def make_room(self, use: InputUse) -> bool:
        """Enlarge data or shrink indices if there are more indices than positions.

        Return whether a size has changed.
        """
        if not len(use.highs):  # tuples without coordinates have one target
            return any(self._change(size, 1) for size in use.shape if size > 1)
        if not use.room:
            return any(self._change(size, 0) for size in use.shape)
        if not use.is_crowded:  # in larger data, indices from the end may no longer repeat others
            return not use.has_terms and any(self._change(high + 1, high + 2) for high in use.highs.tolist())
        if len(use.highs) == 1 and self.grow([(int(use.highs[0]) + 1, use.lane_size)]):
            return True
        for size in use.shape if len(use.lanes) == use.lane_size else (use.lane_size,):
            smaller = max(use.room // max(use.lane_size // max(size, 1), 1), 1)
            if smaller < size and self._change(size, smaller):
                return True
        return False

    def _restore(self, sizes: Sequence[int]) -> None:
        for variable, size in zip(self._variables, sizes, strict=True):
            variable.size = size

    def _change_summand(self, pairs: Pairs) -> bool:
        """Make sizes that are sums equal by changing one summand; return whether a size has changed.

        Example: sizes 19 = 13 + 6 and 21 = 15 + 6 should be equal. They differ by 2, as 13 and 15 do: 15
        becomes 13.
        """
        sizes = {variable.size for variable in self._variables}
        for left, right in pairs:
            for change in (left - right, right - left):
                for size in sorted(sizes, reverse=True):
                    if change and size + change in sizes and self._change(size, size + change):
                        return True
        return False

    def _change(self, size: int, new_size: int) -> bool:
        """Change all dimensions of size `size` to `new_size`; return whether the bounds of one allow that."""
        variables = [variable for variable in self._variables if variable.size == size != new_size]
        return sum(variable.choose(new_size) for variable in variables) > 0

    def _make_all_equal(self, pairs: Pairs) -> bool:
        """Make the two sizes of each pair equal; return whether a size has changed."""
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
        """Make the element counts before and after a Reshape equal; return whether a size has changed.

        The data gets as many elements as the target shape has, or else the target shape itself.
        """
        target = (
            node.numbers(1)
            if any(constraint.meaning is Meaning.RESHAPED for constraint in node.constraints)
            else None
        )
        if not target or node.arrays[0] is None:
            return False
        data = node.arrays[0].shape
        is_onnx, attributes = node.step.node.domain != OPENVINO, Attributes(node.step.node.attributes)
        if 0 in target and prod(data) and not zero_copies(attributes, is_onnx=is_onnx):
            return any(self._change(size, 0) for size in data)  # data without elements
        old = [size for place, size in enumerate(data) if place >= len(target) or target[place] != 0]
        count = prod(number for number in target if number > 0)
        for place, size in enumerate(old):
            rest = prod(old[:place] + old[place + 1 :])
            fits = rest and (min(target) < 0 or count % rest == 0)
            if fits and self._change(size, count // gcd(count, rest)):
                return True
        pairs = zip_longest(reversed(data), reversed(target), fillvalue=1)
        return min(target) > 0 and self._make_all_equal([pair for pair in pairs if pair[0] != pair[1]])
