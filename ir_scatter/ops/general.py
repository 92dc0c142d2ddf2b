"""Facts about general operators, which are all but scatter operators: one row each, for both dialects.

    op = find(node.domain, node.type)

To add an operator, write a row; if it can be computed, also a kernel in `ops/general_kernels`. A row is valid
for every version of the operator. A default value means that the fact is unknown. This module does not import
NumPy: rows contain names of kernels, which `general_kernels.compute` looks up.
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
_MICROSOFT = "com.microsoft"


@dataclass(frozen=True, slots=True)
class Each(Generic[_T]):
    """A fact that differs between the dialects of OpenVINO and ONNX."""

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
    """How a rewrite writes an operator in a dialect.

    Attributes:
        opset: "opset3" in OpenVINO; "" in ONNX, where a model has one opset for all operators.
        attributes: attributes with a fixed value.
        parameters: attributes whose value is a parameter: attribute name -> parameter name.
        inputs: parameters that become inputs, after the tensors.
        since: the first ONNX opset of this spelling. In earlier opsets `inputs` are attributes, and
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
    """The parts of a new node. `inputs` maps parameter names to integers; these inputs follow its tensors."""

    type: str
    opset: str | int
    attributes: Mapping[str, Any]
    inputs: Mapping[str, Any]


class GeneralOp(NamedTuple):
    """The facts about a general operator.

    A text "A/B" means A in OpenVINO and B in ONNX; "A/" exists only in OpenVINO.

    Attributes:
        type: as in the specification.
        domain: the domain in ONNX, if it is not one of the standard domains.
        kernel: "module.function" of `ops/general_kernels`, or "module.maker(argument)". The argument is a
            name in that module or in NumPy ("np.add"), or text in quotes.
        model_kernel: another kernel, only for runs of whole models. Its results are rounded or expensive, so
            that analyses do not use it.
        attributes: all attributes of all versions.
        shape: the shape rule; without one, the kernel decides the shapes of outputs.
        constraints: the legal numbers of its inputs.
        moves: the inputs whose elements are only moved or repeated; None for all inputs.
        is_pointwise: whether an output element depends only on the element at the same position of the first
            input.
        aligns: whether axes of the output, counted from the end, are those of the first input, and elements
            that are equal along an axis stay equal.
        keeps_all: whether a non-empty output contains every element of each input in `moves`.
        fills: whether all elements of the output are the same number, for any inputs.
        draws: whether its outputs are random numbers, which differ between runs and runtimes.
        draws_if: the input that must be true for random outputs; None if no input decides.
        arithmetic: how it computes integers; None if unknown.
        makes: the element type of its outputs if it may differ from that of input 0; "other" if attributes or
            other inputs decide.
        bounds: the bounds rule for integer outputs; without one, moved elements keep their bounds.
        rank: the rank of its output, if it is always the same.
        reads_shapes_only: whether its outputs depend only on the shapes of its inputs. Then a view of one
            element with stride 0 is a sufficient input.
        spelling: how rewrites write it; None if no rewrite uses it.
        view: the rule that decides whether an output has the elements of an input, unchanged and in order;
            without one, no output has.
        joins: whether it concatenates inputs along an axis.
        is_part: whether its outputs, concatenated in order, are its first input.
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
    model_kernel: str = ""
    domain: str = ""

    def type_in(self, domain: str) -> str:
        """Return the type in a dialect; "" if the dialect has no such operator."""
        return _text(self.type, domain)

    def kernel_in(self, domain: str) -> str:
        return _text(self.kernel, domain)

    def model_kernel_in(self, domain: str) -> str:
        """Return the kernel for runs of whole models, by default the kernel of analyses."""
        return _text(self.model_kernel, domain) or self.kernel_in(domain)

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

        Exceptions are `auto_broadcast` "pdpd" in OpenVINO, and `axis` before opset 7 in ONNX.
        """
        rule = str(attributes.get("auto_broadcast", "numpy")).strip().lower()
        return self.is_elementwise and "axis" not in attributes and rule in _ALIGNING_LAST

    @property
    def copies(self) -> bool:
        """Whether its output has the numbers of its first input, maybe in another element type."""
        return self.is_pointwise and self.moves == _FIRST

    def moved_inputs(self, count: int) -> tuple[int, ...]:
        """Return the ports, out of `count` inputs, whose elements are only moved."""
        return tuple(range(count)) if self.moves is None else self.moves

    @property
    def is_folded(self) -> bool | None:
        """Whether OpenVINO folds it if all inputs are constants; None if not measured."""
        type = self.type_in(OPENVINO)
        return _FOLDS.get(type)

    def emit(self, domain: str, opset: int | None, parameters: Mapping[str, Any]) -> Emitted:
        """Return a new node of this operator in a dialect: "openvino", or "" for ONNX.

        `opset` is that of an ONNX model; None in OpenVINO, where the spelling names it. `parameters` are
        arguments that are not tensors: axes, an element type.
        """
        assert self.spelling is not None
        spelling, type = self.spelling.of(domain), self.type_in(domain)
        attributes = {name: _written(parameters[of], domain) for name, of in spelling.parameters.items()}
        inputs = {name: parameters[name] for name in spelling.inputs}
        if opset is not None and opset < spelling.since:
            return Emitted(type, opset, {**inputs, **attributes}, {})
        return Emitted(type, opset or spelling.opset, {**spelling.attributes, **attributes}, inputs)

    def takes(self, domain: str, type: ElementType, opset: int | None) -> bool:
        """Return whether rewrites may use it for elements of a type."""
        if domain == OPENVINO or type.kind not in {"signed", "unsigned"}:
            return domain == OPENVINO or type.kind != "complex"
        assert self.spelling is not None
        assert opset is not None
        return opset >= (self.spelling.onnx.narrow if type.bits < 32 else self.spelling.onnx.whole)


def find(domain: str, type: str) -> GeneralOp | None:
    """Return the row of an operator; None if there is none. OpenVINO ignores the case of types."""
    if domain == OPENVINO:
        return _OPENVINO.get(type.lower())
    return _ONNX.get(("" if domain in _ONNX_DOMAINS else domain, type))


def named(type: str) -> GeneralOp:
    return _OPENVINO[type.lower()]


def find_computed(domain: str, type: str) -> GeneralOp | None:
    """Return the row of an operator that runs of whole models can compute; None for others."""
    op = find(domain, type)
    return op if op is not None and op.model_kernel_in(domain) else None


def find_analysed(domain: str, type: str) -> GeneralOp | None:
    """Return the row of an operator that analyses may compute; None for others.

    Such operators are exact, and cheap for few elements.
    """
    op = find(domain, type)
    return op if op is not None and op.kernel_in(domain) else None


def constraints_of(domain: str, type: str) -> _Constraints:
    op = find(domain, type)
    return () if op is None else op.constraints_in(domain)


