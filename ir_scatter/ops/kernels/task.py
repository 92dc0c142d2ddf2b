"""What a kernel is asked to do, and how it says that an index is illegal."""

from dataclasses import dataclass

from ir_scatter.ops.spec import Layout, Reduction


@dataclass(frozen=True, slots=True)
class Task:
    """One use of an operator, without its arrays.

    Attributes:
        layout: how indices, updates and data belong together.
        axis: counted from 0; 0 for a layout without one.
        reduction: how an update meets the value that is there.
        keeps_initial: whether the old value takes part in a reduction.
        wraps: whether a negative index counts from the end.
        is_circular: whether positions past the end of a cache go on at its beginning.
    """

    layout: Layout
    axis: int = 0
    reduction: Reduction = Reduction.NONE
    keeps_initial: bool = True
    wraps: bool = True
    is_circular: bool = False


class IndexOutOfRange(Exception):
    """Some index is illegal; `ranges.find_illegal` tells which."""
