"""Forms of layers, told from the texts of their ports without making values."""

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, cast

from ir_scatter.core.forms import Brief, Form, Forms
from ir_scatter.core.shapes import is_static
from ir_scatter.core.tensors import few_numbers
from ir_scatter.formats.openvino.file import CONST, PARAMETER

if TYPE_CHECKING:
    from ir_scatter.formats.openvino.graph import IrGraph

_Origin = tuple[bytes, bytes]


class IrForms(Forms):
    """Forms of the layers of a net or of a body."""

    def __init__(self, graph: "IrGraph") -> None:
        self.graph = graph
        self._constants = graph.body.constants
        self._writers = frozenset(type.lower().encode() for type in graph.file.scatter_types)
        self._is_certain = bool(self._writers) and not graph.file.shapes
        self._briefs: dict[_Origin, Brief | None] = {}
        self._origins: dict[bytes, list[_Origin | None]] = {}
        self._kinds: dict[tuple[bytes, bytes], Brief | None] = {}

    def of(self, handle: bytes, spelled: Collection[int]) -> Form | None:
        """Return the form of a layer; None where one of its inputs takes a closer look."""
        graph = self.graph
        if not self._is_certain:
            return None
        layer = graph.layer(handle)
        parts: list[Hashable] = [graph.body.layers[handle][0], layer.version, layer.inputs, layer.outputs]
        parts += layer.attributes.items()
        origins = self._origins_of(handle)
        inputs = tuple([self._brief(origin) for origin in origins])
        if None in inputs:
            return None
        for index in spelled:
            numbers = self.numbers(handle, index) if index < len(origins) else []
            if numbers is None:
                return None
            parts.append(tuple(numbers))
        if len({*origins}) < len(origins):
            parts.append(tuple(map(origins.index, origins)))
        return Form(cast("tuple[Brief, ...]", inputs), tuple(parts))

    def is_connected(self, handle: bytes) -> bool:
        """Tell whether it is known without a closer look that every input comes from an output."""
        origins = self._origins_of(handle) if self._is_certain else [None]
        return all(self._brief(origin) is not None for origin in origins)

    def numbers(self, handle: bytes, index: int) -> list[int] | None:
        """Return the few whole numbers of a constant; None for any other input, and where they are many."""
        origin = self._origins_of(handle)[index]
        brief = self._brief(origin)
        if origin is None or brief is None or brief[0] != "constant":
            return None
        element_type, shape = brief[1]
        return few_numbers(element_type, shape, lambda: self._view(origin))

    def _origins_of(self, handle: bytes) -> list[_Origin | None]:
        """Return what feeds each input of a layer."""
        origins = self._origins.get(handle)
        if origins is None:
            feed = self.graph.body.producers(handle).get
            origins = self._origins[handle] = [feed(port.id) for port in self.graph.layer(handle).inputs]
        return origins

    def is_settled(self, handle: bytes, output: int) -> bool:
        """Tell whether it is known that nothing in front of an output tells more of its shape."""
        ports = self.graph.layer(handle).outputs
        brief = self._brief((handle, ports[output].id)) if self._is_certain and output < len(ports) else None
        return brief is not None and brief[0] == "node"

    def _brief(self, origin: _Origin | None) -> Brief | None:
        """Return what an output is, and what is known of it and stored for it."""
        if origin is None:
            return None
        if origin in self._briefs:
            return self._briefs[origin]
        if origin[0] in self._constants:
            brief = self._briefs[origin] = self._look(origin, None)
            return brief
        way, seen = [origin], {origin}
        while way:
            source = self._data_of(way[-1])
            if source is None or source in self._briefs or source in seen:
                current = way.pop()
                self._briefs[current] = self._look(current, source)
            else:
                way.append(source)
                seen.add(source)
        return self._briefs[origin]

    def _data_of(self, origin: _Origin) -> _Origin | None:
        """Return what is written to where an output is that of a scatter: it has the shape of that."""
        if not self._is_scatter(origin[0]):
            return None
        origins = self._origins_of(origin[0])
        return origins[0] if origins else None

    def _is_scatter(self, key: bytes) -> bool:
        span = self.graph.body.layers.get(key)
        return span is not None and span[0].lower() in self._writers

    def _look(self, origin: _Origin, source: _Origin | None) -> Brief | None:
        """Return what an output is; None if what stands in front of it may tell more of its shape."""
        graph, (key, id) = self.graph, origin
        if key in self._constants:
            return self._constant(self._constants[key][:2]) if id == b"0" else None
        type = graph.body.layers[key][0].lower() if key in graph.body.layers else CONST
        if type == CONST:
            return None
        if type == PARAMETER:
            return self._parameter(origin)
        found = graph.output_port(key, id)
        port = None if found is None else found[1]
        if port is None or not is_static(port.shape):
            return None
        if self._is_scatter(key):
            data = None if source is None else self._briefs.get(source)
            if data is None or data[1][1] != port.shape:
                return None
        return "node", (port.element_type, port.shape)

    def _constant(self, texts: tuple[bytes, bytes]) -> Brief | None:
        if texts not in self._kinds:
            element_type, _, shape = self.graph.file.declared(*texts)
            is_known = element_type is not None and shape is not None
            self._kinds[texts] = ("constant", (element_type, shape)) if is_known else None
        return self._kinds[texts]

    def _parameter(self, origin: _Origin) -> Brief | None:
        value = self.graph.value(origin) if self.graph.owner is None else None
        if value is None:
            return None
        return "input", (value.element_type, value.shape, value.stored_type, value.stored_shape)

    def _view(self, origin: _Origin) -> memoryview | None:
        """Return the bytes of a constant."""
        weights = self.graph.file.weights
        _, _, offset, size = self.graph.body.constants[origin[0]]
        return None if weights is None else weights.view(int(offset), int(size))
