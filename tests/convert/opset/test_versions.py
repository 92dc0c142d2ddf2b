"""The tables and adapters against onnx's own schemas: nothing is left out, and nothing contradicts them."""

from typing import Any

import pytest
from onnx import defs, helper
from onnx.defs import OpSchema

from ir_scatter.convert.opset.adapters import ADAPTERS
from ir_scatter.convert.opset.move import (
    NEWEST_OPSET,
    VersionStep,
    new_type_constraints,
    version_path,
    versions_of,
)
from ir_scatter.ops.onnx_versions import FIRST_OPSET, INCOMPATIBLE, NO_WAY_BACK, RENAMED, WIDENED
from ir_scatter.ops.scatter_onnx import LATEST_OPSET

SCHEMAS: dict[str, dict[int, OpSchema]] = {}
for _schema in defs.get_all_schemas_with_history():
    if _schema.domain == "":
        SCHEMAS.setdefault(_schema.name, {})[_schema.since_version] = _schema

STEPS = [
    VersionStep(versions[older], versions[newer])
    for _, versions in sorted(SCHEMAS.items())
    for older, newer in zip(sorted(versions), sorted(versions)[1:], strict=False)
    if newer > FIRST_OPSET
]
ADAPTED = {(type, version) for type, version, _ in ADAPTERS} | INCOMPATIBLE.keys() | NO_WAY_BACK.keys()


def name_of(step: VersionStep) -> str:
    return f"{step.newer.name}-{step.newer.since_version}"


def default_of(attribute: OpSchema.Attribute) -> Any:
    if not attribute.default_value.name:
        return None
    value = helper.get_attribute_value(attribute.default_value)
    return value.decode() if isinstance(value, bytes) else value


def test_every_version_was_compared_with_the_one_before() -> None:
    """Fails for a new onnx: read both documents, then enter the version or write what adapts its nodes."""
    assert [name_of(step) for step in STEPS if not step.is_known] == []


def test_the_tables_hold_nothing_else() -> None:
    widened = {(type, version) for version, types in WIDENED.items() for type in types}
    assert widened.isdisjoint(ADAPTED)
    assert RENAMED.keys() <= ADAPTED
    if NEWEST_OPSET >= LATEST_OPSET:
        assert widened | ADAPTED == {step.key for step in STEPS}


def keeps_what_a_node_says(older: OpSchema, newer: OpSchema) -> bool:
    before, after = older.attributes, newer.attributes
    return (
        newer.min_input <= older.min_input
        and newer.max_input >= older.max_input
        and newer.deprecated == older.deprecated
        and not any(after[name].required for name in after.keys() - before)
        and all(name in after for name in before)
        and all(one.type == after[name].type for name, one in before.items())
        and all(default_of(one) == default_of(after[name]) for name, one in before.items())
        and all(one.required or not after[name].required for name, one in before.items())
    )


def test_a_version_that_only_widens_keeps_what_a_node_says() -> None:
    widening = [step for step in STEPS if step.only_widens]
    assert len(widening) > 200
    assert [name_of(step) for step in widening if not keeps_what_a_node_says(*step)] == []


def test_what_a_schema_shows_of_a_change_has_an_adapter() -> None:
    """Attributes that went or have another default, inputs that are new and must be there."""
    for step in STEPS:
        older, newer = step
        if step.only_widens or step.key in INCOMPATIBLE or step.key in RENAMED:
            continue
        before, after = older.attributes, newer.attributes
        has_changed = any(
            name not in after or default_of(one) != default_of(after[name]) for name, one in before.items()
        )
        if has_changed or newer.min_input > older.min_input:
            assert (*step.key, True) in ADAPTERS, name_of(step)
            # What became an attribute again, or has another default, is said on the way back.
            is_said = (*step.key, False) in ADAPTERS or step.key in NO_WAY_BACK or newer.since_version <= 11
            assert is_said, name_of(step)
        assert not newer.deprecated, name_of(step)


def test_types_that_a_version_no_longer_takes_are_seen() -> None:
    """Only these lose types or tie ports together on the way up: their nodes are looked at."""
    lost = set()
    for step in STEPS:
        older, newer = step
        ports = [
            *zip(older.inputs, newer.inputs, strict=False),
            *zip(older.outputs, newer.outputs, strict=False),
        ]
        if any(not before.types <= after.types for before, after in ports) or new_type_constraints(
            older, newer
        ):
            lost.add(name_of(step))
    assert lost == {
        "Dropout-10", "Erf-13", "QuantizeLinear-19", "ReduceLogSum-28", "ReduceLogSumExp-28",
    }  # fmt: skip


def test_versions_are_those_of_onnx() -> None:
    for type, versions in SCHEMAS.items():
        assert set(versions_of(type)) == set(versions)
    assert versions_of("NoSuchOperator") == {}


def test_what_no_table_holds_stands_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WIDENED, 13, WIDENED[13] - {"Abs"})
    version_path.cache_clear()
    path = version_path("Abs", 9, 13)
    monkeypatch.undo()
    version_path.cache_clear()
    assert path == "it is unknown whether Abs-13 computes the same as Abs-6"
    before = "versions before opset 7 are unknown, and this is Abs-1"
    assert version_path("Abs", 5, 13) == before
    path = version_path("Abs", 9, 13)
    assert not isinstance(path, str)
    assert path.is_free
