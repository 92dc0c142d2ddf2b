"""An attribute changes nothing because of what another one says.

Why: whoever wrote it expected an effect; without a reduction no initial value takes part in
anything.

Applies to: use_init_val = false with reduction none (ScatterElementsUpdate-12).

Runtimes: all ignore it.

Example: <data reduction="none" use_init_val="false"/>.

Fix: remove use_init_val, or name the reduction that was meant.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Reduction
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site

_NAME = "use_init_val"


def _check(site: "Site") -> Iterator[Finding]:
    if site.spec.attribute(_NAME) is None or "reduction" not in {row.name for row in site.spec.attributes}:
        return
    if site.attribute(_NAME) is False and site.reduction is Reduction.NONE:
        yield Finding("use_init_val is false, which changes nothing with reduction none")


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES})

RULE = Rule("SCT108", "attribute-without-effect", Severity.NOTE, _check, reads=_READS)
