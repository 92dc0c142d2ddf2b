"""Every command explains itself: what it does, examples that run, options in groups."""

import re
import shlex

import click
import pytest

from ir_scatter_cli.main import group
from ir_scatter_cli.options import SECTIONS, Command
from tests.cli.conftest import Cli

NAMES = group.list_commands(click.Context(group))


def commands() -> dict[str, Command]:
    found = {name: group.get_command(click.Context(group), name) for name in NAMES}
    assert all(isinstance(one, Command) for one in found.values())
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_a_terminal(cli: Cli, name: str) -> None:
    result = cli(*name.split(), "--help")
    assert (result.code, result.err) == (0, "")
    assert max(map(len, result.out.splitlines())) <= 80
    assert "\nExamples:\n" in result.out
    assert "\\b" not in result.out
    assert "=None" not in result.out


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_in_one_group(cli: Cli, name: str) -> None:
    command = commands()[name]
    options = [option.opts[-1] for option in command.params if isinstance(option, click.Option)]
    titles = [SECTIONS[option] for option in command.params if option in SECTIONS]
    assert len(titles) in {0, len(options)}, "each option is in a section, or none is"
    out = cli(name, "--help").out
    assert re.findall(r"^(\w.*):$", out, re.MULTILINE) == ["Examples", *dict.fromkeys(titles or ["Options"])]
    for option in options:
        assert len(re.findall(rf"^  (?:-\w, )?{option}\b(?!-)", out, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_one(name: str) -> None:
    command = commands()[name]
    assert command.examples
    for _, line in command.examples:
        command.make_context(name, shlex.split(line.partition(" <")[0]))
