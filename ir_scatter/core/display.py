"""Text and HTML for shells and notebooks: escaped characters, one-line reprs, tables."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

_T = TypeVar("_T")

_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters without a width that count as letters or marks: Default_Ignorable_Code_Point of Unicode."""
_COMMAND = re.compile(r"((?:^|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])(?:\s|\x1b\[[0-9;]*m)*):(?=:)")
_ANYWHERE = re.compile(r"#(?=#(?:vso)?\[)", re.IGNORECASE)
"""Prefixes of commands that a CI system executes when they are printed: "::" at the start of a line (GitHub
Actions), "##[" and "##vso[" anywhere in a line (GitHub Actions, Azure Pipelines)."""

LONGEST_REPR, LONGEST_MESSAGE = 200, 2000
_LONGEST, _HEAD, _TAIL = 2000, 1500, 200
_LONGEST_VALUE = 60
_MOST_ITEMS = 4
"""Longest sequence that a repr shows; of a longer one it shows the number of items."""
_MOST_ROWS = 60
_ENDS = 10
"""Rows shown at both ends of a longer table."""


def visible(text: str, keep: str = "") -> str:
    r"""Return the text with invisible characters escaped.

    Terminal escapes, line ends, text direction marks and bytes that are not UTF-8 become `\x1b`,
    `\n`, `\u202e`, `\xff`: a name inside a model can then neither move the cursor, nor look like
    another line of the report, nor fail to be encoded. Text longer than a screen is shortened.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_HEAD]}...{text[-_TAIL:]}"
    if text.isprintable() and not _IGNORABLE.search(text):
        return text
    return "".join(
        character if is_seen(character) or character in keep else _spelled(character) for character in text
    )


def is_seen(character: str) -> bool:
    """Return whether a terminal draws a character: no control, no direction mark, not of zero width."""
    return character.isprintable() and not _IGNORABLE.match(character)


def without_commands(text: str) -> str:
    r"""Escape commands for CI systems in lines of text.

    "::error::" at the beginning of a line becomes `\x3a:error::`.
    """
    return without_marks(_COMMAND.sub(r"\1\\x3a", text), r"\x23")


def without_marks(text: str, spelled: str) -> str:
    """Write the first "#" of each "##[" as `spelled`: "##[" begins CI commands anywhere in a line."""
    return _ANYWHERE.sub(lambda _: spelled, text)


def _spelled(character: str) -> str:
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a path, kept by os.fsdecode
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")


def brief(text: str, limit: int = LONGEST_REPR) -> str:
    """Shorten a text to a limit by cutting out its middle."""
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail - 3]}...{text[-tail:]}"


def short_repr(subject: object, text: str, name: str = "") -> str:
    """Return a repr of one line: a name, by default that of the type, and a text."""
    name = name or type(subject).__name__
    return f"<{name} {brief(visible(text), LONGEST_REPR - len(name) - 3)}>"


def record_repr(instance: Any) -> str:
    """Return a repr of a dataclass or named tuple without its empty fields."""
    text = ", ".join(f"{name}={_value(value)}" for name, value in _fields(instance) if not _is_nothing(value))
    return f"{type(instance).__name__}({brief(text, LONGEST_REPR - len(type(instance).__name__) - 2)})"


def record_html(instance: Any) -> str:
    """Return the fields of a dataclass or named tuple as a table of two columns."""
    rows = [(name, value if isinstance(value, str) else _value(value)) for name, value in _fields(instance)]
    return html_table((type(instance).__name__, ""), rows)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, is_brief: bool = False) -> Callable[[type[_T]], type[_T]]:
    """Make a frozen dataclass with a short repr and an HTML table; `is_brief` shortens its message."""

    def make(cls: type[_T]) -> type[_T]:
        methods: dict[str, object] = {"__repr__": record_repr, "_repr_html_": record_html}
        if is_brief:
            methods["__post_init__"] = _shorten_message
        for name in methods.keys() - vars(cls).keys():
            setattr(cls, name, methods[name])
        return dataclass(frozen=True, slots=True, eq=eq)(cls)

    return make


def _shorten_message(instance: Any) -> None:
    object.__setattr__(instance, "message", brief(instance.message, LONGEST_MESSAGE))


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], below: str = "") -> str:
    """Return an HTML table and a line below it; all cells are escaped."""
    from html import escape

    def line(cells: Iterable[object], tag: str) -> str:
        texts = (escape(brief(visible(str(cell)), LONGEST_REPR)) for cell in cells)
        return "".join(f'<{tag} style="text-align: left">{text}</{tag}>' for text in texts)

    lines = [line(row, "td") for row in rows]
    if len(lines) > _MOST_ROWS:
        hidden = len(lines) - 2 * _ENDS
        lines[_ENDS:-_ENDS] = [f'<td colspan="{len(header)}">… {hidden} more …</td>']
    body = "".join(f"<tr>{text}</tr>\n" for text in lines)
    table = f"<table>\n<thead><tr>{line(header, 'th')}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"
    return (table if lines else "") + (f"<p>{escape(visible(below))}</p>\n" if below else "")


def html_text(text: str) -> str:
    """Return lines of text as HTML, as a terminal shows them."""
    from html import escape

    lines = "\n".join(map(visible, text.split("\n")))
    return f"<pre>{escape(lines)}</pre>\n"


def _fields(instance: Any) -> list[tuple[str, Any]]:
    if isinstance(instance, tuple):
        names = instance._fields  # type: ignore[attr-defined]
    else:
        names = [name for name, field in instance.__dataclass_fields__.items() if field.repr]
    return [(name, getattr(instance, name)) for name in names if not name.startswith("_")]


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | tuple | dict) and not value)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return repr(brief(str(value), _LONGEST_VALUE))
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, tuple | list | dict | set | frozenset) and not hasattr(value, "_fields"):
        if len(value) > _MOST_ITEMS:
            return f"<{len(value)} items>"
        if isinstance(value, dict):
            return brief("{" + ", ".join(f"{key!r}: {_value(item)}" for key, item in value.items()) + "}")
        return brief(f"[{', '.join(map(_value, value))}]")
    return brief(repr(value), _LONGEST_VALUE)
