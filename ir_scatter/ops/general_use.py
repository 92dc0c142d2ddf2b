"""What operators of OpenVINO give, and whether they are used as their documents allow.

Only what OpenVINO's reader refuses is told, in a sentence. It reads a number as far as it is one, and takes
every word for a boolean.
"""

import re
from collections.abc import Iterator, Sequence

from ir_scatter.core.element_types import ELEMENT_TYPES, ElementType, from_element_type, is_element_type
from ir_scatter.core.model import OPENVINO, OperatorUse
from ir_scatter.core.shapes import Shape, counted, element_count, is_static, show
from ir_scatter.ops import openvino_opsets
from ir_scatter.ops.general import GeneralOp, find, output_shapes
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, dims_of, sizes_of, top
from ir_scatter.ops.openvino_opsets import KINDS, RANKS, Signature
from ir_scatter.ops.scatter_openvino import OPSET_WORDS

_OPSET = re.compile(r"opset[0-9]+")
_NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}(?![0-9])")
_NUMBERS = re.compile(r"\s*(\+?[0-9]+[^,]*(,\s*\+?[0-9]+[^,]*)*)?")
_INTEGERS = {
    "axis": "Concat GatherElements LogSoftmax OneHot Softmax TopK",
    "batch_dims": "Gather GatherND",
    "num_splits": "Split",
}
"""Attributes that are numbers, and whose."""

_MASKS = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
_TYPES = {"Convert": "destination_type", "ShapeOf": "output_type", "NonZero": "output_type"}
"""Attributes that say the element type of the output."""

_WITHOUT_TYPE = ("opset1", "opset2")
"""Opsets whose ShapeOf gives i64."""

_LENIENT = frozenset({("Broadcast/Expand", "opset1"), ("Broadcast/Expand", "opset2")})
"""Types whose shapes the reader does not hold against each other."""

_TWO_TYPES = frozenset({"i32", "i64"})
_WORDS = "none explicit numpy pdpd"
_BROADCAST_3 = {2: "numpy pdpd bidirectional", 3: "explicit none"}


def is_custom(use: OperatorUse) -> bool:
    """Tell whether an extension gives the operator, as far as its opset tells."""
    return not isinstance(use.opset, str) or not _OPSET.fullmatch(use.opset)


def outputs(use: OperatorUse) -> Sequence[tuple[ElementType | None, Shape]]:
    """Return type and shape of the first outputs of a use, as far as they are certain."""
    op = find(OPENVINO, use.type)
    if op is None or is_custom(use):
        return ()
    sizes = [sizes_of(shape) for shape in use.shapes]
    try:
        found = output_shapes(
            OPENVINO, use.type, ShapeCase(sizes, use.numbers, use.attributes, use.output_count)
        )
    except ShapesDiffer:
        found = None
    shapes = [None if size is None else dims_of(size) for size in found or ()][: use.output_count]
    type = _output_type(op, use)
    if not shapes:
        return [(type, None)]
    return [(type if place == 0 or op.moves == (0,) else None, shape) for place, shape in enumerate(shapes)]


def _output_type(op: GeneralOp, use: OperatorUse) -> ElementType | None:
    """Return the element type of the first output, None if it is not known."""
    type, place = op.type_in(OPENVINO), op.moves[0] if op.moves else 0
    if op.makes in ELEMENT_TYPES:
        return ELEMENT_TYPES[op.makes]
    if type in _TYPES:
        is_said = type == "Convert" or use.opset not in _WITHOUT_TYPE
        return from_element_type(use.attributes.get(_TYPES[type], "") if is_said else "i64")
    if type == "ConvertLike":
        place = 1
    elif op.makes or (op.shape is None and not op.moves):
        return None
    return use.types[place] if place < len(use.types) else None


def problem(use: OperatorUse) -> str | None:
    """Return what is wrong with the use of an operator that is no extension's; None if nothing is."""
    opset = -1 if use.opset not in OPSET_WORDS else OPSET_WORDS.index(use.opset) + 1
    signature = openvino_opsets.find(use.type, opset)
    if signature is None:
        opsets = openvino_opsets.show_opsets(use.type)
        if not opsets:
            return f"{use.type!r} is in {use.opset}, expected the type of an operator"
        return f"{use.type} is not in {use.opset}, expected {opsets}"
    found = [*_of_count(use, signature)] or [*_of_attributes(use, signature, opset)]
    found = found or [*_of_types(use, signature)] or [*_of_shapes(use)]
    return found[0] if found else None


