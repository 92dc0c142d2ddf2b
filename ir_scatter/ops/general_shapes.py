"""Shape rules: what the shapes of the outputs of a general operator are, given those of its inputs.

Rules know what the documents of both dialects say. They stand in the rows of `general.py`; where there is
none, the kernel says it, or the shapes that the file stores remain.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.ops.attributes import Attributes

_Size: TypeAlias = tuple[int, ...]
_Sizes: TypeAlias = list[_Size | None]


class ShapesDiffer(Exception):
    """Inputs do not fit each other: pairs of sizes should be equal, some be at `least` so large."""

    def __init__(self, pairs: Sequence[tuple[int, int]] = (), least: Sequence[tuple[int, int]] = ()) -> None:
        wrong = [f"{left} and {right} differ" for left, right in pairs if left != right]
        wrong += [f"{size} is less than {wanted}" for size, wanted in least]
        super().__init__(", ".join(wrong) or "the shapes of the inputs do not fit each other")
        self.pairs = [pair for pair in pairs if pair[0] != pair[1]]
        self.least = list(least)


class ShapeCase(NamedTuple):
    """What is known of a node: the shapes of its inputs, and the whole numbers of one if asked for."""

    shapes: Sequence[_Size | None]
    numbers: Callable[[int], list[int] | None]
    attributes: Mapping[str, Any]

    def shape(self, port: int) -> _Size:
        """Return a shape that must be known, or raise LookupError."""
        found = self.shapes[port]
        if found is None:
            raise LookupError(port)
        return found

    @property
    def written(self) -> Attributes:
        return Attributes(self.attributes)


ShapeRule: TypeAlias = Callable[[ShapeCase], _Sizes]
"""Gives the shapes of the first outputs as far as they are known, and raises ShapesDiffer.

