"""`import ir_scatter` as a user has it: quick, typed, names that are functions, help on one screen."""

import doctest
import json
import pkgutil
import pydoc
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import ir_scatter

ROOT = Path(__file__).resolve().parent.parent
FUNCTIONS = (
    "compare", "convert", "devices", "evaluate", "evaluate_detailed", "evaluate_model", "explain", "fuzz", "inspect",
    "read", "validate",
)  # fmt: skip
RUN_RUNTIMES = ("compare", "devices", "fuzz")


def python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_a_star_import_takes() -> None:
    found: dict[str, object] = {}
    exec("from ir_scatter import *", found)
    assert {*FUNCTIONS, "Findings", "Model", "Error", "Diagnostic"} <= found.keys()
    assert found.keys() - {"__builtins__"} == set(ir_scatter.__all__) <= set(dir(ir_scatter))
    assert all(name in ir_scatter.__all__ for name in FUNCTIONS)
    assert "zip" not in ir_scatter.__all__


def test_names_are_functions_whatever_was_imported_before() -> None:
    code = f"""
import importlib, json, pkgutil
import ir_scatter.compare.request, ir_scatter.convert.job, ir_scatter.validate as module
for found in pkgutil.walk_packages(importlib.import_module("ir_scatter").__path__, "ir_scatter."):
    try:
        importlib.import_module(found.name)
    except ImportError as error:
        assert not (error.name or "").startswith("ir_scatter"), error
import ir_scatter, ir_scatter.inspect, ir_scatter.explain, ir_scatter.evaluate.model
from ir_scatter import compare
assert callable(compare) and compare is ir_scatter.compare
print(json.dumps({{name: type(getattr(ir_scatter, name)).__name__ for name in {FUNCTIONS!r}}}))
"""
    assert json.loads(python("-c", code)) == dict.fromkeys(FUNCTIONS, "function")


def test_every_package_that_shares_its_name_with_a_function_can_be_imported() -> None:
    modules = {found.name for found in pkgutil.iter_modules(ir_scatter.__path__)}
    shared = modules & set(ir_scatter.__all__)
    assert {"compare", "convert", "evaluate", "explain", "inspect", "validate"} <= shared
    assert all(isinstance(getattr(ir_scatter, name), FunctionType) for name in shared & set(FUNCTIONS))


def test_to_import_the_library_is_to_import_nothing_heavy() -> None:
    code = "import ir_scatter, sys; print(*sys.modules)"
    loaded = set(python("-c", code).split())
    heavy = {"numpy", "onnx", "openvino", "onnxruntime", "lxml", "rich", "pandas", "jinja2", "asyncio"}
    assert not loaded & heavy
    assert not {name for name in loaded if name.startswith(("ir_scatter.report", "ir_scatter.runners"))}


def test_help_is_one_screen_and_names_every_function() -> None:
    lines = pydoc.plain(pydoc.render_doc(ir_scatter)).splitlines()
    first, _, rest = "\n".join(lines).partition("\nPACKAGE CONTENTS\n")
    assert all(name in first for name in FUNCTIONS)
    assert len(first.splitlines()) <= 24
    assert max(map(len, first.splitlines())) <= 80
    packages = len(list(pkgutil.iter_modules(ir_scatter.__path__)))
    assert len(rest.splitlines()) - packages <= 12


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_explains_itself_with_an_example(name: str) -> None:
    text = getattr(ir_scatter, name).__doc__
    assert f"irs.{name}(" in text.partition("Example:")[2]


def run_doctest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (found,) = doctest.DocTestFinder(recurse=False).find(getattr(ir_scatter, name), name, globs={})
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(found, out=printed.append)
    assert runner.tries
    assert not runner.failures, "".join(printed)


@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {*RUN_RUNTIMES}))
def test_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_doctest(name, monkeypatch)


@pytest.mark.openvino
@pytest.mark.long
@pytest.mark.parametrize("name", RUN_RUNTIMES)
def test_examples_that_run_runtimes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_doctest(name, monkeypatch)


RIGHT = """
import io
from pathlib import Path
import numpy as np
import onnx
import ir_scatter as irs

name: irs.OperatorName = "ScatterND"
array = irs.evaluate(name, data=np.zeros(3), indices=[[1]], updates=[2.0], reduction="add")
irs.evaluate("ScatterElementsUpdate-12", data=[1], indices=[0], updates=[2], axis=0, use_init_val=False)
for source in ("m.xml", Path("m.xml"), b"", io.BytesIO(b""), onnx.ModelProto()):
    model: irs.Model = irs.read(source)
for node in model.scatter_nodes:
    irs.evaluate(node.operator, data=[1], indices=[0], updates=[2])
found: irs.Findings = irs.validate(model, select="SCT3", ignore=["SCT301"])
codes: list[str] = [one.code for one in found]
irs.convert("m.xml", to="ScatterNDUpdate", nodes="a").write(Path("n.xml"))
irs.compare("m.xml", on=["numpy", "CPU"], inputs={"x": np.ones(3)}).verdict.upper()
irs.devices()[0].is_available
irs.explain("SCT302").upper()
"""
WRONG = (
    'irs.evaluate("ScatterElement", data=[1], indices=[0], updates=[2])',
    'irs.evaluate("Gather", data=[1], indices=[0], updates=[2])',
    "irs.evaluate(3, data=[1], indices=[0], updates=[2])",
    'irs.evaluate("ScatterElements", data=object(), indices=[0], updates=[2])',
    'irs.evaluate("ScatterElements", data=[1], indices=[0], updates=[2], axis="rows")',
    'irs.evaluate("ScatterElements", data=[1], indices=[0], updates=[2], reduction=1)',
    'irs.evaluate("ScatterElements", data=[1], indices=[0], updates=[2], use_init_val="no")',
    'irs.evaluate("ScatterElements", data=[1], indices=[0], updates=[2], colour=3)',
    "irs.read(3)",
    'irs.validate("m.xml", select=3)',
    'irs.compare("m.xml", on=3)',
    "irs.explain(302)",
)


@pytest.mark.long
def test_a_wrong_type_is_an_error_for_mypy(tmp_path: Path) -> None:
    path = tmp_path / "snippet.py"
    path.write_text(RIGHT + "\n".join(WRONG) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--ignore-missing-imports", str(path)],
        cwd=ROOT,
        env={"MYPYPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    first = RIGHT.count("\n") + 1
    reported = [line for line in done.stdout.splitlines() if "snippet.py:" in line and ": error:" in line]
    numbers = {int(line.split("snippet.py:")[1].split(":")[0]) for line in reported}
    assert numbers == set(range(first, first + len(WRONG))), done.stdout
