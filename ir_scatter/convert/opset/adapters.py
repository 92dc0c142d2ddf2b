"""Adapters: each converts a node of an ONNX model to the next or the previous version of its operator.

There is one function for each change between two versions, for example of Clip from 6 to 11:

    y = Clip <max = 6.0> (x)   ->   max = Constant <value = 6.0> ()
                                    y = Clip (x, , max)

The name of a function says what changed. Versions that need no adapter, or allow none, are in
`ops.onnx_versions`.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto, NodeProto, TypeProto, helper, numpy_helper

from ir_scatter.core.element_types import FLOATS, ElementType, dtype, from_onnx_number, onnx_types
from ir_scatter.core.model import Model, Value
from ir_scatter.core.shapes import UNKNOWN_DIM, Shape
from ir_scatter.core.words import counted
from ir_scatter.formats.onnx.graph import OnnxGraph
from ir_scatter.formats.onnx.index import text
from ir_scatter.formats.onnx.tensors import attribute_value, make_attribute
from ir_scatter.ops.scatter_onnx import SCATTER_ELEMENTS, SCATTER_ND

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ir_scatter.core.arrays import Array


class CannotAdapt(Exception):
    """Error: a node has no equivalent in another version; the message has the reason.

    Only used inside this package.
    """


class AdaptedNode:
    """A copy of a node for adapters to edit, with new nodes around it, and facts about its inputs.

    `graphs` is the graph of the node; in a function, the graphs for all signatures of its calls. The writer
    renames `new_names` that the model already uses. `gone` are removed outputs that no node reads.
    """

    def __init__(self, graphs: tuple[OnnxGraph, ...], position: int, *, target: int, is_up: bool) -> None:
        self.graphs, self.position = graphs, position
        self.target, self.is_up = target, is_up
        self.original = graphs[0].index.nodes[position]
        self.proto = NodeProto()
        self.proto.CopyFrom(self.original)
        self.before, self.after = list[NodeProto](), list[NodeProto]()
        self.new_names, self.gone = list[str](), list[str]()
        self._new_constants: dict[str, Array] = {}

    @property
    def nodes(self) -> list[NodeProto]:
        """The nodes that replace the original one, in order."""
        return [*self.before, self.proto, *self.after]

    @property
    def is_changed(self) -> bool:
        return bool(self.before or self.after) or self.proto != self.original

    def is_read(self, name: str) -> bool:
        """Return whether a node, a body or an output of the graph reads a value."""
        index = self.graphs[0].index
        bodies = [body for several in index.bodies.values() for body in several.values()]
        return (
            name in index.outputs
            or any(name in node.input for node in index.nodes)
            or any(name in body.captured for body in bodies)
        )

    def has(self, attribute: str) -> bool:
        return self._written(attribute) is not None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute as a Python value, or the default if it is missing."""
        written, graph = self._written(name), self.graphs[0]
        if written is None:
            return default
        if written.ref_attr_name:
            raise CannotAdapt(f"its attribute {name} is given by the calls of the function")
        return attribute_value(written, graph.node(self.position), graph.shared.tensors)

    def write(self, name: str, value: Any) -> None:
        """Set an attribute; an existing one keeps its position."""
        written = self._written(name)
        (self.proto.attribute.add() if written is None else written).CopyFrom(make_attribute(name, value))

    def erase(self, name: str) -> None:
        written = self._written(name)
        if written is not None:
            self.proto.attribute.remove(written)

    def _written(self, name: str) -> AttributeProto | None:
        return next((written for written in self.proto.attribute if written.name == name), None)

    def input(self, number: int) -> str:
        """Return the name of an input; "" if it is omitted."""
        return self.proto.input[number] if number < len(self.proto.input) else ""

    def connect(self, number: int, name: str) -> None:
        """Set an input; "" omits it."""
        if any(isinstance(text, bytes) for text in (name, *self.proto.input)):
            raise CannotAdapt("its inputs have names that are not UTF-8, which cannot be written")
        names = [*self.proto.input]
        names += [""] * (number + 1 - len(names))
        names[number] = name
        while names and not names[-1]:
            names.pop()
        self.proto.input[:] = names

    def _values(self, number: int) -> list[Value | None]:
        name = self.input(number)
        return [None if name in self.new_names else graph.find(name) for graph in self.graphs]

    def element_type(self, number: int) -> ElementType | None:
        """Return the element type of an input.

        None if it is unknown, or differs between calls of the function.
        """
        types = {None if value is None else value.element_type for value in self._values(number)}
        return types.pop() if len(types) == 1 else None

    def shape(self, number: int) -> Shape:
        """Return the shape of an input; dimensions that differ between calls of the function are unknown."""
        shapes = [None if value is None else value.shape for value in self._values(number)]
        shapes_known = [shape for shape in shapes if shape is not None]
        if len(shapes_known) < len(shapes) or len(set(map(len, shapes_known))) > 1:
            return None
        return tuple(
            dims[0] if len(set(dims)) == 1 else UNKNOWN_DIM for dims in zip(*shapes_known, strict=True)
        )

    def constant(self, number: int) -> "Array | None":
        """Return the value of a constant input.

        None if it is unknown, or differs between calls of the function.
        """
        if self.input(number) in self._new_constants:
            return self._new_constants[self.input(number)]
        constants = [None if value is None else value.constant for value in self._values(number)]
        arrays = [None if constant is None else constant.load() for constant in constants]
        contents = {
            None if array is None else (array.dtype, array.shape, array.tobytes()) for array in arrays
        }
        return arrays[0] if len(contents) == 1 else None

    def type_text(self, name: str) -> str | None:
        """Return the type of a value as in schemas, "tensor(float)"; None if unknown or not unique."""
        texts = {_type_text(graph, name) for graph in self.graphs}
        return texts.pop() if len(texts) == 1 else None

    def new_constant(self, label: str, array: "Array") -> str:
        """Add a Constant node before this one and return the name of its output."""
        tensor = numpy_helper.from_array(array)
        name = self.new_node("Constant", [], label, value=tensor)
        self.before[-1].attribute[0].t.name = name
        self._new_constants[name] = array
        return name

    def new_node(self, type: str, inputs: list[str], label: str, **attributes: Any) -> str:
        """Add a node before this one and return the name of its output."""
        name = self._new_name(label)
        self.before.append(helper.make_node(type, inputs, [name], name, **attributes))
        return name

    def follow_with(self, type: str, more_inputs: list[str], label: str, **attributes: Any) -> None:
        """Add a node after this one that reads its first output.

        The new node gets the name and the first output of this one.
        """
        result, intermediate = self.proto.output[0], self._new_name(label)
        self.proto.output[0] = intermediate
        self.after.append(
            helper.make_node(type, [intermediate, *more_inputs], [result], self.proto.name, **attributes)
        )
        self.proto.name = intermediate

    def _new_name(self, label: str) -> str:
        first = next((name for name in self.original.output if name), self.original.op_type)
        name = f"{text(self.original.name or first)}/{label}"
        while name in self.new_names:
            name += "_2"
        self.new_names.append(name)
        return name


