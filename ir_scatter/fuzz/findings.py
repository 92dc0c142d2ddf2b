"""Writes a finding to a folder: model, inputs, expected outputs, a reproducing program, a bug report."""

import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ir_scatter.cases.broken import specification_of
from ir_scatter.cases.case import Case
from ir_scatter.cases.judge import reference
from ir_scatter.compare.measure import default_tolerance
from ir_scatter.core.arrays import Array
from ir_scatter.core.element_types import ElementType, dtype, from_dtype
from ir_scatter.core.errors import explained
from ir_scatter.core.shapes import show
from ir_scatter.core.words import counted
from ir_scatter.defects.base import Symptom
from ir_scatter.evaluate.archive import write_arrays
from ir_scatter.formats import FORMATS
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.fuzz.known_defects import defect_history, is_regression
from ir_scatter.runners import find_or_none
from ir_scatter.runners.base import ISSUE_FORM, Runner, plain_name

RECORD = "finding.json"
"""File name of a finding's JSON record; written last, so that a folder with this file is complete."""
CASE = "case.json"
"""File name of the JSON with the facts about a case that `repro.py` and `replay` need."""
_PROGRAM = Path(__file__).with_name("repro.py.txt")
_SHORT_PROGRAM, _JUDGE = "repro_{}.py.txt", Path(__file__).with_name("repro_judge.py.txt")
"""Program for one runtime that has the common element types only, and the part that all share."""
_MOST_VALUES = 20
"""Values of an array that a bug report shows; files beside it contain all."""
_RAW_DTYPES = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def write_finding(finding: FuzzFinding, folder: Path, versions: Mapping[str, str]) -> None:
    """Write a finding into a folder named by its signature, and set its path.

    Raises:
        CannotWrite: the folder or a file in it cannot be written.
    """
    case = finding.case
    assert case is not None
    place = folder / finding.signature
    with explained(place):
        place.mkdir(parents=True, exist_ok=True)
        files = FORMATS[case.format].nodes([case.node()])
        for suffix, data in files.items():
            (place / f"model{suffix}").write_bytes(data)
        feeds = case.feeds()
        with (place / "inputs.npz").open("wb") as file:
            write_arrays(file, {name: _storable(array) for name, array in feeds.items()})
        with (place / "expected.npz").open("wb") as file:
            write_arrays(file, expected_arrays(case))
        model = f"model{next(iter(files))}"
        about, needs = _about_case(finding, model, feeds)
        (place / CASE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        program = _short_program(finding, about, needs) or program_text(about, finding.signature, needs)
        (place / "repro.py").write_text(program, encoding="utf-8")
        (place / "report.md").write_text(_report(finding, model, versions), encoding="utf-8")
        finding.path = str(place)
        write_whole(place / RECORD, json.dumps(finding.as_json()))


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: it appears completely or not at all."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def expected_arrays(case: Case) -> dict[str, Array]:
    """Return the expected outputs of a case, in types that NumPy reads without extensions.

    The arrays are `expected`; `limit`, the maximum error of each element; `candidates`, all legal values if
    elements are unspecified; and `decoded`, the value of each bit pattern of an element type that NumPy
    lacks.
    """
    arrays: dict[str, Array] = {}
    row, numpy_type = case.element_type, dtype(case.element_type)
    assert numpy_type is not None
    if row.kind == "float" and numpy_type.isbuiltin != 1 and row.bits <= 8:
        codes = np.arange(1 << row.bits, dtype=np.uint8)
        arrays["decoded"] = codes.view(numpy_type).astype(np.float64)
    elif row.bits < 8 and row.kind in {"signed", "unsigned"}:
        arrays["decoded"] = np.arange(1 << row.bits, dtype=np.uint8).view(numpy_type).astype(np.int64)
    if case.broken is not None:
        return arrays
    result = reference(case)
    values = result.values
    arrays["expected"] = _widened(values, row)
    with np.errstate(all="ignore"):
        limit = default_tolerance(values, "f32", is_node=True).limits(values) if row.kind == "float" else 0.0
        arrays["limit"] = limit + np.where(np.isnan(result.rounding_bound), 0.0, result.bound_from_values())
    if result.contested.any():
        candidates = [result.candidates(place) for place in np.ndindex(values.shape)]
        most = max(map(len, candidates))
        padded = [np.concatenate([legal, np.repeat(legal[:1], most - len(legal))]) for legal in candidates]
        arrays["candidates"] = _widened(np.stack(padded, axis=-1).reshape(most, *values.shape), row)
    return arrays


def _widened(array: Array, row: ElementType) -> Array:
    if row.kind == "string":
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float64 if row.kind == "float" else np.int64)


