"""The table of changes against onnx's own schemas: nothing is left out, and nothing contradicts them."""

from typing import Any

import pytest
from onnx import defs, helper
from onnx.defs import OpSchema

from ir_scatter.ops.onnx_changes import CHANGES, FIRST_OPSET, facts_of
from ir_scatter.ops.onnx_ops import LATEST_OPSET
from ir_scatter.ops.onnx_widened import WIDENED
from ir_scatter.ops.opset_facts import (
    Added,
    Barrier,
    Coerced,
    Counted,
    Exclusive,
    ForZeros,
    Listed,
    Moved,
    Redefined,
    Removed,
    Renamed,
    Sampled,
    Switch,
    Words,
)
from ir_scatter.opsets.passage import NEWEST_OPSET, couplings, passage, versions_of

SCHEMAS: dict[str, dict[int, OpSchema]] = {}
for _schema in defs.get_all_schemas_with_history():
    if _schema.domain == "":
        SCHEMAS.setdefault(_schema.name, {})[_schema.since_version] = _schema

PAIRS = [
    (type, older, newer)
    for type, versions in sorted(SCHEMAS.items())
    for older, newer in zip(sorted(versions), sorted(versions)[1:], strict=False)
    if newer > FIRST_OPSET
]


def name_of(pair: tuple[str, int, int]) -> str:
    return f"{pair[0]}-{pair[2]}"


def both(pair: tuple[str, int, int]) -> tuple[OpSchema, OpSchema]:
    type, older, newer = pair
    return SCHEMAS[type][older], SCHEMAS[type][newer]


def default_of(attribute: OpSchema.Attribute) -> Any:
    if not attribute.default_value.name:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    return value.decode() if isinstance(value, bytes) else value


def test_every_version_was_compared_with_the_one_before() -> None:
    """Fails for a new onnx: read both documents, then enter the version in one of the tables."""
    assert [name_of(pair) for pair in PAIRS if facts_of(pair[0], pair[2]) is None] == []


def test_the_tables_hold_nothing_else() -> None:
    written = {(type, version) for type, versions in WIDENED.items() for version in versions}
    assert written.isdisjoint(CHANGES)
    if NEWEST_OPSET >= LATEST_OPSET:
        assert written | CHANGES.keys() <= {(type, newer) for type, _, newer in PAIRS}


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_attributes_and_inputs_are_accounted_for(pair: tuple[str, int, int]) -> None:
    """What a schema shows of a change must be in the facts."""
    older, newer = both(pair)
    facts = facts_of(pair[0], pair[2]) or ()
    if any(isinstance(fact, Renamed) for fact in facts):
        return
    if any(isinstance(fact, Barrier) and fact.up and fact.down and not fact.conditions for fact in facts):
        return
    known = {fact.attribute for fact in facts if isinstance(fact, Moved | Removed | Words)}
    known |= {"axis"} if any(isinstance(fact, Coerced) for fact in facts) else set()
    for name, attribute in older.attributes.items():
        if name not in newer.attributes:
            assert name in known
            continue
        after = newer.attributes[name]
        assert attribute.type == after.type
        assert default_of(attribute) == default_of(after) or name in known
        assert attribute.required or not after.required
    for name, attribute in newer.attributes.items():
        if name not in older.attributes:
            assert not attribute.required
    given = {fact.input for fact in facts if isinstance(fact, Moved)}
    if any(isinstance(fact, Sampled) for fact in facts):
        given |= {1, 2}
    assert newer.min_input <= max([older.min_input, *(number + 1 for number in given)])
    assert newer.max_input >= older.max_input
    assert newer.deprecated == older.deprecated or any(isinstance(fact, Barrier) for fact in facts)


@pytest.mark.parametrize("pair", PAIRS, ids=name_of)
def test_facts_name_what_the_schemas_have(pair: tuple[str, int, int]) -> None:
    older, newer = both(pair)
    for fact in facts_of(pair[0], pair[2]) or ():
        match fact:
            case Moved():
                assert fact.attribute in older.attributes
                assert fact.attribute not in newer.attributes
                port = newer.inputs[fact.input]
                assert port.name.lower() in (fact.attribute, "constant_value")
                if fact.absent is not None and default_of(older.attributes[fact.attribute]) is not None:
                    assert default_of(older.attributes[fact.attribute]) == fact.absent
            case Added() | ForZeros():
                assert fact.attribute not in older.attributes
                assert fact.attribute in newer.attributes
            case Removed():
                assert default_of(older.attributes[fact.attribute]) == fact.value
                assert fact.attribute not in newer.attributes
            case Words():
                before = older.attributes.get(fact.attribute)
                after = newer.attributes[fact.attribute]
                assert before is not None
                assert fact.up[default_of(before)] == default_of(after)
                assert fact.down[default_of(after)] == default_of(before)
            case Coerced():
                assert default_of(older.attributes["axis"]) == fact.before
                assert default_of(newer.attributes["axis"]) == fact.after
            case Counted():
                assert fact.attribute in newer.attributes
                assert default_of(newer.attributes[fact.axis]) == 0
            case Sampled():
                assert {fact.coordinates[0], fact.rounding[0]} <= newer.attributes.keys()
                assert not {fact.coordinates[0], fact.rounding[0]} & older.attributes.keys()
                assert [port.name for port in newer.inputs][:3] == ["X", "roi", "scales"]
            case Exclusive():
                assert [newer.inputs[at].name for at in (fact.empty, fact.other)] == ["scales", "sizes"]
            case Switch():
                assert fact.input >= older.max_input
                assert fact.input < newer.max_input
            case Redefined():
                assert fact.output < newer.max_output
            case Listed():
                assert {name for name, _ in fact.others} <= newer.attributes.keys() - older.attributes.keys()
            case Renamed():
                assert newer.deprecated
                assert pair[2] in SCHEMAS[fact.type]


def test_types_that_a_version_no_longer_takes_are_seen() -> None:
    """Only these lose types or tie ports together on the way up: their nodes are looked at."""
    lost = set()
    for pair in PAIRS:
        older, newer = both(pair)
        ports = [
            *zip(older.inputs, newer.inputs, strict=False),
            *zip(older.outputs, newer.outputs, strict=False),
        ]
        if any(not before.types <= after.types for before, after in ports) or couplings(older, newer):
            lost.add(name_of(pair))
    assert lost == {
        "Dropout-10", "Erf-13", "QuantizeLinear-19", "ReduceLogSum-28", "ReduceLogSumExp-28",
    }  # fmt: skip


def test_versions_are_those_of_onnx() -> None:
    for type, versions in SCHEMAS.items():
        assert set(versions_of(type)) == set(versions)
    assert versions_of("NoSuchOperator") == {}


def test_what_no_table_holds_stands_in_the_way() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(WIDENED, "Abs")
        passage.cache_clear()
        way = passage("Abs", 9, 13)
    passage.cache_clear()
    assert way.problem == "whether Abs-13 means what Abs-6 does is not known"
    before = "nothing is known of versions before opset 7, and this is Abs-1"
    assert passage("Abs", 5, 13).problem == before
    assert passage("Abs", 9, 13).is_free
