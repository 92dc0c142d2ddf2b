"""A number is none, or is outside of what it may be.

Why: readers stop with words that tell nothing ("stoll"), or read something else.

Applies to: ids, dimensions, shapes, offsets, sizes and types that the file declares.

Example: <dim>abc</dim>, shape="-5,4", shape="5..3", offset="x".

Fix: write the number that was meant.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT928", "bad-number", Severity.ERROR)
