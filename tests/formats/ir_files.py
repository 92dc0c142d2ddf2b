"""Small IRs for the tests of reading, and what every file must lead to, whatever is wrong with it."""

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ir_scatter.core.files import Source
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import OneNode
from ir_scatter.formats.openvino.index import Body, exact_index, quick_index
from ir_scatter.formats.openvino.xml_text import XmlText
from ir_scatter.lint import FileResult, Options, check_file, make_report
from ir_scatter.report.registry import formats, render

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS = ROOT.parent / "shared" / "models"
needs_models = pytest.mark.skipif(
    not MODELS.is_dir(), reason="needs the folder of real models beside the checkout"
)


def real_models(largest: int = 1 << 30) -> list[Path]:
    """Return the real IRs of at most so many bytes, none where the folder is absent."""
    return [path for path in sorted(MODELS.rglob("*.xml")) if path.stat().st_size <= largest]


def port(id: object, precision: str = "I64", dims: Iterable[object] = ()) -> str:
    """Write a port."""
    return f'<port id="{id}" precision="{precision}">{"".join(f"<dim>{dim}</dim>" for dim in dims)}</port>'


def layer(
    id: object,
    type: str,
    data: str = "",
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    *,
    version: str = "opset1",
    name: str | None = None,
    inside: str = "",
) -> str:
    """Write a layer on a line of its own."""
    parts = [f'<layer id="{id}" name="{name or f"n{id}"}" type="{type}" version="{version}">']
    parts += [f"<data {data}/>"] if data else []
    for tag, ports in (("input", "".join(inputs)), ("output", "".join(outputs))):
        parts += [f"<{tag}>{ports}</{tag}>"] if ports else []
    return "".join([*parts, inside, "</layer>\n"])


def constant(id: object, shape: str, offset: object, size: object, type: str = "i64") -> str:
    """Write a Const."""
    data = f'element_type="{type}" shape="{shape}" offset="{offset}" size="{size}"'
    return layer(id, "Const", data, outputs=[port(0, {"f32": "FP32"}.get(type, type.upper()))])


def parameter(id: object, shape: str, type: str = "f32") -> str:
    """Write a Parameter."""
    return layer(id, "Parameter", f'shape="{shape}" element_type="{type}"', outputs=[port(0, "FP32")])


def scatter(id: object, inside: str = "") -> str:
    """Write a ScatterUpdate of data [4, 5] and updates [1, 5] whose stored shapes say little."""
    inputs = [port(0, "FP32", (4, 5)), port(1), port(2, "FP32", (1, 5)), port(3)]
    outputs = [port(4, "FP32", (4, 5))]
    return layer(id, "ScatterUpdate", "", inputs, outputs, version="opset3", inside=inside)


def edge(origin: object, origin_port: object, target: object, target_port: object) -> str:
    """Write an edge on a line of its own."""
    return (
        f'<edge from-layer="{origin}" from-port="{origin_port}" '
        f'to-layer="{target}" to-port="{target_port}"/>\n'
    )


def edges(text: str) -> str:
    """Write edges; "0:2-4:1" leads from port 2 of layer 0 to port 1 of layer 4."""
    return "".join(edge(*re.split("[:-]", one)) for one in text.split())


def net(layers: str, edges: str = "") -> str:
    """Write an IR."""
    return (
        f'<?xml version="1.0"?>\n<net name="m" version="11">\n<layers>\n{layers}</layers>\n'
        f"<edges>\n{edges}</edges>\n</net>\n"
    )


FRAME = parameter("d", "4,5").replace('"d"', '"0"') + parameter(2, "1,5") + constant(3, "", 0, 8)
"""What stands around the indices of one scatter node, whose id is 4."""


def indices_from(layers: str, edges: str, origin: object, origin_port: object) -> str:
    """Write an IR whose scatter node takes its indices from a port."""
    feeds = edge(0, 0, 4, 0) + edge(origin, origin_port, 4, 1) + edge(2, 0, 4, 2) + edge(3, 0, 4, 3)
    return net(FRAME + layers + scatter(4), edges + feeds)


SIMPLE = indices_from(constant(1, "1", 8, 8), "", 1, 0)
WEIGHTS = struct.pack("<qqq", 0, 3, 5)
"""The axis 0, a legal index and one that is too great."""

