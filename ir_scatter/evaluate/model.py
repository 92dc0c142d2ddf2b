"""Runs whole models in NumPy: `evaluate_model` once, `prepare` and then `run` as often as one likes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ir_scatter.core.model import Model
    from ir_scatter.core.tensors import Array
    from ir_scatter.evaluate.program import Program


def prepare(model: "Model | str | Path") -> "Program":
    """Make a model ready to be run.

    Args:
        model: as `read` gives it, or the path of a file.

    Raises:
        UnreadableModel: it cannot be read.
        BrokenModel: its operators, or the file itself, break rules.
        UnknownOperator: NumPy does not compute one of its nodes.
    """
    from ir_scatter.evaluate.program import make_program

    return make_program(model)


def evaluate_model(model: "Model | str | Path", feeds: "Mapping[str, ArrayLike]") -> "dict[str, Array]":
    """Compute the outputs of a model in NumPy.

    The scatter operators are computed as their documents say (`evaluate`). An output of an IR has
    the first name of its tensor in the order of the alphabet, as OpenVINO's `get_any_name` has it,
    or the name of the layer that it comes from if the tensor has none.

    Args:
        model: as `read` gives it, or the path of a file.
        feeds: one array for each input, by the name of the Parameter or any of its tensor; inputs
            of an ONNX model that have an initializer may be left out.

    Returns:
        The outputs of the main graph by name; they may be read-only, and share no memory with feeds.

    Raises:
        UnreadableModel: the model, or a constant that is needed, cannot be read.
        BrokenModel: operators of the model, or the file itself, break rules.
        UnknownOperator: NumPy does not compute one of the nodes.
        BadFeed: a feed is missing, superfluous, or of the wrong type or shape.
        EvaluationFailed: a node cannot be computed with the values that reach it.
    """
    return prepare(model).run(feeds)
