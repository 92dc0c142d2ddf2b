"""The operators of OpenVINO's opsets, and the inputs that they accept.

    8-16 _vvv?v: Slice

This line means: Slice is in opset8 to opset16, and has four or five inputs. The first has any type, the
others are lists of integers. `KINDS` and `RANKS` explain the letters. Scatter operators have their own table,
`scatter_openvino`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

_TABLE = """
1 _l: Reverse
1 bb: Xor
1-2 _v?_: Broadcast
1-3 NNN: Range
1-3 ______?_: LSTMCell
1-3 _i: Interpolate
1-4 __?___: NonMaxSuppression
1-5 _: MVN
1-6 __e: Gather
1-7 NNN: DeformableConvolution
1-16: Const
1-16 ...: TensorIterator
1-16 FFF: Selu
1-16 FFFFF: BatchNormInference
1-16 NN: Add Convolution Divide FloorMod GroupConvolution Maximum Minimum Mod Multiply Power
1-16 NN: SquaredDifference Subtract
1-16 NN?i: ConvolutionBackpropData GroupConvolutionBackpropData
1-16 NNNN: GatherTree
1-16 T+: Concat
1-16 TT: Equal Greater GreaterEqual Less LessEqual MatMul NotEqual
1,3-16 TTTTT: RNNCell
1-16 Tvv?T: Pad
1-16 _: AvgPool DepthToSpace Elu GRN LogicalNot MaxPool RegionYolo ReorgYolo Result Softmax SpaceToDepth
1,3-16 _: ShuffleChannels
1-16 _?a: Squeeze
1-16 __: CTCGreedyDecoder ConvertLike PReLU PSROIPooling ROIPooling
1-16 __?_: DeformablePSROIPooling
1-16 ___: HardSigmoid Proposal
1-16 ___?__: DetectionOutput
1-16 _____: FakeQuantize
1-16 _a: NormalizeL2 Unsqueeze
1-16 _c: Split TopK
1-16 _r: Tile
1-16 _ea: VariadicSplit
1-16 _i: LRN
1-16 _l: Reshape
1-16 _v: Transpose
1-16 _vv?_: StridedSlice
1-16 _w: ReverseSequence
1-16 bTT: Select
1-16 bb: LogicalAnd LogicalOr LogicalXor
1-16 bl: ReduceLogicalAnd ReduceLogicalOr
1-16 dcTT: OneHot
1-16 ii: PriorBox PriorBoxClustered
1-16 n: Abs Acos Asin Atan Ceiling Clamp Cos Cosh Erf Exp Floor Log Negative ReLU Sigmoid Sign Sin Sinh Sqrt
1-16 n: Tan Tanh
1-16 n_: BinaryConvolution
1-16 nl: ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
1-17: Parameter
1-17 _: Convert ShapeOf
2-16 _III: BatchToSpace
2-16 _iii: SpaceToBatch
2-16 f: Gelu
3-16 ...: Assign
3-16 ?_: ReadValue
3-16 TT_TT: GRUCell
3-16 _: ExtractImagePatches NonZero
3-16 __: Bucketize
3-16 __?_: EmbeddingBagPackedSum
3-16 ___: ROIAlign
3-16 ___?__: EmbeddingBagOffsetsSum
3-16 ____?__: EmbeddingSegmentsSum
3-16 _i: CumSum
3-16 _v?v: Broadcast
4-10 ___?_: Interpolate
4-16 T?T: Swish
4-16 TTTTTT: LSTMCell
4-16 ____?_: CTCLoss
4-16 f: Mish SoftPlus
4-16 n: Acosh Asinh Atanh HSwish
4-16 nl: ReduceL1 ReduceL2
4-16 nnn: Range
5-16 oo?_+: Loop
5-16 TTT_TTT: LSTMSequence
5-16 TT_TTT: GRUSequence RNNSequence
5-16 _: LogSoftmax Round
5-16 __?____: NonMaxSuppression
5-16 _i: GatherND
5-16 n: HSigmoid
6-16 FF: ExperimentalDetectronTopKROIs
6-16 FF+: ExperimentalDetectronROIFeatureExtractor
6-16 FFF: ExperimentalDetectronPriorGridGenerator
6-16 FFFF: ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
6-16 __: MVN
6-16 __?i: CTCGreedyDecoderSeqLen
6-16 _i: GatherElements
7-16 _+: Einsum
7-16 _is: Gather
7-16 _ll: Roll
7-16 fi?i: DFT IDFT
8-16 ...: If
8-16 N?N: NV12toBGR NV12toRGB
8-16 NNN?_: DeformableConvolution
8-16 _?__: I420toBGR I420toRGB
8-16 __: AdaptiveAvgPool AdaptiveMaxPool MatrixNms
8-16 __?_: MulticlassNms
8-16 ___: RandomUniform
8-16 _vvv?v: Slice
9-16 ___?_: Eye
9-16 ____: GenerateProposals
9-16 _f: GridSample
9-16 f: SoftSign
9-16 fi?i: IRDFT RDFT
10-16 _: Unique
10-16 f: IsFinite IsInf IsNaN
11-16 __?_: Interpolate
12-16 ___: GroupNormalization
13-16 DD: BitwiseAnd BitwiseOr BitwiseXor
13-16 FF?F: FakeConvert
13-16 ___+: ScaledDotProductAttention
13-16 d: BitwiseNot
13-16 ffiff: NMSRotated
13-16 fi: Multinomial
14-16 __: ConvertPromoteTypes
14-16 f: Inverse
15-16 FFii: STFT
15-16 II: BitwiseLeftShift BitwiseRightShift
15-16 TT: SearchSorted
15-16 _: StringTensorUnpack
15-16 __?_: EmbeddingBagPacked
15-16 ___: Col2Im ROIAlignRotated StringTensorPack
15-16 ___?__: EmbeddingBagOffsets
15-16 __iii?i: SliceScatter
16 FFii?i: ISTFT
16 _: Identity
16 _II_: SparseFillEmptyRows
16 _i?i: SegmentMax
17 TT?i: GroupedMatMul
17 f: ErfInv
17 n: BGRtoNV12 RGBtoNV12
"""

_WHOLE = frozenset({"signed", "unsigned", "string"})
KINDS: Mapping[str, tuple[frozenset[str], str]] = {
    "b": (frozenset({"boolean"}), "boolean"),
    **dict.fromkeys("cdr", (_WHOLE | {"boolean"}, "an integer or boolean")),
    "f": (frozenset({"float"}), "a float"),
    "n": (_WHOLE | {"float"}, "a number"),
    **dict.fromkeys("ilvs", (_WHOLE, "an integer")),
}
"""Element types for each letter of a signature, with a name; "" if OpenVINO does not check the type.

