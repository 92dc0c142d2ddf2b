"""Shape rules: the shapes of a general operator's outputs, from those of its inputs.

Rules follow the specifications of both dialects. The rows of `general.py` name them. Without a rule, the
kernel decides the shapes, or stored shapes are used.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from ir_scatter.core.shapes import LARGEST_DIM, UNKNOWN_DIM, Dim, Shape, show_numbers
from ir_scatter.core.words import counted
from ir_scatter.ops.attributes import Attributes, zero_copies

_Size: TypeAlias = tuple[int, ...]
_Sizes: TypeAlias = list[_Size | None]


class UnknownSize(int):
    """An unknown size: arithmetic with it returns an unknown size, and every comparison is false.

    Rules compute with it like with any other size. The result is known if all inputs are.
    """

    dim: Dim

    def __new__(cls, dim: Dim = UNKNOWN_DIM) -> "UnknownSize":
        size = super().__new__(cls)
        size.dim = dim
        return size

    def _unknown(self, *_: object) -> "UnknownSize":
        return UnknownSize()

    def _never(self, _: object) -> bool:
        return False

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = _unknown
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _never
    __hash__ = int.__hash__


def sizes_of(shape: Shape) -> "_Size | None":
    """Convert a shape for rules: unknown dimensions become `UnknownSize`; None for an unknown rank."""
    if shape is None:
        return None
    return tuple([dim if isinstance(dim, int) else UnknownSize(dim) for dim in shape])


def dims_of(sizes: Sequence[int]) -> Shape:
    """Convert the result of a rule to a partial shape."""

    def dim_of(size: int) -> Dim:
        if isinstance(size, UnknownSize):
            return size.dim
        return size if size <= LARGEST_DIM else UNKNOWN_DIM

    return tuple(map(dim_of, sizes))


class ShapesDiffer(Exception):
    """Error: inputs do not fit each other, as pairs of sizes differ or sizes are below a minimum."""

    def __init__(
        self, pairs: Sequence[tuple[int, int]] = (), least: Sequence[tuple[int, int]] = (), reason: str = ""
    ) -> None:
        wrong = [reason] if reason else []
        wrong += [f"{left} and {right} differ" for left, right in pairs if left != right]
        wrong += [f"{size} is less than {minimum}" for size, minimum in least]
        super().__init__(", ".join(wrong) or "the shapes of the inputs are incompatible")
        self.pairs = [pair for pair in pairs if pair[0] != pair[1]]
        self.least = list(least)


class ShapeCase(NamedTuple):
    """Known facts about a node: shapes of its inputs, and on request the integers of an input."""

    shapes: Sequence[_Size | None]
    numbers: Callable[[int], list[int] | None]
    attributes: Mapping[str, Any]
    output_count: int = 0
    is_onnx: bool = True
    unknown: frozenset[int] = frozenset()
    """Ports of inputs with unknown rank; other inputs without a shape are missing."""

    def shape(self, port: int) -> _Size:
        """Return the shape of an input; raises LookupError if it is unknown."""
        shape = self.shapes[port]
        if shape is None:
            raise LookupError(port)
        return shape

    def integers(self, port: int, name: str = "", default: Sequence[int] | None = None) -> list[int]:
        """Return the integers of an attribute or an input; raises LookupError if they are unknown."""
        if name in self.attributes:
            return self.written.integers(name)
        if default is not None and not self.is_given(port):
            return [*default]
        numbers = self.numbers(port)
        if numbers is None:
            raise LookupError(port)
        return numbers

    def is_given(self, port: int) -> bool:
        return port in self.unknown or (port < len(self.shapes) and self.shapes[port] is not None)

    @property
    def written(self) -> Attributes:
        return Attributes(self.attributes)


ShapeRule: TypeAlias = Callable[[ShapeCase], _Sizes]
"""Returns the known shapes of the first outputs, or raises ShapesDiffer.

