"""Rules that compute the symbolic facts of each operator's outputs: dimensions, and facts about elements.

Importing a module of this folder registers its rules.
"""

from ir_scatter.analysis.symbolic.rules import computing, conditions, dimensions, making, moving, reducing

__all__ = ["computing", "conditions", "dimensions", "making", "moving", "reducing"]
