"""The sentence that comes first: who is wrong and where, who failed, or who agrees on what."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.headline import State, headline, headline_of_many
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels, NotCompared
from ir_scatter.compare.result import Compared, Comparison, Guarded, Level, NotTapped, Outlier, short_names
from ir_scatter.runners.base import Outcome, Status
from tests.report.comparisons import (
    CPU,
    EQUAL,
    EVERYTHING,
    GPU,
    MANY,
    NUMPY,
    ONE_OFF,
    OPERATOR,
    QUIET,
    TWO,
    ZEROS,
    compared,
    of_node,
    of_output,
    ok,
)

REFUSED = Outcome(GPU, Status.REFUSED, "no such operator")
FEEDS: tuple[dict[str, Any], ...] = ({}, {}, {})
OFF = of_node("loud", ONE_OFF, ZEROS, GPU)
OUTPUT = of_output("y", ONE_OFF, ZEROS)


def said(*comparisons: Comparison, **more: Any) -> str:
    return headline(compared(*comparisons, **more)).sentence


def changed(one: Comparison, **measure: Any) -> Comparison:
    return replace(one, measure=replace(one.measure, **measure))


def test_a_node_that_is_wrong() -> None:
    start = "openvino:GPU@cpu is wrong at loud"
    assert said(EQUAL, OFF) == f"{start}: [2, 3] is 7.5, the document says 0"
    assert said(OFF, of_node("other", ONE_OFF, ZEROS, GPU), EQUAL).endswith("says 0; 2 of 3 nodes are wrong")
    assert said(OFF, of_node("other", ONE_OFF, ZEROS)).endswith(
        "2 of 2 nodes are wrong on one runner or another"
    )
    both = said(OFF, of_node("loud", ONE_OFF * 2, ZEROS))
    assert both == (
        "openvino:GPU@cpu and openvino:CPU are wrong at loud: [2, 3] is 7.5 on openvino:GPU@cpu, the document says 0"
    )
    cases = [of_node("loud", ONE_OFF if case == 1 else ZEROS, ZEROS, GPU, case=case) for case in range(3)]
    assert said(*cases).startswith(f"{start} in 1 of 3 cases: ")
    assert said(replace(OFF, wrong_runs=(2, 5))).startswith(f"{start} in 2 of 5 runs: ")
    nan = of_node("loud", ZEROS, ZEROS * np.float32(np.nan), GPU)
    assert said(nan) == f"{start}: [0, 0] is 0, NumPy computes nan"  # no document says what becomes of NaN
    shape = of_node("loud", np.zeros(3), np.zeros(2), GPU)
    assert said(shape) == f"{start}: the output is float64 [3], expected float64 [2]"
    scalar = of_node("loud", ONE_OFF[2, 3], ZEROS[2, 3], GPU)
    assert said(scalar) == f"{start}: it is 7.5, the document says 0"


def test_the_first_node_of_the_model_is_named() -> None:
    first = of_node("first", ONE_OFF, ZEROS, GPU)
    found = said(OFF, first, operators=dict.fromkeys(["first", "loud"], OPERATOR))
    assert found.startswith("openvino:GPU@cpu is wrong at first: ")


def test_a_node_is_told_before_an_output_and_before_illegal_indices() -> None:
    illegal = Guarded(CPU, "bad", OPERATOR, 0, "out-of-range", "indices[0] is 9, expected 0 to 3")
    assert "wrong at loud" in said(OUTPUT, OFF)
    assert said(OUTPUT, OFF, guarded=(illegal,)).endswith("; 1 node with illegal indices")
    found = headline(compared(OUTPUT, guarded=(illegal,)))
    assert found.sentence == "bad gets illegal indices on openvino:CPU: indices[0] is 9, expected 0 to 3"
    assert (found.state, found.subject) == (State.ILLEGAL, illegal)
    refused = (ok(CPU), Outcome(NUMPY, Status.REFUSED, "indices[0] is 9, expected 0 to 3"))
    assert headline(compared(guarded=(illegal,), outcomes=refused)).sentence == (
        "bad gets illegal indices: indices[0] is 9, expected 0 to 3"
    )


def test_an_output_that_is_wrong_though_every_node_is_right() -> None:
    start = "openvino:CPU is wrong at output y: [2, 3] is 7.5, NumPy computes 0"
    assert said(OUTPUT) == start
    assert said(OUTPUT, EQUAL) == f"{start}; every scatter node is right"
    assert said(OUTPUT, EQUAL, not_tapped=(NotTapped(CPU, "hidden", "why"),)) == start
    assert said(OUTPUT, of_output("z", ZEROS, ZEROS), of_output("x", ONE_OFF, ZEROS)).endswith(
        "; 2 of 3 outputs differ"
    )
    both = (OUTPUT, of_output("y", ONE_OFF, ZEROS, GPU))
    alone = Outlier(Level.MODEL, None, "y", 0, (NUMPY,), "they agree with each other against numpy")
    assert said(*both, outliers=(alone,)) == (
        "openvino:CPU and openvino:GPU@cpu agree with each other against NumPy at output y: "
        "[2, 3] is 7.5, NumPy computes 0"
    )


def test_nodes_that_are_right_with_taps_acquit_nothing_where_taps_change_the_result() -> None:
    start = "openvino:CPU is wrong at output y: [2, 3] is 7.5, NumPy computes 0; with taps every scatter node"
    message = "openvino:CPU contradicts itself when nodes are tapped: it is so"
    outlier = Outlier(Level.MODEL, None, "y", 0, (CPU,), message, tapped=True)
    end = "is right, but taps change the result; "
    assert said(OUTPUT, EQUAL, outliers=(outlier,)) == f"{start} {end}a node before the output is suspect"
    assert said(OUTPUT, EQUAL, remarks=(message,)) == f"{start} {end}a node before the output is suspect"
    known = {CPU: {"loop:body/n": "DEV112"}}
    assert said(OUTPUT, EQUAL, outliers=(outlier,), suspects=known) == (
        f"{start} {end}loop:body/n may meet DEV112, which taps hide"
    )
    assert said(EQUAL, suspects=known) == (
        "openvino:CPU agrees with the documents on 1 node, 1 case; no output was compared; "
        "loop:body/n may meet DEV112, which taps hide"
    )


def test_nodes_were_looked_at_in_the_first_inference_only() -> None:
    later = replace(OUTPUT, wrong_runs=(2, 3))
    assert said(later, EQUAL).endswith(
        "in 2 of 3 runs: [2, 3] is 7.5, NumPy computes 0; every scatter node is right in the first inference, "
        "and none was looked at in later ones"
    )


def test_two_runtimes_without_numpy_differ_and_none_is_right() -> None:
    one = of_output("y", ONE_OFF, ZEROS, GPU, CPU)
    end = "at output y: [2, 3] is 7.5 on openvino:GPU@cpu, 0 on openvino:CPU; NumPy does not say who is right"
    assert said(one) == f"openvino:GPU@cpu differs from openvino:CPU {end}"
    third = of_output("y", ZEROS, ZEROS, "onnxruntime", CPU)
    assert said(one, third) == f"openvino:GPU@cpu differs from openvino:CPU and onnxruntime {end}"
    assert "expected" not in said(one)


def test_what_changes_from_run_to_run_or_when_nodes_are_tapped() -> None:
    run = of_output("y", ONE_OFF, ZEROS, CPU, CPU)
    assert said(run) == (
        "openvino:CPU changes from run to run at output y: [2, 3] is 7.5 in another run, 0 in the first"
    )
    node = changed(replace(of_node("n", ONE_OFF, ZEROS), reference=CPU), verdict=Verdict.NONDETERMINISTIC)
    assert said(node).startswith("openvino:CPU changes from run to run at n: [2, 3] is 7.5 in another run")
    tapped = replace(run, tapped=True)
    message = "openvino:CPU contradicts itself when nodes are tapped: it is so"
    outlier = Outlier(Level.MODEL, None, "y", 0, (CPU,), message, tapped=True)
    assert said(tapped, outliers=(outlier,)) == f"output y: {message}"
    assert said(tapped).startswith("output y: openvino:CPU changes when nodes are tapped: [2, 3] is 7.5 with")


def test_models_are_told_apart_by_as_few_folders_as_will_do() -> None:
    assert short_names("a/before.onnx", "b/after.xml") == ("before.onnx", "after.xml")
    assert short_names("/x/a/model.xml", "/x/b/model.xml") == ("a/model.xml", "b/model.xml")
    assert short_names("/x/a/c/model.xml", "/x/b/c/model.xml") == ("a/c/model.xml", "b/c/model.xml")
    assert short_names("model.xml", "a/model.xml") == ("model.xml", "a/model.xml")
    assert short_names("/model.xml", "model.xml") == ("/model.xml", "model.xml")


def test_two_models_and_what_was_saved() -> None:
    one = replace(
        of_output("y", ONE_OFF, ZEROS, CPU, CPU), subject_model="b/after.xml", reference_model="a/before.onnx"
    )
    differs = changed(one, verdict=Verdict.MISMATCH)
    assert said(differs, other="b/after.xml") == (
        "after.xml departs from before.onnx on openvino:CPU at output y: [2, 3] is 7.5, not 0"
    )
    assert (
        headline(TWO).sentence
        == "openvino:CPU computes the same for before.xml and after.xml: 1 output, 1 case"
    )
    saved = of_output("y", ONE_OFF, ZEROS, CPU, f"saved:{CPU}")
    assert said(saved) == "openvino:CPU is not what it was at output y: [2, 3] is 7.5 now, 0 before"


@pytest.mark.parametrize(
    ("status", "verb"),
    [
        (Status.REFUSED, "refuses the model"),
        (Status.UNSUPPORTED, "does not know all of the model"),
        (Status.UNAVAILABLE, "does not run here"),
        (Status.CRASHED, "crashed"),
        (Status.TIMEOUT, "took too long"),
    ],
)
def test_a_runner_that_failed(status: Status, verb: str) -> None:
    one = Outcome(GPU, status, "its words")
    found = headline(compared(EQUAL, outcomes=(ok(CPU), one)))
    assert (
        found.sentence == f"{GPU} {verb}: its words; openvino:CPU agrees with the documents on 1 node, 1 case"
    )
    assert (found.state, found.subject) == (State.FAILED, one)
    assert said(OFF, outcomes=(ok(CPU), one)).endswith(f"the document says 0; {GPU} {verb}")
    assert said(outcomes=(ok(CPU), one)) == f"{GPU} {verb}: its words; nothing was compared"


def test_several_that_failed_and_long_words() -> None:
    other = Outcome("onnxruntime", Status.REFUSED, "other words")
    crashed = Outcome("openvino:NPU", Status.CRASHED, "SIGSEGV")
    assert said(outcomes=(REFUSED, other, crashed)) == (
        "openvino:GPU@cpu and onnxruntime refuse the model; openvino:NPU crashed; nothing was compared"
    )
    long = said(outcomes=(replace(REFUSED, message="word " * 100),))
    assert len(long) < 200
    assert long.endswith("…; nothing was compared")


def test_agreement_says_who_and_on_how_much() -> None:
    assert headline(QUIET).sentence == "numpy and openvino:CPU agree on 1 node and 1 output, 1 case"
    assert headline(QUIET).state is State.AGREES
    outputs = [of_output("y", ZEROS, ZEROS, name) for name in (CPU, GPU, "onnxruntime")]
    nodes = [of_node(f"n{number}", ZEROS, ZEROS) for number in range(12)]
    assert said(*outputs, *nodes, feeds=FEEDS) == "4 runners agree on 12 nodes and 1 output, 3 cases"
    assert said(*outputs, nodes[0], is_one_node=True) == "4 runners agree on 1 node, 1 case"
    unseen = said(*outputs, is_one_node=True, not_tapped=(NotTapped(CPU, "loud", "not found"),))
    assert unseen == "4 runners agree on 1 output, 1 case; 1 node could not be looked at"
    assert said(*nodes) == "openvino:CPU agrees with the documents on 12 nodes, 1 case"
    left_open = of_node("open", ONE_OFF, ZEROS, contested=ONE_OFF > 0)
    assert said(nodes[0], left_open).endswith("2 nodes, 1 case; the document leaves 1 of them open")
    assert said(nodes[0], not_tapped=(NotTapped(CPU, "hidden", "why"),)).endswith(
        "; 1 node could not be looked at"
    )


def test_nothing_was_compared() -> None:
    assert headline(compared()).sentence == "nothing was compared"
    why = "nothing was compared: the model has no outputs and no scatter nodes"
    found = headline(compared(remarks=("another remark", why)))
    assert (found.state, found.sentence) == (State.NOTHING, why)


def test_many_models() -> None:
    def many(*found: Compared, failures: int = 0) -> str:
        failed = (NotCompared("bad.xml", "it is no XML", is_unreadable=True),) * failures
        return headline_of_many(ComparedModels(found, failed)).sentence

    assert many(QUIET) == headline(QUIET).sentence
    assert many(QUIET, QUIET) == "no difference in 2 models"
    assert many() == "there are no models"
    assert many(failures=2) == "2 models could not be compared"
    assert many(compared(OFF), compared(OUTPUT), QUIET) == (
        "2 of 3 models differ: openvino:GPU@cpu in 1 and openvino:CPU in 1; no difference in 1 model"
    )
    assert headline_of_many(MANY).state is State.DIFFERS
    assert headline_of_many(MANY).sentence.endswith("; 1 model could not be compared")
    assert (
        headline_of_many(ComparedModels((QUIET, replace(EVERYTHING, comparisons=())))).state is State.ILLEGAL
    )


def test_what_numpy_refuses_is_said_if_nothing_differs() -> None:
    refusal = Outcome(NUMPY, Status.REFUSED, "SCT302 indices[0] is 9, expected 0 to 3", implicit=True)
    start = "NumPy refuses the model: SCT302 indices[0] is 9, expected 0 to 3"
    assert said(outcomes=(refusal, ok(CPU))) == f"{start}; nothing was compared"
    failed = said(outcomes=(refusal, REFUSED))
    assert failed == f"{start}; {GPU} refuses the model; nothing was compared"
    assert "NumPy" not in said(OFF, outcomes=(refusal, ok(GPU)))


def test_an_interrupt_is_no_agreement_and_hides_no_difference() -> None:
    missing = "interrupted: b did not finish case 1 of 1"
    found = headline(replace(QUIET, interrupted=missing))
    assert (found.state, found.sentence) == (State.INTERRUPTED, f"{headline(QUIET).sentence}; {missing}")
    assert headline(compared(interrupted=missing)).sentence == missing
    wrong = headline(compared(OFF, interrupted=missing))
    assert (wrong.state, wrong.sentence.endswith(missing)) == (State.DIFFERS, True)
    many = headline_of_many(
        ComparedModels((QUIET,), interrupted="interrupted: 2 of 3 models were not finished")
    )
    assert many.sentence == "no difference in 1 model; interrupted: 2 of 3 models were not finished"
