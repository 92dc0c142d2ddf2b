import pytest

from ir_scatter.report.characters import visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("layer é 层 🙂", "layer é 层 🙂"),
        ("C:\\models", "C:\\models"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x7f\x9b", "\\x7f\\x9b"),
        ("\u202eabc\u2028", "\\u202eabc\\u2028"),
        ("m\udcff.xml", "m\\xff.xml"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_characters_can_be_kept() -> None:
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"
