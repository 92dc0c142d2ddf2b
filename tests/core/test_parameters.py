"""Parameters in messages: arguments for Python, options on the command line, each of them one that exists."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from ir_scatter.core.parameters import Invocation, Parameter, Text, current_spelling, in_python, spelled
from ir_scatter_cli.spelling import OptionSpelling, option_of

ROOT = Path(__file__).parents[2] / "ir_scatter"

SPELLINGS = [
    (Parameter("tolerance"), "compare", "tolerance", "--tolerance"),
    (Parameter("overwrite", True), "compare", "overwrite=True", "--overwrite"),
    (Parameter("reference", False), "compare", "reference=False", "--no-reference"),
    (Parameter("targets"), "validate", "targets", "--for"),
    (Parameter("verify", 0), "convert", "verify=0", "--verify 0"),
    (Parameter("guard", "drop", "convert"), "validate", 'guard="drop"', "--guard drop"),
    (Parameter("map_inputs", {"A": "B"}), "compare", 'map_inputs={"A": "B"}', "--map-input A=B"),
    (Parameter("output"), "fuzz", "output", "-o"),
    (Parameter("tap_memory"), "worker", "tap_memory", "--tap-memory"),
    (
        Invocation("convert", {"guard": "wrap"}),
        "doctor",
        'convert(guard="wrap")',
        "ir-scatter convert --guard wrap",
    ),
    (
        Invocation("convert", {"sources": "ScatterUpdate"}, ("m.xml",), "NEW.xml"),
        "validate",
        'convert("m.xml", sources="ScatterUpdate").write("NEW.xml")',
        "ir-scatter convert m.xml --from ScatterUpdate -o NEW.xml",
    ),
    (
        Invocation("compare", {"on": ["numpy", "CPU"], "inputs": "a b.npz"}, ("-m.xml",)),
        "compare",
        'compare("-m.xml", on=["numpy", "CPU"], inputs="a b.npz")',
        "ir-scatter compare ./-m.xml --on numpy --on CPU --inputs 'a b.npz'",
    ),
]


@pytest.mark.parametrize(("part", "command", "python", "option"), SPELLINGS)
def test_each_caller_reads_its_own_spelling(
    part: Parameter | Invocation, command: str, python: str, option: str
) -> None:
    assert str(part) == f"{part}" == python
    with spelled(OptionSpelling(command).spell):
        assert str(part) == option
    assert current_spelling() is in_python


def test_a_text_is_spelled_when_it_is_read() -> None:
    text = Text("use {}", Parameter("guard", "clamp", "convert"))
    assert str(text) == 'use guard="clamp"'
    with spelled(OptionSpelling("doctor").spell):
        assert f"{text}" == "use --guard clamp"


COMMANDS = ("compare", "convert", "doctor", "fuzz", "validate", "inspect", "worker", "scheduler")


def _parts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the function, "" for any, and the name of each parameter that a module names in full."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        words = [word.value for word in node.args if isinstance(word, ast.Constant)]
        if node.func.id == "Parameter" and isinstance(node.args[0], ast.Constant):
            yield str(words[2]) if len(words) > 2 else "", str(words[0])


def test_every_parameter_has_an_option() -> None:
    declared = [(path.name, *part) for path in ROOT.rglob("*.py") for part in _parts(path)]
    assert len(declared) > 30
    for module, function, name in declared:
        commands = [function] if function else COMMANDS
        options = {
            option
            for command in commands
            for param in __import__(f"ir_scatter_cli.{command}", fromlist=["command"]).command.params
            for option in param.opts
        }
        assert any(option_of(command, name) in options for command in commands), (module, name)
