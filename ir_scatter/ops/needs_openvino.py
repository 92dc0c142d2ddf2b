"""What the operators of OpenVINO need of their inputs, one row each."""

from ir_scatter.ops.needs import Axis, Meaning, Need, Numbers, fixed, number, position

_LAST = Axis(default=-1)
_FIRST = fixed(0)
_DIMENSIONS = (Need(1, Meaning.DIMENSION),)
_FOURIER = (Need(1, Meaning.DIMENSION, high=-1), number(2, 4, 8))
_DIVISION = (number(1, 1, 8, Numbers.WHOLE),)
_SHIFT = (number(1, 0, 3, Numbers.WHOLE),)
_BOXES = (Need(1, Meaning.BOXES),)
_POOLED = (Need(1, Meaning.LENGTHS, first=2, low=1, high=2),)
_BLOCKED = (number(1, 1, 1), number(2, 0, 0), number(3, 0, 0))
_TRANSPOSED = (Need(2, Meaning.LIKE, first=2),)
_BAG = (position(1, _FIRST), Need(2, Meaning.OFFSETS, of=1), position(3, _FIRST))
_SEQUENCE_LENGTHS = (Need(2, Meaning.COUNT, axis=fixed(1), low=1),)

_REDUCTIONS = (
    "reducel1", "reducel2", "reducelogicaland", "reducelogicalor", "reducemax", "reducemean", "reducemin",
    "reduceprod", "reducesum",
)  # fmt: skip

