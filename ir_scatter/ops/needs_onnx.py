"""What the operators of ONNX need of their inputs, one row each."""

from ir_scatter.ops.needs import Axis, Meaning, Need, Numbers, fixed, number, position

DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training"})

_LAST = Axis(default=-1)
_DIMENSIONS = (Need(1, Meaning.DIMENSION),)
_WINDOW = (Need(0, Meaning.LENGTH, axis=fixed(0), low=4, high=8),)
_CLASSES = (position(1, fixed(1)),)
_DIVISION = (number(1, 1, 8, Numbers.WHOLE),)
_SCALES = tuple(number(port, 1, 2, Numbers.FLOAT) for port in (1, 4, 6))
_SEQUENCE_LENGTHS = (Need(4, Meaning.COUNT, axis=Axis("layout"), low=1),)
"""The attribute `layout` is 0 if time is dimension 0, and 1 if it is dimension 1."""

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip

ROWS: dict[str, tuple[Need, ...]] = {
    "Gather": (Need(1, Meaning.POSITION, wraps_since=11),),
    "GatherElements": (Need(1, Meaning.POSITION, wraps_since=11),),
    "GatherND": (Need(1, Meaning.COORDINATES, wraps_since=11),),
    "ArrayFeatureExtractor": (position(1, fixed(-1)),),
    "OneHot": (
        Need(0, Meaning.BELOW, of=1),
        Need(1, Meaning.LENGTH, axis=_LAST, low=3, high=6),
    ),
    "NegativeLogLikelihoodLoss": _CLASSES,
    "SoftmaxCrossEntropyLoss": _CLASSES,
    "RoiAlign": (position(2, fixed(0)),),
    "RotaryEmbedding": (position(3, fixed(0), of=1),),
    "MaxUnpool": (Need(1, Meaning.FLAT), Need(2, Meaning.LENGTHS, low=8, high=8)),
    "TopK": (Need(1, Meaning.KEPT, axis=_LAST, low=1),),
    "ReverseSequence": (Need(1, Meaning.COUNT, axis=Axis("time_axis"), low=1),),
    "LSTM": _SEQUENCE_LENGTHS,
    "GRU": _SEQUENCE_LENGTHS,
    "RNN": _SEQUENCE_LENGTHS,
    "Attention": (Need(6, Meaning.COUNT, of=1, axis=fixed(-2), low=1),),
    "CumSum": _DIMENSIONS,
    "CumProd": _DIMENSIONS,
    **dict.fromkeys(_REDUCTIONS, (Need(1, Meaning.REDUCED),)),
    "Squeeze": (Need(1, Meaning.ONES),),
    "Unsqueeze": (Need(1, Meaning.NEW_DIMENSION),),
    "Reshape": (Need(1, Meaning.RESHAPED),),
    "Expand": (Need(1, Meaning.TARGET),),
    "Tile": (Need(1, Meaning.REPEATS, low=1, high=2),),
    "ConstantOfShape": (Need(0, Meaning.LENGTHS, low=1, high=3),),
    "Range": (number(0, 0, 0), Need(1, Meaning.LENGTH, axis=fixed(0), low=3, high=6), number(2, 1, 1)),
    "Slice": (
        Need(1, Meaning.BEGIN, axes=3),
        Need(2, Meaning.END, axes=3),
        Need(3, Meaning.DIMENSION),
        number(4, 1, 1),
    ),
    "Split": (Need(1, Meaning.PARTS),),
    "SplitToSequence": (Need(1, Meaning.PARTS),),
    "Pad": (Need(1, Meaning.PADS, axes=3), Need(3, Meaning.DIMENSION)),
    "Resize": (number(1, 1, 1), Need(2, Meaning.SCALES), Need(3, Meaning.LIKE)),
    "Upsample": (Need(1, Meaning.SCALES),),
    "CenterCropPad": (Need(1, Meaning.LIKE),),
    "AffineGrid": (Need(1, Meaning.GRID),),
    "Col2Im": (Need(1, Meaning.LENGTHS, first=2, low=4, high=4), Need(2, Meaning.BLOCKS)),
    "DFT": (number(1, 4, 8), Need(2, Meaning.DIMENSION, high=-1)),
    "STFT": (number(1, 1, 2), Need(3, Meaning.SIZE, of=2, axis=fixed(0), low=2, high=4)),
    "BlackmanWindow": _WINDOW,
    "HammingWindow": _WINDOW,
    "HannWindow": _WINDOW,
    "MelWeightMatrix": (
        number(0, 4, 8), number(1, 16, 32), number(2, 16, 32), number(3, 0, 0), number(4, 4, 8),
    ),
    "NonMaxSuppression": (number(2, 1, 4), number(3, 0, 1)),
    "SequenceAt": (number(1, 0, 0),),
    "SequenceErase": (number(1, 0, 0),),
    "SequenceInsert": (number(2, 0, 0),),
    "Trilu": (number(1, -2, 2, Numbers.WHOLE),),
    "Loop": (number(0, 1, 3),),
    "NonZero": (Need(0, Meaning.CHOICES),),
    "Compress": (Need(1, Meaning.CHOICES),),
    "Unique": (Need(0, Meaning.CHOICES),),
    "Div": _DIVISION,
    "Mod": _DIVISION,
    "Pow": (number(1, 0, 3, Numbers.WHOLE),),
    "BitShift": (number(1, 0, 7, Numbers.WHOLE),),
    "Clip": (number(1, -8, -1, Numbers.FLOAT), number(2, 1, 8, Numbers.FLOAT)),
    "Dropout": (number(1, 0, 0, Numbers.FLOAT),),
    "Bernoulli": (number(0, 0, 1, Numbers.FLOAT),),
    "BatchNormalization": (number(4, 1, 8, Numbers.FLOAT),),
    "QuantizeLinear": (number(1, 1, 2, Numbers.FLOAT),),
    "DequantizeLinear": (number(1, 1, 2, Numbers.FLOAT),),
    "QLinearConv": _SCALES,
    "QLinearMatMul": _SCALES,
    "Adagrad": (number(1, 0, 8, Numbers.WHOLE),),
    "Adam": (number(1, 0, 8, Numbers.WHOLE),),
    "Momentum": (number(1, 0, 8, Numbers.WHOLE),),
}  # fmt: skip
"""By type."""
