"""The README at the root and the pages: their tables, set-up commands, links, and what else must agree."""

import inspect
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import ir_scatter
from ir_scatter.explain import REFUSAL, catalogue
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.scatter_onnx import LATEST_OPSET
from ir_scatter.ops.spec import Attribute, OpSpec
from ir_scatter.rewrites.refusals import Reason
from ir_scatter_cli.main import group
from tests.report.json_schemas import NAMES, fields, schema_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "ir_scatter" / "docs"
CI = ROOT / ".ci" / "run"


def operators() -> Iterator[str]:
    yield "| operator | valid in | inputs | shape of updates | index values | attributes | specification |"
    yield "|---|---|---|---|---|---|---|"
    for spec in SPECS.values():
        attributes = "; ".join(map(_attribute, spec.attributes)) or "none"
        cells = [
            f"[{spec.key}]({spec.key.type}.md#{str(spec.key).lower()})",
            _opsets(spec),
            spec.input_names(),
            f"`{spec.updates_formula}`",
            f"`{spec.index_range}`",
            attributes,
            f"[specification]({spec.url})",
        ]
        yield f"| {' | '.join(cells)} |"


def _attribute(row: Attribute) -> str:
    return f"{row.name}: {', '.join(row.choices)}" if row.choices else row.name


def _opsets(spec: OpSpec) -> str:
    first, last = spec.opsets[0], spec.opsets[-1]
    if isinstance(first, str):
        return f"{first} to {last}"
    span = f"opset {first} and above" if last == LATEST_OPSET else f"opset {first} to {last}"
    return f"{span}, deprecated" if spec.is_removed else span


def rules() -> Iterator[str]:
    yield "| code | name | severity | what is wrong |"
    yield "|---|---|---|---|"
    for one in catalogue():
        if one.severity != REFUSAL:
            yield f"| [{one.code}]({one.code}.md) | {one.name} | {one.severities} | {one.summary} |"


def json_fields() -> Iterator[str]:
    for name in NAMES:
        schema = schema_of(name)
        yield f"## {schema['title'].removeprefix('ir-scatter ').removesuffix(' --format json')}"
        yield ""
        yield f"`{schema['title']}`, [{name}.schema.json](schemas/{name}.schema.json)"
        yield ""
        yield "| field | type | what |"
        yield "|---|---|---|"
        for path, kind, what in fields(schema):
            if path not in {"schema", "versions"}:
                yield f"| `{path}` | {kind} | {what} |"
        yield ""


def api() -> Iterator[str]:
    """Yield the docstring of each public name, functions first."""
    public = [(name, getattr(ir_scatter, name)) for name in ir_scatter.__all__ if name != "__version__"]
    kinds: dict[str, list[tuple[str, Any]]] = {
        "Functions": [(name, item) for name, item in public if inspect.isfunction(item)],
        "Classes": [
            (name, item) for name, item in public if inspect.isclass(item) and not issubclass(item, Exception)
        ],
        "Exceptions": [
            (name, item) for name, item in public if inspect.isclass(item) and issubclass(item, Exception)
        ],
    }
    for title, items in kinds.items():
        yield f"## {title}"
        yield ""
        for name, item in items:
            yield f"### {name}"
            yield ""
            yield "```text"
            yield f"{name}{_signature(item)}" if title == "Functions" else name
            yield ""
            yield from (inspect.getdoc(item) or "").splitlines()
            yield "```"
            yield ""


