"""General operators, that is all but scatter operators: one row of facts for each, for both dialects.

    op = find(node.domain, node.type)

To add one, write a row; and a kernel in `ops/general_kernels` if the operator can be computed. A row holds
for every version of the operator; a field at its default means that the fact is unknown. This module
does not import NumPy: rows name kernels, and `general_kernels.compute` looks them up.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ir_scatter.core.element_types import ElementType
from ir_scatter.core.model import OPENVINO
from ir_scatter.ops import general_bounds as bounds
from ir_scatter.ops import general_shapes as shapes
from ir_scatter.ops import general_views as views
from ir_scatter.ops.constraints import Axis, Constraint, Meaning, Numbers, fixed, number, position
from ir_scatter.ops.general_bounds import BoundsRule
from ir_scatter.ops.general_shapes import ShapeCase, ShapeRule
from ir_scatter.ops.general_views import ViewRule

_T = TypeVar("_T")
_Constraints: TypeAlias = tuple[Constraint, ...]

_ONNX_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training"})


@dataclass(frozen=True, slots=True)
class Each(Generic[_T]):
    """A fact that differs between OpenVINO's dialect and ONNX's."""

    openvino: _T
    onnx: _T

    def of(self, domain: str) -> _T:
        return self.openvino if domain == OPENVINO else self.onnx


class Arithmetic(Enum):
    """How an operator computes integers, element by element."""

    SUM = "the sum of both inputs"
    DIFFERENCE = "the first input minus the second"
    PRODUCT = "the product of both inputs"
    NEGATION = "the negated input"
    REMAINDER = "the first input minus a multiple of the second"
    CHOICE = "often an unchanged element of one of the inputs"


class Spelling(NamedTuple):
    """How a rewrite spells an operator in a dialect.

    Attributes:
        opset: the opset word in an IR; an ONNX model has one opset for all operators.
        attributes: attributes that are always written.
        parameters: attribute names, each with the name of the parameter that is its value.
        inputs: parameters that become inputs, after the tensors.
        since: the first ONNX opset of this spelling; before it `inputs` are attributes, and
            `attributes` do not exist.
        whole: the ONNX opset since which the operator accepts integers.
        narrow: the ONNX opset since which it accepts integers of fewer than 32 bits.
    """

    opset: str = ""
    attributes: Mapping[str, Any] = MappingProxyType({})
    parameters: Mapping[str, str] = MappingProxyType({})
    inputs: tuple[str, ...] = ()
    since: int = 1
    whole: int = 1
    narrow: int = 1


class Emitted(NamedTuple):
    """A node to be written; `inputs` are integers by name, which follow the tensors among its inputs."""

    type: str
    opset: str | int
    attributes: Mapping[str, Any]
    inputs: Mapping[str, Any]


class GeneralOp(NamedTuple):
    """The facts about a general operator.

    A text "A/B" means A in OpenVINO's dialect, and B in ONNX's; "A/" exists in OpenVINO's only.

    Attributes:
        type: as in the specification.
        kernel: "module.function" of `ops/general_kernels`, or "module.maker(argument)", where the argument
            is a name in that module or in NumPy ("np.add").
        attributes: all attributes of all versions.
        shape: the rule for the shapes of its outputs; without one, the kernel decides them.
        constraints: the numbers that its inputs may hold.
        moves: the inputs whose elements it only moves or repeats; None for all inputs.
        is_pointwise: whether an element of the output depends only on the element at the same position of
            the first input.
        aligns: whether axes of the output, counted from the end, are those of the first input, and
            elements that are equal along an axis stay equal.
        keeps_all: whether a non-empty output contains every element of each input that it moves.
        fills: whether all elements of the output are one number, for any inputs.
        draws: whether its outputs are random numbers, which differ between runs and runtimes.
        draws_if: the input that must be true for random outputs; None if they do not depend on an input.
        arithmetic: how it computes integers, None if unknown.
        makes: the element type of its outputs if it may differ from that of input 0; "other" if
            attributes or other inputs decide.
        bounds: the rule for the bounds of its integer outputs; without one, moved elements keep theirs.
        rank: the rank of its output, if it is always the same.
        reads_shapes_only: whether it needs only the shapes of its inputs, no elements. A view of one
            element with stride 0, broadcast to the shape, is then a sufficient input.
        spelling: how rewrites write it, None if no rewrite uses it.
        view: the rule whether an output has the elements of an input unchanged and in order; without one,
            no output has.
        joins: whether it joins inputs along an axis.
        is_part: whether its outputs are parts of its first input; joined in order they are that input.
        state: "read" or "written" if it reads or writes state that persists between inferences.
    """

    type: str
    kernel: str = ""
    attributes: str = ""
    shape: ShapeRule | None = None
    constraints: _Constraints | Each[_Constraints] = ()
    moves: tuple[int, ...] | None = ()
    is_pointwise: bool = False
    aligns: bool = False
    keeps_all: bool = False
    fills: bool = False
    draws: bool = False
    draws_if: int | None = None
    arithmetic: Arithmetic | None = None
    reads_shapes_only: bool = False
    makes: str = ""
    bounds: BoundsRule | None = None
    rank: int | None = None
    spelling: Each[Spelling] | None = None
    view: ViewRule | None = None
    joins: bool = False
    is_part: bool = False
    state: str = ""

    def type_in(self, domain: str) -> str:
        """Return the type in a dialect, "" if the dialect has no such operator."""
        return _text(self.type, domain)

    def kernel_in(self, domain: str) -> str:
        return _text(self.kernel, domain)

    def attributes_in(self, domain: str) -> Sequence[str]:
        return _text(self.attributes, domain).split()

    def constraints_in(self, domain: str) -> _Constraints:
        constraints = self.constraints
        return constraints.of(domain) if isinstance(constraints, Each) else constraints

    @property
    def keeps_shape(self) -> bool:
        return self.shape is shapes.same

    @property
    def is_elementwise(self) -> bool:
        """Whether all inputs are broadcast to the shape of the output."""
        return self.shape is shapes.elementwise

    def aligns_last(self, attributes: Mapping[str, Any]) -> bool:
        """Return whether broadcasting aligns the last dimensions of all inputs.

        `auto_broadcast` "pdpd" of an IR aligns other dimensions, as `axis` did before opset 7 of ONNX.
        """
        rule = str(attributes.get("auto_broadcast", "numpy")).strip().lower()
        return self.is_elementwise and "axis" not in attributes and rule in _ALIGNING_LAST

    @property
    def copies(self) -> bool:
        """Whether its output has the numbers of its first input, maybe in another element type."""
        return self.is_pointwise and self.moves == _FIRST

    def moved_inputs(self, count: int) -> tuple[int, ...]:
        """Return the ports of `count` inputs whose elements it only moves."""
        return tuple(range(count)) if self.moves is None else self.moves

    @property
    def is_folded(self) -> bool | None:
        """Whether OpenVINO folds it if all inputs are constants; None if not measured."""
        type = self.type_in(OPENVINO)
        return _FOLDS.get(type)

    def emit(self, domain: str, opset: int | None, parameters: Mapping[str, Any]) -> Emitted:
        """Return the node that spells it in a dialect: "openvino", or "" for ONNX.

        Each operator of an IR names its opset. `parameters` are arguments that are not tensors: axes, an
        element type.
        """
        assert self.spelling is not None
        spelling, type = self.spelling.of(domain), self.type_in(domain)
        attributes = {name: _written(parameters[of], domain) for name, of in spelling.parameters.items()}
        inputs = {name: parameters[name] for name in spelling.inputs}
        if opset is not None and opset < spelling.since:
            return Emitted(type, opset, {**inputs, **attributes}, {})
        return Emitted(type, opset or spelling.opset, {**spelling.attributes, **attributes}, inputs)

    def takes(self, domain: str, type: ElementType, opset: int | None) -> bool:
        """Return whether it may be emitted for elements of a type."""
        if domain == OPENVINO or type.kind not in {"signed", "unsigned"}:
            return domain == OPENVINO or type.kind != "complex"
        assert self.spelling is not None
        assert opset is not None
        return opset >= (self.spelling.onnx.narrow if type.bits < 32 else self.spelling.onnx.whole)


def find(domain: str, type: str) -> GeneralOp | None:
    """Return the row of an operator, None if the table has no such row; an IR writes a type in any case."""
    if domain == OPENVINO:
        return _OPENVINO.get(type.lower())
    return _ONNX.get(type) if domain in _ONNX_DOMAINS else None


def named(type: str) -> GeneralOp:
    return _OPENVINO[type.lower()]


def find_computed(domain: str, type: str) -> GeneralOp | None:
    op = find(domain, type)
    return op if op is not None and op.kernel_in(domain) else None


def constraints_of(domain: str, type: str) -> _Constraints:
    op = find(domain, type)
    return () if op is None else op.constraints_in(domain)


def random_types(domain: str) -> frozenset[str]:
    """Return the types of operators whose outputs are, or may be, random numbers."""
    return frozenset([row.type_in(domain) for row in ROWS if row.draws]) - {""}


def output_shapes(domain: str, type: str, case: ShapeCase) -> list[tuple[int, ...] | None] | None:
    """Return the known shapes of the first outputs of a node; raise ShapesDiffer if its inputs do not fit."""
    op = find(domain, type)
    if op is None or op.shape is None:
        return None
    try:
        return op.shape(case._replace(is_onnx=domain != OPENVINO))
    except (LookupError, TypeError, ValueError, ZeroDivisionError):
        return None


@cache
def _text(text: str, domain: str) -> str:
    openvino, slash, onnx = text.partition("/")
    return onnx if slash and domain != OPENVINO else openvino


def _written(value: Any, domain: str) -> Any:
    """Return the value of an attribute as a dialect writes it."""
    if isinstance(value, ElementType):
        return value.name if domain == OPENVINO else value.onnx_number
    if isinstance(value, bool):
        return str(value).lower() if domain == OPENVINO else int(value)
    return str(value) if domain == OPENVINO else value


def _each(types: str, **facts: Any) -> Iterator[GeneralOp]:
    return (GeneralOp(type, **facts) for type in types.split())


WITH_BODIES = frozenset({"If", "Loop", "TensorIterator", "Scan"})
"""The types of nodes that hold graphs, in either dialect."""

_FIRST = (0,)
_ALIGNING_LAST = frozenset({"numpy", "none", "explicit"})
"""Values of `auto_broadcast`: shapes of "none", which OpenVINO also reads as "explicit", are equal."""
_WHOLE, _FLOAT = Numbers.WHOLE, Numbers.FLOAT
_AT_0, _AT_1, _AT_2, _LAST = fixed(0), fixed(1), fixed(2), Axis(default=-1)

_DIMENSION = (Meaning.DIMENSION(1),)
_REDUCED = (Meaning.REDUCED(1),)
_PARTS = (Meaning.PARTS(1),)
_CHOICES = (Meaning.CHOICES(0),)
_DIVISION = (number(1, 1, 8, _WHOLE),)
_COUNT_2 = (Meaning.COUNT(2, axis=_AT_1, low=1),)
_COUNT_3 = (Meaning.COUNT(3, axis=_AT_1, low=1),)
_COUNT_4 = (Meaning.COUNT(4, axis=Axis("layout"), low=1),)
"""The attribute `layout` is the number of the time dimension, 0 or 1."""
_FOURIER = (Meaning.DIMENSION(1, high=-1), number(2, 4, 8))
_FRAMES = (Meaning.SIZE(2, of=1, axis=_AT_0), number(3, 1, 2))
_ENDS = (number(1, -8, -1, _FLOAT), number(2, 1, 8, _FLOAT))
_SCALES = tuple(number(port, 1, 2, _FLOAT) for port in (1, 4, 6))

_AUTO = "auto_broadcast/"
_KEEPS = "keep_dims/axes keepdims noop_with_empty_axes"
_NUMPY = Spelling("opset1", {"auto_broadcast": "numpy"})
_BINARY = Each(_NUMPY, Spelling())
_EXTREME = Each(_NUMPY, Spelling(whole=12, narrow=12))
_TO_I64 = {"output_type": "i64"}
_MADE = Each(Spelling("opset3", _TO_I64), Spelling())
_AXIS = {"axis": "axis"}


def _reducing(since: int) -> Each[Spelling]:
    """Return the spelling of a reduction whose axes are an attribute in ONNX before opset `since`."""
    openvino = Spelling("opset1", parameters={"keep_dims": "keeps"}, inputs=("axes",))
    return Each(openvino, Spelling(parameters={"keepdims": "keeps"}, inputs=("axes",), since=since))


_pointwise = partial(GeneralOp, shape=shapes.same, is_pointwise=True)
_both = partial(GeneralOp, shape=shapes.elementwise)
_computing = partial(_both, attributes=_AUTO, spelling=Each(_NUMPY, Spelling(narrow=14)))
_comparing = partial(_both, makes="boolean")
_moving = partial(GeneralOp, moves=_FIRST)
_keeping = partial(GeneralOp, moves=_FIRST, keeps_all=True)
_reduce = partial(GeneralOp, attributes=_KEEPS, shape=shapes.reduction, constraints=_REDUCED)

ROWS = (
    # moving, copying and slicing
    _pointwise("Identity", "layout.identity", moves=_FIRST, view=views.always),
    _pointwise(
        "Convert/Cast", "arithmetic.convert", "destination_type/to saturate round_mode",
        moves=_FIRST, makes="other",
        spelling=Each(
            Spelling("opset1", parameters={"destination_type": "type"}), Spelling(parameters={"to": "type"}),
        ),
        view=views.same_type,
    ),
    _pointwise(
        "ConvertLike/CastLike", "arithmetic.convert_like", "/saturate round_mode",
        moves=_FIRST, makes="other", view=views.same_type,
    ),
    _keeping(
        "Reshape", "layout.reshape", "special_zero/allowzero shape", shape=shapes.reshaped,
        constraints=(Meaning.RESHAPED(1),),
        spelling=Each(
            Spelling("opset1", {"special_zero": "false"}), Spelling(attributes={"allowzero": 1}, since=14),
        ), view=views.always,
    ),
    _keeping("/Flatten", "layout.flatten", "axis", shape=shapes.flattened, view=views.always),
    _keeping(
        "Squeeze", "layout.squeeze", "allow_axis_skip pytorch_dynamic_rank/axes", shape=shapes.squeezed,
        constraints=(Meaning.ONES(1),), view=views.always,
    ),
    _keeping(
        "Unsqueeze", "layout.unsqueeze", "/axes", shape=shapes.unsqueezed,
        constraints=(Meaning.NEW_DIMENSION(1),),
        spelling=Each(Spelling("opset1", inputs=("axes",)), Spelling(inputs=("axes",), since=13)),
        view=views.always,
    ),
    _keeping(
        "Transpose", "layout.transpose", "/perm", shape=shapes.transposed, constraints=Each(_DIMENSION, ()),
        spelling=Each(Spelling("opset1"), Spelling(parameters={"perm": "order"})), view=views.same_order,
    ),
    _keeping(
        "Broadcast/Expand", "layout.broadcast/layout.expand", "mode/", shape=shapes.broadcast, aligns=True,
        constraints=Each((Meaning.TARGET(1, axes=2), Meaning.ASCENDING(2)), (Meaning.TARGET(1),)),
        spelling=Each(Spelling("opset3", {"mode": "numpy"}), Spelling()), view=views.same_shape,
    ),
    _keeping(
        "Tile", "layout.tile", shape=shapes.tiled, aligns=True,
        constraints=(Meaning.REPEATS(1, low=1, high=2),), view=views.once,
    ),
    GeneralOp(
        "Concat", "layout.concat", "axis", moves=None, keeps_all=True, shape=shapes.concatenated,
        spelling=Each(Spelling("opset1", parameters=_AXIS), Spelling(parameters=_AXIS)),
        view=views.only_input, joins=True,
    ),
    _moving(
        "Split", "layout.split", "num_splits/axis split num_outputs",
        shape=shapes.split, constraints=Each(_DIMENSION, _PARTS), view=views.outermost_part, is_part=True,
    ),
    _moving(
        "VariadicSplit/", "layout.variadic_split", shape=shapes.variadic_split,
        constraints=(*_DIMENSION, Meaning.PARTS(2, axis=Axis(None, port=1))),
        view=views.outermost_part, is_part=True,
    ),
    _moving(
        "Gather", "select.gather", "batch_dims/axis", shape=shapes.gathered,
        constraints=Each(
            (Meaning.POSITION(1, axis=Axis(None, port=2), wraps_since=8), Meaning.DIMENSION(2)),
            (Meaning.POSITION(1, wraps_since=11),),
        ),
        spelling=Each(Spelling("opset8", {"batch_dims": "0"}, inputs=("axis",)), Spelling(parameters=_AXIS)),
        bounds=bounds.gathered, view=views.all_positions,
    ),
    _moving(
        "GatherND", "select.gather_nd", "batch_dims", shape=shapes.gathered_nd,
        constraints=Each((Meaning.COORDINATES(1, wraps_since=8),), (Meaning.COORDINATES(1, wraps_since=11),)),
        spelling=Each(Spelling("opset8", {"batch_dims": "0"}), Spelling()), bounds=bounds.gathered_nd,
    ),
    _moving(
        "GatherElements", "select.gather_elements", "axis", shape=shapes.gathered_elements,
        constraints=Each((position(1),), (Meaning.POSITION(1, wraps_since=11),)),
        spelling=Each(Spelling("opset6", parameters=_AXIS), Spelling(parameters=_AXIS)),
        bounds=bounds.gathered_elements,
    ),
    GeneralOp("GatherTree/", constraints=(position(1, _AT_2), Meaning.COUNT(2, axis=_AT_0, low=1))),
    GeneralOp("/ArrayFeatureExtractor", constraints=(position(1, fixed(-1)),)),
    _moving(
        "Slice", "layout.slice_ranges", "/starts ends axes", shape=shapes.sliced, aligns=True,
        constraints=Each(
            (Meaning.BEGIN(1, axes=4), Meaning.END(2, axes=4), number(3, 1, 1), Meaning.DIMENSION(4)),
            (Meaning.BEGIN(1, axes=3), Meaning.END(2, axes=3), Meaning.DIMENSION(3), number(4, 1, 1)),
        ),
        spelling=Each(Spelling("opset8", inputs=("step", "axes")), Spelling(inputs=("axes",))),
        view=views.taken_whole, is_part=True,
    ),
    _moving(
        "StridedSlice/", "layout.strided_slice",
        "begin_mask end_mask new_axis_mask shrink_axis_mask ellipsis_mask", shape=shapes.strided_slice,
        constraints=(Meaning.BEGIN(1), Meaning.END(2), number(3, 1, 1)), view=views.taken_whole, is_part=True,
    ),
    GeneralOp(
        "SliceScatter/",
        constraints=(
            number(2, 0, 0, _WHOLE), Meaning.LIKE(3, of=1, axes=5), number(4, 1, 1, _WHOLE),
            Meaning.DIMENSION(5),
        ),
    ),
    GeneralOp("/Compress", constraints=(Meaning.CHOICES(1),)),
    GeneralOp("Unique", constraints=_CHOICES),
    GeneralOp("/SplitToSequence", constraints=_PARTS),
    *_each("/SequenceAt /SequenceErase", constraints=(number(1, 0, 0),)),
    GeneralOp("/SequenceInsert", constraints=(number(2, 0, 0),)),
    GeneralOp("Reverse/", shape=shapes.same, constraints=_DIMENSION),
    GeneralOp(
        "ReverseSequence", shape=shapes.same,
        constraints=Each(
            (Meaning.COUNT(1, axis=Axis("seq_axis", 1), low=1),),
            (Meaning.COUNT(1, axis=Axis("time_axis"), low=1),),
        ),
    ),
    GeneralOp("Roll/", shape=shapes.same, constraints=(number(1, -2, 2, _WHOLE), Meaning.DIMENSION(2))),
    GeneralOp("/Trilu", shape=shapes.same, constraints=(number(1, -2, 2, _WHOLE),)),
    GeneralOp(
        "Pad", shape=shapes.padded,
        constraints=Each(
            (Meaning.PADS_BEGIN(1), Meaning.PADS_END(2)), (Meaning.PADS(1, axes=3), Meaning.DIMENSION(3)),
        ), view=views.nothing_added,
    ),
    GeneralOp("/CenterCropPad", constraints=(Meaning.LIKE(1),)),
    *_each("BatchToSpace/ SpaceToBatch/", constraints=(number(1, 1, 1), number(2, 0, 0), number(3, 0, 0))),
    # creating
    GeneralOp(
        "ShapeOf/Shape", "arithmetic.shape_of", "output_type/start end", rank=1,
        reads_shapes_only=True, spelling=_MADE, makes="other", bounds=bounds.size,
    ),
    GeneralOp("/Size", "arithmetic.size", reads_shapes_only=True, rank=0),
    GeneralOp(
        "Range", "arithmetic.number_range", "output_type/stash_type", shape=shapes.number_range, rank=1,
        makes="other",
        constraints=(number(0, 0, 0), Meaning.LENGTH(1, axis=_AT_0, low=3, high=6), number(2, 1, 1)),
        spelling=Each(Spelling("opset4", _TO_I64), Spelling()), bounds=bounds.counting,
    ),
    GeneralOp(
        "NonZero", "arithmetic.non_zero", "output_type/", constraints=_CHOICES, spelling=_MADE, rank=2,
        makes="other", bounds=bounds.any_position,
    ),
    GeneralOp(
        "/ConstantOfShape", "arithmetic.constant_of_shape", "value", shape=shapes.from_input, fills=True,
        constraints=(Meaning.LENGTHS(0, low=1, high=3),),
    ),
    GeneralOp(
        "Eye/",
        constraints=(
            Meaning.LENGTH(0, axis=fixed(-2), low=2, high=4),
            Meaning.LENGTH(1, axis=fixed(-1), low=2, high=4), number(2, -1, 1, _WHOLE),
            Meaning.LENGTHS(3, low=1, high=2),
        ),
    ),
    GeneralOp(
        "RandomUniform", draws=True,
        constraints=Each(
            (
                Meaning.LENGTHS(0, low=1, high=3), number(1, 0, 0, _WHOLE), number(1, 0, 0, _FLOAT),
                number(2, 1, 8, _WHOLE), number(2, 1, 8, _FLOAT),
            ),
            (),
        ),
    ),
    GeneralOp("/RandomNormal", draws=True),
    GeneralOp(
        "Multinomial", draws=True,
        constraints=Each((number(0, 1, 4, _FLOAT), number(1, 1, 4)), (number(0, 1, 4, _FLOAT),)),
    ),
    GeneralOp(
        "/Bernoulli", shape=shapes.same, constraints=(number(0, 0, 1, _FLOAT),), makes="other", draws=True
    ),
    *_each("/RandomNormalLike /RandomUniformLike", shape=shapes.same, makes="other", draws=True),
    *_each(
        "/BlackmanWindow /HammingWindow /HannWindow",
        constraints=(Meaning.LENGTH(0, axis=_AT_0, low=4, high=8),),
    ),
    GeneralOp(
        "/MelWeightMatrix",
        constraints=(number(0, 4, 8), number(1, 16, 32), number(2, 16, 32), number(3, 0, 0), number(4, 4, 8)),
    ),
    *_each("PriorBox/ PriorBoxClustered/", constraints=(number(0, 2, 4), number(1, 8, 16))),
    # element by element, of one input
    _pointwise("Abs", "arithmetic.unary(np.abs)", arithmetic=Arithmetic.CHOICE),
    _pointwise(
        "Negative/Neg", "arithmetic.unary(np.negative)", arithmetic=Arithmetic.NEGATION,
        spelling=Each(Spelling("opset1"), Spelling()),
    ),
    _pointwise("Floor", "arithmetic.unary(floor)"),
    _pointwise("Ceiling/Ceil", "arithmetic.unary(ceiling)"),
    _pointwise("Sqrt", "arithmetic.unary(square_root)"),
    _pointwise("ReLU/Relu", "arithmetic.unary(relu)", arithmetic=Arithmetic.CHOICE),
    _pointwise("LogicalNot/Not", "arithmetic.logical_not", makes="boolean"),
    *_each(
        "Acos Acosh Asin Asinh Atan Atanh BitwiseNot /Celu Cos Cosh Elu Erf Exp Gelu HardSigmoid HSigmoid/ "
        "HSwish/HardSwish /LeakyRelu Log Mish /Reciprocal Round Selu /Shrink Sigmoid "
        "Sign Sin Sinh SoftPlus/Softplus SoftSign/Softsign Swish Tan Tanh /ThresholdedRelu",
        shape=shapes.same, is_pointwise=True,
    ),
    *_each("IsFinite/ IsInf IsNaN", shape=shapes.same, is_pointwise=True, makes="boolean"),
    _pointwise("Clamp/Clip", constraints=Each((), _ENDS), bounds=bounds.clamped),
    GeneralOp(
        "FakeQuantize/", shape=shapes.same,
        constraints=(*_ENDS, number(3, -8, -1, _FLOAT), number(4, 1, 8, _FLOAT)),
    ),
    *_each(
        "/QuantizeLinear /DequantizeLinear", shape=shapes.same, makes="other",
        constraints=(number(1, 1, 2, _FLOAT),),
    ),
    GeneralOp(
        "/Dropout", shape=shapes.same, constraints=(number(1, 0, 0, _FLOAT),), draws=True, draws_if=2,
        view=views.inference_only,
    ),
    *_each("FakeConvert/ PReLU/PRelu", shape=shapes.same),
    # element by element, of several inputs
    _computing(
        "Add", "arithmetic.binary(np.add)", arithmetic=Arithmetic.SUM, bounds=bounds.added,
        view=views.neutral(0, commutes=True),
    ),
    _computing(
        "Subtract/Sub", "arithmetic.binary(np.subtract)", arithmetic=Arithmetic.DIFFERENCE,
        bounds=bounds.subtracted, view=views.neutral(0, commutes=False),
    ),
    _computing(
        "Multiply/Mul", "arithmetic.binary(np.multiply)", arithmetic=Arithmetic.PRODUCT,
        bounds=bounds.multiplied, view=views.neutral(1, commutes=True),
    ),
    _computing(
        "Divide/Div", "arithmetic.divide", attributes="m_pythondiv auto_broadcast/", constraints=_DIVISION,
        arithmetic=Arithmetic.CHOICE, view=views.neutral(1, commutes=False),
    ),
    _both(
        "Mod/", "arithmetic.binary(truncate_mod)", _AUTO, constraints=_DIVISION,
        arithmetic=Arithmetic.REMAINDER,
    ),
    _both(
        "FloorMod/Mod", "arithmetic.modulo", "auto_broadcast/fmod",
        constraints=_DIVISION, arithmetic=Arithmetic.REMAINDER, spelling=_BINARY, bounds=bounds.remainder,
    ),
    _both("Power/Pow", "arithmetic.power", _AUTO, constraints=(number(1, 0, 3, _WHOLE),)),
    _both(
        "Minimum/Min", "arithmetic.binary(np.minimum)/arithmetic.variadic(np.minimum)", _AUTO,
        arithmetic=Arithmetic.CHOICE, spelling=_EXTREME, bounds=bounds.least, view=views.single,
    ),
    _both(
        "Maximum/Max", "arithmetic.binary(np.maximum)/arithmetic.variadic(np.maximum)", _AUTO,
        arithmetic=Arithmetic.CHOICE, spelling=_EXTREME, bounds=bounds.greatest, view=views.single,
    ),
    _both("Select/Where", "arithmetic.select", _AUTO, moves=(1, 2), spelling=_BINARY, view=views.chosen),
    _comparing("Less", "arithmetic.comparison(np.less)", _AUTO, spelling=_BINARY),
    _comparing("LessEqual/LessOrEqual", "arithmetic.comparison(np.less_equal)", _AUTO),
    _comparing("Greater", "arithmetic.comparison(np.greater)", _AUTO),
    _comparing("GreaterEqual/GreaterOrEqual", "arithmetic.comparison(np.greater_equal)", _AUTO),
    _comparing("Equal", "arithmetic.comparison(np.equal)", _AUTO, spelling=_BINARY),
    _comparing("NotEqual/", "arithmetic.comparison(np.not_equal)", _AUTO),
    _both("LogicalAnd/And", "arithmetic.logical(np.logical_and)", _AUTO, spelling=_BINARY),
    _both("LogicalOr/Or", "arithmetic.logical(np.logical_or)", _AUTO, spelling=_BINARY),
    _both("LogicalXor/Xor", "arithmetic.logical(np.logical_xor)", _AUTO, spelling=_BINARY),
    *_each("BitwiseAnd BitwiseOr BitwiseXor SquaredDifference/", shape=shapes.elementwise),
    *_each("/Sum /Mean", shape=shapes.elementwise, view=views.single),
    _both("/BitShift", constraints=(number(1, 0, 7, _WHOLE),)),
    _both("BitwiseLeftShift/", constraints=(number(1, 0, 3, _WHOLE),)),
    _both("BitwiseRightShift/", constraints=(number(1, 0, 3, _WHOLE),)),
    # along axes
    _reduce(
        "ReduceSum", "arithmetic.reduction(np.add)", spelling=_reducing(13), bounds=bounds.not_below_zero,
    ),
    _reduce(
        "ReduceProd", "arithmetic.reduction(np.multiply)", spelling=_reducing(18),
        bounds=bounds.not_below_zero,
    ),
    _reduce("ReduceMax", "arithmetic.reduction(np.maximum)"),
    _reduce("ReduceMin", "arithmetic.reduction(np.minimum)"),
    *_each(
        "ReduceL1 ReduceL2 ReduceMean ReduceLogicalAnd/ ReduceLogicalOr/ /ReduceLogSum /ReduceLogSumExp "
        "/ReduceSumSquare",
        shape=shapes.reduction, constraints=_REDUCED,
    ),
    GeneralOp(
        "CumSum", "arithmetic.cumulative_sum", "exclusive reverse", shape=shapes.same, constraints=_DIMENSION
    ),
    GeneralOp("/CumProd", shape=shapes.same, constraints=_DIMENSION),
    *_each("/ArgMax /ArgMin", shape=shapes.arg, makes="other", bounds=bounds.position),
    GeneralOp(
        "TopK", shape=shapes.top, constraints=(Meaning.KEPT(1, axis=_LAST, low=1),),
        bounds=bounds.top_position,
    ),
    GeneralOp(
        "OneHot", shape=shapes.one_hot, makes="other",
        constraints=(Meaning.BELOW(0, of=1), Meaning.LENGTH(1, axis=_LAST, low=3, high=6)),
    ),
    GeneralOp("Bucketize/", constraints=(Meaning.ASCENDING(1),)),
    GeneralOp("SearchSorted/", constraints=(Meaning.ASCENDING(0),)),
    GeneralOp(
        "BatchNormInference/BatchNormalization", shape=shapes.normalized,
        constraints=(number(4, 1, 8, _FLOAT),),
    ),
    *_each(
        "MVN/MeanVarianceNormalization NormalizeL2/LpNormalization", shape=shapes.same,
        constraints=Each(_DIMENSION, ()),
    ),
    *_each(
        "GroupNormalization /Hardmax /InstanceNormalization Inverse/ /LayerNormalization LogSoftmax LRN "
        "/RMSNormalization Softmax",
        shape=shapes.same,
    ),
    GeneralOp("DFT", constraints=Each(_FOURIER, (number(1, 4, 8), Meaning.DIMENSION(2, high=-1)))),
    *_each("IDFT/ IRDFT/", constraints=_FOURIER),
    GeneralOp("RDFT/", constraints=(*_DIMENSION, number(2, 4, 8))),
    GeneralOp(
        "STFT",
        constraints=Each(_FRAMES, (number(1, 1, 2), Meaning.SIZE(3, of=2, axis=_AT_0, low=2, high=4))),
    ),
    GeneralOp("ISTFT/", constraints=(*_FRAMES, number(4, 8, 16))),
    # networks: matrices, windows, pictures, sequences, bags
    GeneralOp("MatMul", shape=shapes.matrix_product),
    GeneralOp("/MatMulInteger", shape=shapes.matrix_product, makes="other"),
    GeneralOp(
        "/QLinearMatMul", shape=partial(shapes.matrix_product, second=3), constraints=_SCALES, makes="other"
    ),
    GeneralOp("/Gemm", shape=shapes.general_product),
    GeneralOp("ScaledDotProductAttention/", shape=shapes.attention),
    GeneralOp("/Attention", constraints=(Meaning.COUNT(6, of=1, axis=fixed(-2), low=1),)),
    GeneralOp("/RotaryEmbedding", shape=shapes.same, constraints=(position(3, _AT_0, of=1),)),
    GeneralOp("Convolution/Conv", shape=shapes.convolution),
    GeneralOp("/ConvInteger", shape=shapes.convolution, makes="other"),
    GeneralOp("GroupConvolution/", shape=partial(shapes.convolution, is_grouped=True)),
    GeneralOp("/QLinearConv", constraints=_SCALES),
    *_each("ConvolutionBackpropData/ GroupConvolutionBackpropData/", constraints=(Meaning.LIKE(2, first=2),)),
    *_each("MaxPool AvgPool/AveragePool /LpPool", shape=shapes.pool),
    *_each("/GlobalAveragePool /GlobalMaxPool /GlobalLpPool", shape=shapes.pool_everything),
    *_each("AdaptiveAvgPool/ AdaptiveMaxPool/", constraints=(Meaning.LENGTHS(1, first=2, low=1, high=2),)),
    GeneralOp("/MaxUnpool", constraints=(Meaning.FLAT(1), Meaning.LENGTHS(2, low=8, high=8))),
    *_each("ROIAlign/RoiAlign ROIAlignRotated/", constraints=(position(2, _AT_0),)),
    *_each("ROIPooling/ PSROIPooling/ DeformablePSROIPooling/", constraints=(Meaning.BOXES(1),)),
    GeneralOp("NonMaxSuppression", constraints=(number(2, 1, 4), number(3, 0, 1))),
    GeneralOp("MulticlassNms/", constraints=(number(2, 1, 1),)),
    GeneralOp(
        "Interpolate/",
        constraints=(
            Meaning.LIKE(1, axes=-1, numbers=_WHOLE), Meaning.SCALES(1, axes=-1, numbers=_FLOAT),
            Meaning.SCALES(2, axes=-1, numbers=_FLOAT), Meaning.DIMENSION(2, numbers=_WHOLE),
            Meaning.DIMENSION(3),
        ),
    ),
    GeneralOp("/Resize", constraints=(number(1, 1, 1), Meaning.SCALES(2), Meaning.LIKE(3))),
    GeneralOp("/Upsample", constraints=(Meaning.SCALES(1),)),
    GeneralOp("/AffineGrid", constraints=(Meaning.GRID(1),)),
    GeneralOp("Col2Im", constraints=(Meaning.LENGTHS(1, first=2, low=4, high=4), number(2, 1, 1))),
    GeneralOp("LSTMSequence/LSTM", constraints=Each(_COUNT_3, _COUNT_4)),
    *_each("GRUSequence/GRU RNNSequence/RNN", constraints=Each(_COUNT_2, _COUNT_4)),
    GeneralOp(
        "CTCLoss/",
        constraints=(
            Meaning.SIZE(1, axis=_AT_1), position(2, _AT_2), Meaning.COUNT(3, of=2, axis=_AT_1, low=1),
            position(4, _AT_2),
        ),
    ),
    GeneralOp(
        "CTCGreedyDecoderSeqLen/", constraints=(Meaning.COUNT(1, axis=_AT_1, low=1), position(2, _AT_2)),
    ),
    *_each(
        "EmbeddingBagOffsets/ EmbeddingBagOffsetsSum/",
        constraints=(position(1, _AT_0), Meaning.OFFSETS(2, of=1), position(3, _AT_0)),
    ),
    *_each("EmbeddingBagPacked/ EmbeddingBagPackedSum/", constraints=(position(1, _AT_0),)),
    GeneralOp(
        "EmbeddingSegmentsSum/",
        constraints=(
            position(1, _AT_0), Meaning.SEGMENTS(2, of=3), Meaning.LENGTH(3, axis=_AT_0, low=2, high=4),
            position(4, _AT_0),
        ),
    ),
    GeneralOp(
        "SegmentMax/", constraints=(Meaning.SEGMENTS(1, of=2), Meaning.LENGTH(2, axis=_AT_0, low=2, high=4)),
    ),
    GeneralOp("SparseFillEmptyRows/", constraints=(number(1, 4, 8), number(2, 0, 3))),
    *_each("/NegativeLogLikelihoodLoss /SoftmaxCrossEntropyLoss", constraints=(position(1, _AT_1),)),
    *_each("/Adagrad /Adam /Momentum", constraints=(number(1, 0, 8, _WHOLE),)),
    GeneralOp("Loop", constraints=(number(0, 1, 3),)),
    # state that persists between inferences
    GeneralOp("ReadValue/", attributes="variable_id variable_type variable_shape", state="read"),
    GeneralOp("Assign/", attributes="variable_id", state="written"),
)  # fmt: skip

_FOLDED = (
    "Abs Acos Acosh Add Asin Asinh Atan Atanh Broadcast Ceiling Clamp Concat Convert ConvertLike Cos Cosh "
    "CumSum Divide Equal Erf Exp Eye FakeConvert FakeQuantize Floor FloorMod Gather Gelu Greater "
    "GreaterEqual HSigmoid HSwish Identity Interpolate Less LessEqual Log LogSoftmax LogicalAnd "
    "LogicalNot LogicalOr LogicalXor MVN MatMul MaxPool Maximum Minimum Mish Mod Multiply Negative "
    "NonZero NotEqual OneHot PReLU Pad Power Range ReduceL1 ReduceL2 ReduceLogicalAnd ReduceMax "
    "ReduceMean ReduceMin ReduceProd ReduceSum ReLU Reshape Reverse Round Select ShapeOf Sigmoid Sign Sin "
    "Sinh Slice SoftPlus Softmax Split Sqrt SquaredDifference Squeeze StridedSlice Subtract Swish Tan "
    "Tanh Tile TopK Transpose Unsqueeze VariadicSplit"
)
_NOT_FOLDED = (
    "AvgPool BitwiseNot Convolution Elu GatherElements GatherND HardSigmoid IsFinite IsInf IsNaN "
    "RandomUniform ReverseSequence Roll SearchSorted Selu SliceScatter SoftSign"
)
"""Whether openvino 2026.4.1 folds each operator on small constants, in its ConstantFolding pass or on CPU."""
_FOLDS = {**dict.fromkeys(_FOLDED.split(), True), **dict.fromkeys(_NOT_FOLDED.split(), False)}

_OPENVINO = {type.lower(): row for row in ROWS if (type := row.type_in(OPENVINO))}
_ONNX = {type: row for row in ROWS if (type := row.type_in(""))}
