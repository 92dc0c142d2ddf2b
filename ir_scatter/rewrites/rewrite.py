"""What a rewrite is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ir_scatter.analysis.signature import EVERYTHING, REMEMBERED, SIGNATURE, Fact
from ir_scatter.core.model import Value
from ir_scatter.rewrites.refusals import Refusal

if TYPE_CHECKING:
    from ir_scatter.ops.spec import OpSpec
    from ir_scatter.rewrites.builder import Builder
    from ir_scatter.rewrites.conditions import Condition
    from ir_scatter.rewrites.view import View

Build: TypeAlias = "Callable[[View, Builder, OpSpec], Value | Refusal]"


def _none(_view: "View", _target: "OpSpec") -> "tuple[Condition, ...]":
    return ()


def _never(_view: "View", _target: "OpSpec") -> bool:
    return False


BY_SIGNATURE = SIGNATURE | REMEMBERED
"""What a rewrite may read whose new form serves other nodes as well."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An edge between two rows of the table of operators.

    Attributes:
        name: "slices-to-elements".
        source: the row that it rewrites.
        target: the row of the scatter node that comes instead.
        build: makes the new nodes and returns the value that replaces the output, or says why not.
        carries: attributes of the source that it takes care of; any other one at a value that is not
            its default is a refusal.
        requires: the conditions under which both forms are equal, for one node.
        is_done: whether a node needs no rewriting, where source and target are the same row.
        reads: all that build, requires and is_done look at. Within `BY_SIGNATURE`, what it makes of one node
            serves all nodes of whom the same holds; one that declares nothing handles each for itself.
        conditions: what the table of routes prints.
        documentation: the docstring of its module.
    """

    name: str
    source: "OpSpec"
    target: "OpSpec"
    build: Build
    carries: frozenset[str] = frozenset()
    requires: "Callable[[View, OpSpec], tuple[Condition, ...]]" = _none
    is_done: "Callable[[View, OpSpec], bool]" = _never
    reads: frozenset[Fact] = EVERYTHING
    conditions: str = ""
    documentation: str = ""
