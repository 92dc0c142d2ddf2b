"""What DESIGN asks of the repository as a whole."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import ir_scatter.rules
from ir_scatter.ops.lookup import SPECS
from ir_scatter.rules import all_rules
from tests.rules.expectations import FOLDER, case_files, ir_expectations, onnx_expectations

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = sorted((ROOT / "ir_scatter").rglob("*.py"))
COMMANDS = sorted((ROOT / "cli").rglob("*.py"))

IN_PYTHON = {
    "SCT307": "../test_lint.py",
    "SCT901": "test_unreadable.py",
    "SCT902": "test_unreadable.py",
    "SCT903": "test_unreadable.py",
    "SCT904": "test_unreadable.py",
    "SCT905": "test_unreadable.py",
    "SCT906": "test_unreadable.py",
    "SCT907": "test_unreadable.py",
    "SCT908": "test_unreadable.py",
    "SCT909": "test_unreadable.py",
    "SCT933": "../formats/test_onnx_external.py",
    "SCT934": "../core/test_atomic_write.py",
    "SCT940": "../test_lint.py",
    "SCT941": "../formats/test_onnx_functions.py",
    "SCT942": "../cli/test_for.py",
    "SCT999": "../cli/test_main.py",
}
"""Rules whose cases are no case files: those about files that cannot be read, options, runtimes."""


@cache
def expected_codes() -> dict[str, set[str]]:
    """Return the codes that each case file expects, by its name."""
    found = {}
    for path in case_files(".xml"):
        found[path.name] = {one.code for one in ir_expectations(path.read_text())}
    for path in case_files(".onnxtxt"):
        found[path.name] = {one.code for one in onnx_expectations(path.read_text())}
    return found


def test_the_import_contracts_are_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_layers_of_the_page_are_those_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    expected = [{name.removeprefix("ir_scatter.") for name in layer.split(" | ")} for layer in layers]
    page = (ROOT / "ir_scatter" / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", page.partition("| layer |")[2].partition("\n\n")[0], re.MULTILINE)
    assert [{name.removeprefix("cli/") for name in re.findall("`(.*?)`", row)} for row in rows] == expected
    modules = {path.stem for path in (ROOT / "ir_scatter").iterdir() if path.suffix == ".py"}
    packages = {path.parent.name for path in (ROOT / "ir_scatter").glob("*/__init__.py")}
    layers_of_library = set().union(*expected) - {"ir_scatter_cli"}
    assert modules | packages == layers_of_library | {"__init__"}


def test_the_page_about_adding_names_files_that_exist() -> None:
    page = (ROOT / "ir_scatter" / "docs" / "contributing.md").read_text()
    paths = re.findall("`((?:ir_scatter|cli|tests|samples)/.*?)`", page)
    assert len(paths) > 20
    names = r"(name|CODE|CODE_name|COMMAND|FOLDER)\b"  # which stand for those of what is added
    missing = [path for path in paths if not (ROOT / re.split(names, path)[0]).exists()]
    assert missing == []


def docstrings(tree: ast.AST) -> set[ast.expr]:
    """Return the nodes that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            found.add(body[0].value)
    return found