Any other error means that the shapes are unknown.
"""


def same(case: ShapeCase) -> _Sizes:
    """The first output has the shape of the first input."""
    return [case.shape(0)]


def normalized(case: ShapeCase) -> _Sizes:
    """The output has the shape of data, the input with the highest rank (input 2 of BatchNormInference-1)."""
    return [max(map(case.shape, range(3)), key=len)]


def _require_equal(*pairs: tuple[int, int]) -> None:
    if any(left != right for left, right in pairs):
        raise ShapesDiffer(pairs)


def _broadcast(*shapes: _Size) -> _Size:
    rank = max(map(len, shapes))
    result = [1] * rank
    pairs = []
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            earlier = result[axis]
            if isinstance(earlier, UnknownSize) and size != 1:
                result[axis] = size
            elif isinstance(earlier, UnknownSize) and isinstance(size, UnknownSize):
                result[axis] = UnknownSize()
            elif earlier == 1:
                result[axis] = size
            elif size != 1:
                pairs.append((earlier, size))
    _require_equal(*pairs)
    return tuple(result)


def elementwise(case: ShapeCase) -> _Sizes:
    """All inputs are broadcast to one shape. The last dimensions are aligned unless there is an axis.

    `auto_broadcast` of OpenVINO may require equal shapes.
    """
    if "axis" in case.attributes:
        return [case.shape(0)]
    if str(case.attributes.get("auto_broadcast", "")).lower() in {"none", "explicit"}:
        return [_joined([case.shape(port) for port in range(len(case.shapes))])]
    return [_broadcast(*map(case.shape, range(len(case.shapes))))]


def _joined(shapes: Sequence[_Size], axis: int | None = None) -> _Size:
    """Return the common shape of all inputs. On `axis` sizes may differ; they are added."""
    if len({*map(len, shapes)}) > 1:
        raise ShapesDiffer(reason="their ranks differ")
    result, pairs = list[int](), list[tuple[int, int]]()
    for place, sizes in enumerate(zip(*shapes, strict=True)):
        static = [size for size in sizes if not isinstance(size, UnknownSize)] or sizes
        result.append(sum(sizes) if place == axis else static[0])
        pairs += [(static[0], size) for size in static if place != axis]
    _require_equal(*pairs)
    return tuple(result)


def concatenated(case: ShapeCase) -> _Sizes:
    """The sizes of one dimension are added, the others are equal."""
    shapes = [case.shape(number) for number in range(len(case.shapes))]
    if not shapes[0]:
        raise ShapesDiffer(reason="scalars have no dimension")
    axis = _place(case.written.integer("axis", None if case.is_onnx else 0), len(shapes[0]))
    return [_joined(shapes, axis)]


def broadcast(case: ShapeCase) -> _Sizes:
    """Input 0 is broadcast to the shape in input 1; an optional input 2 maps its axes to that shape."""
    data, target, has_axes = case.shape(0), case.numbers(1), len(case.shapes) > 2
    axes = case.numbers(2) if has_axes else None
    if target is None:
        return [None]
    if str(case.attributes.get("mode", "")).lower() in {"", "bidirectional"}:
        return [_broadcast(data, tuple(target))]
    if has_axes and axes is None:
        return [tuple(target)]
    if len(target) < len(data):
        raise ShapesDiffer(reason=f"{len(target)} dimensions are less than {len(data)}")
    aligned = target[len(target) - len(data) :] if axes is None else [target[axis] for axis in axes]
    _require_equal(*((old, new) for old, new in zip(data, aligned, strict=True) if old != 1))
    return [tuple(target)]


def matrix_product(
    case: ShapeCase, second: int = 1, words: tuple[str, str] = ("transpose_a", "transpose_b")
) -> _Sizes:
    """[..., n, k] times [..., k, m] is [..., n, m]; with a vector, n or m is missing."""
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if len(shape) > 1 and case.written.boolean(word, False) else shape
        for shape, word in zip((case.shape(0), case.shape(second)), words, strict=True)
    )
    if not left or not right:
        raise ShapesDiffer(reason="a scalar is not a matrix")
    wide_left = left if len(left) > 1 else (1, *left)
    wide_right = right if len(right) > 1 else (*right, 1)
    _require_equal((wide_left[-1], wide_right[-2]))
    front = _broadcast(wide_left[:-2], wide_right[:-2])
    rows = wide_left[-2:-1] if len(left) > 1 else ()
    return [(*front, *rows, *(wide_right[-1:] if len(right) > 1 else ()))]


def general_product(case: ShapeCase) -> _Sizes:
    """[n, k] times [k, m] is [n, m], to which input 2 is broadcast."""
    shapes = matrix_product(case, words=("transA", "transB"))
    _broadcast(*filter(None, (*shapes, *case.shapes[2:])))
    return shapes


def attention(case: ShapeCase) -> _Sizes:
    """Queries [..., n, k], keys [..., m, k] and values [..., m, v] return [..., n, v]."""
    query, key, value = map(case.shape, range(3))
    front = _broadcast(query[:-2], key[:-2], value[:-2])
    _require_equal((query[-1], key[-1]), (key[-2], value[-2]))
    return [(*front, query[-2], value[-1])]


def windows(case: ShapeCase, spatial: _Size, kernel: Sequence[int]) -> _Size:
    """Return the number of windows in each dimension, by the node's strides, dilations and pads.

    Per dimension: 1 + (size + pads - reach) / stride, where reach = (kernel - 1) * dilation + 1.
    """
    if len(spatial) != len(kernel):
        raise ShapesDiffer
    ones, zeros = [1] * len(spatial), [0] * len(spatial)
    auto_pad, rounding = (
        str(case.attributes.get(name, "")).lower() for name in ("auto_pad", "rounding_type")
    )
    written = case.written
    strides, dilations = written.integers("strides", ones), written.integers("dilations", ones)
    pads = zeros * 2 if auto_pad == "valid" else written.integers("pads", [])
    before = pads[: len(spatial)] or written.integers("pads_begin", zeros)
    after = pads[len(spatial) :] or written.integers("pads_end", zeros)
    rounds_up = written.boolean("ceil_mode", False) or rounding.startswith("ceil")
    counts = []
    for axis, size in enumerate(spatial):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        room = size + before[axis] + after[axis] - reach
        if auto_pad.startswith("same"):
            counts.append(-(-size // strides[axis]))
            continue
        if room < 0:
            raise ShapesDiffer(least=[(size, size - room)])
        steps = -(-room // strides[axis]) if rounds_up else room // strides[axis]
        if rounds_up and rounding != "ceil" and steps * strides[axis] >= size + before[axis]:
            steps -= 1
        counts.append(steps + 1)
    return tuple(counts)


def convolution(case: ShapeCase, is_grouped: bool = False) -> _Sizes:
    """The output is [batch, out, ...]; with groups, their outputs are joined.

    Data is [batch, groups * in, ...], weights are [out, in, ...] or [groups, out, in, ...].
    """
    data, weights = case.shape(0), case.shape(1)
    groups = case.written.integer("group", 1)
    if is_grouped:
        groups, weights = weights[0], (weights[0] * weights[1], *weights[2:])
    _require_equal((data[1], groups * weights[1]))
    return [(data[0], weights[0], *windows(case, data[2:], weights[2:]))]


def pool(case: ShapeCase) -> _Sizes:
    """[batch, channels] stay, the other dimensions become numbers of windows; for both outputs."""
    data = case.shape(0)
    kernel = case.written.integers("kernel_shape", case.written.integers("kernel", []))
    shape = (*data[:2], *windows(case, data[2:], kernel))
    return [shape, shape]


def pool_everything(case: ShapeCase) -> _Sizes:
    """[batch, channels] stay, the other dimensions become 1."""
    data = case.shape(0)
    return [(*data[:2], *(1 for _ in data[2:]))]


def reduction(case: ShapeCase) -> _Sizes:
    """The axes, attribute or input 1, become 1 or are removed. In ONNX an empty list means all axes."""
    data = case.shape(0)
    if case.is_given(1) and case.numbers(1) is None:
        return [None]
    axes = case.integers(1, "axes", ())
    keeps = case.written.boolean("keepdims" if case.is_onnx else "keep_dims", case.is_onnx)
    gone = {_place(axis, len(data)) for axis in axes}
    if case.is_onnx and not axes and not case.written.boolean("noop_with_empty_axes", False):
        gone = {*range(len(data))}
    sizes = [1 if number in gone else size for number, size in enumerate(data)]
    return [tuple(size for number, size in enumerate(sizes) if keeps or number not in gone)]


def arg(case: ShapeCase) -> _Sizes:
    """The axis becomes 1, or is removed."""
    data = case.shape(0)
    axis = _place(case.written.integer("axis", 0), len(data))
    return [(*data[:axis], *((1,) if case.written.boolean("keepdims", True) else ()), *data[axis + 1 :])]


def top(case: ShapeCase) -> _Sizes:
    """The size of the axis becomes the number in input 1."""
    data, count = case.shape(0), case.numbers(1)
    if count is None:
        return [None]
    axis = _place(case.written.integer("axis", -1), len(data))
    if count[0] > data[axis]:
        raise ShapesDiffer(least=[(data[axis], count[0])])
    shape = (*data[:axis], count[0], *data[axis + 1 :])
    return [shape, shape]


def one_hot(case: ShapeCase) -> _Sizes:
    """A new dimension is inserted, whose size is the number in input 1."""
    indices, depth = case.shape(0), case.numbers(1)
    if depth is None:
        return [None]
    axis = _place(case.written.integer("axis", -1), len(indices) + 1)
    return [(*indices[:axis], depth[0], *indices[axis:])]


def reshaped(case: ShapeCase) -> _Sizes:
    """Input 1 contains the shape: 0 may copy a dimension, -1 is inferred from the number of elements."""
    data, pattern = case.shape(0), case.integers(1, "shape")
    copies = zero_copies(case.written, is_onnx=case.is_onnx)
    copied = {place for place, size in enumerate(pattern) if size == 0 and copies}
    if len(data) <= max(copied, default=-1):
        raise ShapesDiffer(reason=f"0 copies dimension {max(copied)} of {len(data)}")
    sizes = [data[place] if place in copied else size for place, size in enumerate(pattern)]
    available = prod(size for place, size in enumerate(data) if place not in copied)
    used = prod(size for place, size in enumerate(pattern) if place not in copied and size != -1)
    if pattern.count(-1) > 1 or min(pattern, default=0) < -1:
        raise ShapesDiffer(reason=f"{show_numbers(pattern)} is not a shape with at most one -1")
    if available % used != 0 if -1 in pattern else available != used:
        is_checked = case.is_onnx or -1 in pattern or not copied
        raise ShapesDiffer if is_checked else LookupError
    return [tuple([available // used if pattern[place] == -1 else size for place, size in enumerate(sizes)])]


def flattened(case: ShapeCase) -> _Sizes:
    """A matrix: the dimensions before the axis become one, and those from the axis on."""
    data, axis = case.shape(0), case.written.integer("axis", 1)
    return [(prod(data[:axis]), prod(data[axis:]))] if -len(data) <= axis <= len(data) else [None]


def squeezed(case: ShapeCase) -> _Sizes:
    """Dimensions of 1 are removed: all, or those in input 1. OpenVINO ignores axes with another size."""
    data, axes = case.shape(0), case.integers(1, "axes", ())
    named = {_place(axis, len(data)) for axis in axes} or {*range(len(data))}
    unclear = [data[place] for place in named if isinstance(data[place], UnknownSize)]
    if unclear and not (axes and case.is_onnx):
        return [None]
    if axes and case.is_onnx and any(data[place] != 1 for place in named):
        raise ShapesDiffer([(data[place], 1) for place in named])
    gone = {place for place in named if data[place] == 1 or data[place] in unclear}
    return [tuple([size for place, size in enumerate(data) if place not in gone])]


def unsqueezed(case: ShapeCase) -> _Sizes:
    """Dimensions of 1 are inserted; the axes refer to the output."""
    data, axes = case.shape(0), case.integers(1, "axes")
    if not axes and not case.is_onnx:
        raise ShapesDiffer(reason="there are no axes")
    rank = len(data) + len(axes)
    new, sizes = {_place(axis, rank) for axis in axes}, iter(data)
    if len(new) < len(axes):
        return [None]
    return [tuple([1 if place in new else next(sizes) for place in range(rank)])]


def transposed(case: ShapeCase) -> _Sizes:
    """The dimensions are permuted; without an order, they are reversed."""
    data = case.shape(0)
    lists = case.shapes[1:2]
    if lists and lists[0] and lists[0][0] not in {0, len(data)} and not isinstance(lists[0][0], UnknownSize):
        raise ShapesDiffer
    order = case.integers(1, "perm", () if case.is_onnx else None) or [*range(len(data))][::-1]
    if sorted(order) != [*range(len(data))]:
        raise ShapesDiffer(reason=f"{show_numbers(order)} is not an order of {len(data)} dimensions")
    return [tuple([data[place] for place in order])]


def tiled(case: ShapeCase) -> _Sizes:
    """Each dimension is multiplied by a repeat. In OpenVINO the shorter list gets leading 1s.

    OpenVINO reads a negative repeat as 0.
    """
    data, repeats = case.shape(0), [number if case.is_onnx else max(number, 0) for number in case.integers(1)]
    if min(repeats, default=0) < 0 or (case.is_onnx and (len(repeats) != len(data) or len(case.shapes) > 2)):
        return [None]
    ones = [1] * abs(len(data) - len(repeats))
    wide, times = ([*ones, *data], repeats) if len(data) < len(repeats) else (data, [*ones, *repeats])
    return [tuple([size * number for size, number in zip(wide, times, strict=True)])]


def split(case: ShapeCase) -> _Sizes:
    """One dimension is split into equal parts; in ONNX also into parts of the lengths in `split`."""
    data, written = case.shape(0), case.written
    axis = _place(written.integer("axis", 0) if case.is_onnx else case.integers(1)[0], len(data))
    size, word = data[axis], "num_outputs" if case.is_onnx else "num_splits"
    count = written.integer(word, case.output_count)
    if case.is_onnx and ("split" in case.attributes or case.is_given(1)):
        lengths = case.integers(1, "split")
    elif case.is_onnx and "num_outputs" in case.attributes:
        part = -(-size // count)
        lengths = [part] * (count - 1) + [size - part * (count - 1)]
    else:
        lengths = [size // count] * count
    return _parts(data, axis, lengths)


def variadic_split(case: ShapeCase) -> _Sizes:
    """One dimension is split into parts of the lengths in input 2; -1 stands for the rest."""
    data, (axis, *_), lengths = case.shape(0), case.integers(1), case.integers(2)
    place = _place(axis, len(data))
    if lengths.count(-1) == 1:
        lengths[lengths.index(-1)] = data[place] - sum(lengths) - 1
    return _parts(data, place, lengths)


def _parts(data: _Size, axis: int, lengths: Sequence[int]) -> _Sizes:
    if any(length < 0 for length in lengths) or sum(lengths) != data[axis]:
        raise ShapesDiffer
    return [(*data[:axis], length, *data[axis + 1 :]) for length in lengths]


def gathered(case: ShapeCase) -> _Sizes:
    """The axis of data is replaced by the dimensions of indices, without batch dimensions."""
    data, indices = case.shape(0), case.shape(1)
    axis = _place(case.written.integer("axis", 0) if case.is_onnx else case.integers(2)[0], len(data))
    batches = case.written.integer("batch_dims", 0)
    batches += len(indices) if batches < 0 else 0
    if not 0 <= batches <= min(axis, len(indices)):
        raise ShapesDiffer(reason=f"batch_dims is {batches}, expected 0 to {min(axis, len(indices))}")
    _require_equal(*zip(data[:batches], indices[:batches], strict=True))
    return [(*data[:axis], *indices[batches:], *data[axis + 1 :])]


def gathered_nd(case: ShapeCase) -> _Sizes:
    """The last dimension of indices contains coordinates, which select a slice of data within a batch."""
    data, indices, batches = case.shape(0), case.shape(1), case.written.integer("batch_dims", 0)
    depth = indices[-1]
    if depth > len(data) - batches:
        raise ShapesDiffer(reason=f"{depth} coordinates are more than {len(data) - batches} dimensions")
    if isinstance(depth, UnknownSize) or depth < 1 or batches < 0:
        return [None]
    if batches > 1 and not case.is_onnx:  # GatherND-5 joins the batch dimensions
        return [None]
    return [(*indices[:-1], *data[batches + depth :])]


def gathered_elements(case: ShapeCase) -> _Sizes:
    """The output has the shape of indices."""
    if len(case.shape(0)) != len(case.shape(1)):
        raise ShapesDiffer(reason="their ranks differ")
    return [case.shape(1)]


def padded(case: ShapeCase) -> _Sizes:
    """Dimensions grow, or shrink, at both ends."""
    data = [*case.shape(0)]
    if not case.is_onnx and any(case.shapes[3:4]):
        raise ShapesDiffer(reason="the pad value is not a scalar")
    pads = case.integers(1, "pads" if case.is_onnx else "")
    if not case.is_onnx and {len(pads), len(case.integers(2))} != {len(data)}:
        raise ShapesDiffer(reason=f"pads_begin and pads_end do not have {len(data)} numbers each")
    axes = case.integers(3, "", range(len(data))) if case.is_onnx else [*range(len(data))]
    pads += [] if case.is_onnx else case.integers(2)
    for before, after, axis in zip(pads[: len(axes)], pads[len(axes) :], axes, strict=True):
        data[_place(axis, len(data))] += before + after
    return [tuple(data) if not any(size < 0 for size in data) else None]


def number_range(case: ShapeCase) -> _Sizes:
    """A list of the numbers from input 0 up to input 1, in steps of input 2."""
    if any(shape not in {(), (1,), None} for shape in case.shapes):
        raise ShapesDiffer(reason="start, stop or step is not a scalar")
    (first,), (stop,), (step,) = (case.integers(port) for port in range(3))
    return [(len(range(first, stop, step)),)]


def from_input(case: ShapeCase) -> _Sizes:
    """Input 0 contains the shape."""
    sizes = case.integers(0)
    return [tuple(sizes) if min(sizes, default=0) >= 0 else None]


def sliced(case: ShapeCase) -> _Sizes:
    """Sliced dimensions have the lengths of their ranges."""
    data = [*case.shape(0)]
    axes_input, steps_input = (3, 4) if case.is_onnx else (4, 3)
    if not data:
        raise ShapesDiffer(reason="a scalar has no dimensions")
    if case.is_given(axes_input):
        for axis in case.numbers(axes_input) or ():
            _place(axis, len(data))
    if case.is_given(steps_input) and 0 in (case.numbers(steps_input) or ()) and case.numbers(2) is not None:
        raise ShapesDiffer(reason="a step is 0")
    starts, ends = case.integers(1, "starts"), case.integers(2, "ends")
    axes = case.integers(axes_input, "axes", range(len(starts)))
    steps = case.integers(steps_input, "", [1] * len(starts))
    if len({len(starts), len(ends), len(axes), len(steps)}) > 1:
        raise ShapesDiffer(reason="the lengths of starts, ends, steps and axes differ")
    for start, stop, step, axis in zip(starts, ends, steps, axes, strict=True):
        place = _place(axis, len(data))
        if not case.is_onnx and step < 0 and start < 0 and -start > data[place]:
            return [None]
        data[place] = _length(start, stop, step, data[place])
    return [tuple(data)]


def strided_slice(case: ShapeCase) -> _Sizes:
    """Sliced dimensions have the lengths of their ranges, modified by the five masks of StridedSlice-1."""
    data, begins, ends = case.shape(0), case.integers(1), case.integers(2)
    strides = case.integers(3, "", [1] * len(begins))
    words = ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    bits = [case.written.integers(f"{word}_mask", ()) for word in words]
    if len(begins) != len(ends) or len({len(mask) for mask in bits if mask}) > 1:
        raise ShapesDiffer(reason="the lengths of begin and end, or of the masks, differ")
    masks = [
        {word for word, bit in zip(words, bits, strict=True) if bit[at : at + 1] == [1]}
        for at in range(len(begins))
    ]
    skipped_count = len(data) - sum(not mask & {"new_axis", "ellipsis"} for mask in masks)
    sizes, remaining = list[int](), [*data]
    for begin, end, stride, mask in zip(begins, ends, strides, masks, strict=True):
        if len(mask & {"new_axis", "shrink_axis", "ellipsis"}) > 1 or mask >= {"begin", "shrink_axis"}:
            return [None]
        if "ellipsis" in mask:
            sizes, remaining = [*sizes, *remaining[:skipped_count]], remaining[skipped_count:]
        elif "new_axis" in mask:
            sizes.append(1)
        elif "shrink_axis" in mask:
            remaining.pop(0)
        elif begin == end and not mask:
            return [None]
        else:
            size = remaining.pop(0)
            first = begin if "begin" not in mask else 0 if stride > 0 else size
            last = end if "end" not in mask else size if stride > 0 else -size - 1
            sizes.append(_length(first, last, stride, size))
    return [(*sizes, *remaining)]


def clamped(start: int, stop: int, step: int, size: int) -> range:
    """Clamp a range to a dimension, as ONNX's Slice and OpenVINO's StridedSlice specify."""
    if step == 0:
        raise ValueError("step is 0, expected any other number")
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start + size * (start < 0), 0), highest)
    last = min(max(stop + size * (stop < 0), lowest), highest)
    return range(first, last, step) if (last - first) * step > 0 else range(0)


def _length(start: int, stop: int, step: int, size: int) -> int:
    return UnknownSize() if isinstance(size, UnknownSize) else len(clamped(start, stop, step, size))


def _place(axis: int, rank: int) -> int:
    if not -max(rank, 1) <= axis < max(rank, 1):  # a scalar counts as a list of one
        raise ShapesDiffer(reason=f"axis {axis} is out of range for {counted(rank, 'dimension')}")
    return axis % max(rank, 1)
