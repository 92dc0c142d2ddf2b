"""Whether an operator of OpenVINO is used as its document allows: what a runtime refuses, in a sentence.

Only what OpenVINO's reader refuses is wrong here. It reads a number as far as it is one, and takes every word
for a boolean.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ir_scatter.core.element_types import ElementType, is_element_type
from ir_scatter.core.model import OPENVINO
from ir_scatter.core.shapes import Shape, counted, element_count, is_static, show
from ir_scatter.ops import openvino_opsets
from ir_scatter.ops.general import find
from ir_scatter.ops.general_shapes import ShapeCase, ShapesDiffer, sizes_of, top
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
"""Attributes that are element types."""

_LENIENT = frozenset({("Broadcast/Expand", "opset1"), ("Broadcast/Expand", "opset2")})
"""Types whose shapes the reader does not hold against each other."""

_TWO_TYPES = frozenset({"i32", "i64"})
_WORDS = "none explicit numpy pdpd"
_BROADCAST_3 = {2: "numpy pdpd bidirectional", 3: "explicit none"}


class Use(NamedTuple):
    """One use of an operator: all that there is to know of it, as far as it is known.

    Attributes:
        opset: the word that stands for it.
        numbers: gives the whole numbers of an input.
    """

    type: str
    opset: str | None
    attributes: Mapping[str, str]
    types: Sequence[ElementType | None]
    shapes: Sequence[Shape]
    numbers: Callable[[int], list[int] | None]
    output_count: int = 1

    @property
    def is_custom(self) -> bool:
        """Tell whether an extension gives the operator, as far as its opset tells."""
        return self.opset is None or not _OPSET.fullmatch(self.opset)


def problem(use: Use) -> str | None:
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


def _of_count(use: Use, signature: Signature) -> Iterator[str]:
    if signature.least is None:
        return
    count, most = len(use.types), len(signature.inputs)
    if count < signature.least or (count > most and not signature.repeats):
        expected = f"{signature.least}" if signature.least == most else f"{signature.least} to {most}"
        expected = f"{expected} or more" if signature.repeats else expected
        yield f"{signature.type} has {counted(count, 'input')}, expected {expected}"


def _of_attributes(use: Use, signature: Signature, opset: int) -> Iterator[str]:
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
    if name := _TYPES.get(type, "") if (type, opset) not in {("ShapeOf", 1), ("ShapeOf", 2)} else "":
        text = use.attributes.get(name, "" if type == "ShapeOf" else "i64")
        if not (is_element_type(text) if type == "Convert" else text.lower() in _TWO_TYPES):
            yield _wrong(use, name, "an element type" if type == "Convert" else "i32 or i64")
    if op is not None and (op.is_elementwise or type == "FakeQuantize"):
        yield from _of_words(use, "auto_broadcast", _WORDS)
    if type == "Broadcast":
        words = _BROADCAST_3[len(use.types)] if opset >= 3 else _WORDS
        is_default = "mode" not in use.attributes
        if not is_default or len(use.types) == 2:
            yield from _of_words(use, "mode", words)


def _of_words(use: Use, name: str, words: str) -> Iterator[str]:
    if use.attributes.get(name, words.split()[0]).lower() not in words.split():
        yield _wrong(use, name, " or ".join(words.split()))


def _wrong(use: Use, name: str, expected: str) -> str:
    text = use.attributes.get(name)
    is_ = "is missing" if text is None else f"is {text!r}"
    return f"attribute {name} of {use.type} {is_}, expected {expected}"


def _of_types(use: Use, signature: Signature) -> Iterator[str]:
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


def _of_shapes(use: Use) -> Iterator[str]:
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
