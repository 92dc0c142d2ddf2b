"""The XML text of an IR: decodes it, checks that it is well-formed, and finds places and elements.

OpenVINO's reader accepts a few characters that XML forbids: `save_model` writes control characters of
names as references (`&#01;`), and U+FFFE and U+FFFF unchanged. libxml2 gets other characters in their
place.
"""

import codecs
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

from lxml import etree

from ir_scatter.core.diagnostics import Excerpt, Location, Span
from ir_scatter.core.errors import UnreadableModel

MAX_DEPTH = 256
"""Limit of nested elements: the limit of libxml2 without `huge_tree`."""


TOKEN = re.compile(
    rb"<(?:!--.*?--|!\[CDATA\[.*?\]\]|\?.*?\?"
    rb"""|(/?)([^\s/><"'=&]++)[^"'>]*+(?:(?:"[^"]*"|'[^']*')[^"'>]*+)*+)>""",
    re.DOTALL,
)
"""Pattern of a tag (groups: slash, name), or of a comment and the like (no name), in well-formed XML."""
ATTRIBUTE = re.compile(rb"""([^\s=/"'<>]+)\s*=\s*("[^"]*"|'[^']*')""")

_ENCODING = re.compile(rb"""(<\?xml\s[^>]*?)(\sencoding\s*=\s*(["'])([A-Za-z0-9._-]+)\3)(?=[^>]*\?>)""")
_PROLOG = re.compile(rb"(?:\s+|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
_JARGON = r"^xml\w+ ?: |(?:, try XML_PARSE_HUGE)?(?:(?:, line \d+(?:, column \d+)?)+(?: \(.*\))?)?$"
_UTF8_NAMES = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_NO_CHARACTER_SETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
_EXCERPT = 2000
"""Limit of bytes of a line that is shown in full; of longer lines, a part around the column is shown."""
_BLOCK = 4096
"""Bytes whose line breaks are counted together: few enough to find one line in them."""


_NUMBER = rb"#(?:x0*([0-9A-Fa-f]{1,6})|0*([0-9]{1,7}))"
_NO_CHARACTERS = {None, 0xFFFE, 0xFFFF, *range(1, 32)} - {*b"\t\n\r"}
_FOREIGN = re.compile(rb"&" + _NUMBER + rb";|\xef\xbf[\xbe\xbf]")
_SPECIAL = re.compile(rb"\r\n|[\t\r\n]|&(?:" + _NUMBER + rb"|(amp|lt|gt|quot|apos));")
_ID = re.compile(rb"\s*\+?0*([0-9]+)")
_NAMED = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}


