"""Names for new layers: unique among all layers of a file, its bodies included."""

import re

from ir_scatter.formats.openvino.index import Body
from ir_scatter.formats.openvino.tags import attributes, escaped, start_tag
from ir_scatter.formats.openvino.xml_characters import unescaped

_USUAL = re.compile(rb'<layer id="[^"]*" name="([^"&\t\r\n]*)"')


class LayerNames:
    """The names that are taken."""

    def __init__(self, data: bytes, net: Body) -> None:
        self._taken: set[bytes] = set()
        self._numbers: dict[bytes, int] = {}
        self._labels: dict[str, bytes] = {}
        self._raw = self._base = b""
        pending = [net]
        while pending:
            body = pending.pop()
            for _, start, _ in body.layers.values():
                match = _USUAL.match(data, start)
                self._taken.add(match[1] if match else _name(data, start))
            pending += [inner for bodies in body.bodies.values() for inner in bodies.values()]

    def new(self, raw: bytes, label: str) -> bytes:
        """Take a name that begins with one as written, and return it as it is to be written.

        It may stand in other quotation marks than the one that it begins with.
        """
        if raw != self._raw:
            self._raw, self._base = raw, raw.replace(b'"', b"&quot;").replace(b"'", b"&apos;")
        if label not in self._labels:
            self._labels[label] = label.encode() if label.isidentifier() else escaped(label)
        name = b"%b/%b" % (self._base, self._labels[label])
        meaning = unescaped(name) if b"&" in name else name
        if meaning not in self._taken:
            self._taken.add(meaning)
            return name
        number = self._numbers.get(name, 1)
        while meaning in self._taken:
            number += 1
            meaning = unescaped(b"%b_%d" % (name, number))
        self._numbers[name] = number
        self._taken.add(meaning)
        return b"%b_%d" % (name, number)


def _name(data: bytes, start: int) -> bytes:
    name = attributes(data, start_tag(data, start)).get(b"name")
    return unescaped(name.raw) if name else b""