def _type_text(graph: OnnxGraph, name: str) -> str | None:
    value = graph.find(name)
    if value is not None and value.element_type is not None:
        return f"tensor({value.element_type.onnx_name})"
    owner: OnnxGraph | None = graph
    while owner is not None:
        declared = owner.index.stored.get(name) or owner.index.inputs.get(name)
        type = owner.inferred.types.get(name) or (declared.type if declared is not None else None)
        if type is not None:
            return _show_type(type)
        owner = owner.parent
    return None


def _show_type(type: TypeProto) -> str | None:
    kind = type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element_type = from_onnx_number(getattr(type, kind).elem_type)
        word = kind.removesuffix("_type")
        return None if element_type is None else f"{word}({element_type.onnx_name})"
    if kind in ("sequence_type", "optional_type"):
        inner = _show_type(getattr(type, kind).elem_type)
        word = "seq" if kind == "sequence_type" else "optional"
        return None if inner is None else f"{word}({inner})"
    return None


Adapter = Callable[[AdaptedNode], None]
"""A function that changes a node; it raises CannotAdapt if the other version has no equivalent."""

ADAPTERS: dict[tuple[str, int, bool], list[Adapter]] = {}
"""Adapters by (operator, version, direction), in the order in which they are applied."""


def adapter(*types: str, since: int, up: bool | None = None) -> Callable[[Adapter], Adapter]:
    """Register an adapter for a change of some operators in version `since`.

    With `up` True it converts nodes to that version, with False to the previous one, with None both ways.
    """

    def register(function: Adapter) -> Adapter:
        for type in types:
            for direction in (True, False) if up is None else (up,):
                ADAPTERS.setdefault((type, since, direction), []).append(function)
        return function

    return register