Other errors mean that it cannot be said.
"""


def same(case: ShapeCase) -> _Sizes:
    """The first output has the shape of the first input."""
    return [case.shape(0)]


def _require_equal(*pairs: tuple[int, int]) -> None:
    if any(left != right for left, right in pairs):
        raise ShapesDiffer(pairs)


def _broadcast(*shapes: _Size) -> _Size:
    rank = max(map(len, shapes))
    found = [1] * rank
    pairs = []
    for shape in shapes:
        for number, size in enumerate(shape, rank - len(shape)):
            if found[number] == 1:
                found[number] = size
            elif size != 1:
                pairs.append((found[number], size))
    _require_equal(*pairs)
    return tuple(found)


def elementwise(case: ShapeCase) -> _Sizes:
    """All inputs are repeated to one shape, the last dimension with the last."""
    return [_broadcast(*map(case.shape, range(len(case.shapes))))]


def concatenated(case: ShapeCase) -> _Sizes:
    """The sizes of one dimension are added, the others are equal."""
    shapes = [case.shape(number) for number in range(len(case.shapes))]
    axis, first = case.written.integer("axis") % len(shapes[0]), shapes[0]
    places = [pair for shape in shapes for pair in enumerate(zip(first, shape, strict=True))]
    _require_equal(*(pair for place, pair in places if place != axis))
    return [(*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])]


def broadcast(case: ShapeCase) -> _Sizes:
    """The input is repeated to the shape that input 1 says; with axes, input 2 says which dimensions stay."""
    data, wanted, axes = case.shape(0), case.numbers(1), case.numbers(2) if len(case.shapes) > 2 else None
    if wanted is None:
        return [None]
    if str(case.attributes.get("mode", "")).lower() in {"", "bidirectional"}:
        return [_broadcast(data, tuple(wanted))]
    own = wanted[len(wanted) - len(data) :] if axes is None else [wanted[axis] for axis in axes]
    _require_equal(*((old, new) for old, new in zip(data, own, strict=True) if old != 1))
    return [tuple(wanted)]


def matrix_product(
    case: ShapeCase, second: int = 1, words: tuple[str, str] = ("transpose_a", "transpose_b")
) -> _Sizes:
    """[..., n, k] and [..., k, m] make [..., n, m]; a vector has neither n nor m."""
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 and case.written.boolean(word, False) else shape
        for shape, word in zip((case.shape(0), case.shape(second)), words, strict=True)
    )
    wide_left = left if len(left) > 1 else (1, *left)
    wide_right = right if len(right) > 1 else (*right, 1)
    _require_equal((wide_left[-1], wide_right[-2]))
    front = _broadcast(wide_left[:-2], wide_right[:-2])
    rows = wide_left[-2:-1] if len(left) > 1 else ()
    return [(*front, *rows, *(wide_right[-1:] if len(right) > 1 else ()))]


def general_product(case: ShapeCase) -> _Sizes:
    """[n, k] and [k, m] make [n, m], to which input 2 is repeated."""
    found = matrix_product(case, words=("transA", "transB"))
    _broadcast(*filter(None, (*found, *case.shapes[2:])))
    return found


def attention(case: ShapeCase) -> _Sizes:
    """Queries [..., n, k], keys [..., m, k] and values [..., m, v] make [..., n, v]."""
    query, key, value = map(case.shape, range(3))
    front = _broadcast(query[:-2], key[:-2], value[:-2])
    _require_equal((query[-1], key[-1]), (key[-2], value[-2]))
    return [(*front, query[-2], value[-1])]


def windows(case: ShapeCase, spatial: _Size, kernel: Sequence[int]) -> _Size:
    """Return how often a kernel fits into each dimension, by the node's strides, dilations and pads."""
    if len(spatial) != len(kernel):
        raise ShapesDiffer
    ones, zeros = [1] * len(spatial), [0] * len(spatial)
    auto_pad, rounding = (
        str(case.attributes.get(name, "")).lower() for name in ("auto_pad", "rounding_type")
    )
    written = case.written
    strides, dilations = written.integers("strides", ones), written.integers("dilations", ones)
    pads = written.integers("pads", [])
    before = pads[: len(spatial)] or written.integers("pads_begin", zeros)
    behind = pads[len(spatial) :] or written.integers("pads_end", zeros)
    rounds_up = written.boolean("ceil_mode", False) or rounding.startswith("ceil")
    found = []
    for number, size in enumerate(spatial):
        reach = (kernel[number] - 1) * dilations[number] + 1
        room = size + before[number] + behind[number] - reach
        if auto_pad.startswith("same"):
            found.append(-(-size // strides[number]))
            continue
        if room < 0:
            raise ShapesDiffer(least=[(size, size - room)])
        steps = -(-room // strides[number]) if rounds_up else room // strides[number]
        if rounding != "ceil" and steps * strides[number] >= size + before[number]:
            steps -= 1
        found.append(steps + 1)
    return tuple(found)


def convolution(case: ShapeCase, is_grouped: bool = False) -> _Sizes:
    """[batch, groups * in, ...] and [out, in, ...], or [groups, out, in, ...], make [batch, all out, ...]."""
    data, weights = case.shape(0), case.shape(1)
    groups = case.written.integer("group", 1)
    if is_grouped:
        groups, weights = weights[0], (weights[0] * weights[1], *weights[2:])
    _require_equal((data[1], groups * weights[1]))
    return [(data[0], weights[0], *windows(case, data[2:], weights[2:]))]


def pool(case: ShapeCase) -> _Sizes:
    """[batch, channels, ...] stays but for the last dimensions; both outputs have the shape."""
    data = case.shape(0)
    kernel = case.written.integers("kernel_shape", case.written.integers("kernel", []))
    found = (*data[:2], *windows(case, data[2:], kernel))
    return [found, found]


def pool_everything(case: ShapeCase) -> _Sizes:
    """[batch, channels, ...] stays but for the last dimensions, which become 1."""
    data = case.shape(0)
    return [(*data[:2], *(1 for _ in data[2:]))]


def reduction(case: ShapeCase) -> _Sizes:
    """The axes, attribute or input 1, become 1, or go."""
    data = case.shape(0)
    axes: Sequence[int] | None = case.written.integers("axes", [])
    if len(case.shapes) > 1 and case.shapes[1] is not None:
        axes = case.numbers(1)
    if axes is None:
        return [None]
    if not axes and case.written.boolean("noop_with_empty_axes", False):
        return [data]
    gone = {axis % len(data) for axis in axes} or set(range(len(data)))
    keeps = case.written.boolean("keep_dims" if "keep_dims" in case.attributes else "keepdims", True)
    sizes = [1 if number in gone else size for number, size in enumerate(data)]
    return [tuple(size for number, size in enumerate(sizes) if keeps or number not in gone)]


def arg(case: ShapeCase) -> _Sizes:
    """The axis becomes 1, or goes."""
    data = case.shape(0)
    axis = case.written.integer("axis", 0) % len(data)
    return [(*data[:axis], *((1,) if case.written.boolean("keepdims", True) else ()), *data[axis + 1 :])]


def top(case: ShapeCase) -> _Sizes:
    """On the axis stay as many positions as input 1 says."""
    data, count = case.shape(0), case.numbers(1)
    if count is None:
        return [None]
    axis = case.written.integer("axis", -1) % len(data)
    if count[0] > data[axis]:
        raise ShapesDiffer(least=[(data[axis], count[0])])
    found = (*data[:axis], count[0], *data[axis + 1 :])
    return [found, found]


def one_hot(case: ShapeCase) -> _Sizes:
    """A dimension comes in, as large as input 1 says."""
    indices, depth = case.shape(0), case.numbers(1)
    if depth is None:
        return [None]
    axis = case.written.integer("axis", -1) % (len(indices) + 1)
    return [(*indices[:axis], depth[0], *indices[axis:])]