def _storable(array: Array) -> Array:
    """Return an array that NumPy can store; types that it lacks are stored as bit patterns."""
    if array.dtype.kind in "OU":
        return array.astype(np.str_)
    return array if array.dtype.isbuiltin == 1 else array.view(_RAW_DTYPES[array.dtype.itemsize])


def about_type(row: ElementType) -> dict[str, Any]:
    """Return the facts about an element type that `repro.py` needs."""
    numpy_type = dtype(row)
    is_native = numpy_type is not None and numpy_type.isbuiltin == 1 and row.kind != "string"
    return {
        "name": row.name,
        "bits": row.bits,
        "numpy": str(numpy_type) if is_native else "",
        "onnx": row.onnx_number,
    }


def _about_case(finding: FuzzFinding, model: str, feeds: Mapping[str, Array]) -> tuple[dict[str, Any], str]:
    """Return the facts about a case that `repro.py` needs, and the packages that it imports."""
    case = finding.case
    assert case is not None
    package, _, device = finding.runner.rpartition("/")[2].partition(":")
    runtime, _, release = package.partition("@")
    inputs = {}
    for name, array in feeds.items():
        row = from_dtype(array.dtype)
        assert row is not None
        inputs[name] = {"type": about_type(row), "shape": list(array.shape)}
    about = {
        "runtime": runtime,
        "device": device,
        "model": model,
        "symptom": finding.symptom.value,
        "is_steady": finding.is_steady and finding.symptom is not Symptom.NONDETERMINISTIC,
        "is_illegal": case.broken is not None,
        "inputs": inputs,
        "output": about_type(case.element_type),
        "sentence": f"{finding.operator} on {finding.runner}: {finding.when}",
        "document": specification_of(case),
    }
    runner = _runner_of(finding)
    needs = runtime if runner is None else runner.package
    needs += f"=={release}" if release else ""
    if runner is not None and runner.emulates:
        needs += ", with ir-scatter[gpu-on-cpu] to reach the plugin without a GPU"
    return about, needs


def _runner_of(finding: FuzzFinding) -> Runner | None:
    """Return the runner of a finding on this machine; None if its name is unknown here."""
    return find_or_none(plain_name(finding.runner.rpartition("/")[2]))


def program_text(about: Mapping[str, Any], title: str, needs: str) -> str:
    """Return the text of `repro.py`, which runs the model in its folder.

    The text contains JSON, which never contains three quotes.
    """
    text = _PROGRAM.read_text(encoding="utf-8").replace("@TITLE@", title).replace("@NEEDS@", needs)
    return text.replace("@ABOUT@", json.dumps(about, indent=1, ensure_ascii=True))