ROWS: dict[str, tuple[Need, ...]] = {
    "gather": (
        Need(1, Meaning.POSITION, axis=Axis(None, port=2), wraps_since=8),
        Need(2, Meaning.DIMENSION),
    ),
    "gatherelements": (position(1),),
    "gathernd": (Need(1, Meaning.COORDINATES, wraps_since=8),),
    "gathertree": (position(1, fixed(2)), Need(2, Meaning.COUNT, axis=_FIRST, low=1)),
    "onehot": (
        Need(0, Meaning.BELOW, of=1),
        Need(1, Meaning.LENGTH, axis=_LAST, low=3, high=6),
    ),
    "embeddingbagoffsetssum": _BAG,
    "embeddingbagoffsets": _BAG,
    "embeddingbagpackedsum": (position(1, _FIRST),),
    "embeddingbagpacked": (position(1, _FIRST),),
    "embeddingsegmentssum": (
        position(1, _FIRST),
        Need(2, Meaning.SEGMENTS, of=3),
        Need(3, Meaning.LENGTH, axis=_FIRST, low=2, high=4),
        position(4, _FIRST),
    ),
    "segmentmax": (Need(1, Meaning.SEGMENTS, of=2), Need(2, Meaning.LENGTH, axis=_FIRST, low=2, high=4)),
    "roialign": (position(2, _FIRST),),
    "roialignrotated": (position(2, _FIRST),),
    "roipooling": _BOXES,
    "psroipooling": _BOXES,
    "deformablepsroipooling": _BOXES,
    "ctcloss": (
        Need(1, Meaning.SIZE, axis=fixed(1)),
        position(2, fixed(2)),
        Need(3, Meaning.COUNT, of=2, axis=fixed(1), low=1),
        position(4, fixed(2)),
    ),
    "ctcgreedydecoderseqlen": (Need(1, Meaning.COUNT, axis=fixed(1), low=1), position(2, fixed(2))),
    "sparsefillemptyrows": (number(1, 4, 8), number(2, 0, 3)),
    "bucketize": (Need(1, Meaning.ASCENDING),),
    "searchsorted": (Need(0, Meaning.ASCENDING),),
    "topk": (Need(1, Meaning.KEPT, axis=_LAST, low=1),),
    "reversesequence": (Need(1, Meaning.COUNT, axis=Axis("seq_axis", 1), low=1),),
    "lstmsequence": (Need(3, Meaning.COUNT, axis=fixed(1), low=1),),
    "grusequence": _SEQUENCE_LENGTHS,
    "rnnsequence": _SEQUENCE_LENGTHS,
    "cumsum": _DIMENSIONS,
    "reverse": _DIMENSIONS,
    "mvn": _DIMENSIONS,
    "normalizel2": _DIMENSIONS,
    "transpose": _DIMENSIONS,
    "split": _DIMENSIONS,
    **dict.fromkeys(_REDUCTIONS, (Need(1, Meaning.REDUCED),)),
    "roll": (number(1, -2, 2, Numbers.WHOLE), Need(2, Meaning.DIMENSION)),
    "squeeze": (Need(1, Meaning.ONES),),
    "unsqueeze": (Need(1, Meaning.NEW_DIMENSION),),
    "reshape": (Need(1, Meaning.RESHAPED),),
    "broadcast": (Need(1, Meaning.TARGET, axes=2), Need(2, Meaning.ASCENDING)),
    "tile": (Need(1, Meaning.REPEATS, low=1, high=2),),
    "range": (number(0, 0, 0), Need(1, Meaning.LENGTH, axis=_FIRST, low=3, high=6), number(2, 1, 1)),
    "randomuniform": (
        Need(0, Meaning.LENGTHS, low=1, high=3),
        number(1, 0, 0, Numbers.WHOLE), number(1, 0, 0, Numbers.FLOAT),
        number(2, 1, 8, Numbers.WHOLE), number(2, 1, 8, Numbers.FLOAT),
    ),
    "multinomial": (number(0, 1, 4, Numbers.FLOAT), number(1, 1, 4)),
    "eye": (
        Need(0, Meaning.LENGTH, axis=fixed(-2), low=2, high=4),
        Need(1, Meaning.LENGTH, axis=fixed(-1), low=2, high=4),
        number(2, -1, 1, Numbers.WHOLE),
        Need(3, Meaning.LENGTHS, low=1, high=2),
    ),
    "slice": (
        Need(1, Meaning.BEGIN, axes=4),
        Need(2, Meaning.END, axes=4),
        number(3, 1, 1),
        Need(4, Meaning.DIMENSION),
    ),
    "stridedslice": (Need(1, Meaning.BEGIN), Need(2, Meaning.END), number(3, 1, 1)),
    "slicescatter": (
        number(2, 0, 0, Numbers.WHOLE),
        Need(3, Meaning.LIKE, of=1, axes=5),
        number(4, 1, 1, Numbers.WHOLE),
        Need(5, Meaning.DIMENSION),
    ),
    "variadicsplit": (Need(1, Meaning.DIMENSION), Need(2, Meaning.PARTS, axis=Axis(None, port=1))),
    "pad": (Need(1, Meaning.PADS_BEGIN), Need(2, Meaning.PADS_END)),
    "interpolate": (
        Need(1, Meaning.LIKE, axes=-1, numbers=Numbers.WHOLE),
        Need(1, Meaning.SCALES, axes=-1, numbers=Numbers.FLOAT),
        Need(2, Meaning.SCALES, axes=-1, numbers=Numbers.FLOAT),
        Need(2, Meaning.DIMENSION, numbers=Numbers.WHOLE),
        Need(3, Meaning.DIMENSION),
    ),
    "adaptiveavgpool": _POOLED,
    "adaptivemaxpool": _POOLED,
    "batchtospace": _BLOCKED,
    "spacetobatch": _BLOCKED,
    "convolutionbackpropdata": _TRANSPOSED,
    "groupconvolutionbackpropdata": _TRANSPOSED,
    "col2im": (Need(1, Meaning.LENGTHS, first=2, low=4, high=4), Need(2, Meaning.BLOCKS)),
    "dft": _FOURIER,
    "idft": _FOURIER,
    "irdft": _FOURIER,
    "rdft": (Need(1, Meaning.DIMENSION), number(2, 4, 8)),
    "stft": (Need(2, Meaning.SIZE, of=1, axis=_FIRST), number(3, 1, 2)),
    "istft": (Need(2, Meaning.SIZE, of=1, axis=_FIRST), number(3, 1, 2), number(4, 8, 16)),
    "priorbox": (number(0, 2, 4), number(1, 8, 16)),
    "priorboxclustered": (number(0, 2, 4), number(1, 8, 16)),
    "nonmaxsuppression": (number(2, 1, 4), number(3, 0, 1)),
    "multiclassnms": (number(2, 1, 1),),
    "loop": (number(0, 1, 3),),
    "nonzero": (Need(0, Meaning.CHOICES),),
    "unique": (Need(0, Meaning.CHOICES),),
    "divide": _DIVISION,
    "mod": _DIVISION,
    "floormod": _DIVISION,
    "power": (number(1, 0, 3, Numbers.WHOLE),),
    "bitwiseleftshift": _SHIFT,
    "bitwiserightshift": _SHIFT,
    "batchnorminference": (number(4, 1, 8, Numbers.FLOAT),),
    "fakequantize": (
        number(1, -8, -1, Numbers.FLOAT), number(2, 1, 8, Numbers.FLOAT),
        number(3, -8, -1, Numbers.FLOAT), number(4, 1, 8, Numbers.FLOAT),
    ),
}  # fmt: skip
"""By type in lower case."""
