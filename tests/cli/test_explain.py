"""`ir-scatter explain`."""

import pytest

from ir_scatter.ops.lookup import SPECS
from ir_scatter.rules import all_rules
from tests.cli.conftest import Cli

RULES = [rule.code for rule in all_rules()]
OPERATORS = [str(key) for key in SPECS]


@pytest.mark.parametrize("code", RULES)
def test_every_rule(cli: Cli, code: str) -> None:
    result = cli("explain", code)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{code} ")
    assert "\nFix: " in result.out
    assert "Why: " in result.out


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator(cli: Cli, operator: str) -> None:
    result = cli("explain", operator)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{operator} (")
    assert all(
        f"\n{title}\n" in result.out for title in ("Inputs", "Output", "Rules", "Valid in", "Document")
    )
    assert "https://" in result.out


def test_names_and_any_case(cli: Cli) -> None:
    by_code = cli("explain", "SCT203").out
    assert cli("explain", "sct203").out == by_code
    assert cli("explain", "updates-shape-mismatch").out == by_code
    assert cli("explain", "scatternd-18").out == cli("explain", "ScatterND-18").out


def test_an_operator_without_a_version_stands_for_all(cli: Cli) -> None:
    text = cli("explain", "ScatterElements").out
    assert [text.count(f"ScatterElements-{version} (") for version in (11, 13, 16, 18)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("SCT2033", "SCT203"),
        ("update-shape-mismatch", "updates-shape-mismatch"),
        ("ScatterNDUpdat-15", "ScatterNDUpdate-15"),
        ("ScatterElement-16", "ScatterElements-16"),
    ],
)
def test_close_matches_are_named(cli: Cli, topic: str, meant: str) -> None:
    result = cli("explain", topic)
    assert (result.code, result.out) == (2, "")
    assert "did you mean" in result.err
    assert meant in result.err


@pytest.mark.parametrize("topic", ["nonsense", "", "\x1b[31m", "é"])
def test_what_is_like_nothing(cli: Cli, topic: str) -> None:
    result = cli("explain", topic)
    assert (result.code, result.out) == (2, "")
    assert "SCT203 or ScatterNDUpdate-15" in result.err
    assert "\x1b" not in result.err
