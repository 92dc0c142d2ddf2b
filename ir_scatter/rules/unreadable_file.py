"""The file cannot be opened.

Why: nothing can be said of it.

Example: a path that does not exist, a folder named as a file, a file without permission.

Fix: check the path and its permissions.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT901", "unreadable-file", Severity.ERROR)
