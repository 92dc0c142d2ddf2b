"""Fields of protobuf messages as bytes: messages are made by putting them one behind the other."""

_SHORT = [bytes((length,)) for length in range(0x80)]


def bytes_field(number: int, content: bytes) -> bytes:
    """Return a field below 16 that holds bytes, text or a message."""
    length = len(content)
    if length < len(_SHORT):
        return _SHORT[number << 3 | 2] + _SHORT[length] + content
    return _SHORT[number << 3 | 2] + _varint(length) + content


def encoded(name: "str | bytes") -> bytes:
    """Return the bytes of a name, which protobuf hands out as they are where they are not UTF-8."""
    return name.encode() if isinstance(name, str) else name


def _varint(number: int) -> bytes:
    """Write a length as protobuf does: seven bits a byte, the low ones first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))
