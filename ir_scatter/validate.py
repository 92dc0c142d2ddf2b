"""Validates a model: checks its scatter nodes against the rules, and the file for defects."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ir_scatter.analysis.conditions import has_too_many_indices
from ir_scatter.analysis.constants import MAX_COMPUTED, MAX_CONSTANT_ELEMENTS, MAX_NODES, Facts
from ir_scatter.analysis.misuse import misuses
from ir_scatter.analysis.requirements import contradictions
from ir_scatter.analysis.scatter_node import ScatterNode, scatter_nodes
from ir_scatter.analysis.signature import FAULTS, SIGNATURE, NodeGroups
from ir_scatter.analysis.symbolic import demand_givens
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Part, Related, Severity, Side
from ir_scatter.core.fragment import Fragment
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import OPENVINO, FileDefect, Graph, Model, Node
from ir_scatter.core.shapes import Shape, is_static
from ir_scatter.core.words import counted
from ir_scatter.ops.general import WITH_BODIES
from ir_scatter.ops.lookup import find
from ir_scatter.ops.spec import Role
from ir_scatter.rules import all_rules, by_name
from ir_scatter.rules.base import Finding, Rule
from ir_scatter.rules.selection import code_prefixes

if TYPE_CHECKING:
    from ir_scatter.analysis.propagation import Bodies

_STORED, _VALUES = "SCT5", "SCT3"
"""Code prefixes of two kinds of rules: about stored shapes and types, and about values, which runtimes check
at run time."""
_ABOUT_SIZES = frozenset({"open-dimension-fixed", "least-size"})
"""Rules that report the size which a dynamic dimension must have at run time."""


def validate(
    model: Model,
    *,
    select: str | Collection[str] = (),
    ignore: str | Collection[str] = (),
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    shapes_given: bool = False,
    given: Sequence[str] = (),
) -> list[Diagnostic]:
    """Check every scatter node of a model against its specification, and the file for contradictions.

    Args:
        model: from `read`.
        select: check only rules with one of these names ("index-out-of-range") or code prefixes ("SCT2",
            "SCT203"); empty for all.
        ignore: skip these rules.
        max_index_elements: constants with more elements are not read; a note in the result says so.
        shapes_given: whether the caller changed shapes of inputs; then shapes stored in the file are not
            compared with inferred ones.
        given: conditions that inputs satisfy, "position in 0..15"; an index that may then still be out of
            range is an error.

    Returns:
        All violations of all nodes, in the order of the file.

    Raises:
        UsageError: `select` or `ignore` names an unknown rule, or a condition in `given` is malformed or
            impossible.
        UnreadableModel: a file of weights has changed since the model was read.
    """
    check = check_of(
        model, select=select, ignore=ignore, max_index_elements=max_index_elements, shapes_given=shapes_given,
        given=given,
    )  # fmt: skip
    return check.diagnostics()


def check_of(
    model: Model,
    *,
    select: str | Collection[str] = (),
    ignore: str | Collection[str] = (),
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    shapes_given: bool = False,
    given: Sequence[str] = (),
) -> "Check":
    """Return the `Check` that `validate` runs, for callers that need more than its diagnostics."""
    ignored = (*code_prefixes(ignore), _STORED) if shapes_given else code_prefixes(ignore)
    selected = [rule for rule in all_rules() if rule.code.startswith(code_prefixes(select) or "")]
    rules = [rule for rule in selected if not rule.code.startswith(ignored)]
    return Check(model, rules, max_index_elements, given)


class Check:
    """Applies rules to the scatter nodes of a model, once per group of equal nodes if the rule allows it.

    It remembers which legality rules each node breaks (`broken_rules`), so that no node is checked twice.
    """

    def __init__(
        self,
        model: Model,
        rules: Sequence[Rule],
        max_index_elements: int = MAX_CONSTANT_ELEMENTS,
        given: Sequence[str] = (),
    ) -> None:
        self.model = model
        self.rules = tuple(rules)
        self.facts = Facts(max_index_elements, model, given=given)
        if given:
            demand_givens(self.facts)
        self.groups = NodeGroups()
        checks = [rule for rule in rules if rule.check is not None and (given or not rule.needs_given)]
        self.without_row = [rule for rule in checks if not rule.needs_row]
        self.of_group = [rule for rule in checks if rule.reads <= SIGNATURE]
        self.of_faults = [rule for rule in checks if rule.reads <= SIGNATURE | FAULTS and rule.reads & FAULTS]
        self.of_each = [rule for rule in checks if not rule.reads <= SIGNATURE | FAULTS]
        self.of_rows = [*self.of_group, *self.of_faults, *self.of_each]
        refused = [rule for rule in checks if rule.is_legality and rule.severity is Severity.ERROR]
        self.of_bodies = [rule for rule in refused if rule.needs_row and not rule.code.startswith(_VALUES)]
        self._of_groups: dict[ScatterNode, list[tuple[Rule, Finding]]] = {}
        self._is_crowded: dict[ScatterNode, bool] = {}
        self._broken_rules: dict[Node, frozenset[str]] = {}

    @property
    def knows_legality(self) -> bool:
        """Whether all legality rules are included, so that `broken_rules` is complete."""
        return {rule.code for rule in all_rules() if rule.is_legality} <= {rule.code for rule in self.rules}

    def diagnostics(self) -> list[Diagnostic]:
        """Return all violations of its rules, in the order of the file."""
        model, codes = self.model, {rule.code for rule in self.rules}
        with collector_paused():
            of_file = [_from_defect(defect) for defect in model.defects]
            diagnostics = [diagnostic for diagnostic in of_file if diagnostic.code in codes]
            diagnostics.extend(self.run())
            limits = [_from_defect(defect) for defect in model.find_limits()]
            of_bodies = [_from_defect(defect) for defect in misuses(model, self.facts)]
            diagnostics += [diagnostic for diagnostic in of_bodies if diagnostic.code in codes]
            diagnostics = _with_contradictions(diagnostics, self)
            limits += _given_up(self.facts, model.path)
            diagnostics += [diagnostic for diagnostic in limits if diagnostic.code in codes]
        return sorted(diagnostics, key=lambda diagnostic: diagnostic.location.line or 0)

    def broken_rules(self, scatter: ScatterNode, graph: Graph) -> frozenset[str]:
        """Return the names of the legality rules that a node breaks with severity error."""
        if scatter.node not in self._broken_rules:
            self._broken_rules[scatter.node] = _broken(self.node(scatter, graph))
        return self._broken_rules[scatter.node]

    def run(self) -> Iterator[Diagnostic]:
        def of_graph(graph: Graph) -> Iterator[Diagnostic]:
            for scatter in scatter_nodes(graph, self.facts):
                diagnostics = list(self.node(scatter, graph))
                self._broken_rules[scatter.node] = _broken(diagnostics)
                for diagnostic in diagnostics:
                    yield _unless_dropped(diagnostic, scatter.node)

        yield from of_graph(self.model.graph)
        for function in self.model.functions:
            yield from _merged([list(of_graph(graph)) for graph in function.instances])

    def node(self, scatter: ScatterNode, graph: Graph) -> Iterator[Diagnostic]:
        if self._may_follow_bodies(scatter):
            scatter = ScatterNode(scatter.node, scatter.lookup, self.facts.with_propagation())
            yield from self._diagnose(scatter, list(_apply(scatter, self.of_rows)), graph)
            return
        first = None if scatter.lookup.spec is None else self.groups.representative(scatter)
        findings: list[tuple[Rule, Finding]] = []
        if scatter.lookup.spec is None:
            rules = self.without_row
        elif first is None:
            rules = self.of_rows
        else:
            if first not in self._of_groups:
                self._of_groups[first] = list(_apply(scatter, self.of_group))
            findings = self._of_groups[first]
            if first not in self._is_crowded:
                self._is_crowded[first] = has_too_many_indices(first)
            has_faults = self._is_crowded[first] or scatter.has_faults(
                first.limits, is_dynamic=first.has_dynamic_limits
            )
            rules = [*self.of_faults, *self.of_each] if has_faults else self.of_each
        findings = [*findings, *_apply(scatter, rules)]
        if self._may_be_stored(findings, graph):
            scatter = ScatterNode(scatter.node, scatter.lookup, self.facts.with_propagation())
            findings = [*_apply(scatter, self.of_rows)]
        yield from self._diagnose(scatter, findings, graph)

    def _diagnose(
        self, scatter: ScatterNode, findings: list[tuple[Rule, Finding]], graph: Graph
    ) -> Iterator[Diagnostic]:
        """Yield diagnostics for the findings at a node.

        For a node in a body of an IR, rules are applied twice more: to the shapes that a runtime infers from
        the body's declared inputs, and to those of the first iteration.
        """
        for rule, finding in findings:
            yield _from_finding(scatter, rule, finding, graph)
        if self.model.domain == OPENVINO and scatter.node.graph.scope and scatter.lookup.spec:
            for facts, when in self._of_bodies if self.facts.propagates else ():
                reported = {rule.code for rule, _ in findings}
                within = ScatterNode(scatter.node, scatter.lookup, facts)
                rules = [rule for rule in self.of_bodies if rule.code not in reported]
                for rule, finding in _apply(within, rules):
                    finding = replace(finding, message=f"{finding.message}; a runtime {when}")
                    findings.append((rule, finding))
                    yield _from_finding(within, rule, finding, graph)

    def _may_follow_bodies(self, scatter: ScatterNode) -> bool:
        """Return whether shape inference through bodies may give more than the stored shapes."""
        if self.facts.propagates or scatter.lookup.spec is None or isinstance(scatter.node.graph, Fragment):
            return False
        if not self.has_bodies:  # a cheap test, made before values are created
            return False
        return any(port.value and not is_static(port.value.shape) for port in scatter.node.inputs)

    @cached_property
    def has_bodies(self) -> bool:
        return any(True for _ in self.model.walk(WITH_BODIES))

    @cached_property
    def _of_bodies(self) -> list[tuple[Facts, str]]:
        """(facts, clause) for two inferences: bodies with declared inputs, and in the first iteration."""
        ways: list[tuple[Bodies, str]] = [
            ("declared", "first builds the body with the declared shapes of its inputs"),
            ("first", "computes this at the first iteration"),
        ]
        make = partial(Facts, self.facts.max_elements, self.model, propagates=True, given=self.facts.given)
        return [(make(bodies=bodies), when) for bodies, when in ways]

    def _may_be_stored(self, findings: Sequence[tuple[Rule, Finding]], graph: Graph) -> bool:
        """Return whether an error may go away with inferred shapes, as runtimes ignore the stored ones."""
        if self.facts.propagates or self.model.domain != OPENVINO or isinstance(graph, Fragment):
            return False
        return any(rule.severity is Severity.ERROR and rule.is_legality for rule, _ in findings)


def _broken(diagnostics: Iterable[Diagnostic]) -> frozenset[str]:
    errors = {diagnostic.rule for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR}
    return frozenset(name for name in errors if by_name()[name].is_legality)


def _apply(scatter: ScatterNode, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Finding]]:
    for rule in rules:
        assert rule.check is not None
        for finding in rule.check(scatter):
            yield rule, finding


def _with_contradictions(diagnostics: list[Diagnostic], check: Check) -> list[Diagnostic]:
    """Replace notes about a dynamic dimension's size by errors if two nodes require different sizes."""
    if not any(diagnostic.rule in _ABOUT_SIZES for diagnostic in diagnostics):  # none contradict
        return diagnostics
    facts = check.facts.with_propagation() if check.has_bodies else check.facts
    places = {_place(note) for note in diagnostics if note.severity is Severity.NOTE}
    of_model = map(_from_defect, contradictions(check.model, facts))
    errors = [error for error in of_model if _place(error) in places]
    replaced = set(map(_place, errors))
    remaining = [
        diagnostic
        for diagnostic in diagnostics
        if diagnostic.severity is not Severity.NOTE or _place(diagnostic) not in replaced
    ]
    return remaining + errors


