import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.request import Done, Failure
from ir_scatter.compare.result import Compared
from ir_scatter.report.characters import dumps
from ir_scatter.report.comparison_json import conversion, document, render
from ir_scatter.runners.base import NodeFacts
from tests.report.comparisons import CPU, EVERYTHING, GPU, ONE_OFF, OPERATOR, ZEROS, Array, compared, of_node

VERSIONS = {"ir-scatter": "1"}


def told(found: Compared) -> dict[str, Any]:
    """Write it, and read it as a program would that knows no Infinity."""

    def refuse(word: str) -> object:
        raise AssertionError(word)

    return json.loads(dumps(document(found, VERSIONS)), parse_constant=refuse)  # type: ignore[no-any-return]


def test_what_the_schema_has() -> None:
    found = told(EVERYTHING)
    assert {
        "schema",
        "versions",
        "model",
        "seed",
        "outcomes",
        "comparisons",
        "guard",
        "summary",
    } <= found.keys()
    assert (found["schema"], found["model"], found["seed"]) == (1, "model.xml", 0)
    assert found["versions"] == {"ir-scatter": "1", "openvino": "2026.4.1"}
    assert found["summary"] == {"equal": 2, "contested": 1, "nondeterministic": 1, "mismatch": 2}
    assert document(EVERYTHING, VERSIONS)["outcomes"][0] == {
        "runner": "numpy",
        "status": "ok",
        "reason": None,
        "message": "",
        "precision": "f32",
        "seconds": 0.5,
    }


def test_a_comparison() -> None:
    one = document(compared(of_node("n", ONE_OFF, ZEROS, GPU, case=3, place=(2,))), VERSIONS)["comparisons"][
        0
    ]
    assert one["required"] == {"abs": 7.5, "rel": None}
    assert one["worst"] == {"index": [2, 3], "got": 7.5, "expected": 0.0}
    expected = {
        "level": "node",
        "node": "n",
        "tensor": "out",
        "case": 3,
        "subject": GPU,
        "reference": "numpy",
        "verdict": "mismatch",
        "elements": 20,
        "mismatched": 1,
        "max_abs": 7.5,
        "max_rel": None,
        "max_ulp": 1089470464,
        "place": [2],
        "operator": OPERATOR,
    }
    assert {name: one[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("got", "expected", "worst"),
    [
        (np.array([np.nan]), np.array([1.0]), {"index": [0], "got": "nan", "expected": 1.0}),
        (np.array([-np.inf]), np.array([np.inf]), {"index": [0], "got": "-inf", "expected": "inf"}),
        (np.array([2**63], np.uint64), np.array([0], np.uint64), {"index": [0], "got": 2**63, "expected": 0}),
        (
            np.array(["a\ud800"], object),
            np.array(["b"], object),
            {"index": [0], "got": "a\ud800", "expected": "b"},
        ),
        (np.array([1j]), np.array([0j]), {"index": [0], "got": "1j", "expected": "0j"}),
        (np.array([True]), np.array([False]), {"index": [0], "got": True, "expected": False}),
    ],
)
def test_elements_that_json_has_no_word_for(got: Array, expected: Array, worst: dict[str, object]) -> None:
    (one,) = told(compared(of_node("n", got, expected)))["comparisons"]
    assert one["worst"] == worst


def test_nothing_is_a_null_where_there_is_nothing() -> None:
    (one,) = document(compared(of_node("n", ZEROS, ZEROS)), VERSIONS)["comparisons"]
    assert one["worst"] is None
    assert document(compared(), VERSIONS)["other"] is None


def test_guard_odd_and_nodes_that_were_not_tapped() -> None:
    found = document(EVERYTHING, VERSIONS)
    assert found["guard"][0] == {
        "runner": CPU,
        "node": "bad",
        "operator": OPERATOR,
        "case": 0,
        "kind": "out-of-range",
        "illegal": True,
        "message": "indices[0] is 9, expected 0 to 3",
    }
    assert found["odd"][0]["runners"] == [GPU]
    assert found["not_tapped"] == [{"runner": CPU, "node": "hidden", "reason": "its body is fused away"}]


def test_conversions() -> None:
    facts = NodeFacts("n", ("n",), "X", "kernel", "i32", ("i32",), None)
    assert conversion(facts, {"n": "i64"}) == "i64 -> i32"
    assert conversion(facts, {"n": "i32"}) == ""
    assert conversion(facts, {}) == ""
    assert conversion(replace(facts, precision="?"), {"n": "i64"}) == ""
    found = compared(of_node("n", ZEROS, ZEROS), facts={CPU: (facts,)}, types={"n": "i64"})
    assert document(found, VERSIONS)["facts"][CPU][0]["converts"] == "i64 -> i32"


def test_many_models() -> None:
    done = Done(
        (EVERYTHING, compared(of_node("n", ZEROS, ZEROS))),
        (Failure("bad.xml", "it is no XML", is_unreadable=True),),
        (("openvino:GPU", "no driver"),),
    )
    found = json.loads(render(done, each=True, versions=VERSIONS))
    assert [one["model"] for one in found["reports"]] == ["model.xml", "model.xml"]
    assert found["failures"] == [{"model": "bad.xml", "message": "it is no XML", "readable": False}]
    assert found["summary"] == {"equal": 3, "contested": 1, "nondeterministic": 1, "mismatch": 2}
    assert found["reports"][0]["skipped"] == [{"runner": "openvino:GPU", "reason": "no driver"}]


def test_the_same_twice() -> None:
    assert dumps(document(EVERYTHING, VERSIONS)) == dumps(document(EVERYTHING, VERSIONS))
