"""Comparisons made by hand, with differences that are known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from lxml import html

from ir_scatter.compare.measure import measure
from ir_scatter.compare.request import Done, Failure
from ir_scatter.compare.result import (
    Compared,
    Comparison,
    Guarded,
    Level,
    NotTapped,
    Outlier,
    Settings,
    Verdict,
)
from ir_scatter.compare.tolerance import Tolerance, default_tolerance
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
    failures: Sequence[Failure] = (),
    skipped: Sequence[tuple[str, str]] = (),
    **source: str,
) -> str:
    told = [replace(one, devices=devices or {}) for one in found]
    return render(Done(tuple(told), tuple(failures), tuple(skipped)), **source)


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
    return Comparison(
        Level.NODE,
        name,
        "out",
        case,
        subject,
        NUMPY,
        found,
        place,
        OPERATOR,
        got,
        expected,
        tuple(inputs),
    )


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
    *comparisons: Comparison,
    model: str = "model.xml",
    outcomes: Sequence[Outcome] = (),
    **more: Any,
) -> Compared:
    runners = dict.fromkeys((NUMPY, *(one.subject for one in comparisons)))
    more.setdefault("feeds", ({"x": np.zeros((2, 3), np.float32)},))
    more.setdefault("settings", Settings())
    return Compared(
        model,
        outcomes=tuple(outcomes) or tuple(map(ok, runners)),
        comparisons=comparisons,
        **more,
    )


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
    odd=(Outlier(Level.NODE, "loud", "out", 0, (GPU,), "the GPU departs from what the others say"),),
    not_tapped=(NotTapped(CPU, "hidden", "its body is fused away"),),
    remarks=("output logits changes when nodes are tapped",),
    facts={CPU: (NodeFacts("loud", ("loud",), "ScatterUpdate", "jit_avx512", "f32", ("f32",), 1234.5),)},
)
