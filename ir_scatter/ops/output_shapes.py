"""Shapes of the outputs of operators that NumPy does not compute, as their documents say.

Types of both dialects in lower case. Where nothing is said, the shapes that the file stores remain.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ir_scatter.ops.plain_shapes import SHAPE_KEEPERS

_Size: TypeAlias = tuple[int, ...]
_Found: TypeAlias = list[_Size | None]

KEEPERS = SHAPE_KEEPERS | {
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "batchnorminference", "batchnormalization",
    "bernoulli", "bitwisenot", "celu", "clamp", "clip", "cos", "cosh", "cumprod", "dequantizelinear",
    "dropout", "elu", "erf", "exp", "fakeconvert", "fakequantize", "gelu", "groupnormalization", "hardmax",
    "hardsigmoid", "hardswish", "hsigmoid", "hswish", "instancenormalization", "inverse", "isfinite",
    "isinf", "isnan", "layernormalization", "leakyrelu", "log", "logsoftmax", "lpnormalization", "lrn",
    "meanvariancenormalization", "mish", "mvn", "normalizel2", "prelu", "quantizelinear",
    "randomnormallike", "randomuniformlike", "reciprocal", "reverse", "reversesequence",
    "rmsnormalization", "roll", "rotaryembedding", "round", "selu", "shrink", "sigmoid", "sign", "sin",
    "sinh", "softmax", "softplus", "softsign", "swish", "tan", "tanh", "thresholdedrelu", "trilu",
}  # fmt: skip
"""The first output has the shape of the first input."""

_BROADCASTERS = (
    "bitshift", "bitwiseand", "bitwiseleftshift", "bitwiseor", "bitwiserightshift", "bitwisexor", "mean",
    "squareddifference", "sum",
)  # fmt: skip
_REDUCTIONS = (
    "reducel1", "reducel2", "reducelogicaland", "reducelogicalor", "reducelogsum", "reducelogsumexp",
    "reducemean", "reducesumsquare",
)  # fmt: skip


class ShapesDiffer(Exception):
    """Inputs do not fit each other.

    Attributes:
        pairs: sizes that should be equal.
        least: sizes that should be larger, with how large they must be.
    """

    def __init__(
        self, pairs: "Sequence[tuple[int, int]]" = (), least: "Sequence[tuple[int, int]]" = ()
    ) -> None:
        wrong = [f"{left} and {right} differ" for left, right in pairs if left != right]
        wrong += [f"{size} is less than {wanted}" for size, wanted in least]
        super().__init__(", ".join(wrong) or "the shapes of the inputs do not fit each other")
        self.pairs = [pair for pair in pairs if pair[0] != pair[1]]
        self.least = list(least)


@dataclass(frozen=True, slots=True)
class ShapeCase:
    """What is known of a node.

    Attributes:
        shapes: of the inputs; None for one that was left out or is not known.
        numbers: gives the whole numbers of an input, None if they are not known.
        attributes: as written.
    """

    shapes: "Sequence[_Size | None]"
    numbers: "Callable[[int], list[int] | None]"
    attributes: Mapping[str, Any]

    def shape(self, port: int) -> _Size:
        """Return a shape that is needed.

        Raises:
            LookupError: it is not known.
        """
        found = self.shapes[port]
        if found is None:
            raise LookupError(port)
        return found

    def integer(self, name: str, default: int) -> int:
        """Return an attribute."""
        return int(self.attributes.get(name, default))

    def integers(self, name: str, default: Sequence[int]) -> list[int]:
        """Return an attribute that is a list."""
        value = self.attributes.get(name, default)
        return [int(number) for number in (value.split(",") if isinstance(value, str) else value)]

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is true or false."""
        return str(self.attributes.get(name, default)).lower() in {"true", "1"}

    def word(self, name: str) -> str:
        """Return an attribute that is a word, in lower case."""
        return str(self.attributes.get(name, "")).lower()