# Attributes that became inputs.

_LOWEST = -3.4028234663852886e38
_UNDOCUMENTED = "its {} does not have the type that the operator's specification requires"


@adapter("Clip", since=11, up=True)
def min_and_max_became_inputs(node: AdaptedNode) -> None:
    """Add the default limits of Clip-6, those of f32; Clip-11 has other defaults for other types."""
    element_type = node.element_type(0)
    may_be_absent = element_type is not None and element_type.name == "f32"
    for number, name, limit in ((1, "min", _LOWEST), (2, "max", -_LOWEST)):
        value = node.attribute(name, limit)
        _to_input_like_data(node, number, name, None if value == limit and may_be_absent else value)


@adapter("DFT", since=20)
def axis_became_an_input(node: AdaptedNode) -> None:
    axis = node.attribute("axis", 1) if node.is_up else _take_scalar_input(node, 2, "axis")
    if node.is_up:
        _to_input(node, 2, "axis", None if axis == -2 else axis)
    else:
        node.write("axis", -2 if axis is None else int(axis))


@adapter("Pad", since=11, up=True)
def pads_and_value_became_inputs(node: AdaptedNode) -> None:
    list_became_input(node, 1, "pads", may_be_empty=True)
    _to_input_like_data(node, 2, "value", node.attribute("value", 0.0) or None)


@adapter("Slice", since=10, up=True)
def positions_became_inputs(node: AdaptedNode) -> None:
    if not node.has("axes"):
        node.write("axes", list(range(len(node.attribute("starts", [])))))
    for number, name in ((3, "axes"), (1, "starts"), (2, "ends")):
        list_became_input(node, number, name, may_be_empty=True)


@adapter("TopK", since=10, up=True)
def k_became_an_input(node: AdaptedNode) -> None:
    k = node.attribute("k")
    _to_input(node, 1, "k", None if k is None else [k])


def list_became_input(
    node: AdaptedNode,
    number: int,
    name: str,
    type: "DTypeLike" = np.int64,
    *,
    may_be_empty: bool | None = None,
) -> None:
    """Convert an attribute with a list to an input, or back.

    `may_be_empty` says whether an empty list is allowed; None if its meaning is unspecified.
    """
    value = node.attribute(name) if node.is_up else _take_input(node, number, name)
    if value is not None and np.size(value) == 0 and not may_be_empty:
        if may_be_empty is None:
            raise CannotAdapt(f"its {name} is an empty list, which the specification does not define")
        value = None
    if node.is_up:
        _to_input(node, number, name, value, type)
    elif value is not None:
        if value.dtype.kind != np.dtype(type).kind:
            raise CannotAdapt(_UNDOCUMENTED.format(name))
        node.write(name, value.reshape(-1).tolist())


_reduced_axes = partial(list_became_input, number=1, name="axes", may_be_empty=False)
adapter("ReduceSum", since=13)(_reduced_axes)
adapter(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSumSquare", since=18,
)(_reduced_axes)  # fmt: skip
adapter("Split", since=13)(partial(list_became_input, number=1, name="split"))
adapter("Squeeze", "Unsqueeze", since=13)(partial(list_became_input, number=1, name="axes"))
adapter("Upsample", since=9, up=True)(partial(list_became_input, number=1, name="scales", type=np.float32))


def _to_input(node: AdaptedNode, number: int, name: str, value: Any, type: "DTypeLike" = np.int64) -> None:
    """Replace an attribute by a constant input; None omits the input."""
    node.erase(name)
    if value is not None:
        node.connect(number, node.new_constant(name, _array(name, value, type)))


