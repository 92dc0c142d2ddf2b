"""The operator is deprecated.

Why: a deprecated operator is refused by runtimes sooner or later, Scatter from opset 11 on.

Applies to: ONNX Scatter: a warning at opset 9 and 10, where it is legal; an error from 11 on.

Runtimes: onnx.checker and onnxruntime refuse it at opset 11 and above; OpenVINO takes it at any
opset.

Example: Scatter in a model of opset 13.

Fix: replace it by ScatterElements, which means the same, as `ir-scatter convert` does.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site


def _check(site: "Site") -> Iterator[Finding]:
    successor = site.spec.deprecated_by
    if successor is None:
        return
    key = site.spec.key
    if site.spec.is_removed:
        message = f"{key.type} is deprecated at opset {site.node.opset}, expected {successor.type}"
    else:
        message = f"{key.type} is deprecated from opset {successor.version} on, use {successor.type} there"
    yield Finding(message)


_READS = frozenset({Fact.OPERATOR})

RULE = Rule("SCT401", "deprecated-operator", Severity.ERROR, _check, reads=_READS, mended_by="")
