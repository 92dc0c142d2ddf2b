"""Makes legal inputs: for a whole model (`feeds`), and for one operator."""

from ir_scatter.inputs.case import Case
from ir_scatter.inputs.operators import BROKEN, random_case

__all__ = ["BROKEN", "Case", "random_case"]