def _to_input_like_data(node: AdaptedNode, number: int, name: str, value: Any) -> None:
    element_type = node.element_type(0)
    data_type = None if element_type is None else dtype(element_type)
    if value is None:
        node.erase(name)
    elif data_type is None or element_type is None or element_type.kind != "float":
        raise CannotAdapt(f"its {name} must become an input of the type of its data, which is unknown")
    else:
        with np.errstate(over="ignore"):
            _to_input(node, number, name, value, data_type)


def _take_input(node: AdaptedNode, number: int, name: str) -> "Array | None":
    """Remove a constant input that is an attribute in older versions; return its value, None if omitted."""
    if not node.input(number):
        return None
    array = node.constant(number)
    if array is None:
        raise CannotAdapt(f"its input {name} is not constant, and is an attribute in older versions")
    node.connect(number, "")
    return array


def _take_scalar_input(node: AdaptedNode, number: int, name: str) -> Any:
    array = _take_input(node, number, name)
    if array is not None and array.size != 1:
        raise CannotAdapt(f"its input {name} has {array.size} elements, expected 1")
    return None if array is None else array.reshape(-1)[0]


def _array(name: str, value: Any, type: "DTypeLike") -> "Array":
    try:
        return np.array(value, type)
    except (TypeError, ValueError):
        raise CannotAdapt(_UNDOCUMENTED.format(name)) from None


@adapter("OneHot", since=11, up=True)
def negative_one_hot_indices(node: AdaptedNode) -> None:
    """Negative indices count from the end only since OneHot-11, so those of OneHot-9 are made too large."""
    indices, element_type, array = node.input(0), node.element_type(0), node.constant(0)
    if element_type is not None and element_type.kind == "unsigned":
        return
    if array is not None and not (array < 0).any():
        return
    if element_type is None or element_type.name not in ("i32", "i64"):
        raise CannotAdapt(
            "negative indices count from the end in newer versions, and are illegal in this one"
        )
    number = np.int32 if element_type.name == "i32" else np.int64
    zero = node.new_constant("zero", np.array(0, number))
    beyond = node.new_constant("out_of_range", np.array(np.iinfo(number).max, number))
    is_negative = node.new_node("Less", [indices, zero], "is_negative")
    node.connect(0, node.new_node("Where", [is_negative, beyond, indices], "not_negative"))


# Softmax and similar operators: up to version 11 the input is treated as a matrix, of the dimensions before
# `axis` and the rest; since version 13 the operator works along the single dimension `axis`.

_ALLOWZERO_SINCE = 14


@adapter("Hardmax", "LogSoftmax", "Softmax", since=13)
def matrix_to_axis(node: AdaptedNode) -> None:
    axis, shape = node.attribute("axis", 1 if node.is_up else -1), node.shape(0)
    if not _is_last(node, axis):
        if not node.is_up:
            raise CannotAdapt(
                f"it works along axis {axis}; older versions work along all dimensions from that axis on"
            )
        _work_on_rows(node, axis)
        return
    node.write("axis", axis if node.is_up or axis >= 0 or shape is None else axis + len(shape))


@adapter("Softmax", since=11, up=True)
def matrix_written_for_openvino(node: AdaptedNode) -> None:
    """Write the matrix of Softmax-11 explicitly, because OpenVINO 2026.4.1 reads it as version 13.

    OpenVINO reads Softmax-1, LogSoftmax and Hardmax correctly.
    """
    axis = node.attribute("axis", 1)
    if not _is_last(node, axis):
        _work_on_rows(node, axis)


def agreed_opset(model: Model) -> int | None:
    """Return the lowest opset in which all runtimes read the model correctly.

    None if that is its own opset.
    """
    for node in model.walk(frozenset({"Softmax"})):
        if node.opset in (11, 12):
            value, axis = node.inputs[0].value if node.inputs else None, node.attributes.get("axis", 1)
            if not isinstance(axis, int) or not _ends_at(value.shape if value else None, axis):
                return 13
    return None


def _is_last(node: AdaptedNode, axis: int) -> bool:
    shape = node.shape(0)
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise CannotAdapt(f"its axis is {axis}, expected one of {counted(len(shape), 'dimension')}")
    return _ends_at(shape, axis)


