"""Every rule has a page: what it is, by its docstring, and a broken and a fixed model.

`UPDATE_README=1 pytest tests/samples` writes what comes before `<!-- end -->`, and what commands print.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ir_scatter.explain import catalogue
from ir_scatter.rules import all_rules, by_code
from ir_scatter.rules.base import END, Rule
from ir_scatter_cli.main import main
from tests.samples.pages import (
    BLOCK,
    COMMAND,
    DOCS,
    IS_UPDATE,
    check,
    copy_of_root,
    here,
    in_a_shell,
    is_plain,
)

RULES = {rule.code: rule for rule in all_rules()}
NO_MODEL = {"SCT999"}
"""A bug of ir-scatter: there is no model that shows it."""

NOTHING_TO_FIX = {"SCT901"}
_WORD = re.compile(r"^(Why|Applies to|Runtimes|Example|Fix): ", re.MULTILINE)


def head(rule: Rule) -> str:
    entry = next(one for one in catalogue() if one.code == rule.code)
    warns = f"; a warning for {', '.join(entry.warns_for)}" if entry.warns_for else ""
    parts = re.split(r"(`[^`]*`)", rule.documentation)
    text = "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
    text = _WORD.sub(r"**\1:** ", text)
    return f"# {rule.code} {rule.name}\n\nSeverity: {entry.severity}{warns}.\n\n{text}\n\n{END}"


def test_a_page_begins_with_the_rule() -> None:
    for code, rule in RULES.items():
        page, expected = DOCS / "rules" / f"{code}.md", head(rule)
        if IS_UPDATE:
            _, _, rest = page.read_text(encoding="utf-8").partition(END) if page.exists() else ("", "", "")
            page.write_text(expected + rest, encoding="utf-8")
        assert page.read_text(encoding="utf-8").startswith(expected)


def test_every_page_is_of_a_rule() -> None:
    assert {page.stem for page in (DOCS / "rules").glob("*.md")} == {*by_code(), "index"}


@pytest.mark.parametrize("code", sorted(RULES.keys() - NO_MODEL))
def test_the_broken_model_is_found_and_the_fixed_one_is_clean(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    page = DOCS / "rules" / f"{code}.md"
    folder = copy_of_root(tmp_path / "ir_scatter") if "samples/" in page.read_text("utf-8") else tmp_path
    monkeypatch.chdir(folder)
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", None), ("FORCE_COLOR", None)):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)

    def call(arguments: Sequence[str]) -> tuple[str, int]:
        monkeypatch.setattr(sys, "argv", ["ir-scatter", *arguments])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        sys.stderr.flush()
        assert isinstance(ended.value.code, int)
        return b"".join(capfdbinary.readouterr()).decode(), ended.value.code

    commands = shown_commands(page)
    check(page, folder, here(call) if all(is_plain(one) for one, _ in commands) else in_a_shell)
    first, *_, last = [out for command, out in shown_commands(page) if "ir-scatter validate " in command] * 2
    assert f" {code} " in first
    assert code in NOTHING_TO_FIX or last.startswith("no findings")


def shown_commands(page: Path) -> list[tuple[str, str]]:
    """Return the commands of the example, and what the page says that they print."""
    example = page.read_text(encoding="utf-8").partition(END)[2]
    blocks = [block[3] for block in BLOCK.finditer(example) if block[2] == "console" and not block[1]]
    return [(command[1], command[2]) for block in blocks for command in COMMAND.finditer(block)]