def probed(tree: ast.AST) -> set[ast.expr]:
    """Return the nodes that are the operator of a probe, a case of the table, or an example in a help."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and len(node.args) > 1]
    names = {"Probe", "example"}
    return {call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id in names}


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string literals of a file that are no docstrings and no cases, with their lines."""
    tree = ast.parse(path.read_text())
    skipped = docstrings(tree) | probed(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.lineno, node.value


NAMES = re.compile(rf"\b({'|'.join(sorted({key.type for key in SPECS}))})\b")


def test_no_code_asks_for_an_operator_by_name() -> None:
    """A name in a sentence for the user is none that the code asks for."""
    found = [
        (path.relative_to(ROOT).as_posix(), line, text)
        for path in (*LIBRARY, *COMMANDS)
        if "ops" not in (path.parent.name, path.parent.parent.name)
        for line, text in literals(path)
        if NAMES.search(text) and " " not in text
    ]
    assert found == []


def test_codes_and_names_are_unique() -> None:
    codes = [rule.code for rule in all_rules()]
    names = [rule.name for rule in all_rules()]
    assert len(codes) == len(set(codes)) == len(set(names))
    for rule in all_rules():
        assert re.fullmatch(r"SCT[1-59]\d\d", rule.code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)


def test_every_check_is_named_like_its_rule_and_documents_it() -> None:
    for rule in all_rules():
        if rule.check is not None:
            assert rule.check.__name__ == rule.name.replace("-", "_")
            assert rule.text == inspect.getdoc(rule.check)


def test_a_rule_says_what_why_and_how_to_mend() -> None:
    order = ["Why", "Applies to", "Runtimes", "Example", "Fix"]
    for rule in all_rules():
        parts = rule.documentation.split("\n\n")
        assert parts[0].endswith("."), rule.code
        starts = [part.split(":")[0] for part in parts[1:]]
        known = [start for start in starts if start in order]
        assert known == sorted(known, key=order.index), rule.code
        assert known[-1] == "Fix", rule.code
        assert set(starts) >= ({"Why"} if rule.check is None else set(order)), rule.code


@cache
def asserted_texts(path: Path) -> set[str]:
    """Return the texts that tests of a file compare with something, or are given as cases."""
    tree, found = ast.parse(path.read_text()), set[ast.AST]()
    constants: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            constants |= dict.fromkeys(names, node.value)
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
            found |= {node for node in ast.walk(test) if isinstance(node, ast.Assert | ast.Compare)}
            found |= {node for node in test.decorator_list if "parametrize" in ast.unparse(node)}
    for _ in range(2):  # the names in a case may be those of other constants
        used = {node.id for part in found for node in ast.walk(part) if isinstance(node, ast.Name)}
        found |= {constants[name] for name in used & constants.keys()}
    texts = (node for part in found for node in ast.walk(part) if isinstance(node, ast.Constant))
    return {node.value for node in texts if isinstance(node.value, str)}


def test_a_rule_has_positive_and_negative_cases() -> None:
    for rule in all_rules():
        if rule.code in IN_PYTHON:
            asserted = asserted_texts((FOLDER / IN_PYTHON[rule.code]).resolve())
            assert any(rule.code in text or rule.name == text for text in asserted), rule.code
            continue
        own = [codes for name, codes in expected_codes().items() if name.startswith(f"{rule.code}_")]
        assert {rule.code in codes for codes in own} == {True, False}, rule.code


def test_cases_expect_the_rule_that_they_are_named_for() -> None:
    for name, expected in expected_codes().items():
        assert (name[:6] in expected) == ("_legal." not in name), name


def test_each_format_has_cases_of_each_rule_that_concerns_it() -> None:
    """What only one of the formats can break."""
    only_ir = {"SCT106", "SCT108", "SCT205", "SCT211", "SCT212", "SCT214", "SCT503", "SCT504"}
    only_onnx = {"SCT107", "SCT208", "SCT401", "SCT404"}
    checks = {rule.code for rule in all_rules() if rule.check is not None} - IN_PYTHON.keys()
    codes = expected_codes()
    for suffix, missing in ((".xml", only_onnx), (".onnxtxt", only_ir)):
        found = set().union(*(expected for name, expected in codes.items() if name.endswith(suffix)))
        assert checks - missing <= found


def test_the_library_is_typed_and_says_so() -> None:
    assert (ROOT / "ir_scatter" / "py.typed").exists()
    for name in ir_scatter.__all__:
        assert hasattr(ir_scatter, name)


def test_tests_name_no_place_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.])/(?:home|work|root|tmp|Users)/\w")
    for folder in ("ir_scatter", "cli", "tests", "samples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != Path(__file__).resolve():
                assert not pattern.search(path.read_text()), path