def _signature(function: Any) -> str:
    """Return the parameters with their defaults; their types are in the docstring."""
    signature = inspect.signature(function)
    plain = [row.replace(annotation=inspect.Parameter.empty) for row in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


TABLES = {"api.md": api, "json.md": json_fields, "operators/index.md": operators, "rules/index.md": rules}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_those_of_the_code(name: str) -> None:
    page = DOCS / name
    text, expected = page.read_text(encoding="utf-8"), "\n" + "\n".join(TABLES[name]()) + "\n\n"
    found = re.search(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", text, re.DOTALL)
    assert found is not None
    if os.environ.get("UPDATE_README"):
        page.write_text(text[: found.start()] + expected + text[found.end() :], encoding="utf-8")
    else:
        assert found[0] == expected


def test_every_refusal_has_its_row() -> None:
    page = (DOCS / "refusals.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (CVT\d+) \| (\S+) \| [A-Z][^|]*\. \| [^|]+\. \|(?: [^|]+\.)? \|$", page, re.MULTILINE
    )
    assert rows == [(reason.value, reason.rule) for reason in Reason]


def _set_up_commands() -> list[str]:
    text = README.read_text(encoding="utf-8")
    section = text.partition("## Set up")[2].partition("\n## ")[0]
    return [block.strip() for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)]


def test_two_lines_set_everything_up() -> None:
    commands = _set_up_commands()
    assert len(commands) == 2
    assert all("\n" not in command for command in commands)
    assert all(command.startswith("python3 -m venv .venv && ") for command in commands)
    assert "ir-scatter validate samples/" in commands[0]
    assert "'.[test]'" in commands[1]
    assert "pytest" in commands[1]


def test_the_readme_has_an_example_of_every_command() -> None:
    text = README.read_text(encoding="utf-8")
    shown = set(re.findall(r"^\$ ir-scatter (\S+)", text, re.MULTILINE))
    assert shown == set(group.list_commands(click.Context(group)))
    assert text.count("\n") <= 200  # set-up and extras come before the examples that need them


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    shown = subprocess.run([str(CI), "--show"], capture_output=True, text=True, check=True, cwd=ROOT)
    commands = shown.stdout.splitlines()
    assert commands[0] == _set_up_commands()[1]
    assert _set_up_commands()[1] not in CI.read_text()


def test_pre_commit_has_the_commands_of_continuous_integration() -> None:
    shown = subprocess.run([str(CI), "--show"], capture_output=True, text=True, check=True, cwd=ROOT)
    hooks = re.findall(r"^\s+entry: (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    tools = [command.removeprefix(".venv/bin/") for command in shown.stdout.splitlines()[1:]]
    *quick, site, slow = tools
    assert "zensical build" in site  # a tool that those who write no pages need not install
    assert quick == ["ruff check", "ruff format --check", "mypy", "lint-imports"]
    assert hooks == [*quick, "pytest -q -n 2", slow]


def test_extras_are_installed_before_the_examples_that_need_them() -> None:
    """A fresh environment has what the blocks before installed; `test_fresh_environment` runs them in one."""
    needs = {"onnxruntime": "onnxruntime", "GPU@cpu": "gpu-on-cpu", "scheduler": "fleet", "worker": "fleet"}
    text, extras = README.read_text(encoding="utf-8"), set[str]()
    # The line for those who work on ir_scatter makes another environment.
    for kind, block in re.findall(r"^```(sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if kind == "sh" and "pytest" not in block:
            extras |= {extra for words in re.findall(r"\[([\w,-]+)\]", block) for extra in words.split(",")}
        commands = "\n".join(line for line in block.splitlines() if line.startswith("$ ir-scatter"))
        for word, extra in needs.items():
            assert kind == "sh" or word not in commands or extra in extras, f"{word} needs {extra}: {block}"


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    """Pages of rules and defects are listed by their tables."""
    site = tomllib.loads((ROOT / ".zensical.toml").read_text(encoding="utf-8"))
    assert site["project"]["site_name"] == f"ir_scatter {ir_scatter.__version__}"
    listed = [*_pages_of(site["project"]["nav"])]
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md")}
    # Pages of a rule and of a defect are reached from their table, and by search.
    expected = {page for page in pages if not re.fullmatch(r"(rules|defects)/[A-Z]+\d+\.md", page)}
    assert sorted(listed) == sorted(expected)


def _pages_of(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    else:
        for child in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages_of(child)


def test_every_link_leads_to_a_file() -> None:
    for page in [README, *ROOT.glob("samples/*/README.md"), *ROOT.glob("ir_scatter/docs/**/*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"
