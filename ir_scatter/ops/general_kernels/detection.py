"""Kernels of OpenVINO for object detection: prior boxes, YOLO regions, and selection of boxes.

Boxes are [left, top, right, bottom] unless a docstring says otherwise.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ir_scatter.core.arrays import Array
from ir_scatter.core.shapes import show
from ir_scatter.ops.general_kernels.base import (
    REAL,
    WHOLE,
    KernelCase,
    UnsupportedCase,
    narrow,
    require_kind,
    widen,
)
from ir_scatter.ops.general_kernels.boxes import descending, overlaps, suppress, suppress_adaptively
from ir_scatter.ops.general_kernels.functions import sigmoid
from ir_scatter.ops.general_kernels.normalize import softmax_of

# Prior boxes.


def _numbers(case: KernelCase, name: str, default: Sequence[float] = ()) -> list[float]:
    return [float(np.float32(number)) for number in case.attributes.numbers(name, default)]


def _image_sizes(case: KernelCase) -> tuple[list[int], list[int]]:
    """Return [rows, columns] of the layer and of the image."""
    layer, image = case.integers(0), case.integers(1)
    if len(layer) != 2 or len(image) != 2:
        raise UnsupportedCase("a size does not have two numbers")
    return layer, image


def _with_variances(case: KernelCase, boxes: Array, name: str) -> Array:
    """Return boxes and variances as [2, n]."""
    variances = _numbers(case, name) or [0.1]
    if len(variances) not in {1, 4}:
        raise UnsupportedCase(f"{name} has {len(variances)} numbers, expected 1 or 4")
    flat = boxes.reshape(-1)
    repeated = np.resize(np.array(variances, np.float32), flat.size)
    case.reserve((2, flat.size))
    return np.stack([flat, repeated])


class _Prior(NamedTuple):
    """A box around the centre of a cell, in pixels: half its width and height, and its shift."""

    half_width: Any
    half_height: Any
    shift_x: Any = np.float32(0)
    shift_y: Any = np.float32(0)
    is_clipped: bool = False


def prior_box(case: KernelCase) -> Array:
    """Compute PriorBox: boxes of several sizes and aspect ratios around the centre of each cell."""
    (rows, columns), (height, width) = _image_sizes(case)
    attributes, single = case.attributes, np.float32
    scales_all = attributes.boolean("scale_all_sizes", True)
    step = single(attributes.number("step", 0.0))
    smallest = [single(size) for size in _numbers(case, "min_size")]
    if not scales_all:
        step = single(height) / single(rows) if step == -1 else step * single(height)
        smallest = [size * single(height) for size in smallest]
    offset = single(attributes.number("offset"))
    if step == 0:
        steps = single(height) / single(rows), single(width) / single(columns)
        starts = single(0.5)
    else:
        steps, starts = (step, step), offset
    centres = [
        (np.arange(count, dtype=np.float32) + starts) * each
        for count, each in zip((rows, columns), steps, strict=True)
    ]
    priors = [*_fixed_priors(case), *_sized_priors(case, smallest, scales_all)]
    if len(priors) != _prior_count(case):
        raise UnsupportedCase(f"there are {len(priors)} boxes, expected {_prior_count(case)} by its shape")
    y, x = centres[0][:, None, None], centres[1][None, :, None]
    half_width, half_height, shift_x, shift_y = (
        np.array([prior[number] for prior in priors], np.float32) for number in range(4)
    )
    x, y = x + shift_x, y + shift_y
    parts = (x - half_width, y - half_height, x + half_width, y + half_height)
    inverse = single(1) / single(width), single(1) / single(height)
    boxes = np.stack(np.broadcast_arrays(*parts), -1) * np.array([*inverse, *inverse], np.float32)
    is_clipped = np.array([prior.is_clipped for prior in priors], np.bool_)
    boxes[..., is_clipped, :2] = np.maximum(boxes[..., is_clipped, :2], 0)
    boxes[..., is_clipped, 2:] = np.minimum(boxes[..., is_clipped, 2:], 1)
    if attributes.boolean("clip", False):
        boxes = np.clip(boxes, 0, 1)
    return _with_variances(case, boxes, "variance")


def _prior_count(case: KernelCase) -> int:
    """Return the number of boxes of a cell, as in the specified output shape."""
    ratios = 1 + len(_aspect_ratios(case))
    count = ratios + len(_numbers(case, "min_size")) - 1
    if case.attributes.boolean("scale_all_sizes", True):
        count = ratios * len(_numbers(case, "min_size")) + len(_numbers(case, "max_size"))
    if _numbers(case, "fixed_size"):
        count = ratios * len(_numbers(case, "fixed_size"))
    shapes = len(_numbers(case, "fixed_ratio")) or ratios
    return count + sum(shapes * (int(density) ** 2 - 1) for density in _numbers(case, "density"))


def _aspect_ratios(case: KernelCase) -> list[Any]:
    """Return the aspect ratios other than 1; with `flip` each is followed by its inverse."""
    ratios = [1.0]
    for ratio in _numbers(case, "aspect_ratio"):
        if all(abs(ratio - other) >= 1e-6 for other in ratios):
            ratios += [ratio, 1 / ratio] if case.attributes.boolean("flip", False) else [ratio]
    return [np.sqrt(np.float32(ratio)) for ratio in ratios[1:] if abs(ratio - 1) >= 1e-6]


def _fixed_priors(case: KernelCase) -> Iterator[_Prior]:
    """Yield the boxes of fixed sizes; with a density, several of each size."""
    sizes, densities = _numbers(case, "fixed_size"), _numbers(case, "density")
    ratios = [np.sqrt(np.float32(ratio)) for ratio in _numbers(case, "fixed_ratio")]
    for number, size in enumerate(sizes):
        density = int(densities[number]) if number < len(densities) else 0
        if not density:
            continue
        shift, half = int(size / density), np.float32(int(size) // 2)
        steps = [np.float32(shift / 2) + np.float32(place * shift) - half for place in range(density)]
        square, middle = np.float32(int(size) * 0.5), np.float32(size * 0.5)
        shapes = [(middle * ratio, middle / ratio) for ratio in ratios]
        if not ratios:
            shapes = [(square, square)]
            shapes += [(middle * ratio, middle / ratio) for ratio in _aspect_ratios(case)]
        for width, height in shapes:
            for y in steps:
                for x in steps:
                    yield _Prior(width, height, x, y, is_clipped=True)


def _sized_priors(case: KernelCase, smallest: list[Any], scales_all: bool) -> Iterator[_Prior]:
    """Yield the boxes of the minimal sizes, and those between minimal and maximal sizes."""
    largest = [np.float32(size) for size in _numbers(case, "max_size")]
    is_first = case.attributes.boolean("min_max_aspect_ratios_order", True)
    half = np.float32(0.5)
    for number, size in enumerate(smallest):
        yield _Prior(size * half, size * half)
        between = []
        if number < len(largest):
            side = np.sqrt(size * largest[number]) * half
            between = [_Prior(side, side)]
        turned = []
        if scales_all or number == len(smallest) - 1:
            base = (size if scales_all else smallest[0]) * half
            turned = [_Prior(base * ratio, base / ratio) for ratio in _aspect_ratios(case)]
        yield from (*between, *turned) if is_first else (*turned, *between)


def prior_box_clustered(case: KernelCase) -> Array:
    """Compute PriorBoxClustered: boxes of given widths and heights around the centre of each cell."""
    (rows, columns), (height, width) = _image_sizes(case)
    attributes, single = case.attributes, np.float32
    widths, heights = (np.array(_numbers(case, name), np.float32) for name in ("width", "height"))
    common = attributes.number("step", 0.0)
    steps = [single(attributes.number(name, 0.0) or common) for name in ("step_h", "step_w")]
    if not any(steps):
        steps = [single(height) / single(rows), single(width) / single(columns)]
    offset = single(attributes.number("offset"))
    y, x = (
        (np.arange(count, dtype=np.float32) + offset) * step
        for count, step in zip((rows, columns), steps, strict=True)
    )
    first, second = y[:, None, None], x[None, :, None]
    parts = (
        (second - widths / 2) / width, (first - heights / 2) / height,
        (second + widths / 2) / width, (first + heights / 2) / height,
    )  # fmt: skip
    boxes = np.stack(np.broadcast_arrays(*parts), -1).astype(np.float32)
    if attributes.boolean("clip", False):
        boxes = np.clip(boxes, 0, 1)
    return _with_variances(case, boxes, "variance")


# Detections of SSD.


def detection_output(case: KernelCase) -> Array:
    """Compute DetectionOutput: decode boxes by priors, select some, and return them as [1, 1, n, 7].

    A row is [image, class, score, left, top, right, bottom]; -1 ends the list if it is not full.
    """
    location, confidence, priors = case.arrays(3)
    require_kind(REAL, location, confidence, priors)
    attributes, pictures = case.attributes, location.shape[0]
    is_normalized = attributes.boolean("normalized", False)
    count = priors.shape[2] // (4 if is_normalized else 5)
    classes = confidence.shape[1] // max(count, 1)
    is_shared = attributes.boolean("share_location", True)
    scores = widen(confidence).reshape(pictures, count, classes)
    shape = (pictures, count, 1 if is_shared else classes, 4)
    decoded = _decoded(case, widen(priors), widen(location).reshape(shape), count, is_normalized)
    if case.has(3):
        scores = _refined_scores(case, scores, widen(case.array(3)).reshape(pictures, count, 2))
    rows: list[list[Any]] = []
    for picture in range(pictures):
        rows += _detections(case, picture, scores[picture], decoded[picture], is_shared=is_shared)
    total = _detection_count(case, pictures, count, classes)
    output = np.zeros(case.reserve((1, 1, total, 7)), scores.dtype)
    if rows:
        output[0, 0, : len(rows)] = rows[:total]
    if len(rows) < total:
        output[0, 0, len(rows), 0] = -1
    return narrow(output, location.dtype)


def _detection_count(case: KernelCase, pictures: int, priors: int, classes: int) -> int:
    """Return the number of rows of the output."""
    kept, most = case.attributes.integers("keep_top_k")[0], case.attributes.integer("top_k", -1)
    classes = case.attributes.integer("num_classes", classes)
    if kept > 0:
        return pictures * kept
    return pictures * classes * (most if most > 0 else priors)


def _decoded(case: KernelCase, priors: Array, location: Array, count: int, is_normalized: bool) -> Array:
    """Return boxes [images, priors, classes or 1, 4]; the boxes of a first stage replace the priors."""
    boxes, variances = _priors(case, priors, count, is_normalized)
    stages = [location]
    if case.has(4):
        stages.insert(0, widen(case.array(4)).reshape(location.shape))
    current = boxes[:, :, None]
    for stage in stages:
        current = _decode(case, current, None if variances is None else variances[:, :, None], stage)
        if case.attributes.boolean("clip_before_nms", False):
            current = np.clip(current, 0, 1)
    return np.asarray(np.broadcast_to(current, location.shape))


def _priors(case: KernelCase, priors: Array, count: int, is_normalized: bool) -> tuple[Array, Array | None]:
    """Return the prior boxes as fractions of the image, and their variances, both [batch, priors, 4]."""
    has_variances = not case.attributes.boolean("variance_encoded_in_target", False)
    boxes = priors[:, 0].reshape(len(priors), count, -1)[..., -4:]
    if not is_normalized:
        sizes = [case.attributes.number(f"input_{side}", 1.0) for side in ("width", "height")]
        boxes = boxes / np.array(sizes * 2, boxes.dtype)
    variances = priors[:, 1].reshape(-1)[: len(priors) * count * 4] if has_variances else None
    if has_variances:
        variances = priors[:, 1, : 4 * count].reshape(len(priors), count, 4)
    return boxes, variances


def _decode(case: KernelCase, priors: Array, variances: Array | None, location: Array) -> Array:
    """Apply predicted offsets to prior boxes: to corners, or to centre and size."""
    word = str(case.attributes.value("code_type", "caffe.PriorBoxParameter.CORNER")).rpartition(".")[2]
    changes = location if variances is None else location * variances
    if word == "CORNER":
        return np.asarray(priors + changes)
    if word != "CENTER_SIZE":
        raise UnsupportedCase(f"code_type is {word}, expected CORNER or CENTER_SIZE")
    sizes, centres = priors[..., 2:] - priors[..., :2], (priors[..., :2] + priors[..., 2:]) / 2
    centre, half = changes[..., :2] * sizes + centres, np.exp(changes[..., 2:]) * sizes / 2
    return np.concatenate([centre - half, centre + half], -1)


def _refined_scores(case: KernelCase, scores: Array, first: Array) -> Array:
    """Return scores in which priors with a small objectness in the first stage are background."""
    is_nothing = first[..., 1] < case.attributes.number("objectness_score", 0.0)
    background = np.zeros(scores.shape[2], scores.dtype)
    number = case.attributes.integer("background_label_id", 0)
    if 0 <= number < scores.shape[2]:
        background[number] = 1
    return np.where(is_nothing[..., None], background, scores)


def _detections(
    case: KernelCase, picture: int, scores: Array, boxes: Array, *, is_shared: bool
) -> list[list[Any]]:
    """Return the rows of an image, by class and descending score."""
    attributes = case.attributes
    threshold = scores.dtype.type(attributes.number("confidence_threshold", 0.0))
    most, background = attributes.integer("top_k", -1), attributes.integer("background_label_id", 0)
    limit = attributes.number("nms_threshold")
    lowers = attributes.boolean("decrease_label_id", False)

    def of_class(number: int) -> Array:
        return boxes[:, 0 if is_shared else number]

    kept = dict[int, list[int]]()
    if lowers:  # each prior belongs to its best class
        considered = [number for number in range(1, scores.shape[1]) if number != background]
        best = np.array(considered)[scores[:, considered].argmax(1)]
        score = scores[np.arange(len(scores)), best]
        order = np.array([place for place in descending(score) if score[place] >= threshold], np.int64)
        order = order[:most] if most != -1 else order
        for number in considered:
            places = order[best[order] == number]
            stays = suppress(of_class(number)[places], limit, len(places))
            kept[number] = [int(places[each]) for each in stays]
    else:
        for number in range(scores.shape[1]):
            if number == background:
                continue
            order = descending(scores[:, number])
            order = order[scores[order, number] > threshold]
            order = order[:most] if most > -1 else order
            stays = suppress(of_class(number)[order], limit, len(order))
            kept[number] = [int(order[each]) for each in stays]
    pairs = [(number, place) for number, places in kept.items() for place in places]
    total = attributes.integers("keep_top_k")[0]
    if -1 < total < len(pairs):
        by_score = sorted(pairs, key=lambda pair: (-scores[pair[1], pair[0]], pair[1]))[:total]
        pairs = sorted(by_score, key=lambda pair: pair[0])
    rows = []
    for number, place in pairs:
        box = of_class(number)[place]
        if attributes.boolean("clip_after_nms", False):
            box = np.clip(box, 0, 1)
        rows.append([picture, number - lowers, scores[place, number], *box])
    return rows


# YOLO.


def region_yolo(case: KernelCase) -> Array:
    """Compute RegionYolo: logistic functions of positions and objectness, and without softmax of classes."""
    data = case.array(0)
    require_kind(REAL, data)
    attributes = case.attributes
    coordinates, classes = attributes.integer("coords"), attributes.integer("classes")
    is_softmax = attributes.boolean("do_softmax", True)
    count = attributes.integer("num") if is_softmax else len(attributes.integers("mask", ()))
    batch, _, rows, columns = data.shape
    each = coordinates + classes + 1
    wide = widen(data)[:, : count * each].reshape(batch, count, each, rows, columns)
    output = wide.copy()
    output[:, :, :2] = sigmoid(wide[:, :, :2])
    output[:, :, coordinates] = sigmoid(wide[:, :, coordinates])
    place = np.s_[:, :, coordinates + 1 :]
    output[place] = softmax_of(wide[place], 2) if is_softmax else sigmoid(wide[place])
    if not is_softmax:
        return narrow(output.reshape(batch, count * each, rows, columns), data.dtype)
    axis, end = attributes.integer("axis"), attributes.integer("end_axis")
    first, last = axis % data.ndim, end % data.ndim
    shape = (*data.shape[:first], -1, *data.shape[last + 1 :])
    return narrow(output.reshape(shape), data.dtype)


def reorg_yolo(case: KernelCase) -> Array:
    """Compute ReorgYolo: move blocks of an image to channels, in the order of Darknet."""
    data = case.array(0)
    stride = case.attributes.integers("stride")[0]
    batch, channels, rows, columns = data.shape
    if stride < 1 or channels % stride**2 or rows % stride or columns % stride:
        raise UnsupportedCase(f"stride is {stride} for data of shape {show(data.shape)}")
    few = channels // stride**2
    output = np.empty((batch, channels, rows, columns), data.dtype)
    spread = data.reshape(batch, few, rows * stride, columns * stride)
    for channel in range(channels):
        block, source = divmod(channel, few)
        first, second = divmod(block, stride)
        output[:, channel] = spread[:, source, first::stride, second::stride]
    return output.reshape(batch, channels * stride**2, rows // stride, columns // stride)


# Choices across classes.


def _limit(number: int) -> int | None:
    return None if number < 0 else number


def multiclass_nms(case: KernelCase) -> tuple[Array, ...]:
    """Compute MulticlassNms: remove overlapping boxes of each class, and keep the best of each image."""
    boxes, scores = case.arrays(2)
    require_kind(REAL, boxes, scores)
    wide = [widen(boxes), widen(scores)]
    if case.has(2):
        pictures, offsets = _pictures_by_counts(wide[0], wide[1], case.array(2))
    else:
        pictures = _shared_boxes(*wide)
        offsets = [number * boxes.shape[1] for number in range(len(pictures))]
    attributes = case.attributes
    background = attributes.integer("background_class", -1)
    found = []
    for number, (box, score) in enumerate(pictures):
        chosen = []
        for group in range(score.shape[0]):
            if group == background:
                continue
            order = descending(score[group])
            order = order[score[group][order] >= attributes.number("score_threshold", 0.0)]
            order = order[: _limit(attributes.integer("nms_top_k", -1))]
            kept = suppress_adaptively(
                box[group][order],
                attributes.number("iou_threshold", 0.0),
                attributes.number("nms_eta", 1.0),
                0.0 if attributes.boolean("normalized", True) else 1.0,
            )
            chosen += [(number, group, int(order[place]), score[group][order[place]]) for place in kept]
        found.append(chosen)
    stride = boxes.shape[0] if case.has(2) else 1
    return _listed(case, found, pictures, offsets, stride)


_Pictures = list[tuple[Array, Array]]
"""Boxes [classes, n, 4] and scores [classes, n] of each image."""


def _shared_boxes(boxes: Array, scores: Array) -> _Pictures:
    """Return the boxes of each image, repeated for each class."""
    return [
        (np.broadcast_to(box, (score.shape[0], *box.shape)), score)
        for box, score in zip(boxes, scores, strict=True)
    ]


def _pictures_by_counts(boxes: Array, scores: Array, counts: Array) -> tuple[_Pictures, list[int]]:
    """Split boxes [classes, all, 4] by the number of boxes of each image."""
    ends = np.cumsum(counts.reshape(-1)).tolist()
    starts = [0, *ends[:-1]]
    parts = [(boxes[:, first:last], scores[:, first:last]) for first, last in zip(starts, ends, strict=True)]
    return parts, starts


def _listed(
    case: KernelCase,
    found: list[list[tuple[int, int, int, Any]]],
    pictures: Sequence[tuple[Array, Array]],
    offsets: Sequence[int],
    stride: int,
    decayed: bool = False,
) -> tuple[Array, ...]:
    """Return the rows [class, score, box], the flat positions of the boxes, and their number per image."""
    attributes = case.attributes
    most = _limit(attributes.integer("keep_top_k", -1))
    word = attributes.text("sort_result_type", "none", {"none", "classid", "score"})
    kept = [sorted(part, key=lambda each: (-each[3], each[1], each[2]))[:most] for part in found]
    if word == "classid" and not decayed:
        kept = [sorted(part, key=lambda each: (each[1], -each[3], each[2])) for part in kept]
    rows = [each for part in kept for each in part]
    if attributes.boolean("sort_result_across_batch", False) and word != "none":
        rows.sort(
            key=(lambda each: (each[1], each[0], -each[3], each[2]))
            if word == "classid"
            else (lambda each: (-each[3], each[0], each[1], each[2]))
        )
    type = case.dtype("output_type", "i64")
    table = np.zeros((len(rows), 6), pictures[0][0].dtype if pictures else np.float32)
    numbers = np.zeros((len(rows), 1), np.int64)
    for place, (picture, group, box, score) in enumerate(rows):
        table[place] = [group, score, *pictures[picture][0][group][box]]
        flat = offsets[picture] + box
        numbers[place] = flat * stride + group if stride > 1 or case.has(2) else flat
    counts = np.array([len(part) for part in kept])
    return narrow(table, case.array(0).dtype), numbers.astype(type), counts.astype(type)


def matrix_nms(case: KernelCase) -> tuple[Array, ...]:
    """Compute MatrixNms: lower the score of each box by its overlaps with boxes of higher scores."""
    boxes, scores = case.arrays(2)
    require_kind(REAL, boxes, scores)
    attributes = case.attributes
    pictures = _shared_boxes(widen(boxes), widen(scores))
    offsets = [number * boxes.shape[1] for number in range(len(pictures))]
    found = []
    for number, (box, score) in enumerate(pictures):
        chosen = []
        for group in range(score.shape[0]):
            if group == attributes.integer("background_class", -1):
                continue
            order = descending(score[group])
            order = order[score[group][order] > attributes.number("score_threshold", 0.0)]
            order = order[: _limit(attributes.integer("nms_top_k", -1))]
            lowered = score[group][order] * _decay(case, box[group][order])
            keeps = lowered > attributes.number("post_threshold", 0.0)
            chosen += [
                (number, group, int(place), value)
                for place, value in zip(order[keeps], lowered[keeps], strict=True)
            ]
        found.append(chosen)
    return _listed(case, found, pictures, offsets, 1, decayed=True)


def _decay(case: KernelCase, boxes: Array) -> Array:
    """Return the factors of scores for boxes in descending order of scores."""
    unit = 0.0 if case.attributes.boolean("normalized", True) else 1.0
    shares = np.array([overlaps(box, boxes, unit) for box in boxes]).reshape(len(boxes), len(boxes))
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    meets = (boxes[:, :2] <= high).all(2) & (boxes[:, 2:] >= low).all(2)
    earlier = np.tril(np.where(meets, shares, 0), -1)
    highest = earlier.max(1, initial=0)
    if case.attributes.text("decay_function", "linear", {"linear", "gaussian"}) == "gaussian":
        sigma = case.attributes.number("gaussian_sigma", 2.0)
        factors = np.exp((highest**2 - earlier**2) * sigma)
    else:
        factors = (1 - earlier) / (1 - highest + 1e-10)
    factors = np.where(np.tri(len(boxes), k=-1, dtype=np.bool_), factors, 1)
    return np.asarray(factors.min(1, initial=1)).astype(boxes.dtype)


# Proposals.


def proposal(case: KernelCase) -> tuple[Array, ...]:
    """Compute Proposal: move anchors by predictions, and return the best as [image, box]."""
    probabilities, deltas, image = case.arrays(3)
    require_kind(REAL, probabilities, deltas, image)
    attributes = case.attributes
    is_tensorflow = str(attributes.value("framework", "")).lower() == "tensorflow"
    unit = 0.0 if is_tensorflow else 1.0
    sizes = [float(number) for number in widen(image).reshape(-1)]
    scales = (sizes[2], sizes[3] if len(sizes) > 3 else sizes[2])
    if is_tensorflow:  # its boxes are [top, left, bottom, right]
        sizes[:2] = sizes[1::-1]
    anchors = _anchors(case, is_tensorflow=is_tensorflow)
    post = attributes.integer("post_nms_topn")
    output, chosen_scores = [], []
    for picture in range(len(probabilities)):
        scores = widen(probabilities[picture])[len(anchors) :].transpose(1, 2, 0).reshape(-1)
        boxes = _proposed(case, widen(deltas[picture]), anchors, sizes, is_tensorflow=is_tensorflow)
        least = [attributes.number("min_size") * scale for scale in scales]
        sides = boxes[:, 2:] - boxes[:, :2] + boxes.dtype.type(unit)
        scores = np.where((sides[:, 1] >= least[0]) & (sides[:, 0] >= least[1]), scores, 0)
        order = descending(scores)[: attributes.integer("pre_nms_topn")]
        places = order[suppress(boxes[order], attributes.number("nms_thresh"), post, unit=unit)]
        rows = boxes[places]
        if attributes.boolean("clip_after_nms", False):
            rows = np.clip(rows, 0, np.array([sizes[1], sizes[0]] * 2, rows.dtype))
        if attributes.boolean("normalize", False):
            rows = rows / np.array([sizes[1], sizes[0]] * 2, rows.dtype)
        table = np.zeros((post, 5), rows.dtype)
        table[: len(rows), 0], table[: len(rows), 1:] = picture, rows
        if len(rows) < post:
            table[len(rows), 0] = -1
        output.append(table)
        chosen_scores.append(np.pad(scores[places], (0, post - len(places))))
    type = probabilities.dtype
    return narrow(np.concatenate(output), type), narrow(np.concatenate(chosen_scores), type)


def _anchors(case: KernelCase, *, is_tensorflow: bool) -> Array:
    """Return the anchors of one cell, [ratios * scales, 4]."""
    base, unit = case.attributes.integer("base_size"), np.float32(0 if is_tensorflow else 1)
    half, centre = np.float32(base * 0.5), np.float32(0.5) * (np.float32(base) - unit)
    anchors = []
    for ratio in map(np.float32, _numbers(case, "ratio")):
        width = np.sqrt(np.float32(base * base) / ratio)
        if not is_tensorflow:
            width = np.floor(width + np.float32(0.5))
        height = width * ratio if is_tensorflow else np.floor(width * ratio + np.float32(0.5))
        for scale in map(np.float32, _numbers(case, "scale")):
            sides = [np.float32(0.5) * (side * scale - unit) for side in (width, height)]
            corners = [centre - sides[0], centre - sides[1], centre + sides[0], centre + sides[1]]
            anchors.append([corner - half if is_tensorflow else corner for corner in corners])
    return np.array(anchors, np.float32).reshape(-1, 4)


def _proposed(
    case: KernelCase, deltas: Array, anchors: Array, sizes: Sequence[float], *, is_tensorflow: bool
) -> Array:
    """Return the boxes of all cells and anchors, [rows * columns * anchors, 4]."""
    attributes, unit = case.attributes, 0.0 if is_tensorflow else 1.0
    _, rows, columns = deltas.shape
    first, second = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    if is_tensorflow:
        first, second = second, first
    stride = attributes.integer("feat_stride")
    shifts = np.stack([second, first, second, first], -1).astype(anchors.dtype) * stride
    boxes = shifts[:, :, None] + anchors
    limits = np.array([sizes[1], sizes[0]] * 2, boxes.dtype)
    if is_tensorflow:
        boxes = np.clip(boxes, 0, limits)
    changes = deltas.reshape(len(anchors), 4, rows, columns).transpose(2, 3, 0, 1)
    extent = boxes[..., 2:] - boxes[..., :2] + boxes.dtype.type(unit)
    centre = boxes[..., :2] + boxes.dtype.type(0.5) * extent
    moved = changes[..., :2] / attributes.number("box_coordinate_scale", 1.0) * extent + centre
    grown = np.exp(changes[..., 2:] / attributes.number("box_size_scale", 1.0)) * extent
    half = grown * boxes.dtype.type(0.5)
    result = np.concatenate([moved - half, moved + half], -1)
    if attributes.boolean("clip_before_nms", True):
        result = np.clip(result, 0, limits - unit)
    return np.asarray(result.reshape(-1, 4).astype(deltas.dtype))


_MOST_GROWTH = np.log(1000.0 / 16)
"""Maximum logarithm of the growth of an anchor in GenerateProposals."""


def generate_proposals(case: KernelCase) -> tuple[Array, ...]:
    """Compute GenerateProposals: move anchors by predictions, and list the best boxes of each picture."""
    image, anchors, deltas, scores = case.arrays(4)
    require_kind(REAL, image, anchors, deltas, scores)
    attributes = case.attributes
    if attributes.number("nms_eta", 1.0) != 1:
        raise UnsupportedCase("nms_eta is not 1")
    unit = 0.0 if attributes.boolean("normalized", True) else 1.0
    most, limit = attributes.integer("post_nms_count"), attributes.number("nms_threshold")
    rows, kept_scores, counts = [], [], []
    for sizes, change, score in zip(widen(image), widen(deltas), widen(scores), strict=True):
        boxes = _refined(widen(anchors), change, sizes, unit)
        flat = score.transpose(1, 2, 0).reshape(-1)
        least = attributes.number("min_size") * (sizes[[-1, 2]] if sizes.size > 2 else np.ones(2))
        order = descending(flat)[: attributes.integer("pre_nms_count")]
        sides = boxes[order, 2:] - boxes[order, :2] + boxes.dtype.type(unit)
        order = order[(sides >= least).all(1)]
        places = order[suppress(boxes[order], limit, most, unit=unit)]
        rows.append(boxes[places])
        kept_scores.append(flat[places])
        counts.append(len(places))
    type = scores.dtype
    numbers = np.array(counts).astype(case.dtype("roi_num_type", "i64"))
    return narrow(np.concatenate(rows), type), narrow(np.concatenate(kept_scores), type), numbers


def _refined(anchors: Array, deltas: Array, sizes: Array, unit: float) -> Array:
    """Return anchors [rows, columns, anchors, 4] moved by predictions, within the picture, as [n, 4]."""
    one, half = anchors.dtype.type(unit), anchors.dtype.type(0.5)
    rows, columns, count, _ = anchors.shape
    changes = deltas.reshape(count, 4, rows, columns).transpose(2, 3, 0, 1)
    extent = anchors[..., 2:] - anchors[..., :2] + one
    centre = changes[..., :2] * extent + anchors[..., :2] + half * extent
    grown = half * np.exp(np.minimum(changes[..., 2:], anchors.dtype.type(_MOST_GROWTH))) * extent
    boxes = np.concatenate([centre - grown, centre + grown - one], -1).reshape(-1, 4)
    return np.asarray(np.clip(boxes, 0, np.tile(sizes[1::-1], 2) - one))


# Decoding of sequences.


def greedy_decoder(case: KernelCase) -> Array:
    """Compute CTCGreedyDecoder: the best class of each step without repetitions and blanks, then -1."""
    data, mask = case.arrays(2)
    require_kind(REAL, data, mask)
    lengths = np.cumprod(widen(mask) != 0, axis=0).sum(0)
    name = "merge_repeated" if "merge_repeated" in case.attributes else "ctc_merge_repeated"
    merges = case.attributes.boolean(name, True)
    best = widen(data).argmax(2).T
    classes, _ = _decoded_classes(best, lengths, data.shape[2] - 1, merges)
    return classes.astype(data.dtype)[..., None, None]


def greedy_decoder_of_lengths(case: KernelCase) -> tuple[Array, ...]:
    """Compute CTCGreedyDecoderSeqLen: the decoded classes followed by -1, and their number."""
    data, lengths = case.arrays(2)
    require_kind(REAL, data)
    require_kind(WHOLE, lengths)
    blank = case.integer(2) if case.has(2) else data.shape[2] - 1
    merges = case.attributes.boolean("merge_repeated", True)
    classes, counts = _decoded_classes(widen(data).argmax(2), lengths.reshape(-1), blank, merges)
    types = [case.dtype(name, "i32") for name in ("classes_index_type", "sequence_length_type")]
    return classes.astype(types[0]), counts.astype(types[1])


def _decoded_classes(best: Array, lengths: Array, blank: int, merges: bool) -> tuple[Array, Array]:
    """Return the classes [batch, time] moved to the front, and their counts."""
    places = np.arange(best.shape[1])
    keeps = (best != blank) & (places < lengths[:, None])
    if merges:
        keeps[:, 1:] &= best[:, 1:] != best[:, :-1]
    order = np.argsort(~keeps, 1, kind="stable")
    counts = keeps.sum(1)
    moved = np.take_along_axis(best, order, 1)
    return np.where(places < counts[:, None], moved, -1), counts


def connectionist_loss(case: KernelCase) -> Array:
    """Compute CTCLoss: the negative logarithm of the probability of the labels."""
    logits, lengths, labels, counts = case.arrays(4)
    require_kind(REAL, logits)
    require_kind(WHOLE, lengths, labels, counts)
    blank = case.integer(4) if case.has(4) else logits.shape[2] - 1
    wide = widen(logits)
    shifted = wide - wide.max(2, keepdims=True)
    chances = shifted - np.log(np.exp(shifted).sum(2, keepdims=True))
    losses = []
    for number, length in enumerate(lengths.reshape(-1)):
        target = _target(case, labels[number, : counts.reshape(-1)[number]])
        if len(target) > length:
            raise UnsupportedCase(f"{len(target)} labels are more than {length} steps")
        losses.append(-_path_chance(case, chances[number, :length], target, blank))
    return narrow(np.array(losses, wide.dtype), logits.dtype)


def _target(case: KernelCase, labels: Array) -> list[int]:
    numbers = [int(number) for number in labels]
    if case.attributes.boolean("unique", False):
        return list(dict.fromkeys(numbers))
    if case.attributes.boolean("preprocess_collapse_repeated", False):
        return [number for place, number in enumerate(numbers) if not place or number != numbers[place - 1]]
    return numbers


def _path_chance(case: KernelCase, chances: Array, target: list[int], blank: int) -> Any:
    """Return the logarithm of the sum over all alignments, by the forward algorithm.

    With merging, a label may last several steps, and equal neighbours need a blank between them. Without
    merging, each label takes one step.
    """
    merges = case.attributes.boolean("ctc_merge_repeated", True)
    states = [blank]
    for label in target:
        states += [label, blank]
    low = np.full(len(states), -np.inf, chances.dtype)
    current = low.copy()
    current[0] = 0
    is_label = np.arange(len(states)) % 2 == 1
    for step in chances:
        sources = [np.where(is_label, -np.inf, current) if not merges else current]
        sources.append(np.concatenate([low[:1], current[:-1]]))
        skips = np.concatenate([low[:2], current[:-2]])
        allowed = np.array(
            [
                place >= 2 and bool(is_label[place]) and (not merges or states[place] != states[place - 2])
                for place in range(len(states))
            ]
        )
        sources.append(np.where(allowed, skips, -np.inf))
        current = np.logaddexp.reduce(sources) + step[states]
    return np.logaddexp(current[-1], current[-2]) if len(states) > 1 else current[-1]