def random_types(domain: str) -> frozenset[str]:
    """Return the types of operators whose outputs are, or may be, random numbers."""
    return frozenset([row.type_in(domain) for row in ROWS if row.draws and not row.domain]) - {""}


def output_shapes(domain: str, type: str, case: ShapeCase) -> list[tuple[int, ...] | None] | None:
    """Return the known shapes of a node's first outputs; raises ShapesDiffer if its inputs do not fit."""
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
    """Return the value of an attribute in the form of a dialect."""
    if isinstance(value, ElementType):
        return value.name if domain == OPENVINO else value.onnx_number
    if isinstance(value, bool):
        return str(value).lower() if domain == OPENVINO else int(value)
    return str(value) if domain == OPENVINO else value


def _each(types: str, **facts: Any) -> Iterator[GeneralOp]:
    return (GeneralOp(type, **facts) for type in types.split())


WITH_BODIES = frozenset({"If", "Loop", "TensorIterator", "Scan"})
"""Types of nodes with bodies, in either dialect."""

_FIRST = (0,)
_ALIGNING_LAST = frozenset({"numpy", "none", "explicit"})
"""Values of `auto_broadcast` that align last dimensions.

"none" requires equal shapes; OpenVINO also reads it as "explicit".
"""
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
_IMAGE_SIZES = (number(0, 2, 4), number(1, 8, 16))
_SCALES_2 = tuple(number(port, 1, 2, _FLOAT) for port in (1, 3))
_SCALES_3 = tuple(number(port, 1, 2, _FLOAT) for port in (2, 5, 7))

_AUTO = "auto_broadcast/"
_KEEPS = "keep_dims/axes keepdims noop_with_empty_axes"
_NUMPY = Spelling("opset1", {"auto_broadcast": "numpy"})
_BINARY = Each(_NUMPY, Spelling())
_EXTREME = Each(_NUMPY, Spelling(whole=12, narrow=12))
_TO_I64 = {"output_type": "i64"}
_MADE = Each(Spelling("opset3", _TO_I64), Spelling())
_AXIS = {"axis": "axis"}


def _reducing(since: int) -> Each[Spelling]:
    """Return the spelling of a reduction. Before opset `since` of ONNX, its axes are an attribute."""
    openvino = Spelling("opset1", parameters={"keep_dims": "keeps"}, inputs=("axes",))
    return Each(openvino, Spelling(parameters={"keepdims": "keeps"}, inputs=("axes",), since=since))


_FUNCTIONS = {
    "Acos": "arccos",
    "Acosh": "arccosh",
    "Asin": "arcsin",
    "Asinh": "arcsinh",
    "Atan": "arctan",
    "Atanh": "arctanh",
    "Cos": "cos",
    "Cosh": "cosh",
    "Sin": "sin",
    "Sinh": "sinh",
    "Tan": "tan",
}
"""Functions of single numbers, with their names in NumPy."""
_CONVOLVING = "strides dilations pads_begin pads_end auto_pad"
_RECURRING = "hidden_size activations activations_alpha activations_beta clip direction"
_CHOOSING = (
    "background_class keep_top_k nms_top_k normalized output_type score_threshold sort_result_across_batch "
    "sort_result_type"
)
_TRAINING = {
    "Adagrad": "decay_factor epsilon norm_coefficient",
    "Adam": "alpha beta epsilon norm_coefficient norm_coefficient_post",
    "Momentum": "alpha beta mode norm_coefficient",
}
_NODES = (
    "base_values base_values_as_tensor nodes_falsenodeids nodes_featureids nodes_hitrates "
    "nodes_hitrates_as_tensor nodes_missing_value_tracks_true nodes_modes nodes_nodeids nodes_treeids "
    "nodes_truenodeids nodes_values nodes_values_as_tensor post_transform"
)
_OF_TEXT = {
    "RegexFullMatch": "pattern",
    "StringConcat": "",
    "StringNormalizer": "case_change_action is_case_sensitive locale stopwords",
    "StringSplit": "delimiter maxsplit",
    "TfIdfVectorizer": "max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes "
    "pool_int64s pool_strings weights",
}
"""Operators on text that onnx computes, with their attributes."""
_LEARNT = {
    "Binarizer": "threshold",
    "FeatureVectorizer": "inputdimensions",
    "Imputer": "imputed_value_floats imputed_value_int64s replaced_value_float replaced_value_int64",
    "LabelEncoder": "default_float default_int64 default_string default_tensor keys_floats keys_int64s "
    "keys_strings keys_tensor values_floats values_int64s values_strings values_tensor",
    "LinearClassifier": "classlabels_ints classlabels_strings coefficients intercepts multi_class "
    "post_transform",
    "LinearRegressor": "coefficients intercepts post_transform targets",
    "Normalizer": "norm",
    "OneHotEncoder": "cats_int64s cats_strings zeros",
    "SVMRegressor": "coefficients kernel_params kernel_type n_supports one_class post_transform rho "
    "support_vectors",
    "Scaler": "offset scale",
    "TreeEnsemble": "aggregate_function leaf_targetids leaf_weights membership_values n_targets "
    "nodes_falseleafs nodes_falsenodeids nodes_featureids nodes_hitrates nodes_missing_value_tracks_true "
    "nodes_modes nodes_splits nodes_trueleafs nodes_truenodeids post_transform tree_roots",
    "TreeEnsembleClassifier": f"class_ids class_nodeids class_treeids class_weights class_weights_as_tensor "
    f"classlabels_int64s classlabels_strings {_NODES}",
    "TreeEnsembleRegressor": f"aggregate_function n_targets target_ids target_nodeids target_treeids "
    f"target_weights target_weights_as_tensor {_NODES}",
}
"""Operators of ai.onnx.ml that the onnx package computes, with their attributes."""


def _reference(type: str) -> str:
    """Return the kernel of an operator that the onnx package computes."""
    return f"reference.onnx('{type}')"


def _ml(type: str) -> str:
    return _reference(f"ai.onnx.ml:{type}")


_pointwise = partial(GeneralOp, shape=shapes.same, is_pointwise=True)
_both = partial(GeneralOp, shape=shapes.elementwise)
_computing = partial(_both, attributes=_AUTO, spelling=Each(_NUMPY, Spelling(narrow=14)))
_comparing = partial(_both, makes="boolean")
_moving = partial(GeneralOp, moves=_FIRST)
_keeping = partial(GeneralOp, moves=_FIRST, keeps_all=True)
_reduce = partial(GeneralOp, attributes=_KEEPS, shape=shapes.reduction, constraints=_REDUCED)
_of_blocks = partial(GeneralOp, constraints=(number(1, 1, 1), number(2, 0, 0), number(3, 0, 0)))
_window = partial(
    GeneralOp, attributes="output_datatype periodic",
    constraints=(Meaning.LENGTH(0, axis=_AT_0, low=4, high=8),),
)  # fmt: skip
_quantizing = partial(GeneralOp, shape=shapes.same, makes="other", constraints=(number(1, 1, 2, _FLOAT),))
_arg = partial(
    GeneralOp, attributes="axis keepdims select_last_index", shape=shapes.arg, makes="other",
    bounds=bounds.position,
)  # fmt: skip
_keeping_shape = partial(GeneralOp, shape=shapes.same)
_convolving = partial(
    GeneralOp, attributes=f"{_CONVOLVING}/auto_pad dilations group kernel_shape pads strides"
)
_adapting = partial(GeneralOp, constraints=(Meaning.LENGTHS(1, first=2, low=1, high=2),))
_recurring = partial(GeneralOp, attributes=_RECURRING)