def _ends_at(shape: Shape, axis: int) -> bool:
    """Return whether only dimensions of 1 follow an axis, or there are no elements.

    Then the matrix of older versions and the single axis of newer ones have the same result.
    """
    if shape is None:
        return axis == -1
    return 0 in shape or all(dim == 1 for dim in shape[axis % max(len(shape), 1) + 1 :])


def _work_on_rows(node: AdaptedNode, axis: int) -> None:
    if not any(node.proto.output):
        return  # no node uses its result
    data = node.input(0)
    shape = node.new_node("Shape", [data], "shape")
    node.connect(0, node.new_node("Flatten", [data], "flattened", axis=axis))
    node.write("axis", -1)
    # Before opset 14, a 0 in the target of Reshape copies a dimension of the input, which has only two here.
    keeps_zeros = {"allowzero": 1} if node.target >= _ALLOWZERO_SINCE else {}
    node.follow_with("Reshape", [shape], "along_rows", **keeps_zeros)


# Values of attributes.

_COORDINATES = "coordinate_transformation_mode"
_RESIZED = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


def translate(node: AdaptedNode, attribute: str, words: Iterable[str], **replacements: str) -> None:
    """Check that both versions know an attribute's value, or replace it by the other version's word."""
    word = node.attribute(attribute)
    if word in replacements:
        node.write(attribute, replacements[word])
    elif word is not None and word not in words:
        raise CannotAdapt(f"{'newer' if node.is_up else 'older'} versions have no {attribute} {word!r}")


adapter("Pad", since=19)(partial(translate, attribute="mode", words=("constant", "reflect", "edge")))
for _since in (13, 19):
    adapter("Resize", since=_since)(partial(translate, attribute=_COORDINATES, words=_RESIZED))


@adapter("GridSample", since=20)
def interpolations_of_images(node: AdaptedNode) -> None:
    if node.is_up:
        translate(node, "mode", ["nearest"], bilinear="linear", bicubic="cubic")
    elif _has_rank(node, 0, 4):
        translate(node, "mode", [], linear="bilinear", cubic="bicubic")
    else:
        raise CannotAdapt("the older version accepts 4 dimensions only")


@adapter("RoiAlign", since=16)
def half_pixels_to_attribute(node: AdaptedNode) -> None:
    if node.is_up:
        node.write(_COORDINATES, "output_half_pixel")
    elif node.attribute(_COORDINATES) == "output_half_pixel":
        node.erase(_COORDINATES)
    else:
        raise CannotAdapt(
            f"its {_COORDINATES} is not 'output_half_pixel', the only value that older versions support"
        )


@adapter(SCATTER_ELEMENTS[0].key.type, SCATTER_ND[0].key.type, since=18)
def reductions(node: AdaptedNode) -> None:
    """Runtimes already accept `max` and `min` in version 16, with the meaning of version 18."""
    translate(node, "reduction", SCATTER_ND[-1 if node.is_up else -2].reductions)


# Resize and Upsample.


@adapter("Resize", since=11, up=True)
def sampling_to_attributes(node: AdaptedNode) -> None:
    """Resize-10 samples as onnx's test data and onnxruntime do; its specification omits how."""
    mode = node.attribute("mode", "nearest")
    if mode not in ("nearest", "linear"):
        raise CannotAdapt(f"the mode is {mode!r}, expected nearest or linear")
    scales = node.input(1)
    if mode == "nearest":
        node.write("nearest_mode", "floor" if _enlarges(node) else "ceil")
    node.write(_COORDINATES, "asymmetric")
    node.connect(1, node.new_constant("roi", np.zeros(0, np.float32)))
    node.connect(2, scales)


def _enlarges(node: AdaptedNode) -> bool:
    """Return True if no dimension shrinks, False if none grows; raises CannotAdapt for both.

    Upsample never shrinks a dimension.
    """
    if node.original.op_type == "Upsample":
        return True
    scales = node.constant(1)
    if scales is None:
        raise CannotAdapt("whether it rounds up or down depends on its scales, which are not constant")
    if bool((scales >= 1).all()):
        return True
    if bool((scales <= 1).all()):
        return False
    raise CannotAdapt("it rounds up and down in different dimensions, which newer versions cannot express")


