"""Rules and reasons of refusals as text."""

import textwrap
from collections.abc import Sequence

from ir_scatter.explain import Entry

_WIDTH = 80
_INDENT = "        "


def render(entries: Sequence[Entry]) -> str:
    lines: list[str] = []
    for entry in entries:
        lines.append(f"{entry.code}  {entry.name} ({entry.severities})")
        lines += textwrap.wrap(entry.summary, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return "".join(f"{line}\n" for line in lines)