def _place(diagnostic: Diagnostic) -> tuple[str, Location, int | None]:
    return diagnostic.code, diagnostic.location, diagnostic.port_index


def file_diagnostic(rule_name: str, message: str, location: Location) -> Diagnostic:
    """Return a diagnostic about a file as a whole."""
    rule = by_name()[rule_name]
    return Diagnostic(rule.code, rule.name, rule.severity, message, location, help=rule.fix)


def _given_up(facts: Facts, path: str) -> list[Diagnostic]:
    if not facts.given_up:
        return []
    reason = f"a value depends on more than {MAX_NODES} others, or {MAX_COMPUTED} elements were computed"
    message = f"the numbers of {counted(len(facts.given_up), 'value')} were not computed: {reason}"
    return [file_diagnostic("not-looked-at", message, Location(path))]


def _from_finding(scatter: ScatterNode, rule: Rule, finding: Finding, graph: Graph) -> Diagnostic:
    node, spec = scatter.node, scatter.lookup.spec
    severity, related = Severity.ERROR if finding.is_refused else rule.severity, finding.related
    port, index = finding.port, finding.port_index
    if spec is not None:
        if severity is Severity.ERROR and (finding.is_tolerated or rule.code in spec.tolerated):
            severity = Severity.WARNING
        if finding.role is not None:
            index = spec.port_index(finding.role)
            port = port if index is None else spec.ports[index].name
            related = related or _producer_note(scatter, finding, finding.role)
    return Diagnostic(
        rule.code,
        rule.name,
        severity,
        finding.message,
        node.location,
        NodeRef(node.name, scatter.lookup.type, spec.key.version if spec else None),
        port,
        index,
        related + graph.calls,
        finding.fixed_by,
        node.graph.span_of(node, finding.part or _part(scatter, finding, index)),
        finding.label,
        finding.help or rule.fix,
    )