class XmlText:
    """An XML file as UTF-8; converts byte offsets to lines and columns.

    Attributes:
        path: as passed by the caller.
        data: UTF-8 without a byte order mark.
        mark: the byte order mark of a UTF-8 file, or b"".
        is_transcoded: whether the original file has another encoding.
    """

    def __init__(self, path: str, raw: bytes) -> None:
        self.path = path
        self.mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
        self.data, self.is_transcoded = _to_utf8(path, raw)

    @cached_property
    def has_asides(self) -> bool:
        """Whether the root element contains comments, processing instructions or CDATA."""
        root = self.root()
        start, find = root.start() if root else 0, self.data.find
        return any(find(mark, start) >= 0 and find(b"<" + mark, start) >= 0 for mark in (b"!", b"?"))

    @cached_property
    def _breaks_before(self) -> "array[int]":
        """The number of line breaks before each block of bytes, and in the whole file.

        Counting them in blocks is fast, and a file of 8 MB has 300,000 lines, few of which are asked for.
        """
        count = self.data.count
        counts = [count(b"\n", start, start + _BLOCK) for start in range(0, len(self.data), _BLOCK)]
        return array("Q", accumulate(counts, initial=0))

    def _line_start(self, number: int) -> int:
        """Return the offset at which a line starts; lines count from 1."""
        if number == 1:
            return 0
        block = bisect_left(self._breaks_before, number - 1) - 1
        place = block * _BLOCK - 1
        for _ in range(number - 1 - self._breaks_before[block]):
            place = self.data.index(b"\n", place + 1)
        return place + 1

    @cached_property
    def _continuations(self) -> "array[int]":
        """Offsets of UTF-8 continuation bytes, for counting characters fast in a file of one long line."""
        if self.data.isascii():
            return array("Q")
        return array("Q", (match.start() for match in re.finditer(rb"[\x80-\xbf]", self.data)))

    def _place(self, offset: int) -> tuple[int, int]:
        block = offset // _BLOCK
        breaks = self._breaks_before[block] + self.data.count(b"\n", block * _BLOCK, offset)
        # the last line break is in this block, or in the last one with more breaks than those before it
        block = block if breaks > self._breaks_before[block] else bisect_left(self._breaks_before, breaks) - 1
        start = self.data.rindex(b"\n", block * _BLOCK, offset) + 1 if breaks else 0
        return breaks + 1, self._characters(start, offset) + 1

    def _characters(self, start: int, end: int) -> int:
        """Return the number of characters that begin in a range of bytes."""
        return end - start - bisect_left(self._continuations, end) + bisect_left(self._continuations, start)

    def location(self, offset: int, scope: str = "") -> Location:
        """Return the line and column of a byte offset, both from 1; columns count characters."""
        return Location(self.path, *self._place(offset), scope)

    def span(self, start: int, end: int) -> Span:
        return Span(*self._place(start), *self._place(end))

    def excerpt(self, number: int, column: int) -> Excerpt:
        """Return a line, or the part of a long line around a column; empty after the last line."""
        lines = self._breaks_before[-1] + 1
        if number > lines:
            return Excerpt("")
        start = self._line_start(number)
        end = self.data.index(b"\n", start) if number < lines else len(self.data)
        first, last = start, end
        if end - start > _EXCERPT:
            around = (column - 1 - _EXCERPT // 2, column - 1 + _EXCERPT // 2)
            first, last = (self._offset(start, end, count) for count in around)
        text = decoded(self.data[first:last])
        text = text.removesuffix("\r") if last == end else text
        return Excerpt(text, self._characters(start, first) + 1, last < end)

    def _offset(self, start: int, end: int, count: int) -> int:
        """Return the offset after `count` characters of a range of bytes, at most its end."""
        offset = start + bisect_left(range(start, end), count, key=lambda at: self._characters(start, at))
        while offset < end and self.data[offset] & 0xC0 == 0x80:
            offset += 1
        return offset

    def root(self) -> re.Match[bytes] | None:
        """Return the match of `TOKEN` for the start tag of the root element; None without one.

        Raises:
            UnreadableModel: the file has a DOCTYPE.
        """
        prolog = _PROLOG.match(self.data)
        start = prolog.end() if prolog else 0
        if self.data.startswith(b"<!DOCTYPE", start):
            message = "the file has a DOCTYPE, expected none: entities are not read"
            raise UnreadableModel("doctype", message, self.location(start))
        match = TOKEN.match(self.data, start)
        return None if match is None or match[2] is None or match[1] else match

    def check_well_formed(self) -> None:
        """Check with libxml2 that the XML is well-formed and at most MAX_DEPTH elements deep.

        Raises:
            UnreadableModel: with the place of the error.
        """
        data = self.data
        if b"&#" in data or b"\xef\xbf" in data:  # replaced by fillers of the same length
            data = _FOREIGN.sub(
                lambda match: b"?" * len(match[0]) if _number(match) in _NO_CHARACTERS else match[0], data
            )
        target: Any = SimpleNamespace(close=lambda: None)  # the type stubs require a method for every event
        try:
            try:
                etree.fromstring(data, _parser(target))
            except etree.XMLSyntaxError as error:
                if not _TOO_LARGE.search(error.msg or ""):
                    raise
                etree.fromstring(data, _parser(_Depth(), huge_tree=True))
        except _TooDeep:
            message = f"elements are nested deeper than {MAX_DEPTH}"
            raise UnreadableModel("nested-too-deep", message, Location(self.path)) from None
        except etree.XMLSyntaxError as error:
            line, column = error.position
            location = Location(self.path, line or 1, max(column, 1))
            message = re.sub(_JARGON, "", " ".join((error.msg or "syntax error").split()))
            if "xcessive depth" in message:
                message = f"elements are nested deeper than {MAX_DEPTH}"
                raise UnreadableModel("nested-too-deep", message, location) from None
            if _TOO_LARGE.search(message):
                message = f"a name, a value or a comment is too large to be read: {message}"
                raise UnreadableModel("malformed-xml", message, location) from None
            raise UnreadableModel("malformed-xml", f"not well-formed XML: {message}", location) from None


_TOO_LARGE = re.compile("too (big|long)|limit exceeded", re.IGNORECASE)
"""libxml2's error for texts above 10 MB and for names above 50 kB.

Neither XML nor OpenVINO has such limits. With `huge_tree` the limits are 1 GB, and 10 MB for a name.
"""


class _TooDeep(Exception):
    """Error: elements are nested deeper than MAX_DEPTH."""


class _Depth:
    """Parser target that measures the depth; slow, since libxml2 calls it for every element."""

    def __init__(self) -> None:
        self._depth = 0

    def start(self, _tag: object, _attributes: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _TooDeep

    def end(self, _tag: object) -> None:
        self._depth -= 1

    def close(self) -> None: ...


def _parser(target: Any, *, huge_tree: bool = False) -> etree.XMLParser:
    return etree.XMLParser(target=target, resolve_entities=False, no_network=True, huge_tree=huge_tree)


def _to_utf8(path: str, raw: bytes) -> tuple[bytes, bool]:
    """Return the text as UTF-8 without a byte order mark, and whether it had another encoding."""
    data = raw.removeprefix(codecs.BOM_UTF8)
    declared = _ENCODING.match(data)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16"
    elif declared is None or declared[4].decode().lower() in _UTF8_NAMES:
        return data, False
    else:
        name = declared[4].decode()
    try:
        if codecs.lookup(name).name in _NO_CHARACTER_SETS:
            raise LookupError(name)
        data = raw.decode(name).encode("utf-8", "replace")
    except (LookupError, UnicodeError):
        message = f"the file is not text in its declared encoding {name}"
        raise UnreadableModel("malformed-xml", message, Location(path, 1, 1)) from None
    return _ENCODING.sub(lambda match: match[1] + b" " * len(match[2]), data, count=1), True


def _number(match: re.Match[bytes]) -> int | None:
    """Return the code point of a reference such as `&#10;`; None if it is unknown."""
    return int(match[1], 16) if match[1] else int(match[2]) if match[2] else None


def unescape(raw: bytes) -> bytes:
    """Replace the references in an attribute's value or in the text of an element by their characters."""
    return _SPECIAL.sub(_meaning, raw) if _SPECIAL.search(raw) else raw


def _meaning(match: re.Match[bytes]) -> bytes:
    number = _number(match)
    return _NAMED.get(match[3], b" ") if number is None else chr(number).encode("utf-8", "replace")


def shortest_id(text: bytes) -> bytes:
    """Return an id in its shortest decimal form; other text unchanged."""
    match = _ID.fullmatch(text)
    return match[1] if match else text


def show_text(text: str, limit: int = 40) -> str:
    """Return a text of the file in printable form for a message, cut to `limit` characters."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def tag_end(data: bytes, start: int) -> int:
    match = TOKEN.match(data, start)
    assert match is not None
    return match.end()


def attributes(data: bytes, start: int, end: int) -> dict[bytes, bytes]:
    """Return the attributes of a tag with references replaced by their characters."""
    return {name: unescape(value[1:-1]) for name, value in ATTRIBUTE.findall(data, start, end)}


def attribute_places(data: bytes, start: int, end: int) -> dict[bytes, tuple[int, int]]:
    """Return the (start, end) of each value of a tag's attributes, without quotation marks, by name."""
    return {m[1]: (m.start(2) + 1, m.end(2) - 1) for m in ATTRIBUTE.finditer(data, start, end)}


def attribute_place(data: bytes, start: int, end: int, name: bytes) -> tuple[int, int]:
    """Return the place of an attribute of a tag with its value; that of the tag if it is missing."""
    places = (match.span() for match in ATTRIBUTE.finditer(data, start, end) if match[1] == name)
    return next(places, (start, end))


@dataclass(slots=True, eq=False)
class XmlElement:
    """A parsed element, with its place in the parsed text.

    `text` is its first text that is not white space; OpenVINO reads no other text.
    """

    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    text: str | None = None
    children: "list[XmlElement]" = field(default_factory=list)

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    def id(self, name: str) -> bytes:
        return shortest_id(self.get(name).encode())

    def find(self, path: str) -> "XmlElement | None":
        return next(self.iterfind(path), None)

    def iterfind(self, path: str) -> "Iterator[XmlElement]":
        """Yield the elements at a path such as "input/port"."""
        name, _, rest = path.partition("/")
        for child in self.children:
            if child.name == name:
                yield from child.iterfind(rest) if rest else (child,)


def parse_elements(data: bytes) -> XmlElement:
    """Return a nameless element that contains the elements of a piece of well-formed XML.

    The piece may end with the end tag of the surrounding element. An element that does not end in the piece
    has the end 0.
    """
    opened, position = [XmlElement("")], 0
    for match in TOKEN.finditer(data):
        current = opened[-1]
        if current.text is None and data[position : match.start()].strip():
            current.text = decoded(unescape(data[position : match.start()]))
        position = match.end()
        if match[2] is None:
            if current.text is None and match[0].startswith(b"<![CDATA["):
                current.text = decoded(match[0][9:-3])
            continue
        if match[1]:
            current.end = position
            opened.pop()
            if not opened:
                return current
            continue
        child = XmlElement(decoded(match[2]), start=match.start(), end=position)
        child.attributes = {
            decoded(name): decoded(value) for name, value in attributes(data, *match.span()).items()
        }
        current.children.append(child)
        if not match[0].endswith(b"/>"):
            child.end = 0
            opened.append(child)
    return opened[0]


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
