"""Comparisons made by hand, with differences that are known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml import html

from ir_scatter.compare.measure import Tolerance, Tolerances, Verdict, default_tolerance, measure
from ir_scatter.compare.request import ComparedModels, NotCompared
from ir_scatter.compare.result import (
    Compared,
    CompareSettings,
    Comparison,
    Guarded,
    Level,
    NotTapped,
    Outlier,
)
from ir_scatter.report.comparison_html import render
from ir_scatter.runners.base import Availability, NodeFacts, Outcome, Status

Array = npt.NDArray[Any]

CPU, GPU, NUMPY = "openvino:CPU", "openvino:GPU@cpu", "numpy"
OPERATOR = "ScatterUpdate-3"


def parse_page(text: str) -> Any:
    """Return the root of a page; lxml's types tell apart what no test does."""
    return html.document_fromstring(text)


def page_text(
    found: Sequence[Compared],
    *,
    devices: Mapping[str, Availability] | None = None,
    failures: Sequence[NotCompared] = (),
    skipped: Sequence[tuple[str, str]] = (),
    **source: str,
) -> str:
    told = [replace(one, devices=devices or {}) for one in found]
    return render(ComparedModels(tuple(told), tuple(failures), tuple(skipped)), **source)


def of_node(
    name: str,
    got: Array,
    expected: Array,
    subject: str = CPU,
    *,
    case: int = 0,
    place: tuple[int, ...] = (),
    inputs: Sequence[Array | None] = (),
    tolerance: Tolerance | None = None,
    contested: Array | None = None,
) -> Comparison:
    allowed = tolerance or default_tolerance(expected, "f32", is_node=True)
    found = measure(got, expected, allowed, contested=contested)
    known = (found, place, OPERATOR, got, expected, tuple(inputs))
    return Comparison(Level.NODE, name, "out", case, subject, NUMPY, *known)


def of_output(
    name: str, got: Array, expected: Array, subject: str = CPU, reference: str = NUMPY
) -> Comparison:
    found = measure(got, expected, default_tolerance(expected, "f32"))
    if subject == reference and found.verdict is not Verdict.EQUAL:
        found = replace(found, verdict=Verdict.NONDETERMINISTIC)
    return Comparison(Level.MODEL, None, name, 0, subject, reference, found, got=got, expected=expected)


def ok(runner: str) -> Outcome:
    return Outcome(runner, Status.OK, seconds=0.5, precision="f32", versions={"openvino": "2026.4.1"})


def compared(
    *comparisons: Comparison, model: str = "model.xml", outcomes: Sequence[Outcome] = (), **more: Any
) -> Compared:
    runners = dict.fromkeys((NUMPY, *(one.subject for one in comparisons)))
    more = {"feeds": ({"x": np.zeros((2, 3), np.float32)},), "settings": CompareSettings(), **more}
    ran = tuple(outcomes) or tuple(map(ok, runners))
    return Compared(model, outcomes=ran, comparisons=comparisons, **more)


ZEROS = np.zeros((4, 5), np.float32)
ONE_OFF = ZEROS.copy()
ONE_OFF[2, 3] = 7.5

EQUAL = of_node("quiet", ZEROS, ZEROS)
MISMATCH = of_node(
    "loud", ONE_OFF, ZEROS, GPU, inputs=(ZEROS, np.array([2]), None), tolerance=Tolerance(1e-3, 1e-5)
)

EVERYTHING = compared(
    of_output("logits", ONE_OFF, ZEROS, GPU),
    of_output("logits", ZEROS, ZEROS),
    of_output("logits", ONE_OFF * 2, ONE_OFF, GPU, GPU),
    EQUAL,
    MISMATCH,
    of_node("open", ONE_OFF, ZEROS, contested=ONE_OFF > 0),
    outcomes=(
        ok(NUMPY),
        ok(CPU),
        ok(GPU),
        Outcome("openvino:NPU", Status.UNAVAILABLE, "no such device"),
        Outcome("onnxruntime", Status.CRASHED, "ended by SIGSEGV"),
    ),
    guarded=(
        Guarded(CPU, "bad", OPERATOR, 0, "out-of-range", "indices[0] is 9, expected 0 to 3"),
        Guarded(CPU, "open", OPERATOR, 0, "repeated", "several updates meet in 1 of 20 elements", False),
        Guarded(CPU, "open", OPERATOR, 1, "repeated", "several updates meet in 1 of 20 elements", False),
    ),
    outliers=(Outlier(Level.NODE, "loud", "out", 0, (GPU,), "the GPU departs from what the others say"),),
    not_tapped=(NotTapped(CPU, "hidden", "its body is fused away"),),
    remarks=("output logits changes when nodes are tapped",),
    facts={CPU: (NodeFacts("loud", ("loud",), "ScatterUpdate", "jit_avx512", "f32", ("f32",), 1234.5),)},
)

QUIET = compared(of_output("y", ZEROS, ZEROS), of_node("n", ZEROS, ZEROS), model="quiet.xml")
LOST = np.where(ONE_OFF > 0, np.nan, ZEROS).astype(np.float32)
OPEN = of_output("open", ONE_OFF, ZEROS)
CASES = compared(
    *(of_node("n", ONE_OFF if case == 2 else ZEROS, ZEROS, case=case) for case in range(4)),
    of_node("looped", ONE_OFF, ZEROS, place=(3, 1)),
    of_node("looped", ONE_OFF * 2 + 1, ZEROS, case=1, place=(3, 2)),
    of_node("lost", LOST, ZEROS, GPU),
    of_node("close", ZEROS + np.float32(1e-9), ZEROS, tolerance=Tolerance(0.5, 0.25)),
    of_output("pair", ZEROS, ZEROS),
    of_output("pair", ONE_OFF, ZEROS, GPU),
    of_output("pair", ONE_OFF, ZEROS, GPU, CPU),
    of_output("shape", np.zeros(3), np.zeros((1, 3))),
    replace(OPEN, measure=replace(OPEN.measure, verdict=Verdict.CONTESTED)),
    model="cases.xml",
    settings=CompareSettings(seed=5, cases=4, repeat=3, values="edge", tolerances=Tolerances(["0.5,0.25"])),
    feeds=({}, {}, {}, {}),
    about={GPU: ("It is no GPU.", "More.")},
    types={"n": "i64"},
    facts={CPU: (NodeFacts("n.0", ("n",), "ScatterUpdate", "ref", "i32", ("i32",), None),)},
)
REFUSED = compared(
    model="refused.xml", outcomes=(ok(NUMPY), Outcome(CPU, Status.REFUSED, "no such operator"))
)
SAME = of_output("y", ZEROS, ZEROS, CPU, CPU)
TWO = compared(
    replace(SAME, subject_model="after.xml", reference_model="before.xml"),
    model="before.xml",
    other="after.xml",
    settings=CompareSettings(seed=7, precision="f16"),
)
MANY = ComparedModels(
    (EVERYTHING, QUIET, TWO, CASES, REFUSED),
    (NotCompared("bad.xml", "it is no XML", is_unreadable=True),),
    (("openvino:GPU", "no driver"),),
)