@adapter("Resize", since=13)
def inputs_left_out(node: AdaptedNode) -> None:
    """Resize-11 needs empty inputs for an unused region and scales; Resize-13 omits them."""
    if not node.is_up:
        for number in (1, 2):
            if not node.input(number):
                node.connect(number, node.new_constant(f"none_{number}", np.zeros(0, np.float32)))
    elif node.input(2) and node.input(3):
        scales = node.constant(2)
        if scales is not None and scales.size:
            raise CannotAdapt("both its inputs 2 and 3 have elements, expected one of them")
        node.connect(2, "")


# Outputs with another meaning.


@adapter("Dropout", since=10, up=True)
@adapter("Dropout", since=12, up=True)
def mask_removed(node: AdaptedNode) -> None:
    name = node.proto.output[1] if len(node.proto.output) > 1 else ""
    if not name:
        return
    if node.is_read(name):
        mask = "has another type or other values in the other version"
        raise CannotAdapt(f"its output 1 is read, and {mask}")
    del node.proto.output[1:]
    node.gone.append(name)


@adapter("Dropout", since=12)
def ratio_to_input(node: AdaptedNode) -> None:
    if node.is_up:
        ratio = node.attribute("ratio", 0.5)
        _to_input(node, 1, "ratio", None if ratio == 0.5 else ratio, np.float32)
        return
    if node.input(2):
        training = node.constant(2)
        if training is None or bool(training.any()):
            raise CannotAdapt("the older version has no training mode")
        node.connect(2, "")
    node.erase("seed")
    ratio = _take_scalar_input(node, 1, "ratio")
    if ratio is not None:
        with np.errstate(over="ignore"):
            if np.float32(ratio) != ratio:
                raise CannotAdapt(f"its ratio {ratio} is not a float32 number, as an attribute must be")
        node.write("ratio", float(ratio))
    mask_removed(node)


# Settings with another meaning, or none, in the other version.


@adapter("BatchNormalization", since=14)
def outputs_of_training(node: AdaptedNode) -> None:
    if any(node.proto.output[1:]):
        raise CannotAdapt("the other version has other outputs for training")