def _short_program(finding: FuzzFinding, about: Mapping[str, Any], needs: str) -> str:
    """Return a program that fits a screen, "" for cases that need the long one.

    It feeds and compares arrays as NumPy has them, and expects one result.
    """
    case, runner = finding.case, _runner_of(finding)
    assert case is not None
    path = Path(__file__).with_name(_SHORT_PROGRAM.format(about["runtime"]))
    is_plain_runner = runner is not None and not runner.emulates and not runner.leaves_to and path.exists()
    types = [*(input["type"] for input in about["inputs"].values()), about["output"]]
    is_common = all(type["numpy"] for type in types) and case.shapes == "static" and about["is_steady"]
    if not is_plain_runner or not is_common or finding.symptom is Symptom.HUNG:
        return ""
    if case.broken is None and reference(case).contested.any():
        return ""
    text = path.read_text(encoding="utf-8").replace("@JUDGE@", _JUDGE.read_text(encoding="utf-8").rstrip())
    parts = {
        "TITLE": finding.signature,
        "NEEDS": needs,
        "DEVICE": about["device"],
        "MODEL": about["model"],
        "ILLEGAL": str(about["is_illegal"]),
        "SENTENCE": ascii(about["sentence"]),
        "DOCUMENT": ascii(f"specification: {about['document']}"),
    }
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _report(finding: FuzzFinding, model: str, versions: Mapping[str, str]) -> str:
    """Return the text of a bug report, with the headings that the runtime's project requests."""
    case = finding.case
    assert case is not None
    package, _, device = finding.runner.rpartition("/")[2].partition(":")
    runtime = package.partition("@")[0]
    system = f"{platform.platform()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    arrays = {role.value: array for role, array in case.arrays().items() if array is not None}
    lines = [
        f"- {name}: {type_name(array)} {show(array.shape)} {_on_one_line(array)}"
        for name, array in arrays.items()
    ]
    if case.axis is not None:
        lines.append(f"- axis: {case.axis}" + (f" as {show(case.axis_shape)}" if case.axis_shape else ""))
    lines += [f"- {name}: {value}" for name, value in case.attributes.items()]
    constants = ", ".join(sorted(role.value for role in case.constants)) or "none"
    if case.iterations:
        lines.append(f"- in a Loop of {counted(case.iterations, 'iteration')} with equal inputs")
    lines.append(f"- constant inputs: {constants}; shapes: {case.shapes}")
    expected = "the model is refused" if case.broken else _on_one_line(reference(case).values)
    got = finding.judgement.message if finding.judgement.got is None else _on_one_line(finding.judgement.got)
    runner, release = _runner_of(finding), package.partition("@")[2]
    distribution = runtime if runner is None else runner.package
    version = versions.get(f"{distribution}@{release}" if release else distribution, "unknown")
    failure = f"{finding.symptom}: {finding.judgement.message}"
    other_outcomes = [f"- {name}: {outcome}" for name, outcome in finding.others.items()] or [
        "- no other runner"
    ]
    description = [
        f"{finding.operator}: {finding.when}.",
        "",
        failure,
        "",
        f"The specification requires: {specification_of(case)}",
        "",
        "The simplest failing case:",
        "",
        *lines,
    ]
    steps = [f"1. `pip install numpy {distribution}=={version}`"]
    steps += [
        f"2. `python repro.py` beside `{model}` and `inputs.npz`: exit code 1 while the defect is present."
    ]
    comparison = [
        "### Expected",
        "",
        expected,
        "",
        "### Got",
        "",
        got,
        "",
        "### Other runtimes on this case",
        "",
        *other_outcomes,
        *([f"- only {finding.outlier} is wrong"] if finding.outlier else []),
        "",
        "### This runtime on equivalent cases",
        "",
        *(
            [f"- {name}: {outcome.replace(failure, 'the same')}" for name, outcome in finding.twins.items()]
            or ["- none"]
        ),
    ]
    regression = _regression(finding, version)
    texts = {
        "version": [version],
        "platform": [platform.system()],
        "system": [system],
        "architecture": [platform.machine()],
        "device": [device or runtime],
        "framework": ["ONNX" if model.endswith(".onnx") else "OpenVINO IR"],
        "model": [f"`{model}`, one node" + (" in a loop" if case.iterations else "")],
        "description": [*description, "", *comparison],
        "steps": steps,
        "regression": regression,
    }
    form = ISSUE_FORM if runner is None else runner.issue_form
    sections = {title: texts.get(part, [part]) for title, part in form.items()}
    parts = [f"# {finding.operator}: {finding.symptom} on {finding.runner}"]
    parts += ["\n".join([f"### {title}", "", *text]) for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _regression(finding: FuzzFinding, version: str) -> list[str]:
    """Return lines that say whether measured earlier releases were right, with each defect's history."""
    regressions = [is_regression(code, finding.runner, version) for code in finding.defects]
    if not finding.defects:
        return ["Not known: no known defect matches. Run `repro.py` with other releases."]
    answer = (
        "Yes"
        if True in regressions
        else "No earlier release that was measured is right"
        if False in regressions
        else "Not known"
    )
    return [f"{answer}.", "", *(f"- {defect_history(code, finding.runner)}" for code in finding.defects)]


def type_name(array: Array) -> str:
    row = from_dtype(array.dtype)
    return row.name if row else str(array.dtype)


def _on_one_line(array: Array) -> str:
    """Return an array as one line of text: nested lists, or its first values if there are many."""
    if array.size <= _MOST_VALUES:
        return " ".join(str(array.tolist()).split())
    first = ", ".join(" ".join(str(value).split()) for value in array.reshape(-1)[:_MOST_VALUES].tolist())
    return f"{first}, ... ({array.size} values in all)"
