"""Kinds of values that options take."""

from typing import Any

import click
import pytest

from ir_scatter_cli.options import OPSET, SIZE, Number, SuggestingChoice

RIGHT = [
    (SIZE, "1073741824", 1 << 30), (SIZE, "1GiB", 1 << 30), (SIZE, "1 gib", 1 << 30),
    (SIZE, "500MB", 500_000_000), (SIZE, "1.5KiB", 1536), (SIZE, "3TB", 3 * 10**12), (SIZE, "7B", 7),
    (SIZE, 42, 42), (OPSET, "18", 18), (OPSET, "opset18", 18), (OPSET, "Opset9", 9),
    (Number(min=0), "0", 0), (Number(), 7, 7), (SuggestingChoice(["a", "b"]), "b", "b"),
]  # fmt: skip
WRONG = [
    *((SIZE, text, "is not a size, expected a number of bytes, or 500MB, 1.5GiB") for text in (
        "", "0", "-1", "1G", "GiB", "1 2", "1e3", "0.5B", "9" * 400, "1GiB\n1", "inf", "nan",
    )),
    (OPSET, "eleven", "is not a whole number"), (Number(), "1.5", "is not a whole number"),
    (Number(min=1), "0", "not in the range"), (Number(), "inf", "is not a whole number"),
    (SuggestingChoice(["text", "json"]), "jsn", "is not one of text, json (did you mean json?)"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), RIGHT)
def test_what_is_meant(kind: Any, text: Any, value: Any) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(("kind", "text", "message"), WRONG)
def test_what_means_nothing(kind: Any, text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        kind.convert(text, None, None)
    assert message in caught.value.message