def output_shapes(type: str, case: ShapeCase) -> _Found | None:
    """Return the shapes of the first outputs as far as they are known; None if nothing is.

    Args:
        type: of the node.
        case: its inputs.

    Raises:
        ShapesDiffer: the inputs do not fit each other.
    """
    rule = _RULES.get(type.lower())
    if rule is None:
        return None
    try:
        return rule(case)
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        return None


def _same(case: ShapeCase) -> _Found:
    return [case.shape(0)]


def _broadcast(*shapes: _Size) -> _Size:
    rank = max(map(len, shapes))
    found = [1] * rank
    pairs = []
    for shape in shapes:
        for number, size in enumerate(shape, rank - len(shape)):
            if found[number] == 1:
                found[number] = size
            elif size not in {1, found[number]}:
                pairs.append((found[number], size))
    if pairs:
        raise ShapesDiffer(pairs)
    return tuple(found)


def _elementwise(case: ShapeCase) -> _Found:
    return [_broadcast(*map(case.shape, range(len(case.shapes))))]


def _product(left: _Size, right: _Size) -> _Size:
    """Return the shape of a product of matrices or vectors."""
    wide_left = left if len(left) > 1 else (1, *left)
    wide_right = right if len(right) > 1 else (*right, 1)
    if wide_left[-1] != wide_right[-2]:
        raise ShapesDiffer([(wide_left[-1], wide_right[-2])])
    front = _broadcast(wide_left[:-2], wide_right[:-2])
    rows = wide_left[-2:-1] if len(left) > 1 else ()
    return (*front, *rows, *(wide_right[-1:] if len(right) > 1 else ()))


def _turned(shape: _Size, is_turned: bool) -> _Size:
    return (*shape[:-2], shape[-1], shape[-2]) if is_turned and len(shape) > 1 else shape


def _matrix_product(case: ShapeCase) -> _Found:
    left, right = _turned(case.shape(0), case.flag("transpose_a")), case.shape(1)
    return [_product(left, _turned(right, case.flag("transpose_b")))]


def _quantized_product(case: ShapeCase) -> _Found:
    return [_product(case.shape(0), case.shape(3))]


def _general_product(case: ShapeCase) -> _Found:
    left, right = _turned(case.shape(0), case.flag("transA")), _turned(case.shape(1), case.flag("transB"))
    found = _product(left, right)
    if len(case.shapes) > 2 and case.shapes[2] is not None:
        _broadcast(found, case.shape(2))
    return [found]


def _attention(case: ShapeCase) -> _Found:
    query, key, value = map(case.shape, range(3))
    front = _broadcast(query[:-2], key[:-2], value[:-2])
    pairs = [(query[-1], key[-1]), (key[-2], value[-2])]
    if any(left != right for left, right in pairs):
        raise ShapesDiffer(pairs)
    return [(*front, query[-2], value[-1])]


