from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import Error, UsageError, evaluate, read, validate
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.model import ONNX
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Reduction, Role
from tests.models.cases import BROKEN, random_case, write
from tests.scale import NIGHTLY

CASES = 40
MORE_THAN_ONE = "rank-too-small"
"""What breaks other rules too: data without dimensions has no axis."""

ROWS = {str(spec.key): spec for spec in SPECS.values()}
ONNX_ROWS = {name: spec for name, spec in ROWS.items() if spec.key.domain == ONNX and not spec.is_removed}


@pytest.mark.parametrize("name", ROWS)
def test_legal_cases_are_computed(name: str) -> None:
    random = np.random.default_rng(0)
    for _ in range(CASES):
        case = random_case(ROWS[name], random)
        found = evaluate(case.operator, **case.arguments())
        assert found.shape == case.data.shape
        assert found.dtype == case.data.dtype


@pytest.mark.parametrize("name", ROWS)
def test_targets_differ_without_reduction(name: str) -> None:
    random, spec = np.random.default_rng(1), ROWS[name]
    for _ in range(CASES if spec.layout is not Layout.SEQUENCE else 0):
        case = random_case(spec, random, reduction=Reduction.NONE, element_type="f32")
        assert case.indices is not None
        arguments = {**case.arguments(), "updates": np.ones(case.updates.shape, np.float32)}
        written = evaluate(case.operator, **{**arguments, "data": np.zeros(case.data.shape, np.float32)})
        assert written.sum() == case.updates.size


@pytest.mark.parametrize("name", ROWS)
def test_every_fact_of_a_row_is_drawn(name: str) -> None:
    random, spec = np.random.default_rng(2), ROWS[name]
    cases = [random_case(spec, random) for _ in range(CASES * 12)]
    words = spec.attribute("reduction")
    assert {case.reduction for case in cases} == (
        {Reduction.NONE} if words is None else {spec.reductions[word] for word in words.choices}
    )
    assert len({case.data.ndim for case in cases}) >= 3
    assert {case.index_type.name for case in cases} <= _types(spec, Role.INDICES)
    assert {case.element_type.name for case in cases} <= _types(spec, Role.DATA)
    assert len({case.element_type.name for case in cases}) >= 10
    if spec.axis is not None:
        assert {case.axis is not None and case.axis < 0 for case in cases} == {True, False}
    assert any(0 in case.data.shape for case in cases)
    is_optional = any(port.is_optional for port in spec.ports)
    assert any(case.indices is None for case in cases) is is_optional


def _types(spec: OpSpec, role: Role) -> frozenset[str]:
    port = spec.port(role)
    assert port is not None
    return port.element_types


def test_the_same_seed_gives_the_same_case() -> None:
    first, again = (random_case(ROWS["ScatterElementsUpdate-12"], 7) for _ in range(2))
    assert repr(first.arguments()) == repr(again.arguments())


def test_what_is_asked_for_is_drawn() -> None:
    case = random_case(
        ROWS["ScatterElementsUpdate-12"], 0, reduction=Reduction.MEAN, element_type="i8", index_type="u16"
    )
    assert case.data.dtype == np.int8
    assert case.indices is not None
    assert case.indices.dtype == np.uint16
    assert case.attributes["reduction"] == "mean"


@pytest.mark.parametrize(
    ("name", "asked", "sentence"),
    [
        ("ScatterUpdate-3", {"reduction": Reduction.SUM}, "reduction is sum, which ScatterUpdate-3 does not"),
        ("ScatterND-18", {"index_type": "i32"}, "the type of indices of ScatterND-18 is i32, expected i64"),
        ("ScatterND-18", {"broken": "nothing"}, "broken is 'nothing', expected one of attribute-value, "),
        ("ScatterND-18", {"broken": "axis-out-of-range"}, "no case of ScatterND-18 breaks axis-out-of-range"),
        (
            "ScatterElementsUpdate-12",
            {"reduction": Reduction.MEAN, "element_type": "boolean"},
            "the type of ScatterElementsUpdate-12 with reduction mean is boolean, expected",
        ),
    ],
)
def test_what_does_not_exist(name: str, asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        random_case(ROWS[name], **asked)


@pytest.mark.parametrize("name", ROWS)
def test_broken_cases_are_refused(name: str) -> None:
    random, ways = np.random.default_rng(3), []
    for way in [one for one in BROKEN if one != "axis-shape"]:  # which no argument says
        try:
            cases = [random_case(ROWS[name], random, broken=way) for _ in range(10 if NIGHTLY else 3)]
        except UsageError:
            continue
        ways.append(way)
        for case in cases:
            assert case.broken == way
            if way == "indices-longer-on-axis":  # a warning: it is computed as all runtimes take it
                assert evaluate(case.operator, **case.arguments()).shape == case.data.shape
                continue
            with pytest.raises(Error):
                evaluate(case.operator, **case.arguments())
    assert {"index-out-of-range", "index-type", "rank-too-small", "type-mismatch"} <= set(ways)


@pytest.mark.parametrize("name", ONNX_ROWS)
def test_validate_agrees(name: str, tmp_path: Path) -> None:
    spec, random = ONNX_ROWS[name], np.random.default_rng(4)
    cases = [random_case(spec, random) for _ in range(CASES if NIGHTLY else 12)]
    for way in BROKEN:
        with suppress(UsageError):
            cases += [random_case(spec, random, broken=way) for _ in range(5 if NIGHTLY else 2)]
    for case in cases:
        found = validate(read(write(case, tmp_path, is_constant=True)))
        rules = {one.rule for one in found if one.severity is Severity.ERROR}
        assert rules == {case.broken} - {None} or (case.broken == MORE_THAN_ONE and case.broken in rules)