@adapter("ConvTranspose", since=11, up=True)
def odd_padding(node: AdaptedNode) -> None:
    if node.has("output_shape") or node.attribute("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        raise CannotAdapt("if the padding is odd, the other version puts the larger half at the other end")


@adapter("AveragePool", since=19)
def counted_padding(node: AdaptedNode) -> None:
    """The auto_pad formulas of version 11 contradict its text; versions 10 and 19 follow the text."""
    if node.attribute("ceil_mode", 0) == 1 and node.attribute("count_include_pad", 0) == 1:
        reason = "with ceil_mode and count_include_pad, the specification does not say what counts as padding"
        raise CannotAdapt(reason)


@adapter("Mod", since=28, up=False)
def float_remainders(node: AdaptedNode) -> None:
    if node.attribute("fmod", 0) == 0 and _may_have_type(node, 0, FLOATS):
        raise CannotAdapt("the older version accepts floating-point numbers only with fmod")


@adapter("AveragePool", "MaxPool", since=22)
def windows_after_the_input(node: AdaptedNode) -> None:
    """Refuse a node with ceil_mode that may have windows after its input, which newer versions omit.

    Without padding there are none, unless a stride exceeds the kernel.
    """
    if node.attribute("ceil_mode", 0) != 1:
        return
    kernel = node.attribute("kernel_shape", [])
    strides, pads = node.attribute("strides", [1] * len(kernel)), node.attribute("pads", [])
    is_padded = any(pads) or node.attribute("auto_pad", "NOTSET") not in {"NOTSET", "VALID"}
    has_gaps = any(step > size for size, step in zip(kernel, strides, strict=False))
    if is_padded or has_gaps or len(strides) != len(kernel):
        raise CannotAdapt("with ceil_mode, newer versions omit windows that start after the input")


@adapter("Clip", since=13, up=False)
def limits_out_of_order(node: AdaptedNode) -> None:
    if not node.input(1) or not node.input(2):
        return
    low, high = node.constant(1), node.constant(2)
    if (
        low is None
        or high is None
        or (1 not in (low.size, high.size) and low.shape != high.shape)
        or not bool((low <= high).all())
    ):
        raise CannotAdapt("the older version does not specify a min above max")


_UNSIGNED_FLOAT8 = onnx_types("float8e4m3fnuz", "float8e5m2fnuz")
_UNSIGNED_FLOAT8_NUMBERS = (18, 20)


@adapter("Cast", "CastLike", "QuantizeLinear", since=24)
def infinity_to_float8(node: AdaptedNode) -> None:
    """The conversion tables of Cast also apply to QuantizeLinear, in this version and the previous one."""
    written = node.attribute("to", node.attribute("output_dtype"))
    like = {"CastLike": 1, "QuantizeLinear": 2}.get(node.proto.op_type)
    is_float8 = written in _UNSIGNED_FLOAT8_NUMBERS
    if like is not None:
        is_float8 |= _may_have_type(node, like, _UNSIGNED_FLOAT8)
    if is_float8 and node.attribute("saturate", 1) == 1:
        raise CannotAdapt("infinity becomes the greatest number in newer versions, and NaN in older ones")


def _may_have_type(node: AdaptedNode, number: int, types: Collection[str]) -> bool:
    element_type = node.element_type(number)
    return bool(node.input(number)) and (element_type is None or element_type.name in types)


def _has_rank(node: AdaptedNode, number: int, rank: int) -> bool:
    shape = node.shape(number)
    return shape is not None and len(shape) == rank


# Attributes that were added or removed.


@adapter("AveragePool", since=19, up=False)
@adapter("LpPool", since=18, up=False)
def no_dilations(node: AdaptedNode) -> None:
    dilations = node.attribute("dilations")
    if dilations is not None and any(step != 1 for step in dilations):
        raise CannotAdapt(f"its dilations is {dilations}, expected 1 in older versions")
    node.erase("dilations")


@adapter("BatchNormalization", since=9, up=True)
def spatial_only(node: AdaptedNode) -> None:
    spatial = node.attribute("spatial", 1)
    if spatial != 1:
        raise CannotAdapt(f"spatial is {spatial}, expected 1 in newer versions")
    node.erase("spatial")


@adapter("Constant", since=12, up=False)
def listed_numbers_to_tensor(node: AdaptedNode) -> None:
    for kind, type in (("float", np.float32), ("int", np.int64), ("string", object)):
        for name in (f"value_{kind}", f"value_{kind}s"):
            value = node.attribute(name)
            if value is not None:
                array = _array(name, value, type)
                node.erase(name)
                output = next(iter(node.proto.output), "")
                node.write("value", numpy_helper.from_array(array, output))


@adapter("DequantizeLinear", "QuantizeLinear", since=13, up=False)
def one_scale(node: AdaptedNode) -> None:
    if not _has_rank(node, 1, 0):
        raise CannotAdapt("the older version accepts one scale only")
    node.erase("axis")


@adapter("Reshape", since=14, up=False)
def zeros_of_shapes(node: AdaptedNode) -> None:
    """`allowzero` defines the meaning of zeros in a shape; without zeros it has no effect."""
    shape = node.constant(1)
    if shape is not None and bool(shape.all()):
        node.erase("allowzero")


@adapter("Split", since=18)
def parts_counted(node: AdaptedNode) -> None:
    if node.input(1):
        return
    if node.is_up:
        node.write("num_outputs", len(node.proto.output))
        return
    parts, shape, axis = node.attribute("num_outputs"), node.shape(0), node.attribute("axis", 0)
    if shape is None or not -len(shape) <= axis < len(shape):
        reason = "its parts may differ in length, which older versions do not support"
        raise CannotAdapt(reason)
    dim = shape[axis]
    if not parts or parts != len(node.proto.output) or not isinstance(dim, int) or dim % parts:
        reason = "its parts may differ in length, which older versions do not support"
        raise CannotAdapt(reason)
    node.erase("num_outputs")