def _of_microsoft(module: str, type: str, kernel: str, attributes: str = "", **facts: Any) -> GeneralOp:
    """Return the row of an operator of com.microsoft, whose kernel is in a module of that name."""
    name = f"{module}.{kernel}"
    return GeneralOp(f"/{type}", attributes=attributes, model_kernel=name, domain=_MICROSOFT, **facts)


_contributed = partial(_of_microsoft, "microsoft")
_quantized = partial(_of_microsoft, "microsoft_quantized", makes="other")

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
    GeneralOp(
        "GatherTree/", model_kernel="rearrange.gather_tree",
        constraints=(position(1, _AT_2), Meaning.COUNT(2, axis=_AT_0, low=1)),
    ),
    GeneralOp(
        "/ArrayFeatureExtractor", model_kernel=_ml("ArrayFeatureExtractor"),
        constraints=(position(1, fixed(-1)),),
    ),
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
        "SliceScatter/", model_kernel="rearrange.slice_scatter",
        constraints=(
            number(2, 0, 0, _WHOLE), Meaning.LIKE(3, of=1, axes=5), number(4, 1, 1, _WHOLE),
            Meaning.DIMENSION(5),
        ),
    ),
    GeneralOp(
        "/Compress", attributes="axis", model_kernel="order.compress", constraints=(Meaning.CHOICES(1),)
    ),
    GeneralOp(
        "Unique", attributes="sorted index_element_type count_element_type/axis sorted",
        model_kernel="order.unique", constraints=_CHOICES,
    ),
    GeneralOp("/SplitToSequence", constraints=_PARTS),
    *_each("/SequenceAt /SequenceErase", constraints=(number(1, 0, 0),)),
    GeneralOp("/SequenceInsert", constraints=(number(2, 0, 0),)),
    GeneralOp(
        "Reverse/", attributes="mode", model_kernel="rearrange.reverse", shape=shapes.same,
        constraints=_DIMENSION,
    ),
    GeneralOp(
        "ReverseSequence", attributes="batch_axis seq_axis/batch_axis time_axis",
        model_kernel="rearrange.reverse_sequence", shape=shapes.same,
        constraints=Each(
            (Meaning.COUNT(1, axis=Axis("seq_axis", 1), low=1),),
            (Meaning.COUNT(1, axis=Axis("time_axis"), low=1),),
        ),
    ),
    GeneralOp(
        "Roll/", model_kernel="rearrange.roll", shape=shapes.same,
        constraints=(number(1, -2, 2, _WHOLE), Meaning.DIMENSION(2)),
    ),
    GeneralOp(
        "/Trilu", attributes="upper", model_kernel="rearrange.triangle", shape=shapes.same,
        constraints=(number(1, -2, 2, _WHOLE),),
    ),
    GeneralOp(
        "Pad", attributes="pad_mode/mode pads paddings value", model_kernel="rearrange.pad",
        shape=shapes.padded,
        constraints=Each(
            (Meaning.PADS_BEGIN(1), Meaning.PADS_END(2)), (Meaning.PADS(1, axes=3), Meaning.DIMENSION(3)),
        ), view=views.nothing_added,
    ),
    GeneralOp(
        "/CenterCropPad", attributes="axes", model_kernel="rearrange.center_crop_pad",
        constraints=(Meaning.LIKE(1),),
    ),
    _of_blocks("BatchToSpace/", model_kernel="rearrange.batch_to_space"),
    _of_blocks("SpaceToBatch/", model_kernel="rearrange.space_to_batch"),
    GeneralOp(
        "DepthToSpace", attributes="block_size mode/blocksize mode", model_kernel="rearrange.depth_to_space"
    ),
    GeneralOp(
        "SpaceToDepth", attributes="block_size mode/blocksize mode", model_kernel="rearrange.space_to_depth"
    ),
    GeneralOp("ShuffleChannels/", attributes="axis group", model_kernel="rearrange.shuffle_channels"),
    GeneralOp(
        "ExtractImagePatches/", attributes="sizes strides rates auto_pad",
        model_kernel="rearrange.extract_patches",
    ),
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
    GeneralOp("/EyeLike", attributes="dtype k", model_kernel="rearrange.eye_like", makes="other"),
    GeneralOp(
        "Eye/", attributes="output_type", model_kernel="rearrange.eye",
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
    _window("/BlackmanWindow", model_kernel="signal.blackman_window"),
    _window("/HammingWindow", model_kernel="signal.hamming_window"),
    _window("/HannWindow", model_kernel="signal.hann_window"),
    GeneralOp(
        "/MelWeightMatrix", attributes="output_datatype", model_kernel=_reference("MelWeightMatrix"),
        constraints=(number(0, 4, 8), number(1, 16, 32), number(2, 16, 32), number(3, 0, 0), number(4, 4, 8)),
    ),
    GeneralOp(
        "PriorBox/",
        attributes="min_size max_size aspect_ratio flip clip step offset variance scale_all_sizes "
        "fixed_ratio fixed_size density min_max_aspect_ratios_order",
        model_kernel="detection.prior_box", constraints=_IMAGE_SIZES,
    ),
    GeneralOp(
        "PriorBoxClustered/", attributes="width height clip step step_w step_h offset variance",
        model_kernel="detection.prior_box_clustered", constraints=_IMAGE_SIZES,
    ),
    # elementwise, with one input
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
    *(_pointwise(type, model_kernel=f"functions.real(np.{name})") for type, name in _FUNCTIONS.items()),
    *(
        _pointwise(type, attributes="/consumed_inputs", model_kernel=f"functions.real(np.{name})")
        for type, name in {"Exp": "exp", "Log": "log", "Tanh": "tanh"}.items()
    ),
    _pointwise("Sigmoid", attributes="/consumed_inputs", model_kernel="functions.real(sigmoid)"),
    _pointwise("SoftPlus/Softplus", model_kernel="functions.real(softplus)"),
    _pointwise("SoftSign/Softsign", model_kernel="functions.real(softsign)"),
    _pointwise("Mish", model_kernel="functions.real(mish)"),
    _pointwise("/Reciprocal", attributes="consumed_inputs", model_kernel="functions.real(reciprocal)"),
    _pointwise("Erf", model_kernel="functions.error_function"),
    _pointwise("ErfInv/", model_kernel="functions.real(inverse_erf)"),
    _pointwise("Sign", model_kernel="arithmetic.unary(np.sign)"),
    _pointwise("Round", attributes="mode/", model_kernel="functions.round_elements"),
    _pointwise("Elu", attributes="alpha/alpha consumed_inputs", model_kernel="functions.parametric(elu)"),
    _pointwise("/Celu", attributes="alpha", model_kernel="functions.parametric(celu)"),
    _pointwise("Selu", attributes="/alpha consumed_inputs gamma", model_kernel="functions.parametric(selu)"),
    _pointwise(
        "Gelu", attributes="approximation_mode/approximate", model_kernel="functions.parametric(gelu)"
    ),
    _pointwise("Swish", attributes="/alpha", model_kernel="functions.parametric(swish)"),
    _pointwise(
        "HardSigmoid", attributes="/alpha beta consumed_inputs",
        model_kernel="functions.parametric(hard_sigmoid)",
    ),
    _pointwise("HSigmoid/", model_kernel="functions.real(hsigmoid)"),
    _pointwise("HSwish/HardSwish", model_kernel="functions.real(hswish)"),
    _pointwise(
        "/LeakyRelu", attributes="alpha consumed_inputs", model_kernel="functions.parametric(leaky_relu)"
    ),
    _pointwise("/ThresholdedRelu", attributes="alpha", model_kernel="functions.parametric(thresholded_relu)"),
    _pointwise("/Shrink", attributes="bias lambd", model_kernel="functions.shrink"),
    GeneralOp(
        "/BitCast", attributes="to", model_kernel="functions.bit_cast", shape=shapes.same, makes="other"
    ),
    GeneralOp("/SwiGLU", attributes="alpha", model_kernel=_reference("SwiGLU")),
    _pointwise("BitwiseNot", model_kernel="functions.bitwise(np.invert)"),
    _pointwise("IsFinite/", model_kernel="functions.test_of_number(np.isfinite)", makes="boolean"),
    _pointwise("IsNaN", model_kernel="functions.test_of_number(np.isnan)", makes="boolean"),
    _pointwise(
        "IsInf", attributes="detect_negative detect_positive", model_kernel="functions.is_infinite",
        makes="boolean",
    ),
    _pointwise(
        "Clamp/Clip", attributes="min max/min max consumed_inputs", model_kernel="functions.clip",
        constraints=Each((), _ENDS), bounds=bounds.clamped,
    ),
    GeneralOp(
        "FakeQuantize/", attributes="levels auto_broadcast", model_kernel="quantize.fake_quantize",
        shape=shapes.same, constraints=(*_ENDS, number(3, -8, -1, _FLOAT), number(4, 1, 8, _FLOAT)),
    ),
    _quantizing(
        "/QuantizeLinear", attributes="axis block_size output_dtype precision saturate",
        model_kernel="quantize.quantize_linear",
    ),
    _quantizing(
        "/DequantizeLinear", attributes="axis block_size output_dtype",
        model_kernel="quantize.dequantize_linear",
    ),
    GeneralOp("/DynamicQuantizeLinear", model_kernel="quantize.dynamic_quantize_linear"),
    GeneralOp(
        "/Dropout", attributes="consumed_inputs is_test ratio seed", model_kernel="functions.dropout",
        shape=shapes.same, constraints=(number(1, 0, 0, _FLOAT),), draws=True, draws_if=2,
        view=views.inference_only,
    ),
    _keeping_shape(
        "FakeConvert/", attributes="destination_type", model_kernel="quantize.fake_convert",
    ),
    _keeping_shape("PReLU/PRelu", attributes="/consumed_inputs", model_kernel="functions.prelu"),
    # elementwise, with several inputs
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
    _both("Xor/", "arithmetic.logical(np.logical_xor)", _AUTO),
    _both("LogicalXor/Xor", "arithmetic.logical(np.logical_xor)", _AUTO, spelling=_BINARY),
    _both("BitwiseAnd", attributes=_AUTO, model_kernel="functions.bitwise(np.bitwise_and)"),
    _both("BitwiseOr", attributes=_AUTO, model_kernel="functions.bitwise(np.bitwise_or)"),
    _both("BitwiseXor", attributes=_AUTO, model_kernel="functions.bitwise(np.bitwise_xor)"),
    _both(
        "SquaredDifference/", attributes=_AUTO, model_kernel="functions.squared_difference",
    ),
    _both(
        "/Sum", attributes="consumed_inputs", model_kernel="arithmetic.variadic(np.add)", view=views.single
    ),
    _both("/Mean", attributes="consumed_inputs", model_kernel="functions.mean", view=views.single),
    _both(
        "/BitShift", attributes="direction", model_kernel="functions.bit_shift",
        constraints=(number(1, 0, 7, _WHOLE),),
    ),
    _both(
        "BitwiseLeftShift/", attributes=_AUTO, model_kernel="functions.shift_left",
        constraints=(number(1, 0, 3, _WHOLE),),
    ),
    _both(
        "BitwiseRightShift/", attributes=_AUTO, model_kernel="functions.shift_right",
        constraints=(number(1, 0, 3, _WHOLE),),
    ),
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
    _reduce("ReduceL1", model_kernel="normalize.reduction(sum_of_sizes)"),
    _reduce("ReduceL2", model_kernel="normalize.reduction(euclidean_norm)"),
    _reduce("ReduceMean", model_kernel="normalize.reduction(mean_of)"),
    _reduce("ReduceLogicalAnd/", model_kernel="normalize.logical_reduction(np.logical_and)"),
    _reduce("ReduceLogicalOr/", model_kernel="normalize.logical_reduction(np.logical_or)"),
    _reduce("/ReduceLogSum", model_kernel="normalize.reduction(log_of_sum)"),
    _reduce("/ReduceLogSumExp", model_kernel="normalize.reduction(log_of_sum_of_powers)"),
    _reduce("/ReduceSumSquare", model_kernel="normalize.reduction(sum_of_squares)"),
    GeneralOp(
        "CumSum", "arithmetic.cumulative_sum", "exclusive reverse", shape=shapes.same, constraints=_DIMENSION
    ),
    GeneralOp(
        "/CumProd", attributes="exclusive reverse", model_kernel="order.cumulative_product",
        shape=shapes.same, constraints=_DIMENSION,
    ),
    _arg("/ArgMax", model_kernel="order.arg_extreme(np.argmax)"),
    _arg("/ArgMin", model_kernel="order.arg_extreme(np.argmin)"),
    GeneralOp(
        "TopK", attributes="axis mode sort index_element_type stable/axis k largest sorted",
        model_kernel="order.top", shape=shapes.top, constraints=(Meaning.KEPT(1, axis=_LAST, low=1),),
        bounds=bounds.top_position,
    ),
    GeneralOp(
        "OneHot", attributes="axis negative_indices_mode/axis", model_kernel="order.one_hot",
        shape=shapes.one_hot, makes="other",
        constraints=(Meaning.BELOW(0, of=1), Meaning.LENGTH(1, axis=_LAST, low=3, high=6)),
    ),
    GeneralOp(
        "Bucketize/", attributes="output_type with_right_bound", model_kernel="order.bucketize",
        constraints=(Meaning.ASCENDING(1),),
    ),
    GeneralOp(
        "SearchSorted/", attributes="output_type right_mode", model_kernel="order.search_sorted",
        constraints=(Meaning.ASCENDING(0),),
    ),
    GeneralOp(
        "BatchNormInference/BatchNormalization",
        attributes="epsilon/consumed_inputs epsilon is_test momentum spatial training_mode",
        model_kernel="normalize.batch_norm_inference/normalize.batch_normalization", shape=shapes.normalized,
        constraints=(number(4, 1, 8, _FLOAT),),
    ),
    _keeping_shape(
        "MVN/MeanVarianceNormalization",
        attributes="across_channels normalize_variance eps eps_mode reduction_axes/axes",
        model_kernel="normalize.mvn/normalize.mean_variance_normalization", constraints=Each(_DIMENSION, ()),
    ),
    _keeping_shape(
        "NormalizeL2/LpNormalization", attributes="eps eps_mode/axis p",
        model_kernel="normalize.normalize_l2/normalize.lp_normalization", constraints=Each(_DIMENSION, ()),
    ),
    _keeping_shape("/Hardmax", attributes="axis", model_kernel="normalize.softmax_like(hardmax_of)"),
    _keeping_shape("Softmax", attributes="axis", model_kernel="normalize.softmax_like(softmax_of)"),
    _keeping_shape("LogSoftmax", attributes="axis", model_kernel="normalize.softmax_like(log_softmax_of)"),
    _keeping_shape(
        "GroupNormalization", attributes="epsilon num_groups/epsilon num_groups stash_type",
        model_kernel="normalize.group_normalization",
    ),
    _keeping_shape(
        "/InstanceNormalization", attributes="consumed_inputs epsilon",
        model_kernel="normalize.instance_normalization",
    ),
    _keeping_shape(
        "/LayerNormalization", attributes="axis epsilon stash_type",
        model_kernel="normalize.layer_normalization",
    ),
    _keeping_shape(
        "/RMSNormalization", attributes="axis epsilon stash_type", model_kernel="normalize.rms_normalization"
    ),
    _keeping_shape("RMS/", attributes="epsilon output_type elementwise_affine", model_kernel="normalize.rms"),
    _keeping_shape("GRN/", attributes="bias", model_kernel="normalize.grn"),
    _keeping_shape(
        "LRN", attributes="alpha beta bias size", model_kernel="normalize.local_response_normalization"
    ),
    _keeping_shape("Inverse/", attributes="adjoint", model_kernel="matrices.inverse"),
    GeneralOp("/Det", model_kernel="matrices.determinant"),
    GeneralOp(
        "DFT", attributes="/axis inverse onesided", model_kernel="signal.fourier(fft)/signal.dft",
        constraints=Each(_FOURIER, (number(1, 4, 8), Meaning.DIMENSION(2, high=-1))),
    ),
    GeneralOp("IDFT/", model_kernel="signal.fourier(ifft)", constraints=_FOURIER),
    GeneralOp("IRDFT/", model_kernel="signal.inverse_real_fourier", constraints=_FOURIER),
    GeneralOp("RDFT/", model_kernel="signal.real_fourier", constraints=(*_DIMENSION, number(2, 4, 8))),
    GeneralOp(
        "STFT", attributes="transpose_frames/onesided", model_kernel="signal.stft_ir/signal.stft",
        constraints=Each(_FRAMES, (number(1, 1, 2), Meaning.SIZE(3, of=2, axis=_AT_0, low=2, high=4))),
    ),
    GeneralOp(
        "ISTFT/", attributes="center normalized", model_kernel="signal.inverse_stft",
        constraints=(*_FRAMES, number(4, 8, 16)),
    ),
    # networks: matrices, windows, images, sequences, embeddings
    GeneralOp(
        "MatMul", attributes="transpose_a transpose_b/", model_kernel="matrices.matmul",
        shape=shapes.matrix_product,
    ),
    GeneralOp(
        "/MatMulInteger", model_kernel="matrices.matmul_integer", shape=shapes.matrix_product, makes="other"
    ),
    GeneralOp(
        "/QLinearMatMul", model_kernel="quantize.qlinear_matmul",
        shape=partial(shapes.matrix_product, second=3), constraints=_SCALES, makes="other",
    ),
    GeneralOp(
        "/Gemm", attributes="alpha beta broadcast transA transB", model_kernel="matrices.gemm",
        shape=shapes.general_product,
    ),
    GeneralOp("Einsum", attributes="equation", model_kernel="matrices.einsum"),
    GeneralOp(
        "ScaledDotProductAttention/", attributes="causal",
        model_kernel="attention.scaled_dot_product_attention", shape=shapes.attention,
    ),
    GeneralOp(
        "/Attention",
        attributes="is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
        "right_window_size scale softcap softmax_precision",
        model_kernel="attention.attention",
        constraints=(Meaning.COUNT(6, of=1, axis=fixed(-2), low=1),),
    ),
    GeneralOp(
        "/LinearAttention", attributes="chunk_size kv_num_heads q_num_heads scale update_rule",
        model_kernel=_reference("LinearAttention"),
    ),
    GeneralOp(
        "/RotaryEmbedding", attributes="interleaved num_heads rotary_embedding_dim",
        model_kernel="attention.rotary_embedding", shape=shapes.same,
        constraints=(position(3, _AT_0, of=1),),
    ),
    _convolving(
        "Convolution/Conv", model_kernel="windows.convolution", shape=shapes.convolution,
    ),
    _convolving(
        "/ConvInteger", model_kernel="windows.convolution_integer", shape=shapes.convolution, makes="other"
    ),
    _convolving(
        "GroupConvolution/", model_kernel="windows.group_convolution",
        shape=partial(shapes.convolution, is_grouped=True),
    ),
    _convolving("/QLinearConv", model_kernel="quantize.qlinear_convolution", constraints=_SCALES),
    _convolving(
        "ConvolutionBackpropData/", attributes=f"{_CONVOLVING} output_padding",
        model_kernel="windows.convolution_backprop", constraints=(Meaning.LIKE(2, first=2),),
    ),
    _convolving(
        "GroupConvolutionBackpropData/", attributes=f"{_CONVOLVING} output_padding",
        model_kernel="windows.group_convolution_backprop", constraints=(Meaning.LIKE(2, first=2),),
    ),
    _convolving(
        "/ConvTranspose",
        attributes="auto_pad dilations group kernel_shape output_padding output_shape pads strides",
        model_kernel="windows.transposed_convolution",
    ),
    GeneralOp(
        "DeformableConvolution/DeformConv",
        attributes=f"{_CONVOLVING} group deformable_group bilinear_interpolation_pad/"
        "dilations group kernel_shape offset_group pads strides",
        model_kernel="windows.deformable_convolution_ir/windows.deformable_convolution",
    ),
    GeneralOp(
        "BinaryConvolution/", attributes=f"{_CONVOLVING} mode pad_value",
        model_kernel="windows.binary_convolution",
    ),
    *(
        GeneralOp(f"{type}/", model_kernel=f"rearrange.from_planes('{type}')")
        for type in ("NV12toRGB", "NV12toBGR", "I420toRGB", "I420toBGR")
    ),
    GeneralOp(
        "/CausalConvWithState", attributes="activation", model_kernel=_reference("CausalConvWithState")
    ),
    GeneralOp(
        "MaxPool",
        attributes="strides dilations pads_begin pads_end kernel rounding_type auto_pad index_element_type "
        "axis/auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
        model_kernel="windows.max_pool", shape=shapes.pool,
    ),
    GeneralOp(
        "AvgPool/AveragePool",
        attributes="strides dilations pads_begin pads_end kernel exclude-pad rounding_type auto_pad/"
        "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
        model_kernel="windows.average_pool", shape=shapes.pool,
    ),
    GeneralOp(
        "/LpPool", attributes="auto_pad ceil_mode dilations kernel_shape p pads strides",
        model_kernel="windows.lp_pool", shape=shapes.pool,
    ),
    GeneralOp(
        "/GlobalAveragePool", model_kernel="windows.global_average_pool", shape=shapes.pool_everything
    ),
    GeneralOp("/GlobalMaxPool", model_kernel="windows.global_max_pool", shape=shapes.pool_everything),
    GeneralOp(
        "/GlobalLpPool", attributes="p", model_kernel="windows.global_lp_pool", shape=shapes.pool_everything
    ),
    _adapting("AdaptiveAvgPool/", model_kernel="windows.adaptive_average_pool"),
    _adapting(
        "AdaptiveMaxPool/", attributes="index_element_type", model_kernel="windows.adaptive_max_pool"
    ),
    GeneralOp(
        "/MaxUnpool", attributes="kernel_shape pads strides", model_kernel="windows.max_unpool",
        constraints=(Meaning.FLAT(1), Meaning.LENGTHS(2, low=8, high=8)),
    ),
    GeneralOp(
        "ROIAlign/RoiAlign",
        attributes="pooled_h pooled_w sampling_ratio spatial_scale mode aligned_mode/"
        "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale",
        model_kernel="regions.align", constraints=(position(2, _AT_0),),
    ),
    GeneralOp(
        "ROIAlignRotated/", attributes="pooled_h pooled_w sampling_ratio spatial_scale clockwise_mode",
        model_kernel="regions.align_rotated", constraints=(position(2, _AT_0),),
    ),
    GeneralOp(
        "ROIPooling/MaxRoiPool",
        attributes="output_roi output_size pooled_h pooled_w spatial_scale method/pooled_shape spatial_scale",
        model_kernel="regions.pool", constraints=(Meaning.BOXES(1),),
    ),
    GeneralOp(
        "PSROIPooling/",
        attributes="output_dim group_size spatial_scale mode spatial_bins_x spatial_bins_y",
        model_kernel="regions.pool_position_sensitive", constraints=(Meaning.BOXES(1),),
    ),
    GeneralOp(
        "DeformablePSROIPooling/",
        attributes="output_dim group_size spatial_scale mode spatial_bins_x spatial_bins_y trans_std "
        "part_size",
        model_kernel="regions.pool_deformable", constraints=(Meaning.BOXES(1),),
    ),
    GeneralOp(
        "DetectionOutput/",
        attributes="background_label_id clip_after_nms clip_before_nms code_type confidence_threshold "
        "decrease_label_id input_height input_width keep_top_k nms_threshold normalized num_classes "
        "objectness_score share_location top_k variance_encoded_in_target",
        model_kernel="detection.detection_output",
    ),
    GeneralOp(
        "RegionYolo/", attributes="anchors axis classes coords do_softmax end_axis mask num",
        model_kernel="detection.region_yolo",
    ),
    GeneralOp(
        "GenerateProposals/",
        attributes="min_size nms_eta nms_threshold normalized post_nms_count pre_nms_count roi_num_type",
        model_kernel="detection.generate_proposals",
    ),
    GeneralOp("ReorgYolo/", attributes="stride", model_kernel="detection.reorg_yolo"),
    GeneralOp(
        "Proposal/",
        attributes="base_size box_coordinate_scale box_size_scale clip_after_nms clip_before_nms feat_stride "
        "framework infer_probs min_size nms_thresh normalize post_nms_topn pre_nms_topn ratio scale",
        model_kernel="detection.proposal",
    ),
    GeneralOp(
        "NonMaxSuppression",
        attributes="box_encoding sort_result_descending output_type/center_point_box",
        model_kernel="order.non_max_suppression", constraints=(number(2, 1, 4), number(3, 0, 1)),
    ),
    GeneralOp(
        "MulticlassNms/", attributes=f"{_CHOOSING} iou_threshold nms_eta",
        model_kernel="detection.multiclass_nms", constraints=(number(2, 1, 1),),
    ),
    GeneralOp(
        "MatrixNms/", attributes=f"{_CHOOSING} decay_function gaussian_sigma post_threshold",
        model_kernel="detection.matrix_nms",
    ),
    GeneralOp(
        "Interpolate/",
        attributes="mode shape_calculation_mode coordinate_transformation_mode nearest_mode antialias "
        "pads_begin pads_end cube_coeff axes align_corners",
        model_kernel="resize.interpolate_ir",
        constraints=(
            Meaning.LIKE(1, axes=-1, numbers=_WHOLE), Meaning.SCALES(1, axes=-1, numbers=_FLOAT),
            Meaning.SCALES(2, axes=-1, numbers=_FLOAT), Meaning.DIMENSION(2, numbers=_WHOLE),
            Meaning.DIMENSION(3),
        ),
    ),
    GeneralOp(
        "/Resize",
        attributes="antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
        "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
        model_kernel="resize.resize", constraints=(number(1, 1, 1), Meaning.SCALES(2), Meaning.LIKE(3)),
    ),
    GeneralOp(
        "/Upsample", attributes="height_scale mode scales width_scale", model_kernel="resize.upsample",
        constraints=(Meaning.SCALES(1),),
    ),
    GeneralOp(
        "/AffineGrid", attributes="align_corners", model_kernel=_reference("AffineGrid"),
        constraints=(Meaning.GRID(1),),
    ),
    GeneralOp(
        "GridSample", attributes="align_corners mode padding_mode", model_kernel="resize.grid_sample"
    ),
    GeneralOp(
        "Col2Im", attributes="strides dilations pads_begin pads_end/dilations pads strides",
        model_kernel="rearrange.column_to_image",
        constraints=(Meaning.LENGTHS(1, first=2, low=4, high=4), number(2, 1, 1)),
    ),
    _recurring(
        "LSTMSequence/LSTM",
        attributes=f"{_RECURRING}/activation_alpha activation_beta activations clip direction hidden_size "
        "input_forget layout output_sequence",
        model_kernel="recurrent.lstm_sequence/recurrent.lstm", constraints=Each(_COUNT_3, _COUNT_4),
    ),
    _recurring(
        "GRUSequence/GRU",
        attributes=f"{_RECURRING} linear_before_reset/activation_alpha activation_beta activations clip "
        "direction hidden_size layout linear_before_reset output_sequence",
        model_kernel="recurrent.gru_sequence/recurrent.gru", constraints=Each(_COUNT_2, _COUNT_4),
    ),
    _recurring(
        "RNNSequence/RNN",
        attributes=f"{_RECURRING}/activation_alpha activation_beta activations clip direction hidden_size "
        "layout output_sequence",
        model_kernel="recurrent.rnn_sequence/recurrent.rnn", constraints=Each(_COUNT_2, _COUNT_4),
    ),
    _recurring("LSTMCell/", model_kernel="recurrent.lstm_cell"),
    _recurring(
        "GRUCell/", attributes=f"{_RECURRING} linear_before_reset", model_kernel="recurrent.gru_cell"
    ),
    _recurring("RNNCell/", model_kernel="recurrent.rnn_cell"),
    GeneralOp(
        "CTCLoss/", attributes="ctc_merge_repeated preprocess_collapse_repeated unique",
        model_kernel="detection.connectionist_loss",
        constraints=(
            Meaning.SIZE(1, axis=_AT_1), position(2, _AT_2), Meaning.COUNT(3, of=2, axis=_AT_1, low=1),
            position(4, _AT_2),
        ),
    ),
    GeneralOp(
        "CTCGreedyDecoder/", attributes="ctc_merge_repeated merge_repeated",
        model_kernel="detection.greedy_decoder", constraints=(number(1, 1, 1),),
    ),
    GeneralOp(
        "CTCGreedyDecoderSeqLen/", attributes="classes_index_type merge_repeated sequence_length_type",
        model_kernel="detection.greedy_decoder_of_lengths",
        constraints=(Meaning.COUNT(1, axis=_AT_1, low=1), position(2, _AT_2)),
    ),
    GeneralOp(
        "EmbeddingBagOffsets/", attributes="reduction", model_kernel="bags.offsets",
        constraints=(position(1, _AT_0), Meaning.OFFSETS(2, of=1), position(3, _AT_0)),
    ),
    GeneralOp(
        "EmbeddingBagOffsetsSum/", model_kernel="bags.offsets",
        constraints=(position(1, _AT_0), Meaning.OFFSETS(2, of=1), position(3, _AT_0)),
    ),
    GeneralOp(
        "EmbeddingBagPacked/", attributes="reduction", model_kernel="bags.packed",
        constraints=(position(1, _AT_0),),
    ),
    GeneralOp("EmbeddingBagPackedSum/", model_kernel="bags.packed", constraints=(position(1, _AT_0),)),
    GeneralOp(
        "EmbeddingSegmentsSum/", model_kernel="bags.segments",
        constraints=(
            position(1, _AT_0), Meaning.SEGMENTS(2, of=3), Meaning.LENGTH(3, axis=_AT_0, low=2, high=4),
            position(4, _AT_0),
        ),
    ),
    GeneralOp(
        "SegmentMax/", attributes="fill_mode", model_kernel="bags.segment_max",
        constraints=(Meaning.SEGMENTS(1, of=2), Meaning.LENGTH(2, axis=_AT_0, low=2, high=4)),
    ),
    GeneralOp(
        "SparseFillEmptyRows/", model_kernel="bags.fill_empty_rows",
        constraints=(number(1, 4, 8), number(2, 0, 3)),
    ),
    # training, and classic machine learning
    *(
        GeneralOp(
            f"/{type}", attributes="ignore_index reduction", model_kernel=_reference(type),
            constraints=(position(1, _AT_1),),
        )
        for type in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
    ),
    *(
        GeneralOp(
            f"/{type}", attributes=attributes, constraints=(number(1, 0, 8, _WHOLE),),
            model_kernel=_reference(f"ai.onnx.preview.training:{type}"),
        )
        for type, attributes in _TRAINING.items()
    ),
    *(
        GeneralOp(f"/{type}", attributes=attributes, model_kernel=_ml(type))
        for type, attributes in _LEARNT.items()
    ),
    # text
    *(
        GeneralOp(f"/{type}", attributes=attributes, model_kernel=_reference(type))
        for type, attributes in _OF_TEXT.items()
    ),
    GeneralOp("Loop", constraints=(number(0, 1, 3),)),
    # state that persists between inferences
    GeneralOp("ReadValue/", attributes="variable_id variable_type variable_shape", state="read"),
    GeneralOp("Assign/", attributes="variable_id", state="written"),
    # the domain com.microsoft, and operators of old versions that onnxruntime has
    _contributed("FusedMatMul", "fused_matmul", "alpha transA transB transBatchA transBatchB"),
    _contributed("TransposeMatMul", "fused_matmul", "alpha transA transB"),
    _contributed(
        "FusedGemm", "fused_gemm",
        "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
        shape=shapes.general_product,
    ),
    _contributed(
        "FusedConv", "fused_convolution",
        "activation activation_params auto_pad dilations group kernel_shape pads strides",
        shape=shapes.convolution,
    ),
    _contributed("Gelu", "biased(gelu_of)", shape=shapes.same, is_pointwise=True),
    _contributed("BiasGelu", "biased(gelu_of)"),
    _contributed("FastGelu", "biased(fast_gelu_of)"),
    _contributed("QuickGelu", "quick_gelu", "alpha", shape=shapes.same, is_pointwise=True),
    _contributed("BiasSplitGelu", "bias_split_gelu"),
    _contributed("ScaledSiLU", "scaled_silu", "alpha", shape=shapes.same),
    _contributed("GatedAdd", "gated_add", shape=shapes.same),
    _contributed("GatedRMSNorm", "gated_rms_normalization", "activation epsilon", shape=shapes.same),
    _contributed(
        "NhwcMaxPool", "max_pool_of_last", "auto_pad ceil_mode dilations kernel_shape pads strides"
    ),
    _contributed("UnfoldTensor", "unfold", "dim size step"),
    _contributed("BiasAdd", "bias_add"),
    _contributed("SkipLayerNormalization", "skip_layer_normalization", "epsilon", shape=shapes.same),
    _contributed("SkipSimplifiedLayerNormalization", "skip_rms_normalization", "epsilon", shape=shapes.same),
    _contributed(
        "EmbedLayerNormalization", "embed_layer_normalization", "epsilon mask_index_type",
        constraints=(
            position(0, _AT_0, of=2), position(1, _AT_0, of=4), number(7, 1, 1), position(8, _AT_0, of=3),
        ),
    ),
    _contributed("GroupNorm", "group_norm", "activation channels_last epsilon groups", shape=shapes.same),
    _contributed(
        "SkipGroupNorm", "skip_group_norm", "activation channels_last epsilon groups", shape=shapes.same
    ),
    _contributed(
        "RotaryEmbedding", "rotary_embedding",
        "interleaved is_packed_batching num_heads rotary_embedding_dim scale", shape=shapes.same,
        constraints=(position(1, _AT_0, of=2),),
    ),
    _contributed(
        "Attention", "attention",
        "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
        "rotary_embedding_dim scale unidirectional",
        constraints=(number(3, 1, 1),),
    ),
    _contributed(
        "MultiHeadAttention", "multi_head_attention", "mask_filter_value num_heads scale unidirectional",
        constraints=(number(4, 1, 1),),
    ),
    _contributed(
        "GroupQueryAttention", "group_query_attention",
        "causal do_rotary k_norm_epsilon k_quant_type kv_cache_bit_width kv_num_heads local_window_size "
        "num_heads q_norm_epsilon qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache "
        "smooth_softmax softcap v_quant_type",
        constraints=(position(9, _AT_0, of=7),),
    ),
    _contributed(
        "MoE", "mixture_of_experts",
        "activation_alpha activation_beta activation_type k normalize_routing_weights swiglu_fusion "
        "swiglu_limit swiglu_limit_after_activation use_sparse_mixer", shape=shapes.same,
    ),
    _contributed("Inverse", "latest('matrices.inverse')", shape=shapes.same),
    _contributed("Trilu", "latest('rearrange.triangle')", "upper", shape=shapes.same),
    _contributed("Pad", "latest('rearrange.pad')", "mode", constraints=(Meaning.PADS(1),)),
    _contributed("GridSample", "latest('resize.grid_sample')", "align_corners mode padding_mode"),
    _contributed("GatherND", "latest('select.gather_nd')", constraints=(Meaning.COORDINATES(1),)),
    _contributed("ExpandDims", "expand_dims", constraints=(number(1, 0, 0),)),
    _contributed("Unique", "unique"),
    _contributed("Range", "number_range", makes="other", rank=1),
    _contributed("CDist", "squared_distances", "metric"),
    _contributed("IsAllFinite", "is_all_finite", "isinf_only isnan_only", rank=0, makes="boolean"),
    *(
        _quantized(f"QLinear{type}", f"binary(np.{name})", shape=shapes.elementwise, constraints=_SCALES)
        for type, name in {"Add": "add", "Mul": "multiply"}.items()
    ),
    *(
        _quantized(f"QLinear{type}", f"unary({name})", attributes, constraints=_SCALES_2, shape=rule)
        for type, name, attributes, rule in (
            ("LeakyRelu", "leaky_relu", "alpha", shapes.same),
            ("Sigmoid", "sigmoid_of", "", shapes.same),
            ("Softmax", "softmax", "axis opset", shapes.same),
            ("ReduceMean", "mean_of", "axes keepdims", None),
            ("GlobalAveragePool", "global_mean", "channels_last", None),
            (
                "AveragePool", "average",
                "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides", None,
            ),
        )
    ),
    _quantized("QLinearWhere", "select", constraints=_SCALES_3),
    _quantized("QLinearConcat", "concat", "axis", constraints=(number(0, 1, 2, _FLOAT),)),
    _quantized(
        "QLinearConv", "convolution",
        "auto_pad channels_last dilations group kernel_shape pads strides", constraints=_SCALES,
    ),
    _quantized(
        "QuantizeLinear", "quantize", "axis", shape=shapes.same, constraints=(number(1, 1, 2, _FLOAT),)
    ),
    _quantized("DequantizeLinear", "dequantize", "axis", shape=shapes.same),
    _quantized("MatMulIntegerToFloat", "integer_product_to_float"),
    _quantized("DynamicQuantizeMatMul", "dynamically_quantized_product"),
    _quantized("QGemm", "gemm", "alpha transA transB", constraints=(number(7, 1, 2, _FLOAT),)),
    _quantized(
        "QAttention", "attention",
        "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional",
    ),
    _quantized("MatMulNBits", "product_of_few_bits", "K N accuracy_level bits block_size weight_prepacked"),
    _quantized("MatMulBnb4", "product_of_4_bit_floats", "K N block_size quant_type training_mode transB"),
    _quantized(
        "GatherBlockQuantized", "gather_blocks", "bits block_size gather_axis quantize_axis",
        constraints=(position(1, Axis("gather_axis", 0)),),
    ),
    _quantized(
        "QMoE", "quantized_mixture_of_experts",
        "accuracy_level activation_alpha activation_beta activation_type block_size expert_weight_bits "
        "fc1_expert_weight_bits fc2_expert_weight_bits fc3_expert_weight_bits k normalize_routing_weights "
        "quant_type swiglu_fusion swiglu_limit swiglu_limit_after_activation use_sparse_mixer "
        "weights_prepacked",
    ),
    _keeping_shape(
        "/SimplifiedLayerNormalization", attributes="axis epsilon stash_type",
        model_kernel="microsoft.simplified_layer_normalization",
    ),
    _pointwise("/Affine", attributes="alpha beta", model_kernel="microsoft.affine"),
    _pointwise("/Scale", attributes="scale", model_kernel="microsoft.scale"),
    _keeping_shape("/ImageScaler", attributes="bias scale", model_kernel="microsoft.image_scaler"),
    _pointwise("/ScaledTanh", attributes="alpha beta", model_kernel="microsoft.scaled_tanh"),
    _pointwise("/ParametricSoftplus", attributes="alpha beta", model_kernel="microsoft.parametric_softplus"),
    _moving("/Crop", attributes="border scale", model_kernel="microsoft.crop"),
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
"""Operators that openvino 2026.4.1 does not fold on small constants, on CPU or by ConstantFolding."""
_FOLDS = {**dict.fromkeys(_FOLDED.split(), True), **dict.fromkeys(_NOT_FOLDED.split(), False)}

_OPENVINO = {type.lower(): row for row in ROWS if (type := row.type_in(OPENVINO))}
_ONNX = {(row.domain, type): row for row in ROWS if (type := row.type_in(""))}