def _part(scatter: ScatterNode, finding: Finding, index: int | None) -> Part:
    """Return the faulty part of a node; a dimension or type only if the file states it."""
    operand = None if finding.role is None else scatter.operand(finding.role)
    if index is None:
        return Part(Side.NODE)
    if operand is None:
        return Part(Side.INPUT, index)
    stored, dim = operand.input, finding.dim
    is_type = finding.aspect == "type" and stored.stored_type is operand.element_type
    dim = dim if _is_stored(dim, stored.stored_shape, operand.shape) else None
    return Part(Side.INPUT, index, "type" if is_type else "", dim)


def _is_stored(dim: int | None, stored: Shape, shape: Shape) -> bool:
    """Return whether the file states this dimension with the same size."""
    if dim is None or stored is None or shape is None or len(stored) != len(shape):
        return False
    return dim < len(shape) and stored[dim] == shape[dim]


def _producer_note(scatter: ScatterNode, finding: Finding, role: Role) -> tuple[Related, ...]:
    operand = scatter.operand(role)
    if operand is None:
        return ()
    value, name = operand.value, operand.port.name
    if value.constant is not None:
        kind = value.producer.type if value.producer else "initializer"
        source, location = f'{kind} "{value.constant.name}"', value.constant.location
    elif value.producer is not None:
        source, location = f'{value.producer.type} "{value.producer.name}"', value.producer.location
    else:
        source, location = f'input "{value.name}"', value.location or replace(scatter.node.location, scope="")
    span, producer = None, value.producer
    if producer is not None and location == producer.location:
        dim = finding.dim if _is_stored(finding.dim, value.shape, operand.shape) else None
        part = Part(Side.OUTPUT, value.output, finding.aspect, dim) if finding.aspect else Part(Side.NODE)
        span = producer.graph.span_of(producer, part)
    return (Related(f"{name} comes from {source}", location, span),)


