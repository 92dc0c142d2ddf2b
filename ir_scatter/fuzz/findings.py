"""A finding on disk: a model, its inputs, what is expected, a program that shows it, a report to paste."""

import json
import os
import platform
import sys
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
from ir_scatter.fuzz.explain import Finding
from ir_scatter.fuzz.known_defects import is_regression, told_since
from ir_scatter.runners import find_or_none
from ir_scatter.runners.base import ISSUE_FORM, Runner, plain_name

RECORD = "finding.json"
"""What the report says of a finding, in its folder; written last, so that what has it is whole."""
CASE = "case.json"
"""What the program must know of the case, in the folder of a finding, for `replay`."""
_PROGRAM = Path(__file__).with_name("repro.py.txt")
_RAW = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def write_finding(finding: Finding, folder: Path, versions: Mapping[str, str]) -> None:
    """Write a finding into a folder of its name, and note where.

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
            write_arrays(file, {name: _codes(array) for name, array in feeds.items()})
        with (place / "expected.npz").open("wb") as file:
            write_arrays(file, expected_arrays(case))
        model = f"model{next(iter(files))}"
        about, needs = _about_case(finding, model, feeds)
        (place / CASE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        (place / "repro.py").write_text(program_text(about, finding.signature, needs), encoding="utf-8")
        (place / "report.md").write_text(_report(finding, model, versions), encoding="utf-8")
        finding.path = str(place)
        write_whole(place / RECORD, json.dumps(finding.as_json()))


def write_whole(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def expected_arrays(case: Case) -> dict[str, Array]:
    """Return what the document says of a case, in types that NumPy alone reads.

    `expected` and `limit`, how far each element may be off; `candidates` where it leaves some open; and
    `decoded`, what each code of an element type stands for that NumPy has not.
    """
    found: dict[str, Array] = {}
    row, own = case.element_type, dtype(case.element_type)
    assert own is not None
    if row.kind == "float" and own.isbuiltin != 1 and row.bits <= 8:
        codes = np.arange(1 << row.bits, dtype=np.uint8)
        found["decoded"] = codes.view(own).astype(np.float64)
    elif row.bits < 8 and row.kind in {"signed", "unsigned"}:
        found["decoded"] = np.arange(1 << row.bits, dtype=np.uint8).view(own).astype(np.int64)
    if case.broken is not None:
        return found
    known = reference(case)
    values = known.values
    found["expected"] = _numbers(values, row)
    with np.errstate(all="ignore"):
        limit = default_tolerance(values, "f32", is_node=True).limits(values) if row.kind == "float" else 0.0
        found["limit"] = limit + np.where(np.isnan(known.rounding_bound), 0.0, known.bound_from_values())
    if known.contested.any():
        places = [known.candidates(place) for place in np.ndindex(values.shape)]
        most = max(map(len, places))
        padded = [np.concatenate([one, np.repeat(one[:1], most - len(one))]) for one in places]
        found["candidates"] = _numbers(np.stack(padded, axis=-1).reshape(most, *values.shape), row)
    return found


def _numbers(array: Array, row: ElementType) -> Array:
    if row.kind == "string":
        return array.astype(np.str_)
    if array.dtype.isbuiltin == 1:
        return array
    return array.astype(np.float64 if row.kind == "float" else np.int64)


def _codes(array: Array) -> Array:
    """Return an array as NumPy alone stores it: elements of other types as the numbers that encode them."""
    if array.dtype.kind in "OU":
        return array.astype(np.str_)
    return array if array.dtype.isbuiltin == 1 else array.view(_RAW[array.dtype.itemsize])


def about_type(row: ElementType) -> dict[str, Any]:
    """Return what the program must know of an element type."""
    own = dtype(row)
    is_native = own is not None and own.isbuiltin == 1 and row.kind != "string"
    return {
        "name": row.name,
        "bits": row.bits,
        "numpy": str(own) if is_native else "",
        "onnx": row.onnx_number,
    }


def _about_case(finding: Finding, model: str, feeds: Mapping[str, Array]) -> tuple[dict[str, Any], str]:
    """Return what the program must know of the case of a finding, and which packages it needs."""
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


def _runner_of(finding: Finding) -> Runner | None:
    """Return the runner of a finding as it is installed here; None if this machine does not know it."""
    return find_or_none(plain_name(finding.runner.rpartition("/")[2]))


def program_text(about: Mapping[str, Any], title: str, needs: str) -> str:
    """Return the program that runs the model beside it. JSON never has three quotes in a raw string."""
    text = _PROGRAM.read_text(encoding="utf-8").replace("@TITLE@", title).replace("@NEEDS@", needs)
    return text.replace("@ABOUT@", json.dumps(about, indent=1, ensure_ascii=True))


def _report(finding: Finding, model: str, versions: Mapping[str, str]) -> str:
    """Write the report in the headings of the form of the project that it concerns."""
    case = finding.case
    assert case is not None
    package, _, device = finding.runner.rpartition("/")[2].partition(":")
    runtime = package.partition("@")[0]
    system = f"{platform.platform()}, {os.cpu_count()} processors, Python {platform.python_version()}"
    arrays = {role.value: array for role, array in case.arrays().items() if array is not None}
    lines = [
        f"- {name}: {case_type(array)} {show(array.shape)} {_shown(array)}" for name, array in arrays.items()
    ]
    if case.axis is not None:
        lines.append(f"- axis: {case.axis}" + (f" as {show(case.axis_shape)}" if case.axis_shape else ""))
    lines += [f"- {name}: {value}" for name, value in case.attributes.items()]
    constants = ", ".join(sorted(role.value for role in case.constants)) or "none"
    if case.iterations:
        lines.append(f"- in a Loop of {counted(case.iterations, 'iteration')}, each given the same")
    lines.append(f"- constant inputs: {constants}; shapes: {case.shapes}")
    expected = "the model is refused" if case.broken else _shown(reference(case).values)
    got = finding.judged.message if finding.judged.got is None else _shown(finding.judged.got)
    runner, release = _runner_of(finding), package.partition("@")[2]
    distribution = runtime if runner is None else runner.package
    version = versions.get(f"{distribution}@{release}" if release else distribution, "unknown")
    same = f"{finding.symptom}: {finding.judged.message}"
    others = [f"- {name}: {told}" for name, told in finding.others.items()] or ["- none asked"]
    description = [
        f"{finding.operator}: {finding.when}.",
        "",
        same,
        "",
        f"The document says: {specification_of(case)}",
        "",
        "The simplest case that was found:",
        "",
        *lines,
    ]
    steps = [f"1. `pip install numpy {distribution}=={version}`"]
    steps += [
        f"2. `python repro.py` beside `{model}` and `inputs.npz`: exit code 1 while the defect is there."
    ]
    both = [
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
        *others,
        *([f"- {finding.outlier} stands alone"] if finding.outlier else []),
        "",
        "### This runtime on cases that must give the same",
        "",
        *(
            [f"- {name}: {told.replace(same, 'the same')}" for name, told in finding.twins.items()]
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
        "description": [*description, "", *both],
        "steps": steps,
        "regression": regression,
    }
    form = ISSUE_FORM if runner is None else runner.issue_form
    sections = {title: texts.get(part, [part]) for title, part in form.items()}
    parts = [f"# {finding.operator}: {finding.symptom} on {finding.runner}"]
    parts += ["\n".join([f"### {title}", "", *text]) for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _regression(finding: Finding, version: str) -> list[str]:
    """Say whether earlier releases were right, by what was measured of the defect."""
    told = [is_regression(code, finding.runner, version) for code in finding.defects]
    if not finding.defects:
        return ["Not known: no known defect is like this. Run `repro.py` with other releases."]
    answer = (
        "Yes"
        if True in told
        else "No earlier release that was measured is right"
        if False in told
        else "Not known"
    )
    return [f"{answer}.", "", *(f"- {told_since(code, finding.runner)}" for code in finding.defects)]


def case_type(array: Array) -> str:
    row = from_dtype(array.dtype)
    return row.name if row else str(array.dtype)


def _shown(array: Array) -> str:
    """Print an array on one line."""
    with np.printoptions(threshold=64, linewidth=sys.maxsize):
        return " ".join(str(array.tolist() if array.size <= 64 else array).split())
