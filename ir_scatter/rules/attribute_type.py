"""An attribute holds another kind of value than documented.

Why: runtimes refuse the model, or read the default in its place.

Applies to: attributes of ONNX nodes, which carry a type: axis is an int, reduction and mode are
strings.

Runtimes: onnx.checker and onnxruntime refuse the model.

Example: axis = 1.0.

Fix: write the attribute with its documented type.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis.reads import Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.shapes import with_article
from ir_scatter.ops.spec import Kind
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.analysis.scatter_node import Site

_TYPES: dict[Kind, type[Any]] = {Kind.INT: int, Kind.WORD: str, Kind.BOOLEAN: bool}
_NAMES = {Kind.INT: "an int", Kind.WORD: "a string", Kind.BOOLEAN: "a boolean"}


def _check(site: "Site") -> Iterator[Finding]:
    for row in site.spec.attributes:
        written = site.node.attributes.get(row.name)
        if written is None or site.spec.drops_attributes or isinstance(written, _TYPES[row.kind]):
            continue
        message = f"{row.name} is {with_article(type(written).__name__)}, expected {_NAMES[row.kind]}"
        yield Finding(message)


_READS = frozenset({Fact.OPERATOR, Fact.ATTRIBUTES})

RULE = Rule("SCT107", "attribute-type", Severity.ERROR, _check, reads=_READS)
