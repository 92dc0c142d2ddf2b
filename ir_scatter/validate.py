"""A model in, diagnostics out."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ir_scatter.analysis.facts import MAX_CONSTANT_ELEMENTS, Facts
from ir_scatter.analysis.plain_forms import PlainForms
from ir_scatter.analysis.reads import FAULTS, SIGNATURE
from ir_scatter.analysis.scatter_node import Site
from ir_scatter.core.diagnostics import Diagnostic, Location, NodeRef, Related, Severity
from ir_scatter.core.errors import UnreadableModel, UsageError
from ir_scatter.core.memory import collector_paused
from ir_scatter.core.model import ONNX, OPENVINO, Defect, Graph, Model, Node
from ir_scatter.ops.lookup import find, scatter_types
from ir_scatter.rules import all_rules, by_name
from ir_scatter.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from ir_scatter.core.shapes import Shape

_STORED = "SCT5"


def read(path: "str | Path", *, input_shapes: "Mapping[str, Shape] | None" = None) -> Model:
    """Read an OpenVINO IR (`.xml`, its `.bin` beside it) or an ONNX model.

    The format is told by the content. Weights are mapped, not read.

    Args:
        path: the `.xml` or `.onnx` file.
        input_shapes: shapes for inputs of the model by name, as `ir_scatter.core.shapes.parse_shape`
            reads them; for ONNX they are propagated.

    Raises:
        UnreadableModel: the file is no model, or cannot be read.
    """
    return read_data(str(path), input_shapes=input_shapes)


def read_data(
    name: str,
    data: bytes | None = None,
    *,
    format: str | None = None,
    input_shapes: "Mapping[str, Shape] | None" = None,
) -> Model:
    """Read a model as `read` does, or from bytes that did not come from the file of that name."""
    from ir_scatter import formats

    types = scatter_types(ONNX) | scatter_types(OPENVINO)
    return formats.read(
        name, data, format=format, types=types, scatter_types=types, input_shapes=input_shapes
    )


def validate(
    model: Model,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    max_index_elements: int = MAX_CONSTANT_ELEMENTS,
    shapes_given: bool = False,
) -> list[Diagnostic]:
    """Hold every scatter node of a model against the documents, and the file against itself.

    Args:
        model: as `read` gives it.
        select: only codes that begin with one of these, "SCT2" or "SCT203"; empty for all.
        ignore: no codes that begin with one of these.
        max_index_elements: constants with more elements are not looked at, and a note says so.
        shapes_given: the shapes are the caller's own, so that those the file stores are not held
            against them.

    Returns:
        All violations of all nodes, in the order of the file.

    Raises:
        UsageError: a code of `select` or `ignore` begins no rule's code.
    """
    check_codes([*select, *ignore])
    ignored = (*ignore, _STORED) if shapes_given else tuple(ignore)
    rules = [rule for rule in all_rules() if _is_wanted(rule.code, select, ignored)]
    codes = {rule.code for rule in rules}
    with collector_paused():
        found = [_from_defect(defect) for defect in model.defects]
        found = [diagnostic for diagnostic in found if diagnostic.code in codes]
        found.extend(Check(model, rules, max_index_elements).run())
        limits = [_from_defect(defect) for defect in model.find_limits()]
        found.extend(diagnostic for diagnostic in limits if diagnostic.code in codes)
    return sorted(found, key=lambda diagnostic: diagnostic.location.line or 0)


class Check:
    """Shows every scatter node of a model to the rules.

    Networks repeat themselves: a node that is the same as a clean one in all that a rule reads is not
    shown to it again. What the rules read, they declare.
    """

    def __init__(
        self, model: Model, rules: Sequence[Rule], max_index_elements: int = MAX_CONSTANT_ELEMENTS
    ) -> None:
        """Sort the rules by what they read."""
        self.model = model
        self.facts = Facts(max_index_elements)
        self.plain = PlainForms()
        checks = [rule for rule in rules if rule.check is not None]
        self.without_row = [rule for rule in checks if not rule.needs_row]
        self.of_signature = [rule for rule in checks if rule.reads <= SIGNATURE]
        grouped = [rule for rule in checks if rule.reads <= SIGNATURE | FAULTS]
        self.of_faults = [rule for rule in grouped if rule not in self.of_signature]
        self.of_each = [rule for rule in checks if rule not in grouped]
        self.clean: set[Hashable] = set()

    def run(self) -> Iterator[Diagnostic]:
        """Yield the findings of all nodes, those of a function merged over its signatures."""
        yield from self._graph(self.model.graph)
        for function in self.model.functions:
            yield from _merged([list(self._graph(graph)) for graph in function.instances])

    def _graph(self, graph: Graph) -> Iterator[Diagnostic]:
        for node in graph.walk(scatter_types(self.model.domain)):
            lookup = find(node.domain, node.type, node.opset)
            if lookup is None:
                continue
            site = Site(node, lookup, self.facts)
            form = self.plain.find(site)
            if form is None:
                yield from self.node(site, graph)
                continue
            if form not in self.clean:
                found = list(self._grouped(site, graph))
                if not found:
                    self.clean.add(form)
                yield from found
            if self.of_each:
                yield from _show(site, self.of_each, graph)

    def node(self, site: Site, graph: Graph) -> Iterator[Diagnostic]:
        """Yield the findings of one node."""
        if site.lookup.spec is None:
            yield from _show(site, self.without_row, graph)
            return
        yield from self._grouped(site, graph)
        yield from _show(site, self.of_each, graph)

    def _grouped(self, site: Site, graph: Graph) -> Iterator[Diagnostic]:
        """Yield what rules find that need not tell each node from each other one."""
        signature = site.signature
        if signature is None or signature not in self.clean:
            found = list(_show(site, self.of_signature, graph))
            if not found and signature is not None:
                self.clean.add(signature)
            yield from found
        if site.indices is not None and not site.has_plain_indices:
            yield from _show(site, self.of_faults, graph)


def _show(site: Site, rules: list[Rule], graph: Graph) -> Iterator[Diagnostic]:
    for rule in rules:
        assert rule.check is not None
        for finding in rule.check(site):
            yield _from_finding(site, rule, finding, graph)


def unreadable(error: UnreadableModel) -> Diagnostic:
    """Say as a diagnostic why a file cannot be read."""
    rule = by_name()[error.defect]
    return Diagnostic(rule.code, rule.name, rule.severity, error.message, error.location)


def file_diagnostic(rule_name: str, message: str, path: str) -> Diagnostic:
    """Make a diagnostic about a file as a whole."""
    rule = by_name()[rule_name]
    return Diagnostic(rule.code, rule.name, rule.severity, message, Location(path))


def count_scatter_nodes(model: Model) -> int:
    """Count nodes by type, in all bodies, and once per definition of a function."""
    return sum(1 for _ in model.definitions(scatter_types(model.domain)))


def check_codes(prefixes: Collection[str]) -> None:
    """Demand that each prefix begins the code of some rule.

    Raises:
        UsageError: one does not.
    """
    for prefix in prefixes:
        if not prefix or not any(rule.code.startswith(prefix) for rule in all_rules()):
            known = f"{all_rules()[0].code} to {all_rules()[-1].code}"
            raise UsageError(f"no rule's code begins with {prefix!r}, expected one of {known}")


def _is_wanted(code: str, select: Collection[str], ignore: Collection[str]) -> bool:
    return (not select or code.startswith(tuple(select))) and not code.startswith(tuple(ignore))


def _from_finding(site: Site, rule: Rule, finding: Finding, graph: Graph) -> Diagnostic:
    node, spec = site.node, site.lookup.spec
    severity = rule.severity
    port, index = finding.port, finding.port_index
    related = finding.related
    if spec is not None:
        if severity is Severity.ERROR and (finding.is_tolerated or rule.code in spec.tolerated):
            severity = Severity.WARNING
        if finding.role is not None:
            index = spec.port_index(finding.role)
            documented = spec.port(finding.role)
            port = documented.name if documented else port
            related = related or _producer_note(site, finding)
    version = spec.key.version if spec else None
    reference = NodeRef(node.name, site.lookup.type, version)
    return Diagnostic(
        rule.code,
        rule.name,
        severity,
        finding.message,
        node.location,
        reference,
        port,
        index,
        related + graph.calls,
        rule.mended_by and rule.mended_by.format(type=site.lookup.type),
    )


def _producer_note(site: Site, finding: Finding) -> tuple[Related, ...]:
    operand = site.operand(finding.role) if finding.role else None
    if operand is None:
        return ()
    value, name = operand.value, operand.port.name
    if value.constant is not None:
        kind = value.producer.type if value.producer else "initializer"
        message = f'{name} comes from {kind} "{value.constant.name}"'
        return (Related(message, value.constant.location),)
    if value.producer is not None:
        message = f'{name} comes from {value.producer.type} "{value.producer.name}"'
        return (Related(message, value.producer.location),)
    location = value.location or replace(site.node.location, scope="")
    return (Related(f'{name} comes from input "{value.name}"', location),)


def _from_defect(defect: Defect) -> Diagnostic:
    rule = by_name()[defect.kind]
    reference, port = None, None
    if defect.node is not None:
        reference, port = _describe(defect.node, defect.port_index)
    return Diagnostic(
        rule.code,
        rule.name,
        rule.severity,
        defect.message,
        defect.location,
        reference,
        port,
        defect.port_index,
        defect.related,
    )


def _describe(node: Node, port_index: int | None) -> tuple[NodeRef, str | None]:
    lookup = find(node.domain, node.type, node.opset)
    if lookup is None:
        return NodeRef(node.name, node.type, None), None
    if lookup.spec is None:
        return NodeRef(node.name, lookup.type, None), None
    port = None
    if port_index is not None and port_index < len(lookup.spec.ports):
        port = lookup.spec.ports[port_index].name
    return NodeRef(node.name, lookup.type, lookup.spec.key.version), port


def _merged(instances: list[list[Diagnostic]]) -> list[Diagnostic]:
    """Make one finding of those that several signatures of a function give at one node.

    The first one speaks; the calls and constants of the others are related places.
    """
    merged: dict[Hashable, Diagnostic] = {}
    for found in instances:
        counts: Counter[Hashable] = Counter()
        for diagnostic in found:
            place = (diagnostic.code, diagnostic.location.scope, diagnostic.port)
            counts[place] += 1
            first = merged.setdefault((place, counts[place]), diagnostic)
            new = tuple(note for note in diagnostic.related if note not in first.related)
            merged[place, counts[place]] = replace(first, related=first.related + new)
    return list(merged.values())
