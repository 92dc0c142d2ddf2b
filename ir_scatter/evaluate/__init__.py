"""Compute scatter operators, and whole models around them, with NumPy as their documents say."""

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

    Follows the document of the operator's version; where that is silent, the choices that
    `ir_scatter.ops.kernels` lists: with reduction none the last of several updates of one element in
    row-major order of indices stays, narrow floating-point types are reduced in f64 and rounded once,
    min and max propagate NaN, an element that nothing hits keeps its bits.

    Args:
        operator: a row of the table of operators by type and version, "ScatterElementsUpdate-12"; the
            newest version of the type without one.
        data: what is written into; TensorScatter calls it past_cache. Never changed. A sequence
            without an element type of its own (a list) is read as `numpy.asarray` reads it.
        indices: where to write; TensorScatter calls them write_indices, and they may be left out.
        updates: what is written; TensorScatter calls it update. Numbers without an element type of
            their own (a list) take that of data where that is exact.
        axis: a whole number, or an array of shape [] or [1]. OpenVINO's operators that have it need
            it; ONNX's have a default.
        reduction: in the words of the operator's dialect, "sum" or "add"; None is the default, as below.
        use_init_val: whether the old value takes part in a reduction (ScatterElementsUpdate-12).
        mode: "linear" or "circular" (TensorScatter).
        **unknown: attributes that no operator documents; they are refused like those of other operators.

    Returns:
        A new contiguous array of the shape and dtype of data. Fixed-width text is as wide as the
        wider of data and updates.

    Raises:
        UsageError: the operator or an argument does not exist, or one is missing or no array.
        IllegalIndex: an index is out of range, or negative where the document forbids it.
        IllegalCase: something else breaks the document; the message is that of the rule of `validate`.

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
    """Compute the output of a scatter operator, and what is certain about it.

    Takes and raises what `evaluate` does.

    Returns:
        The values, how many updates hit each element, which elements are contested and by which
        values, and how far a floating-point reduction in another order may be from the exact result.

    Example:
        >>> import ir_scatter as irs
        >>> found = irs.evaluate_detailed("ScatterND", data=[1, 2, 3], indices=[[1], [1]], updates=[5, 7])
        >>> found.contested, found.candidates([1])
        (array([False,  True, False]), array([5, 7]))
    """
    from ir_scatter.evaluate.certainty import detail
    from ir_scatter.evaluate.operator import make_case

    words: dict[str, Any] = {"axis": axis, "reduction": reduction, "use_init_val": use_init_val, "mode": mode}
    return detail(
        make_case(operator, data=data, indices=indices, updates=updates, **words, **unknown)
    ).settled()
