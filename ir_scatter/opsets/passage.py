"""The way from one version of an operator to another: what lies between, and what it demands."""

from dataclasses import dataclass
from functools import lru_cache

import onnx
from onnx.defs import OpSchema

from ir_scatter.ops.onnx_changes import FIRST_OPSET, facts_of
from ir_scatter.ops.opset_facts import Fact, Renamed

NEWEST_OPSET: int = onnx.defs.onnx_opset_version()
"""The newest opset that the installed onnx knows."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One version of an operator to the next one, or to the one before.

    Attributes:
        older: the schema of the older version.
        newer: the schema of the newer version.
        facts: what the newer one changed, in the order in which to look at it.
        is_up: whether the step goes to the newer version.
    """

    older: OpSchema
    newer: OpSchema
    facts: tuple[Fact, ...]
    is_up: bool


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """What happens to an operator between two opsets.

    Attributes:
        start: the schema where it begins, None if the opset has no such operator.
        end: the schema where it ends, None if it does not get there.
        steps: the way.
        problem: why no node can go it, "" if some can.
        new_attributes: attributes that the version at the start does not know, and another one does.
        is_open: whether every node can go it as it is, if it has none of `new_attributes` and not more
            inputs than the version at the start takes.
        is_free: whether every node can go it as it is, whatever it has.
    """

    start: OpSchema | None
    end: OpSchema | None
    steps: tuple[Step, ...] = ()
    problem: str = ""
    new_attributes: frozenset[str] = frozenset()
    is_open: bool = False
    is_free: bool = False

    @property
    def is_same(self) -> bool:
        """Tell whether both opsets hold the same version."""
        return self.start is not None and not self.steps and not self.problem


@lru_cache(maxsize=4096)
def passage(type: str, opset: int, target: int) -> Passage:
    """Find the way of an operator of the default domain from one opset to another.

    Args:
        type: its type in the model.
        opset: where it is, one that the installed onnx knows.
        target: where it should be, one that the installed onnx knows.
    """
    versions = versions_of(type)
    known = [version for version in versions if version <= opset]
    if not known:
        return Passage(None, None, problem=_absent(type, opset))
    start = versions[max(known)]
    if target < opset:
        return _downwards(start, versions, target)
    return _upwards(start, target)


def show(schema: OpSchema) -> str:
    """Print an operator's version: Clip-11."""
    return f"{schema.name}-{schema.since_version}"


def _absent(type: str, opset: int) -> str:
    versions = versions_of(type)
    if not versions:
        return f"{type} is no operator of ONNX"
    return f"{type} is new in opset {min(versions)}, expected an operator of opset {opset}"


def _upwards(start: OpSchema, target: int) -> Passage:
    steps: list[Step] = []
    schema = start
    while True:
        versions = versions_of(schema.name)
        later = [version for version in versions if schema.since_version < version <= target]
        if not later:
            return _finished(start, schema, steps)
        newer = versions[min(later)]
        facts = facts_of(newer.name, newer.since_version)
        if facts is None:
            return Passage(start, None, problem=_not_compared(schema, newer))
        name = next((fact.type for fact in facts if isinstance(fact, Renamed)), newer.name)
        newer = versions_of(name)[newer.since_version]
        steps.append(Step(schema, newer, facts, is_up=True))
        schema = newer


def _downwards(start: OpSchema, versions: dict[int, OpSchema], target: int) -> Passage:
    if target < min(versions):
        return Passage(start, None, problem=f"{start.name} is new in opset {min(versions)}")
    steps: list[Step] = []
    schema = start
    while schema.since_version > target:
        older = versions[max(version for version in versions if version < schema.since_version)]
        facts = facts_of(schema.name, schema.since_version)
        if facts is None:
            return Passage(start, None, problem=_not_compared(older, schema))
        steps.append(Step(older, schema, facts[::-1], is_up=False))
        schema = older
    return _finished(start, schema, steps)


def _not_compared(older: OpSchema, newer: OpSchema) -> str:
    if newer.since_version <= FIRST_OPSET:
        return f"nothing is known of versions before opset {FIRST_OPSET}, and this is {show(older)}"
    return f"whether {show(newer)} means what {show(older)} does is not known"


def _finished(start: OpSchema, end: OpSchema, steps: list[Step]) -> Passage:
    if not steps:
        return Passage(start, start)
    others = [schema for step in steps for schema in (step.older, step.newer)]
    known = frozenset().union(*(schema.attributes for schema in others))
    takes_less = (
        end.min_input > start.min_input
        or end.max_input < start.max_input
        or end.max_output < start.max_output
        or end.min_output > start.min_output
        or not end.attributes.keys() >= start.attributes.keys()
    )
    is_open = not takes_less and not any(step.facts for step in steps) and accepts_all(start, end)
    news = known - start.attributes.keys()
    is_free = is_open and not news and start.max_input == end.max_input
    return Passage(start, end, tuple(steps), "", news, is_open, is_free)


@lru_cache(maxsize=4096)
def accepts_all(old: OpSchema, new: OpSchema) -> bool:
    """Tell whether a version takes every combination of types that another one takes."""
    ports = [(old.inputs, new.inputs), (old.outputs, new.outputs)]
    pairs = [pair for olds, news in ports for pair in zip(olds, news, strict=False)]
    return all(before.types <= after.types for before, after in pairs) and not couplings(old, new)


def couplings(old: OpSchema, new: OpSchema) -> frozenset[str]:
    """Return the type names of a version whose ports need not have one type in another version."""
    before = {port.name: port.type_str for port in (*old.inputs, *old.outputs)}
    numbered = [*zip(old.inputs, new.inputs, strict=False), *zip(old.outputs, new.outputs, strict=False)]
    groups: dict[str, set[str]] = {}
    for _, port in numbered:
        groups.setdefault(port.type_str, set())
    for port_before, port in numbered:
        if not _is_one_type(port):
            groups[port.type_str].add(before.get(port.name, port_before.type_str))
    return frozenset(name for name, olds in groups.items() if len(olds) > 1)


def _is_one_type(port: OpSchema.FormalParameter) -> bool:
    """Tell whether a port has no choice, or is a list of values of any types."""
    return len(port.types) == 1 or not port.is_homogeneous


@lru_cache(maxsize=1024)
def versions_of(type: str) -> dict[int, OpSchema]:
    """Return the versions of an operator of the default domain, newest first; none if it is none."""
    found: dict[int, OpSchema] = {}
    limit = NEWEST_OPSET
    while limit > 0:
        try:
            schema = onnx.defs.get_schema(type, limit, "")
        except onnx.defs.SchemaError:
            break
        found[schema.since_version] = schema
        limit = schema.since_version - 1
    return found
