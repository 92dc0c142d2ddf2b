"""How each operator makes the symbolic facts of its outputs; one rule for dimensions, one for numbers.

Importing a module of this folder registers its rules.
"""

from ir_scatter.analysis.symbolic.rules import computing, conditions, dimensions, making, moving, reducing

__all__ = ["computing", "conditions", "dimensions", "making", "moving", "reducing"]
