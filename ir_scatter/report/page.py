"""Frame of HTML pages, shared by all results: the head, the style, escaping of names."""

from collections.abc import Iterable
from html import escape
from importlib.resources import files

from ir_scatter.report.characters import visible


def document(title: str, body: Iterable[str], *styles: str) -> str:
    """Return a self-contained page with the common style sheet and the given additional ones."""
    folder = files("ir_scatter.report")
    names = ("comparison_html/style.css", *styles)
    style = "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{plain(title)}</title>",
            f'<style>\n{style}</style>\n</head>\n<body id="top">',
            '<a class="skip" href="#found">Skip to the results</a>',
            *body,
            "</body>\n</html>\n",
        ]
    )


def plain(text: str) -> str:
    """Escape untrusted text: no tags, and invisible characters spelled out."""
    return escape(visible(text))


def name_span(text: str) -> str:
    return f'<span class="name">{plain(text)}</span>'
