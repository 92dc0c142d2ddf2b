"""Draws the dynamic dimensions of a model's inputs, small and so that they fit each other."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import prod

from ir_scatter.core.dataflow import GraphInput
from ir_scatter.core.errors import BadFeed
from ir_scatter.core.shapes import Bounds, Dim, Shape, agree, narrow, show

_SMALLEST, _LARGEST = 2, 20
MOST_ELEMENTS = 1 << 22
"""Elements of all inputs up to which larger sizes are tried."""

_EQUAL = (2, 3, 1, 4, 8)
"""Sizes that are tried for all dynamic dimensions at once."""

_LARGER = (16, 32, 64)
"""And those that are tried if shapes are not known everywhere."""

_BY_POSITION = (2, 3, 4, 5, 6, 7, 8)
"""Sizes that are tried for the first dimension of every input, for the second, and so on."""


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

    def choose(self, size: int) -> bool:
        """Take a size if it is within the bounds."""
        if self.is_settled or size < self.low or (self.high is not None and size > self.high):
            return False
        self.size = size
        return True


class Sizes:
    """The dimensions of all inputs; those of one symbol are the same variable."""

    def __init__(self, shapes: Sequence[tuple[Dim, ...]], avoided: Collection[int] = ()) -> None:
        """Take shapes.

        Args:
            shapes: of the inputs.
            avoided: sizes of constants, which a dimension had better not have by chance.
        """
        self._avoided = avoided
        self._symbols: dict[str, _Variable] = {}
        self._dims = [[self._variable(dim) for dim in shape] for shape in shapes]
        self._variables = list(
            dict.fromkeys(dim for shape in self._dims for dim in shape if isinstance(dim, _Variable))
        )

    @property
    def are_static(self) -> bool:
        """Tell whether there is nothing to choose."""
        return not self._variables

    def symbols(self) -> dict[str, int]:
        """Return the sizes that are chosen for symbols."""
        return {symbol: variable.size for symbol, variable in self._symbols.items()}

    def attempts(self, *, is_blind: bool = False) -> Iterator[None]:
        """Choose sizes in one way after another: all different, then all equal.

        Args:
            is_blind: whether shapes are not known everywhere: then the same size for the same
                dimension of all inputs comes second.
        """
        known = {dim for shape in self._dims for dim in shape if isinstance(dim, int)}
        self._choose_different({*known, *self._avoided})
        if self.elements() > MOST_ELEMENTS:
            self._choose_different(known)
        yield
        if self.are_static:
            return
        self._unsettle()
        if is_blind:
            for shape in self._dims:
                for dim, size in zip(shape, _BY_POSITION, strict=False):
                    if isinstance(dim, _Variable):
                        _choose_near(dim, size)
            yield
            self._unsettle()
        for size in (*_EQUAL, *_LARGER) if is_blind else _EQUAL:
            for variable in self._variables:
                _choose_near(variable, size)
            yield
            self._unsettle()

    def _choose_different(self, taken: Collection[int]) -> None:
        """Choose a size for each variable that no other has, and nothing else as far as is known."""
        least = [size for size in range(_SMALLEST, _LARGEST) if size not in taken]
        beyond = (size for size in count(_LARGEST) if size not in taken)
        free = [*least, *islice(beyond, max(len(self._variables) - len(least), 0))]
        for variable, size in zip(self._variables, free, strict=False):
            _choose_near(variable, size)

    def _unsettle(self) -> None:
        for variable in self._variables:
            variable.is_settled = False

    def elements(self) -> int:
        """Return how many elements all inputs have."""
        return sum(prod(shape) for shape in self.shapes())

    def shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes as they are chosen."""
        return [
            tuple(dim.size if isinstance(dim, _Variable) else dim for dim in shape) for shape in self._dims
        ]

    def change(self, size: int, wanted: int) -> bool:
        """Give every variable of one size another; tell whether some variable took it."""
        if size == wanted:
            return False
        found = [variable for variable in self._variables if variable.size == size]
        return sum(variable.choose(wanted) for variable in found) > 0

    def make_equal(self, left: int, right: int) -> bool:
        """Change the variables of one of two sizes so that both are the same; tell whether one did.

        A size that no variable has is that of a constant: what becomes equal to it stays so.
        """
        sizes = {variable.size for variable in self._variables}
        if left not in sizes:
            left, right = right, left
        if right in sizes:
            return self.change(right, left) or self.change(left, right)
        found = [variable for variable in self._variables if variable.size == left and variable.choose(right)]
        for variable in found:
            variable.is_settled = True
        return bool(found)

    def _variable(self, dim: Dim) -> "int | _Variable":
        if not isinstance(dim, Bounds):
            return dim
        found = _Variable(dim.low, dim.high)
        return found if dim.symbol is None else self._symbols.setdefault(dim.symbol, found)


def _choose_near(variable: _Variable, size: int) -> None:
    """Choose a size, or the nearest that the bounds allow."""
    high = size if variable.high is None else min(size, variable.high)
    variable.choose(max(high, variable.low))


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
