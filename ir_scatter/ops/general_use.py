"""Infers outputs of OpenVINO's operators, and finds uses that OpenVINO's reader refuses.

A use is a node's operator with its attributes and inputs (`core.model.OperatorUse`). The reader is lenient:
it parses the numeric prefix of a text as a number, and accepts every word as a boolean.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ir_scatter.core.diagnostics import Part, Side
from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, from_element_type, is_element_type
from ir_scatter.core.model import OPENVINO, OperatorUse
from ir_scatter.core.shapes import Shape, element_count, is_static, show
from ir_scatter.core.words import counted
from ir_scatter.ops import openvino_opsets
from ir_scatter.ops.general import GeneralOp, find, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, dims_of, sizes_of, top
from ir_scatter.ops.openvino_opsets import KINDS, RANKS, Signature
from ir_scatter.ops.scatter_openvino import OPSET_WORDS

_OPSET_WORD = re.compile(r"opset[0-9]+")
_NUMBER = r"\s*-?[0-9]{1,18}(?![0-9])"
_NUMBERS = r"\s*([0-9]+[^,]*(,\s*[0-9]+[^,]*)*)?"
_INTEGERS = {
    "axis": "Concat GatherElements LogSoftmax OneHot Softmax TopK",
    "batch_dims": "Gather GatherND",
    "num_splits": "Split",
}
"""Attributes with a number, and the operators that have them."""

_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
_TYPES = {"Convert": "destination_type", "ShapeOf": "output_type", "NonZero": "output_type"}
"""The attribute with the element type of the output, by operator type."""

_WITHOUT_TYPE = ("opset1", "opset2")
"""Opsets whose ShapeOf returns i64."""

_LENIENT = frozenset({("Broadcast/Expand", "opset1"), ("Broadcast/Expand", "opset2")})
"""(type, opset) of operators whose input shapes the reader does not compare with each other."""

_TWO_TYPES = frozenset({"i32", "i64"})
_WORDS = "none explicit numpy pdpd"
_NODE, _TYPE, _OPSET = (Part(Side.NODE, name=name) for name in ("", "type", "opset"))
_BATCHES_SINCE, _BROADCAST_SINCE = 7, 3
_ONE, _LATE = frozenset("es"), frozenset("aces")
"""Letters of inputs that hold one number, and of inputs whose shape OpenVINO checks only if it is static."""

_BROADCAST_3 = {2: "numpy pdpd bidirectional", 3: "explicit none"}


def is_custom(use: OperatorUse) -> bool:
    """Return whether the opset is not a standard one, so that an extension defines the operator."""
    return not isinstance(use.opset, str) or not _OPSET_WORD.fullmatch(use.opset)


def outputs(use: OperatorUse) -> Sequence[tuple[ElementType | None, Shape]]:
    """Return (element type, shape) of the first outputs of a use; None for unknown ones."""
    op = find(OPENVINO, use.type)
    if op is None or is_custom(use):
        return ()
    try:
        sizes = _output_shapes(use)
    except ShapesDiffer:
        sizes = None
    shapes = [None if dims is None else dims_of(dims) for dims in sizes or ()][: use.output_count]
    type = _output_type(op, use)
    if not shapes:
        return [(type, None)]
    return [(type if place == 0 or op.moves == (0,) else None, shape) for place, shape in enumerate(shapes)]


def _output_shapes(use: OperatorUse, domain: str = OPENVINO) -> Sequence[tuple[int, ...] | None] | None:
    """Return the known shapes of outputs; raises ShapesDiffer. Gather ignores `batch_dims` before opset7."""
    is_old = use.type == "Gather" and use.opset in OPSET_WORDS[: _BATCHES_SINCE - 1]
    unknown = frozenset([port for port, shape in enumerate(use.shapes) if shape is None])
    sizes, attributes = [*map(sizes_of, use.shapes)], {} if is_old else use.attributes
    case = ShapeCase(sizes, use.numbers, attributes, use.output_count, unknown=unknown)
    return output_shapes(domain, use.type, case)


def _output_type(op: GeneralOp, use: OperatorUse) -> ElementType | None:
    """Return the element type of the first output; None if unknown."""
    type, place = op.type_in(OPENVINO), op.moves[0] if op.moves else 0
    if op.makes in ELEMENT_TYPES:
        return ELEMENT_TYPES[op.makes]
    if type in _TYPES:
        is_written = type == "Convert" or use.opset not in _WITHOUT_TYPE
        return from_element_type(use.attributes.get(_TYPES[type], "") if is_written else "i64")
    if type == "ConvertLike":
        place = 1
    elif op.makes or (op.shape is None and not op.moves):
        return None
    return use.types[place] if place < len(use.types) else None


class Problem(NamedTuple):
    """A reason why a runtime refuses a use: a sentence, the part at fault, and the kind of defect."""

    message: str
    part: Part
    kind: str = "misused-operator"


def problem(use: OperatorUse, domain: str = OPENVINO) -> Problem | None:
    """Return why a runtime refuses a use; None if it accepts it. For ONNX only shapes are checked."""
    if domain != OPENVINO:
        return next(_of_shapes(use, domain), None)
    opsets = openvino_opsets.show_opsets(use.type)
    if is_custom(use):
        message = f"the version of {use.type} is {use.opset!r}, expected {opsets}"
        message = f"{message}: OpenVINO treats it as an operator of an extension"
        return Problem(message, _OPSET, "custom-version") if opsets and use.opset is not None else None
    opset = OPSET_WORDS.index(use.opset) + 1 if use.opset in OPSET_WORDS else 0
    signature = openvino_opsets.find(use.type, opset)
    if signature is None:
        if not opsets:
            return Problem(f"{use.opset} has no operator {use.type!r}", _TYPE)
        return Problem(f"{use.type} is not in {use.opset}, expected {opsets}", _OPSET)
    stages = (_of_count(use, signature), _of_attributes(use, signature, opset))
    return next(chain(*stages, _of_types(use, signature), _of_shapes(use)), None)


def _of_count(use: OperatorUse, signature: Signature) -> Iterator[Problem]:
    if signature.least is None:
        return
    count, most = len(use.types), len(signature.inputs)
    if count < signature.least or (count > most and not signature.repeats):
        expected = f"{signature.least}" if signature.least == most else f"{signature.least} to {most}"
        expected = f"{expected} or more" if signature.repeats else expected
        yield Problem(f"{signature.type} has {counted(count, 'input')}, expected {expected}", _NODE)


def _of_attributes(use: OperatorUse, signature: Signature, opset: int) -> Iterator[Problem]:
    """Yield the problems of attributes."""
    type, op, written = signature.type, find(OPENVINO, signature.type), use.attributes
    for name, types in _INTEGERS.items():
        if type in types.split() and not (type == "Gather" and opset < _BATCHES_SINCE):
            is_count = name == "num_splits"
            text = written.get(name, "" if is_count else "0")
            if not re.match(_NUMBER, text) or (is_count and text.strip()[:1] in {"-", "0"}):
                yield _wrong(use, name, "a number above 0" if is_count else "a number")
    for name in _MASKS if type == "StridedSlice" else ():
        if not re.fullmatch(_NUMBERS, written.get(name, "-" if name == "begin_mask" else "")):
            yield _wrong(use, name, "numbers")
    if type == "Convert" and not is_element_type(written.get("destination_type", "dynamic")):
        yield _wrong(use, "destination_type", "an element type")
    elif type == "NonZero" or (type == "ShapeOf" and use.opset not in _WITHOUT_TYPE):
        if written.get("output_type", "i64" if type == "NonZero" else "").lower() not in _TWO_TYPES:
            yield _wrong(use, "output_type", "i32 or i64")
    elif type == "Broadcast":
        words = _BROADCAST_3.get(len(use.types), "") if opset >= _BROADCAST_SINCE else _WORDS
        if "mode" in written or len(use.types) == 2:
            yield from _of_words(use, "mode", words)
    elif op is not None and (op.is_elementwise or type == "FakeQuantize"):
        yield from _of_words(use, "auto_broadcast", _WORDS)


def _of_words(use: OperatorUse, name: str, words: str) -> Iterator[Problem]:
    if use.attributes.get(name, words.split()[0]).lower() not in words.split():
        yield _wrong(use, name, " or ".join(words.split()))


def _wrong(use: OperatorUse, name: str, expected: str) -> Problem:
    text = use.attributes.get(name)
    is_ = "is missing" if text is None else f"is {text!r}"
    part = Part(Side.ATTRIBUTE, name=name)
    return Problem(f"attribute {name} of {use.type} {is_}, expected {expected}", part)


def _of_types(use: OperatorUse, signature: Signature) -> Iterator[Problem]:
    """Yield the inputs with an element type or rank that the operator does not accept."""
    first: dict[str, tuple[int, ElementType]] = {}
    letters = signature.inputs + signature.inputs[-1:] * (len(use.types) - len(signature.inputs))
    for port, (letter, type, shape) in enumerate(zip(letters, use.types, use.shapes, strict=False)):
        subject = f"input {port} of {signature.type} is"
        ranks, expected = RANKS.get(letter, (None, ""))
        if ranks is not None and shape is not None and None not in use.shapes:
            is_wrong = letter in _ONE and element_count(shape) not in {1, None}
            is_checked = letter not in _LATE or is_static(shape)
            if is_checked and (len(shape) not in ranks or is_wrong):
                message = f"{subject} {show(shape)}, expected {expected}"
                yield Problem(message, Part(Side.INPUT, port, "shape"))
        kinds, expected = KINDS.get(letter.lower(), (None, ""))
        if type is None:
            continue
        place, first_type = first.setdefault(letter, (port, type))
        if kinds is None or type.kind in kinds or type.name == "nf4":
            is_mixed = letter.isupper() and type is not first_type
            expected = f"{first_type.name} like input {place}" if is_mixed else ""
        if expected:
            yield Problem(f"{subject} {type.name}, expected {expected}", Part(Side.INPUT, port, "type"))


def _of_shapes(use: OperatorUse, domain: str = OPENVINO) -> Iterator[Problem]:
    op = find(domain, use.type)
    if op is None or op.shape is top or None in use.shapes:  # OpenVINO's TopK clamps a k that is too large
        return
    if (op.type, use.opset) in _LENIENT:
        return
    try:
        _output_shapes(use, domain)
    except ShapesDiffer as error:
        shapes = ", ".join(map(show, use.shapes))
        message = f"{op.type_in(domain)} does not accept inputs of shapes {shapes}: {error}"
        yield Problem(message, _NODE)