Inputs with the same capital letter must have the same element type.
"""

RANKS: Mapping[str, tuple[Sequence[int], str]] = {
    **dict.fromkeys("al", ((0, 1), "a list")),
    **dict.fromkeys("eos", ((0, 1), "one number")),
    **dict.fromkeys("rvw", ((1,), "a list")),
    "c": ((0,), "a scalar"),
}
"""Legal ranks for each letter of a signature, with a name. A single number may also be a list of one."""


class Signature(NamedTuple):
    """The inputs that an operator accepts in some opsets.

    Attributes:
        inputs: a letter for each input; "_" and "T" for any type.
        least: the smallest number of inputs; None if unknown.
        repeats: whether the last input may occur any number of times.
    """

    type: str
    opsets: Sequence[int]
    inputs: str
    least: int | None
    repeats: bool


@cache
def signatures() -> Mapping[str, Sequence[Signature]]:
    """Return the signatures of every operator, oldest opsets first, by type in lower case."""
    signatures_by_type: dict[str, list[Signature]] = {}
    for line in _TABLE.strip().splitlines():
        head, _, types = line.partition(":")
        ranges, _, letters = head.partition(" ")
        opsets = list[int]()
        for text in ranges.split(","):
            first, _, last = text.partition("-")
            opsets += range(int(first), int(last or first) + 1)
        needed, _, optional = letters.rstrip("+").partition("?")
        least = None if letters == "..." else len(needed)
        for type in types.split():
            inputs = "" if least is None else needed + optional
            signature = Signature(type, opsets, inputs, least, letters.endswith("+"))
            signatures_by_type.setdefault(type.lower(), []).append(signature)
    return signatures_by_type


def find(type: str, opset: int) -> Signature | None:
    """Find the signature of an operator in an opset; None if the opset does not contain it."""
    return next((row for row in signatures().get(type.lower(), ()) if opset in row.opsets), None)


def show_opsets(type: str) -> str:
    """Format the opsets that contain an operator: "opset4 to opset16"; "" if no opset does."""
    opsets = sorted({opset for row in signatures().get(type.lower(), ()) for opset in row.opsets})
    words = [f"opset{opset}" for opset in {opsets[0]: 0, opsets[-1]: 0}] if opsets else []
    return " to ".join(words)
