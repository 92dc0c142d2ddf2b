"""The XML file has a DOCTYPE.

Why: an IR has none; entities can make a small file expand without end or read other files.

Example: <!DOCTYPE net [<!ENTITY a "...">]>.

Fix: remove the DOCTYPE.
"""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Rule

RULE = Rule("SCT906", "doctype", Severity.ERROR)
