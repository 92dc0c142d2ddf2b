"""The text and the JSON of comparisons; what they look like is in `golden`."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared
from ir_scatter.report.comparison_text import text
from ir_scatter.report.matrices import kernel_table, operator_matrix
from ir_scatter.report.registry import render
from ir_scatter.runners.base import NodeFacts, Outcome, Status
from tests.report.comparisons import (
    CPU,
    EQUAL,
    EVERYTHING,
    MANY,
    ONE_OFF,
    OPERATOR,
    QUIET,
    TWO,
    ZEROS,
    Array,
    compared,
    of_node,
    of_output,
    ok,
)
from tests.report.golden import assert_golden


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_it_looks_like(request: pytest.FixtureRequest, format: str) -> None:
    assert_golden(request, f"comparison.{format}", render("comparison", format, MANY, each=True))
    one = render("comparison", format, ComparedModels((EVERYTHING,)))
    if format == "text":  # the verdict on one of many stands in the table of models
        first, _, rest = one.strip().partition("\n")
        assert rest in render("comparison", format, MANY)
        assert f"model.xml                     {first}\n" in render("comparison", format, MANY)


@pytest.mark.parametrize(
    ("got", "expected", "worst"),
    [
        (np.array([np.nan]), np.array([1.0]), {"got": "nan", "expected": 1.0}),
        (np.array([-np.inf]), np.array([np.inf]), {"got": "-inf", "expected": "inf"}),
        (np.array([2**63], np.uint64), np.array([0], np.uint64), {"got": 2**63, "expected": 0}),
        (np.array(["a\ud800"], object), np.array(["b"], object), {"got": "a\ud800", "expected": "b"}),
        (np.array([1j]), np.array([0j]), {"got": "1j", "expected": "0j"}),
        (np.array([True]), np.array([False]), {"got": True, "expected": False}),
    ],
)
def test_elements_that_json_has_no_word_for(got: Array, expected: Array, worst: dict[str, object]) -> None:
    def refuse(word: str) -> object:  # as a program would that knows no Infinity
        raise AssertionError(word)

    written = render("comparison", "json", ComparedModels((compared(of_node("n", got, expected)),)))
    (one,) = json.loads(written, parse_constant=refuse)["comparisons"]
    assert one["worst"] == {"index": [0], **worst}


def test_lines_fit_the_terminal() -> None:
    long = of_node("model.layers.11.self_attn/aten::index_put_/ScatterNDUpdate_12" * 2, ONE_OFF, ZEROS)
    for width in (60, 80, 120):
        shown = text(compared(long, of_output("y", ONE_OFF, ZEROS)), width=width)
        assert max(map(len, shown.splitlines())) <= width, width


def test_models_are_told_apart_on_a_terminal() -> None:
    folder = "/a/long/way/to/where/models/are/kept/by/somebody/who/likes/folders"
    found = [replace(QUIET, model=f"{folder}/{name}/model.onnx") for name in ("one", "two")]
    lines = render("comparison", "text", ComparedModels(tuple(found)), each=True, width=80).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["one/model.onnx", "two/model.onnx"]
    assert f"{folder}/two/model.onnx  " in render(
        "comparison", "text", ComparedModels(tuple(found)), each=True
    )
    both = replace(TWO, model=f"{folder}/one/model.onnx", other=f"{folder}/two/model.onnx")
    (first,) = [line for line in text(both, width=80).splitlines() if line.startswith("/a/long")]
    (second,) = [line for line in text(both, width=80).splitlines() if line.startswith("against ")]
    assert (len(first), len(second)) == (80, 80)
    assert first.endswith("/two/model.onnx")
    assert second.endswith("/one/model.onnx")
    assert f"{folder}/two/model.onnx against {folder}/one/model.onnx" in text(both)


def test_worst_first_and_the_rest_counted() -> None:
    many = [of_node(f"n{number:03}", ZEROS, ZEROS) for number in range(500)]
    loud = [of_node(f"loud{number:03}", ONE_OFF, ZEROS) for number in range(3)]
    lines = text(compared(*many, *loud)).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("node, against"))
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["loud000", "loud001", "loud002"]
    assert lines[start + 7].split() == ["and", "497", "more", "equal"]
    shown = text(compared(*(of_node(f"n{number}", ONE_OFF, ZEROS) for number in range(100))))
    assert "and 60 more, at worst" in shown
    assert "and 60 more that are not equal" in shown
    assert len(shown.splitlines()) < 120


def test_names_cannot_speak_to_the_terminal() -> None:
    evil = "\x1b[31mred\n\u202e"
    found = compared(
        of_node(evil, ONE_OFF, ZEROS),
        of_output(evil, ONE_OFF, ZEROS),
        outcomes=(Outcome(CPU, Status.REFUSED, evil),),
        remarks=(evil,),
        model=evil,
    )
    shown = text(found)
    assert shown.replace("\n", "").isprintable()
    assert "\\x1b[31mred" in shown
    coloured = text(found, color=True, width=100)
    assert "\x1b[31mred" not in coloured
    assert "\x1b[31mmismatch" in coloured


def test_facts_of_few_nodes_and_of_many() -> None:
    def found(count: int, *loud: int) -> list[tuple[object, ...]]:
        names = [f"n{n}" for n in range(count)]
        facts = tuple(NodeFacts(name, (name,), "X", "kernel", "i32", ("i32",), 2.0) for name in names)
        nodes = [of_node(name, ONE_OFF if n in loud else ZEROS, ZEROS) for n, name in enumerate(names)]
        model = compared(*nodes, facts={CPU: facts}, types=dict.fromkeys(names, "i64"))
        return list(kernel_table(model).rows)

    assert found(2) == [(f"n{n}", CPU, "kernel", "i32", "i64 -> i32", "2 us") for n in range(2)]
    assert found(100, 7) == [
        ("n7", CPU, "kernel", "i32", "i64 -> i32", "2 us"),
        ("99 nodes", CPU, "kernel", "i32", "i64 -> i32", "198 us"),
    ]


def cells(*found: Compared) -> list[list[str]]:
    named = [replace(one, operators={"quiet": OPERATOR}) for one in found]
    return [[str(cell) for cell in row] for row in operator_matrix(named).rows]


def test_operators_by_runners() -> None:
    def with_verdicts(*verdicts: Verdict) -> Compared:
        return compared(*(replace(EQUAL, measure=replace(EQUAL.measure, verdict=one)) for one in verdicts))

    good = with_verdicts(Verdict.EQUAL, Verdict.CLOSE)
    bad = with_verdicts(Verdict.EQUAL, Verdict.MISMATCH)
    contested = with_verdicts(Verdict.CONTESTED)
    assert cells(good, bad, contested) == [[OPERATOR, "works 2, differs 1"]]
    for status in (Status.REFUSED, Status.UNSUPPORTED, Status.CRASHED, Status.TIMEOUT):
        assert cells(compared(outcomes=(Outcome(CPU, status),))) == [[OPERATOR, "refuses 1"]]


def test_an_ir_tells_nothing_of_a_runner_that_reads_none() -> None:
    other = Outcome("onnxruntime", Status.UNSUPPORTED, reason="format")
    found = compared(EQUAL, outcomes=(ok(CPU), other))
    assert cells(found) == [[OPERATOR, "works 1", "n/a"]]
    onnx = compared(outcomes=(ok(CPU), replace(other, reason=None)))
    assert cells(found, onnx) == [[OPERATOR, "works 1", "refuses 1"]]
