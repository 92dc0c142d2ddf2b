"""Versions of ONNX's operators that need no adapter, from a comparison of both specifications.

Nodes of other versions are changed by `convert.opset.adapters`. A version in neither place was not compared
with the version before it: assume nothing about it.
"""

FIRST_OPSET = 7
"""The oldest opset that was compared; versions older than those in it are unknown."""

WIDENED = {
    opset: frozenset(types.split())
    for opset, types in {
        8: "Max MaxPool Mean Min Sum",
        9: "Cast Constant Flatten Gemm Greater Less MatMul PRelu",
        10: "AveragePool MaxPool",
        11: (
            "ArgMax ArgMin AveragePool Compress Concat Constant Conv DepthToSpace Equal Flatten Gather Gemm "
            "Hardmax If LogSoftmax Loop LpPool MaxPool MaxUnpool ReduceL1 ReduceL2 ReduceLogSum "
            "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Scan Slice "
            "Split Squeeze TopK Unsqueeze"
        ),
        12: "Clip GatherND Max MaxPool Min Pow ReduceMax ReduceMin",
        13: (
            "Abs Add ArgMax ArgMin Ceil Concat Constant DepthToSpace Div Dropout Equal Erf Exp Expand "
            "Flatten Floor Gather GatherElements GatherND Gemm Greater Identity If IsNaN LRN Less Log Loop "
            "MatMul Max Mean MeanVarianceNormalization Min Mul Neg NegativeLogLikelihoodLoss NonZero Pad "
            "Pow Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
            "ReduceProd ReduceSumSquare Relu Reshape ScatterElements ScatterND Shape Sigmoid Sign Size "
            "Slice SoftmaxCrossEntropyLoss SpaceToDepth Sqrt Sub Sum Tanh Tile Transpose"
        ),
        14: "Add CumSum Div GRU Identity LSTM Mul RNN Relu Sub",
        15: "BatchNormalization Pow Shape",
        16: (
            "GreaterOrEqual Identity If LeakyRelu LessOrEqual Loop PRelu Scan ScatterElements ScatterND Where"
        ),
        18: "OptionalGetElement OptionalHasElement Pad Resize",
        19: (
            "Cast CastLike Constant DequantizeLinear Equal Identity If Loop QuantizeLinear Reshape Scan "
            "Shape Size"
        ),
        20: "ConstantOfShape IsInf IsNaN ReduceMax ReduceMin",
        21: (
            "Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad "
            "QLinearMatMul QuantizeLinear Reshape Scan Shape Size Squeeze Transpose Unsqueeze"
        ),
        22: (
            "Acos Acosh Asin Asinh Atan Atanh Bernoulli Conv ConvTranspose Cos Cosh DeformConv Det Dropout "
            "Elu EyeLike GRU GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish "
            "InstanceNormalization LSTM LpNormalization LpPool MaxRoiPool MaxUnpool Mish Multinomial "
            "NegativeLogLikelihoodLoss RNN RandomNormal RandomNormalLike RandomUniform RandomUniformLike "
            "RoiAlign Round Selu Sin Sinh Softplus Softsign Tan ThresholdedRelu"
        ),
        23: (
            "Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad "
            "QuantizeLinear Reshape Scan Shape Size Squeeze Transpose Unsqueeze"
        ),
        24: (
            "Attention Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad Reshape Scan "
            "Shape Size SplitToSequence Squeeze TopK Transpose Unsqueeze"
        ),
        25: (
            "Attention Cast CastLike Constant ConstantOfShape DequantizeLinear Flatten Identity If Loop Pad "
            "QuantizeLinear Reshape Scan Shape Size Squeeze Transpose Unsqueeze"
        ),
        27: "Range",
        28: (
            "BitShift Cast Celu Compress DepthToSpace DequantizeLinear Einsum OneHot Optional "
            "OptionalGetElement OptionalHasElement QuantizeLinear ReduceLogSum ReduceLogSumExp "
            "ReverseSequence SpaceToDepth Unique"
        ),
    }.items()
}
"""Operators by the opset whose version only extends the previous one, so that old nodes stay valid.

Extensions are: more element types, optional inputs and outputs, attributes whose default is the old
behaviour, larger ranges (negative axes), and clearer wording.
"""

RENAMED = {("Upsample", 10): "Resize"}
"""(deprecated operator, opset that deprecates it) -> the operator that replaces it."""

INCOMPATIBLE = {
    ("GroupNormalization", 21): (
        "scale and bias have one number per channel now, and had one per group before"
    ),
    ("Scan", 9): "only the older version has a batch dimension and sequence lengths",
    ("Scatter", 11): "the operator is deprecated since then",
}
"""(operator, opset) of versions in which every node has another meaning than before -> reason."""

NO_WAY_BACK = {
    ("ArgMax", 12): "the older version does not specify which of equal values wins",
    ("ArgMin", 12): "the older version does not specify which of equal values wins",
    ("Cast", 13): "the older version does not specify the result for numbers out of range",
    ("Mod", 13): "the older version does not specify special cases of division",
    ("NonMaxSuppression", 11): "the older version does not specify whether a box at the threshold stays",
    ("Upsample", 10): "Resize does not exist in older versions",
}
"""(operator, opset) of versions that cannot be converted to the previous one -> reason.

The previous version specifies less.
"""