def _from_defect(defect: FileDefect) -> Diagnostic:
    diagnostic = file_diagnostic(defect.kind, defect.message, defect.location)
    node, port, index = None, None, defect.port_index
    if defect.node is not None:
        lookup = find(defect.node.domain, defect.node.type, defect.node.opset)
        spec = lookup.spec if lookup else None
        version = spec.key.version if spec else None
        node = NodeRef(defect.node.name, lookup.type if lookup else defect.node.type, version)
        port = spec.ports[index].name if spec and index is not None and index < len(spec.ports) else None
    span, help = defect.span, defect.help or diagnostic.help
    if span is None and defect.node is not None:
        span = defect.node.graph.span_of(defect.node, Part(Side.NODE))
    severity = Severity.WARNING if defect.is_tolerated or defect.refused_by else diagnostic.severity
    severity = Severity.ERROR if defect.is_refused else severity
    diagnostic = replace(
        diagnostic,
        severity=severity,
        node=node,
        port=port,
        port_index=index,
        related=defect.related,
        span=span,
        help=help,
    )
    if defect.node is None or defect.is_always_read:
        return diagnostic
    return _unless_dropped(diagnostic, defect.node)


def _unless_dropped(diagnostic: Diagnostic, node: Node) -> Diagnostic:
    """Turn an error into a warning if runtimes remove the node, as no output depends on it."""
    if diagnostic.severity is not Severity.ERROR or not node.graph.is_dropped(node):
        return diagnostic
    why = Related("no output of the graph depends on this node", node.location)
    return replace(diagnostic, severity=Severity.WARNING, related=(*diagnostic.related, why))


def _merged(instances: list[list[Diagnostic]]) -> list[Diagnostic]:
    """Merge the diagnostics for one node of a function from the function's instances (one per signature).

    The first of equal diagnostics is kept; calls and constants of the others become its related places.
    """
    merged: dict[Hashable, Diagnostic] = {}
    for diagnostics in instances:
        counts: Counter[Hashable] = Counter()
        for diagnostic in diagnostics:
            place = (diagnostic.code, diagnostic.location.scope, diagnostic.port)
            counts[place] += 1
            first = merged.setdefault((place, counts[place]), diagnostic)
            new = tuple(note for note in diagnostic.related if note not in first.related)
            merged[place, counts[place]] = replace(first, related=first.related + new)
    return list(merged.values())
