"""The opset of a scatter operator is no opset.

Why: the runtime does not know where to look for the operator and refuses the model.

Applies to: the version word of scatter layers in an IR (other layers may carry any word,
"extension" among them) and the imported opset of ONNX models.

Runtimes: OpenVINO: "Cannot create ScatterUpdate layer from unsupported opset".

Example: <layer type="ScatterUpdate" version="extension">.

Fix: write the opset, "opset3" to "opset16" in an IR.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    if site.lookup.spec is None and not site.lookup.is_known_opset:
        opset = site.node.opset
        found = "missing" if opset is None else f"{opset!r}"
        message = f"the opset of {site.lookup.type} is {found}, expected {site.lookup.show_opsets()}"
        yield Finding(message)


_READS = frozenset({Fact.OPERATOR})

RULE = Rule("SCT403", "unknown-opset", Severity.ERROR, _check, reads=_READS, needs_row=False)
