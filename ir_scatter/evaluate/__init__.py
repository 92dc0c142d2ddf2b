"""Computes scatter operators, and whole models around them, with NumPy, as their specifications require."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Never, SupportsIndex, TypeAlias

    from numpy.typing import ArrayLike

    from ir_scatter.core.arrays import Array
    from ir_scatter.evaluate.certainty import DetailedResult
    from ir_scatter.ops.names import OperatorName

    Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | Array


def evaluate(
    operator: "OperatorName",
    *,
    data: "ArrayLike | None" = None,
    indices: "ArrayLike | None" = None,
    updates: "ArrayLike | None" = None,
    axis: "Axis | None" = None,
    reduction: str | None = None,
    use_init_val: bool | None = None,
    mode: str | None = None,
    **unknown: "Never",
) -> "Array":
    """Compute the output of a scatter operator.

    The result follows the specification of the operator's version. Where that leaves a choice, the choices in
    `ir_scatter.ops.kernels` apply: with reduction none, the last of several updates of one element stays, in
    row-major order of indices. Narrow floating-point types are reduced in f64 and rounded once. Min and max
    propagate NaN. An element without an update keeps its bits.

    Args:
        operator: type and version of an operator, "ScatterElementsUpdate-12"; without a version, the newest
            version of the type.
        data: the tensor before the updates, which stays unchanged; TensorScatter calls it past_cache. A
            sequence without an element type of its own (a list) is read as `numpy.asarray` reads it.
        indices: where to write; TensorScatter calls them write_indices, and they are optional.
        updates: what to write; TensorScatter calls it update. Numbers without an element type of
            their own (a list) get that of data if the conversion is exact.
        axis: an integer, or an array of shape [] or [1]. OpenVINO's operators with an axis require
            it; ONNX's have a default.
        reduction: a word of the operator's dialect, "sum" or "add"; None means the default of the operator.
        use_init_val: whether the old value takes part in a reduction (ScatterElementsUpdate-12).
        mode: "linear" or "circular" (TensorScatter).
        **unknown: attributes that no operator has; they are refused like those of other operators.

    Returns:
        A new contiguous array of the shape and dtype of data. Fixed-width text is as wide as the
        wider of data and updates.

    Raises:
        UsageError: the operator or an argument does not exist, or an argument is missing or not an array.
        IllegalIndex: an index is out of range, or negative although the specification forbids it.
        IllegalCase: another rule of the specification is broken; the message is that of `validate`.

    Example:
        >>> import ir_scatter as irs
        >>> irs.evaluate("ScatterElements", data=[1, 2, 3, 4], indices=[3, 0], updates=[40, 10])
        array([10,  2,  3, 40])
        >>> irs.evaluate("ScatterND", data=[1, 2, 3], indices=[[1], [1]], updates=[5, 7], reduction="add")
        array([ 1, 14,  3])
        >>> irs.evaluate("ScatterUpdate", data=[1, 2, 3], indices=[3], updates=[9], axis=0)
        Traceback (most recent call last):
        ...
        ir_scatter.core.errors.IllegalIndex: indices[0] is 3, expected 0 to 2
    """
    from ir_scatter.evaluate.operator import make_case, run

    words: dict[str, Any] = {"axis": axis, "reduction": reduction, "use_init_val": use_init_val, "mode": mode}
    return run(make_case(operator, data=data, indices=indices, updates=updates, **words, **unknown))


def evaluate_detailed(
    operator: "OperatorName",
    *,
    data: "ArrayLike | None" = None,
    indices: "ArrayLike | None" = None,
    updates: "ArrayLike | None" = None,
    axis: "Axis | None" = None,
    reduction: str | None = None,
    use_init_val: bool | None = None,
    mode: str | None = None,
    **unknown: "Never",
) -> "DetailedResult":
    """Compute the output of a scatter operator, and how certain it is.

    Arguments and errors are those of `evaluate`.

    Returns:
        The values, the number of updates of each element, the contested elements and their candidates,
        and a bound of the rounding error of a floating-point reduction in another order.

    Example:
        >>> import ir_scatter as irs
        >>> result = irs.evaluate_detailed("ScatterND", data=[1, 2, 3], indices=[[1], [1]], updates=[5, 7])
        >>> result.contested, result.candidates([1])
        (array([False,  True, False]), array([5, 7]))
    """
    from ir_scatter.evaluate.certainty import detail
    from ir_scatter.evaluate.operator import make_case

    words: dict[str, Any] = {"axis": axis, "reduction": reduction, "use_init_val": use_init_val, "mode": mode}
    return detail(
        make_case(operator, data=data, indices=indices, updates=updates, **words, **unknown)
    ).settled()
