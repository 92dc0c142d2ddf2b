"""The README at the root: its tables, its set-up commands, and what else must agree with it."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.samples import tables

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CI = ROOT / ".ci" / "run"


def _between(text: str, name: str) -> str:
    found = re.search(rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)", text, re.DOTALL)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(("name", "table"), [("operators", tables.operators), ("rules", tables.rules)])
def test_the_tables_are_those_of_the_code(name: str, table: Callable[[], str]) -> None:
    text, expected = README.read_text(encoding="utf-8"), f"\n{table()}\n\n"
    if os.environ.get("UPDATE_README"):
        text = text.replace(f"<!-- {name} -->\n{_between(text, name)}", f"<!-- {name} -->\n{expected}")
        README.write_text(text, encoding="utf-8")
    assert _between(text, name) == expected


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


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    shown = subprocess.run([str(CI), "--show"], capture_output=True, text=True, check=True, cwd=ROOT)
    commands = shown.stdout.splitlines()
    assert commands[0] == _set_up_commands()[1]
    assert _set_up_commands()[1] not in CI.read_text()


def test_pre_commit_has_the_commands_of_continuous_integration() -> None:
    shown = subprocess.run([str(CI), "--show"], capture_output=True, text=True, check=True, cwd=ROOT)
    hooks = re.findall(r"^\s+entry: (.*)$", (ROOT / ".pre-commit-config.yaml").read_text(), re.MULTILINE)
    tools = [command.removeprefix(".venv/bin/") for command in shown.stdout.splitlines()[1:]]
    *quick, slow = tools
    assert quick == ["ruff check", "ruff format --check", "mypy", "lint-imports"]
    assert hooks == [*quick, "pytest -q -n 2", slow]


def test_every_link_leads_to_a_file() -> None:
    for readme in [README, *ROOT.glob("samples/*/README.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", readme.read_text(encoding="utf-8")):
            assert (readme.parent / target).exists(), f"{readme}: {target}"
