"""The names of scatter operators, for type checkers; `tests/ops/test_names.py` compares them to the table."""

from typing import Literal, TypeAlias

OperatorName: TypeAlias = Literal[
    "ScatterUpdate",
    "ScatterUpdate-3",
    "ScatterElementsUpdate",
    "ScatterElementsUpdate-3",
    "ScatterElementsUpdate-12",
    "ScatterNDUpdate",
    "ScatterNDUpdate-3",
    "ScatterNDUpdate-15",
    "Scatter",
    "Scatter-9",
    "Scatter-11",
    "ScatterElements",
    "ScatterElements-11",
    "ScatterElements-13",
    "ScatterElements-16",
    "ScatterElements-18",
    "ScatterND",
    "ScatterND-11",
    "ScatterND-13",
    "ScatterND-16",
    "ScatterND-18",
    "TensorScatter",
    "TensorScatter-24",
]
"""A type with a version, or without one for the newest version."""
