"""Constant indices were not looked at because there are too many.

Why: silence would look like success.

Applies to: constant indices with more elements than --max-index-elements.

Runtimes: none is concerned.

Example: a constant of 100 million indices.

Fix: raise --max-index-elements.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import counted
from ir_scatter.ops.spec import Role
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.indices is None or site.has_constant_indices or not site.facts.skipped:
        return
    constant = site.facts.origin(site.indices.value)
    if constant is not None and constant in site.facts.skipped:
        message = (
            f"the values of {site.indices.port.name} were not checked: more than "
            f"{counted(site.facts.max_elements, 'element')}"
        )
        yield Finding(message, role=Role.INDICES)


_READS = frozenset({Fact.INPUTS, Fact.CONSTANCY, Fact.UNREAD_INDICES})

RULE = Rule("SCT307", "indices-not-checked", Severity.NOTE, _check, reads=_READS)