def windows(case: ShapeCase, spatial: _Size, kernel: Sequence[int]) -> _Size:
    """Return how often a kernel fits into each dimension.

    Args:
        case: the node, which has strides, dilations and pads.
        spatial: the sizes of the dimensions.
        kernel: how long it is in each of them.

    Raises:
        ShapesDiffer: it does not fit at all.
    """
    if len(spatial) != len(kernel):
        raise ShapesDiffer
    ones, zeros = [1] * len(spatial), [0] * len(spatial)
    strides, dilations = case.integers("strides", ones), case.integers("dilations", ones)
    pads = case.integers("pads", [])
    before = pads[: len(spatial)] or case.integers("pads_begin", zeros)
    behind = pads[len(spatial) :] or case.integers("pads_end", zeros)
    is_same = (case.word("auto_pad") or "explicit").startswith("same")
    rounds_up = case.flag("ceil_mode") or case.word("rounding_type").startswith("ceil")
    stays_inside = case.word("rounding_type") != "ceil"
    found = []
    for number, size in enumerate(spatial):
        reach = (kernel[number] - 1) * dilations[number] + 1
        room = size + before[number] + behind[number] - reach
        if is_same:
            found.append(-(-size // strides[number]))
            continue
        if room < 0:
            raise ShapesDiffer(least=[(size, size - room)])
        steps = -(-room // strides[number]) if rounds_up else room // strides[number]
        if stays_inside and steps * strides[number] >= size + before[number]:
            steps -= 1
        found.append(steps + 1)
    return tuple(found)


def _convolution(case: ShapeCase) -> _Found:
    data, weights = case.shape(0), case.shape(1)
    channels = weights[1] * case.integer("group", 1)
    if data[1] != channels:
        raise ShapesDiffer([(data[1], channels)])
    return [(data[0], weights[0], *windows(case, data[2:], weights[2:]))]


def _group_convolution(case: ShapeCase) -> _Found:
    data, weights = case.shape(0), case.shape(1)
    if data[1] != weights[0] * weights[2]:
        raise ShapesDiffer([(data[1], weights[0] * weights[2])])
    return [(data[0], weights[0] * weights[1], *windows(case, data[2:], weights[3:]))]


def _pool(case: ShapeCase) -> _Found:
    data = case.shape(0)
    found = (*data[:2], *windows(case, data[2:], case.integers("kernel_shape", case.integers("kernel", []))))
    return [found, found]


def _pool_everything(case: ShapeCase) -> _Found:
    data = case.shape(0)
    return [(*data[:2], *(1 for _ in data[2:]))]


def _reduction(case: ShapeCase) -> _Found:
    data = case.shape(0)
    axes: Sequence[int] | None = case.integers("axes", [])
    if len(case.shapes) > 1 and case.shapes[1] is not None:
        axes = case.numbers(1)
    if axes is None:
        return [None]
    if not axes and case.flag("noop_with_empty_axes"):
        return [data]
    gone = {axis % len(data) for axis in axes} or set(range(len(data)))
    keeps = case.flag("keepdims", "keep_dims" not in case.attributes) or case.flag("keep_dims")
    sizes = [1 if number in gone else size for number, size in enumerate(data)]
    return [tuple(size for number, size in enumerate(sizes) if keeps or number not in gone)]


def _arg(case: ShapeCase) -> _Found:
    data = case.shape(0)
    axis = case.integer("axis", 0) % len(data)
    return [(*data[:axis], *((1,) if case.flag("keepdims", True) else ()), *data[axis + 1 :])]


def _top(case: ShapeCase) -> _Found:
    data, count = case.shape(0), case.numbers(1)
    if count is None:
        return [None]
    axis = case.integer("axis", -1) % len(data)
    if count[0] > data[axis]:
        raise ShapesDiffer(least=[(data[axis], count[0])])
    found = (*data[:axis], count[0], *data[axis + 1 :])
    return [found, found]


def _one_hot(case: ShapeCase) -> _Found:
    indices, depth = case.shape(0), case.numbers(1)
    if depth is None:
        return [None]
    axis = case.integer("axis", -1) % (len(indices) + 1)
    return [(*indices[:axis], depth[0], *indices[axis:])]


_RULES: Mapping[str, Callable[[ShapeCase], _Found]] = {
    **dict.fromkeys(KEEPERS, _same),
    **dict.fromkeys(_BROADCASTERS, _elementwise),
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(("matmul", "matmulinteger"), _matrix_product),
    "qlinearmatmul": _quantized_product,
    "gemm": _general_product,
    "scaleddotproductattention": _attention,
    **dict.fromkeys(("conv", "convolution", "convinteger"), _convolution),
    "groupconvolution": _group_convolution,
    **dict.fromkeys(("maxpool", "averagepool", "avgpool", "lppool"), _pool),
    **dict.fromkeys(("globalaveragepool", "globalmaxpool", "globallppool"), _pool_everything),
    **dict.fromkeys(("argmax", "argmin"), _arg),
    "topk": _top,
    "onehot": _one_hot,
}