_RESULT = layer(5, "Result", "", [port(0, "FP32", (4, 5))])
_SCATTERING = parameter(0, "?,?") + constant(1, "2", 8, 16) + constant(3, "", 0, 8) + scatter(4) + _RESULT
_BRANCH = f"<layers>{_SCATTERING}</layers><edges>{edges('0:0-4:0 1:0-4:1 0:0-4:2 3:0-4:3 4:4-5:0')}</edges>"
_MAPS = "".join(
    f'<{name}_port_map><input external_port_id="1" internal_layer_id="0"/>'
    f'<output external_port_id="2" internal_layer_id="5"/></{name}_port_map>'
    f"<{name}_body>{_BRANCH}</{name}_body>"
    for name in ("then", "else")
)
_DATA, _TUPLES = ("FP32", (4, 5)), ("I32", (4, 1))
_INFO = '<rt_info><attribute name="old" version="0"/></rt_info>'
_LAYERS = [
    parameter(0, "4,5"),
    parameter(1, "", "boolean"),
    layer(2, "If", "", [port(0, "BOOL"), port(1, *_DATA)], [port(2, "FP32")], inside=_MAPS),
    layer(3, "Result", "", [port(0, *_DATA)]),
    constant(6, "2,1", 8, 16),
    layer(7, "Convert", 'destination_type="i32"', [port(0, "I64", (2, 1))], [port(1, "I32", (2, 1))]),
    layer(8, "Concat", 'axis="0"', [port(0, "I32"), port(1, "I32")], [port(2, *_TUPLES)]),
    layer(9, "ScatterNDUpdate", 'reduction="max"', [port(0, *_DATA), port(1, *_TUPLES), port(2, *_DATA)],
          [port(3, *_DATA)], version="opset15", inside=_INFO),
]  # fmt: skip
_FEEDS = edges("1:0-2:0 0:0-2:1 2:2-3:0 6:0-7:0 7:1-8:0 7:1-8:1 0:0-9:0 8:2-9:1 2:2-9:2")
NESTED = net("".join(_LAYERS), _FEEDS)
"""An If whose branches scatter, and indices behind Convert and Concat."""


def write(folder: Path, text: str | bytes, weights: bytes | None = WEIGHTS, name: str = "model") -> Path:
    """Write an IR; without weights the `.bin` is absent."""
    path = folder / f"{name}.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    if weights is None:
        path.with_suffix(".bin").unlink(missing_ok=True)
    else:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def write_one(format: str, node: OneNode, folder: Path) -> Path:
    """Write a model of one node."""
    files = {folder / f"model{suffix}": data for suffix, data in FORMATS[format].nodes([node]).items()}
    for path, data in files.items():
        path.write_bytes(data)
    return next(iter(files))


def check(path: Path) -> FileResult:
    """Check a file that may hold anything; the result is not our own bug, and tells itself in full."""
    checked = check_file(Source(str(path)), Options())
    assert checked.bug == "", checked.bug
    found = checked.diagnostics
    if not checked.is_readable:
        assert found
        assert checked.scatter_nodes == 0
        assert found[0].location.line is not None or found[0].code in {"SCT901", "SCT902"}
    for diagnostic in found:
        message = diagnostic.message
        assert len(message) >= 10
        assert "Error" not in message
        assert "Traceback" not in message
        assert not any(ord(letter) < 32 for letter in message)
        assert diagnostic.location.path == str(path)
        assert (diagnostic.location.line or 1) >= 1
        assert (diagnostic.location.column or 1) >= 1
    return checked


def render_all(checked: FileResult) -> None:
    """Write a result in every format."""
    report = make_report([checked])
    for name in formats("findings"):
        assert render("findings", name, report) or name in {"concise", "github"}


def codes(checked: FileResult) -> list[str]:
    """Return the codes of what was found."""
    return [diagnostic.code for diagnostic in checked.diagnostics]


def indices_of(raw: bytes) -> tuple[XmlText, Body, Body | None]:
    """Return the text of a well-formed IR, its exact index and the quick one, if that may answer."""
    text = XmlText("m.xml", raw)
    text.check_well_formed()
    root = text.root()
    assert root is not None
    quick = None if text.has_asides else quick_index(text.data, root.start())
    return text, exact_index(text.data), quick


def all_bodies(body: Body) -> Iterator[Body]:
    """Yield a body and all bodies in it."""
    yield body
    for inner in body.bodies.values():
        for one in inner.values():
            yield from all_bodies(one)


CONTROLS = [chr(number) for number in range(1, 32) if chr(number) not in "\t\r\n"] + ["\ufffe", "\uffff"]
STAND_INS = {letter: chr(0xE000 + ord(letter) % 256) for letter in CONTROLS}


def for_lxml(text: str) -> str:
    """Put private characters in the place of those that OpenVINO writes and XML does not have."""
    for letter, other in STAND_INS.items():
        reference = f"&#{ord(other)};"
        text = text.replace(f"&#{ord(letter):02};", reference).replace(f"&#x{ord(letter):X};", reference)
        text = text.replace(letter, other)
    return text


def restored(found: Any) -> Any:
    """Put back the characters that `for_lxml` replaced."""
    if isinstance(found, str):
        return meant(found)
    if isinstance(found, bytes):
        return meant(found.decode()).encode()
    if isinstance(found, dict):
        return {restored(key): restored(value) for key, value in found.items()}
    return tuple(map(restored, found)) if isinstance(found, tuple | list) else found


def meant(text: str) -> str:
    return text.translate({ord(other): letter for letter, other in STAND_INS.items()})