def _of_count(use: OperatorUse, signature: Signature) -> Iterator[str]:
    if signature.least is None:
        return
    count, most = len(use.types), len(signature.inputs)
    if count < signature.least or (count > most and not signature.repeats):
        expected = f"{signature.least}" if signature.least == most else f"{signature.least} to {most}"
        expected = f"{expected} or more" if signature.repeats else expected
        yield f"{signature.type} has {counted(count, 'input')}, expected {expected}"


def _of_attributes(use: OperatorUse, signature: Signature, opset: int) -> Iterator[str]:
    """Yield what is wrong with attributes that the operator has in an opset."""
    type, op = signature.type, find(OPENVINO, signature.type)
    for name, types in _INTEGERS.items():
        if type in types.split() and not (type == "Gather" and opset < 7):
            text = use.attributes.get(name, "" if name == "num_splits" else "0")
            if not _NUMBER.match(text) or (name == "num_splits" and text.strip("+ ")[:1] in {"-", "0"}):
                yield _wrong(use, name, "a number" if name != "num_splits" else "a number above 0")
    for name in _MASKS if type == "StridedSlice" else ():
        text = use.attributes.get(name, "-" if name == "begin_mask" else "")
        if not _NUMBERS.fullmatch(text):
            yield _wrong(use, name, "numbers")
    if type == "Convert" and not is_element_type(use.attributes.get("destination_type", "dynamic")):
        yield _wrong(use, "destination_type", "an element type")
    elif type == "NonZero" or (type == "ShapeOf" and use.opset not in _WITHOUT_TYPE):
        text = use.attributes.get("output_type", "i64" if type == "NonZero" else "")
        if text.lower() not in _TWO_TYPES:
            yield _wrong(use, "output_type", "i32 or i64")
    if op is not None and (op.is_elementwise or type == "FakeQuantize"):
        yield from _of_words(use, "auto_broadcast", _WORDS)
    if type == "Broadcast":
        words = _BROADCAST_3[len(use.types)] if opset >= 3 else _WORDS
        is_default = "mode" not in use.attributes
        if not is_default or len(use.types) == 2:
            yield from _of_words(use, "mode", words)


def _of_words(use: OperatorUse, name: str, words: str) -> Iterator[str]:
    if use.attributes.get(name, words.split()[0]).lower() not in words.split():
        yield _wrong(use, name, " or ".join(words.split()))


def _wrong(use: OperatorUse, name: str, expected: str) -> str:
    text = use.attributes.get(name)
    is_ = "is missing" if text is None else f"is {text!r}"
    return f"attribute {name} of {use.type} {is_}, expected {expected}"


def _of_types(use: OperatorUse, signature: Signature) -> Iterator[str]:
    first: dict[str, tuple[int, ElementType]] = {}
    letters = signature.inputs + signature.inputs[-1:] * (len(use.types) - len(signature.inputs))
    for port, (letter, type, shape) in enumerate(zip(letters, use.types, use.shapes, strict=False)):
        ranks, wanted = RANKS.get(letter, (None, ""))
        is_wrong = letter in "es" and element_count(shape) not in {1, None}
        is_looked_at = None not in use.shapes and (letter in "lrvw" or is_static(shape))
        if shape is not None and ranks is not None and is_looked_at and (len(shape) not in ranks or is_wrong):
            yield f"input {port} of {signature.type} is {show(shape)}, expected {wanted}"
        if type is None:
            continue
        kinds, expected = KINDS.get(letter.lower(), (None, ""))
        if kinds is not None and type.kind not in kinds and type.name != "nf4":
            yield f"input {port} of {signature.type} is {type.name}, expected {expected}"
        place, other = first.setdefault(letter, (port, type))
        if letter.isupper() and type is not other:
            yield (
                f"input {port} of {signature.type} is {type.name}, expected {other.name} like input {place}"
            )


def _of_shapes(use: OperatorUse) -> Iterator[str]:
    op = find(OPENVINO, use.type)
    if op is None or None in use.shapes or (op.type, use.opset) in _LENIENT:
        return
    sizes = [sizes_of(shape) for shape in use.shapes]
    if op.shape is None or op.shape is top:  # which takes all there are
        return
    try:
        op.shape(ShapeCase(sizes, use.numbers, use.attributes, use.output_count, is_onnx=False))
    except ShapesDiffer as error:
        shapes = ", ".join(map(show, use.shapes))
        yield f"{op.type_in(OPENVINO)} does not take its inputs of shapes {shapes}: {error}"
    except (LookupError, TypeError, ValueError, ZeroDivisionError):  # of which nothing is known
        return
