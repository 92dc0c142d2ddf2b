"""Hold one operator with its arrays against the rules of `validate`."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ir_scatter.analysis.facts import Facts
from ir_scatter.analysis.scatter_node import Site
from ir_scatter.core.constants import Constant
from ir_scatter.core.diagnostics import Location, Severity
from ir_scatter.core.errors import IllegalCase
from ir_scatter.core.model import Graph, Input, Node, Value
from ir_scatter.ops.lookup import find
from ir_scatter.rules import all_rules

if TYPE_CHECKING:
    from ir_scatter.core.constants import Array
    from ir_scatter.core.element_types import ElementType
    from ir_scatter.core.shapes import Shape
    from ir_scatter.ops.spec import OpSpec
    from ir_scatter.rules.rule import Finding, Rule

_DEMANDS = ("SCT1", "SCT2", "SCT3")
_PLACE = Location("")


class _OneNode(Graph):
    """A graph of one node whose inputs come from nowhere."""

    def __init__(self, spec: "OpSpec", inputs: tuple[Input, ...], attributes: Mapping[str, Any]) -> None:
        self.node = Node(self, spec.key.domain, spec.key.type, spec.opsets[0], spec.key.type, None)
        self._inputs = inputs
        self._attributes = attributes

    def walk(self, types: frozenset[str] | None = None) -> Iterator[Node]:
        yield self.node

    def inputs_of(self, node: Node) -> tuple[Input, ...]:
        return self._inputs

    def outputs_of(self, node: Node) -> tuple[Value, ...]:
        return (Value("output", None, None),)

    def attributes_of(self, node: Node) -> Mapping[str, Any]:
        return self._attributes

    def bodies_of(self, node: Node) -> Mapping[str, Graph]:
        return {}

    def location_of(self, node: Node) -> Location:
        return _PLACE


def variable(name: str, element_type: "ElementType", shape: "Shape") -> Input:
    """Make an input of which the type and the shape are known."""
    return Input(Value(name, element_type, shape))


def constant(name: str, element_type: "ElementType", array: "Array") -> Input:
    """Make an input whose numbers are known."""
    content = Constant(_PLACE, element_type, array.shape, lambda: array, name)
    return Input(Value(name, element_type, array.shape, constant=content))


def make_site(spec: "OpSpec", inputs: tuple[Input, ...], attributes: Mapping[str, Any]) -> Site:
    """Make a site of a row of the table without a model around it."""
    lookup = find(spec.key.domain, spec.key.type, spec.opsets[0])
    assert lookup is not None
    return Site(_OneNode(spec, inputs, attributes).node, lookup, Facts())


def demand_legal(site: Site) -> None:
    """Demand that types, ranks, shapes, axis and attributes break no rule that is an error there.

    What the text forbids and runtimes take as meant is a warning of `validate`, and passes.

    Raises:
        IllegalCase: with the sentence of the first rule that is broken.
    """
    for rule in _rules():
        assert rule.check is not None
        for finding in rule.check(site):
            if _is_refused(site, rule, finding):
                raise IllegalCase(finding.message, rule.code)


@cache
def _rules() -> "tuple[Rule, ...]":
    return tuple(
        rule
        for rule in all_rules()
        if rule.code.startswith(_DEMANDS)
        and rule.check is not None
        and rule.severity is Severity.ERROR
        and rule.needs_row
    )


def _is_refused(site: Site, rule: "Rule", finding: "Finding") -> bool:
    return not finding.is_tolerated and rule.code not in site.spec.tolerated
