"""`ir-scatter explain`."""

import pytest

from ir_scatter.explain import explain
from tests.cli.conftest import Cli, Result


def test_it_prints_the_explanation(cli: Cli) -> None:
    assert cli("explain", "scatternd-18") == Result(0, explain("ScatterND-18"), "")
    result = cli("explain", "SCT2033")
    assert (result.code, result.out) == (2, "")
    assert "did you mean SCT203" in result.err


@pytest.mark.parametrize("topic", ["nonsense", "", "\x1b[31m", "é"])
def test_what_is_like_nothing(cli: Cli, topic: str) -> None:
    result = cli("explain", topic)
    assert (result.code, result.out) == (2, "")
    assert "SCT203 or ScatterNDUpdate-15" in result.err
    assert "\x1b" not in result.err
