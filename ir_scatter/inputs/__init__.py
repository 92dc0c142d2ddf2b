"""Makes legal inputs: for a whole model (`model`), and for one operator."""

from ir_scatter.inputs.case import Case
from ir_scatter.inputs.operator import BROKEN, random_case

__all__ = ["BROKEN", "Case", "random_case"]
