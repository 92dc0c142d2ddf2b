"""Characters and references as OpenVINO's reader takes them: a few more than XML has.

`save_model` writes control characters of names as references (`&#01;`), and U+FFFE and U+FFFF as they
are. XML has none of them, so that libxml2 and expat refuse such a file; OpenVINO reads it.
"""

import re

_REFERENCE = re.compile(rb"&#(?:x0*([0-9A-Fa-f]{1,6})|0*([0-9]{1,7}));|\xef\xbf[\xbe\xbf]")
_SPECIAL = re.compile(rb"\r\n|[\t\r\n]|&(?:#(?:x0*([0-9A-Fa-f]{1,6})|0*([0-9]{1,7}))|(amp|lt|gt|quot|apos));")
_NAMED = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_SPACES = frozenset(b"\t\n\r")
_NO_CHARACTERS = frozenset({0xFFFE, 0xFFFF})


def well_formed(data: bytes) -> bytes:
    """Return XML of the same length with fillers for what OpenVINO reads and XML does not have.

    It is the same object if there is nothing of that.
    """
    if b"&#" not in data and b"\xef\xbf" not in data:
        return data
    filled = _REFERENCE.sub(_filler, data)
    return data if filled == data else filled


def unescaped(raw: bytes) -> bytes:
    """Return what the text of an attribute's value, or of an element, means."""
    return _SPECIAL.sub(_meaning, raw) if _SPECIAL.search(raw) else raw


def _filler(match: re.Match[bytes]) -> bytes:
    number = _number(match)
    is_foreign = number is None or number in _NO_CHARACTERS or (0 < number < 32 and number not in _SPACES)
    return b"?" * len(match[0]) if is_foreign else match[0]


def _meaning(match: re.Match[bytes]) -> bytes:
    if match[3] is not None:
        return _NAMED[match[3]]
    number = _number(match)
    return b" " if number is None else chr(number).encode("utf-8", "replace")


def _number(match: re.Match[bytes]) -> int | None:
    """Return the number of the character that is referred to."""
    if match[1] is not None:
        return int(match[1], 16)
    return None if match[2] is None else int(match[2])
