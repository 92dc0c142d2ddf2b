"""From the bytes of an XML file to UTF-8 that is known to be well-formed, with exact places."""

import codecs
import re
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from lxml import etree

from ir_scatter.core.diagnostics import Location
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.formats.openvino.xml_characters import well_formed

MAX_DEPTH = 256

_DECLARATION = re.compile(rb"<\?xml\s[^>]*?\?>")
_ENCODING = re.compile(rb"""(\sencoding\s*=\s*)(["'])([A-Za-z0-9._-]+)\2""")
_MISC = re.compile(rb"(?:\s+|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_ROOT = re.compile(rb"""<([^\s/>"'<=&]+)((?:\s[^<>"'/]*+(?:(?:"[^"<]*"|'[^'<]*')[^<>"'/]*+)*+)?)/?>""")
_POSITION = re.compile(r"(?:, line \d+(?:, column \d+)?)+(?: \(.*\))?$")
_JARGON = re.compile(r"^xml\w+ ?: |, try XML_PARSE_HUGE$")
_UTF8_NAMES = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_NO_CHARACTER_SETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CONTINUATION = bytes(range(0x80, 0xC0))
_STEP = 1 << 13
_LINE_LIMIT = 1 << 16


class Root(NamedTuple):
    """The root element: its name, the text of its attributes, and its first byte."""

    name: str
    attributes: bytes
    start: int


class XmlText:
    """An XML file as UTF-8, and the way from a byte offset to a line and a column.

    Attributes:
        path: as the caller named it.
        data: UTF-8 without a byte order mark.
        mark: the byte order mark that a UTF-8 file begins with, or nothing.
        is_transcoded: whether the file itself is in another encoding.
        has_asides: whether there are comments, processing instructions or CDATA sections.
    """

    def __init__(self, path: str, raw: bytes) -> None:
        self.path = path
        self.mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        self.data, self.is_transcoded = _to_utf8(path, raw)
        self.has_asides = False
        data = self.data
        self._breaks = _Tally(lambda start, end: data.count(b"\n", start, end))
        self._characters = _Tally(lambda start, end: len(data[start:end].translate(None, _CONTINUATION)))
        self._starts: dict[int, int] = {1: 0}

    def location(self, offset: int, scope: str = "") -> Location:
        """Return the place of a byte, with the column counted in characters."""
        line = self._breaks.before(offset) + 1
        start = self._starts.get(line)
        if start is None:
            start = self._starts[line] = self.data.rfind(b"\n", 0, offset) + 1
        if offset - start < _STEP:
            column = len(self.data[start:offset].decode("utf-8", "replace")) + 1
        else:
            column = self._characters.before(offset) - self._characters.before(start) + 1
        return Location(self.path, line, column, scope)

    def line(self, number: int) -> str:
        """Return the beginning of a line, counted from 1; empty behind the last."""
        start = self._starts.get(number)
        if start is None:
            found = next(islice(re.finditer(rb"\n", self.data), number - 2, None), None)
            if found is None:
                return ""
            start = found.end()
        end = self.data.find(b"\n", start, start + _LINE_LIMIT)
        text = self.data[start : start + _LINE_LIMIT if end < 0 else end]
        return text.decode("utf-8", "replace").rstrip("\r")

    def root(self) -> Root | None:
        """Return the root element, None if there is none.

        Raises:
            UnreadableModel: the file has a DOCTYPE.
        """
        start = _skip_prolog(self.data)
        if self.data.startswith(b"<!DOCTYPE", start):
            raise UnreadableModel(
                "doctype",
                "the file has a DOCTYPE, expected none: entities are not read",
                self.location(start),
            )
        match = _ROOT.match(self.data, start)
        return Root(match[1].decode("utf-8", "replace"), match[2], start) if match else None

    def check_well_formed(self) -> None:
        """Demand well-formed XML nested at most 256 deep; note whether it has asides.

        Characters that `save_model` writes although XML does not have them are let pass.

        Raises:
            UnreadableModel: with the place where it is not.
        """
        asides = _Asides()
        target: Any = asides  # the stubs ask for every event
        parser = etree.XMLParser(target=target, resolve_entities=False, no_network=True)
        try:
            etree.fromstring(well_formed(self.data), parser)
        except etree.XMLSyntaxError as error:
            raise self._malformed(error) from None
        self.has_asides = asides.found or (b"!" in self.data and b"<![CDATA[" in self.data)

    def _malformed(self, error: etree.XMLSyntaxError) -> UnreadableModel:
        line, column = error.position
        location = Location(self.path, line or 1, max(column, 1))
        message = " ".join((error.msg or "syntax error").split())
        message = _JARGON.sub("", _POSITION.sub("", message))
        if "xcessive depth" in message:
            return UnreadableModel(
                "nested-too-deep",
                f"elements are nested deeper than {MAX_DEPTH}",
                location,
            )
        return UnreadableModel("malformed-xml", f"not well-formed XML: {message}", location)


class _Tally:
    """Counts something before a byte, and remembers the counts before every 8,192nd byte.

    Findings jump to and fro between nodes and the constants that they read.
    """

    def __init__(self, count: Callable[[int, int], int]) -> None:
        self._count = count
        self._sums = [0]

    def before(self, offset: int) -> int:
        """Return the count of the bytes before `offset`."""
        step = offset // _STEP
        while len(self._sums) <= step:
            end = len(self._sums) * _STEP
            self._sums.append(self._sums[-1] + self._count(end - _STEP, end))
        return self._sums[step] + self._count(step * _STEP, offset)


class _Asides:
    """Takes no event but asides, so that libxml2 checks the text and builds no tree."""

    found = False

    def comment(self, _: str) -> None:
        """Note a comment."""
        self.found = True

    def pi(self, _: str, __: str | None = None) -> None:
        """Note a processing instruction."""
        self.found = True

    def close(self) -> None:
        """Return nothing."""


def shown(text: str, limit: int = 40) -> str:
    """Return a text of the file as a message shows it: not at any length."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def _skip_prolog(data: bytes) -> int:
    match = _MISC.match(data)
    return match.end() if match else 0


def _to_utf8(path: str, raw: bytes) -> tuple[bytes, bool]:
    for mark, name in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _transcode(path, raw, name), True
    data = raw.removeprefix(b"\xef\xbb\xbf")
    declaration = _DECLARATION.match(data)
    encoding = _ENCODING.search(declaration[0]) if declaration else None
    if encoding is None or encoding[3].decode("ascii").lower() in _UTF8_NAMES:
        return data, False
    return _transcode(path, raw, encoding[3].decode("ascii")), True


def _transcode(path: str, raw: bytes, name: str) -> bytes:
    try:
        if codecs.lookup(name).name in _NO_CHARACTER_SETS:
            raise LookupError(name)
        text = raw.decode(name)
    except (LookupError, UnicodeError):
        raise UnreadableModel(
            "malformed-xml", f"the file is not in its encoding {name}", Location(path, 1, 1)
        ) from None
    data = text.encode("utf-8", "replace")
    declaration = _DECLARATION.match(data)
    if declaration is None:
        return data
    blank = _ENCODING.sub(lambda match: b" " * len(match[0]), declaration[0])
    return blank + data[declaration.end() :]
