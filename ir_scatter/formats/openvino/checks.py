"""Finds defects in the structure of an IR, for `Model.find_defects`: ids, ports, edges, cycles, constants.

A contradiction is a stored element type or shape that disagrees with another place of the file.
"""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeAlias

from ir_scatter.core.diagnostics import Location, Part, Related, Side, Span
from ir_scatter.core.element_types import (
    ElementType,
    from_element_type,
    is_element_type,
    is_precision,
    meant_in_ir,
)
from ir_scatter.core.model import FileDefect, Node
from ir_scatter.core.shapes import MAX_RANK, Shape, element_count, is_static, parse_shape, show
from ir_scatter.core.words import counted
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino.graph import BODIES, CONST, PARAMETER, RESULT, IrGraph, Port, byte_range
from ir_scatter.formats.openvino.index import OPSET, Edge, edge_places
from ir_scatter.formats.openvino.layers import PortText
from ir_scatter.formats.openvino.operators import NOTHING, CheckResult, OperatorChecks, difference
from ir_scatter.formats.openvino.xml_text import XmlElement, decoded, show_text

CONTRADICTION = "stored-contradiction"

_Ports: TypeAlias = Mapping[bytes, tuple[ElementType | None, Shape]]
"""Element type and shape by port id."""

_Problem: TypeAlias = tuple[str, str, XmlElement, str]
"""The kind of a defect, its message, and the wrong element and attribute."""

_MISMATCH, _DANGLING = "body-mismatch", "dangling-edge"
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,19}\s*")
_CUT = ("axis", "start", "end", "stride", "part_size")
_NO_CONST = frozenset({b"const", b"constant"})
_ALWAYS_READ = frozenset({"bad-number", "missing-attribute"})
"""Kinds of defects for which OpenVINO refuses a file even in layers that it removes."""
_ENDS = frozenset({CONST, PARAMETER, RESULT})
_NODES_NAMED = 5
"""Limit of layers that a message lists by name."""
_REPORTED = 9
"""Limit of contradictions of one kind that are reported individually."""

_WHOLE = Part(Side.NODE)
_ID, _TYPE, _OPSET = (Part(Side.NODE, name=name) for name in ("id", "type", "opset"))
_NAME_LIMIT = 200
"""Limit of characters of a name in a message."""


class Checks:
    """Finds the defects of a file, and the contradictions in it."""

    def __init__(self, net: IrGraph) -> None:
        self._net = net
        self._structures = [_Structure(graph) for graph in net.with_bodies()]

    def defects(self) -> Iterator[FileDefect]:
        """Yield the defects of each graph, main graph first, then those of constants."""
        for structure in self._structures:
            yield from structure.defects()
        yield from _constants(self._net)

    def contradictions(self) -> Iterator[FileDefect]:
        """Yield contradictions between stored types and shapes; none if a runtime propagated the shapes."""
        if not self._net.file.options.shapes:
            for structure in self._structures:
                yield from structure.contradictions()

    def suspects(self, is_all: bool) -> Iterator[Node]:
        """Yield the layers upstream of scatter layers, and layers with port maps that slice.

        Without `is_all`, only those upstream layers that may be illegal uses of their operators.
        """
        for structure in self._structures:
            graph, every = structure.graph, structure.body.layers
            keys = (
                [*every] if is_all else [key for key, result in structure.check_results if result.is_misused]
            )
            keys = [key for key in keys if key in graph.upstream_of_scatter and not graph.is_scatter(key)]
            keys += [key for key in structure.body.bodies if b"axis=" in graph.text_of(key)]
            yield from map(graph.node, dict.fromkeys(keys))


class _Structure:
    """Finds the defects of one graph: its ids, ports and edges."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.body = graph.body
        self._operators = OperatorChecks(graph)

    def defects(self) -> Iterator[FileDefect]:
        first: dict[bytes, bytes] = {}
        for key in self.body.layers if self.body.repeated_layers else ():
            repeated = key.partition(b"\0")[0]
            if repeated in first:
                message = f"layer id {_text(repeated)} is used twice, expected once"
                message = f"{message}: OpenVINO uses the last layer"
                location, span = self.graph.node(first[repeated]).location, self._span(first[repeated], _ID)
                related = (Related("the first layer with this id", location, span),)
                help = f'write id="{self._free_id}", which no layer of this graph has'
                defect = self._defect("duplicate-id", message, key, part=_ID, help=help)
                yield replace(defect, is_always_read=True, related=related)
            first.setdefault(repeated, key)
        for key in self.body.layers:
            if not _is_number(key) and b"\0" not in key:
                id = show_text(self.graph.id_of(key))
                help = f'write id="{self._free_id}" here and in the edges'
                message = f"layer id is {id!r}, expected a number"
                yield self._defect("bad-number", message, key, part=_ID, help=help)
        for key, (type, _, _) in self.body.layers.items():
            lower = type.lower()
            if lower in BODIES:
                for kind, message, element, attribute in _port_maps(self.graph, key):
                    place = self.graph.places(key).attribute(element, attribute.encode())
                    yield replace(self._defect(kind, message, key), span=self.graph.span(key, place))
            elif lower in _NO_CONST and type != b"Const":
                then = "OpenVINO crashes here" if type == b"Constant" else "no operator has this name"
                message = f"the type is {decoded(type)!r}, expected 'Const': {then}"
                yield self._defect("unknown-type", message, key, part=_TYPE, help='write type="Const"')
            elif not type:
                message = "the layer has no type, expected one"
                defect = self._defect("unknown-type", message, key, part=_TYPE, help="write its type")
                yield replace(defect, is_always_read="type" not in self.graph.element(key).attributes)
        for key in self.graph.keys_of(RESULT):
            count = len(self.graph.layer(key).inputs)
            if count != 1:
                message, part = (
                    f"the Result has {counted(count, 'input port')}, expected one",
                    Part(Side.INPUT, 1),
                )
                help = "give it one <port> in <input>, and an edge"
                yield self._defect("unconnected-input", message, key, part=part, help=help)
        for key in self.body.unusual:
            layer, node = self.graph.layer(key), self.graph.node(key)
            # for scatter layers, a rule reports it
            has_rule = self.graph.is_scatter(key) and not self.graph.is_dropped(node)
            for name, text in (("name", layer.name), ("version", "" if has_rule else layer.version)):
                if text is None:
                    message = f"the layer has no {name}, expected one"
                    example = "opset1" if name == "version" else show_text(node.name)
                    help = f'write the {name} of the layer, such as {name}="{example}"'
                    yield self._defect("missing-attribute", message, key, help=help)
            version = "opset1" if layer.version is None else layer.version
            if self.graph.type_of(key) in _ENDS and not OPSET.fullmatch(version.encode()):
                message, help = (
                    f"the version {show_text(version)!r} is not an opset",
                    'write version="opset1"',
                )
                yield self._defect("unknown-type", message, key, part=_OPSET, help=help)
        if self._differing_edges is not None:
            return
        for key in self.body.layers:
            yield from self._ports(key)
        for to, fed in self.body.edges.items():
            for edge in fed if to not in self.body.layers else ():
                message = f"an edge goes to layer {_text(to)}, which does not exist"
                yield self._edge_defect("dangling-edge", message, edge)
        predecessors = {key: [edge[0] for edge in self.body.edges.get(key, ())] for key in self.body.layers}
        for cycle in find_cycles(predecessors):
            names = ", ".join(map(self._name, cycle[:_NODES_NAMED]))
            more = f" and {len(cycle) - _NODES_NAMED} more" if len(cycle) > _NODES_NAMED else ""
            message = f"layers depend on each other in a cycle: {names}{more}"
            members = {*cycle}
            back = next(edge for edge in self.body.edges[cycle[0]] if edge[0] in members)
            yield replace(self._defect("cycle", message, cycle[0]), span=self._edge_span(back))

    def _defect(
        self,
        kind: str,
        message: str,
        key: bytes,
        port: int | None = None,
        *,
        part: Part = _WHOLE,
        help: str = "",
    ) -> FileDefect:
        """Return a defect of a layer at `part`; by default at input `port`, else at the whole layer."""
        node = self.graph.node(key)
        part = part if port is None or part is not _WHOLE else Part(Side.INPUT, port)
        defect = FileDefect(kind, message, node.location, node, port, is_always_read=kind in _ALWAYS_READ)
        return replace(defect, span=self._span(key, part), help=help)

    def _span(self, key: bytes, part: Part) -> Span:
        """Return the place of a part of a layer, even if the layer declares the fact elsewhere."""
        return self.graph.span(key, self.graph.places(key).find(part))

    @cached_property
    def _free_id(self) -> int:
        ids = [key.partition(b"\0")[0] for key in self.body.layers]
        return max([int(id) for id in ids if _is_number(id)], default=-1) + 1

    @cached_property
    def _equal_layers(self) -> Mapping[bytes, list[bytes]]:
        """Groups of layers with equal text, which are checked once; by that text.

        The text begins with the type; tensor names and the `<data>` of constants are omitted. A layer of an
        unusual form is a group of its own.
        """
        body, text = self.body, self.graph.file.text
        data, constants, alone = text.data, body.constants, {*body.bodies, *body.unusual}
        groups: dict[bytes, list[bytes]] = {}
        for key, (_, start, end) in body.layers.items():
            first = data.find(b' type="', start, end)
            if key in constants:
                first = data.rfind(b"<", start, data.find(b"<port", start, end))
            form = data[first:end]
            before, names, after = form.rpartition(b' names="')
            form = before + after.partition(b'"')[2] if names else form
            is_unusual = first < 0 or text.has_asides or key in alone
            groups.setdefault(key if is_unusual else form, []).append(key)
        return groups

    @cached_property
    def _differing_edges(self) -> list[tuple[Edge | None, bytes]] | None:
        """Edges between ports with different types or shapes, and Consts that differ from their port.

        Entries are (edge, key of the consumer) or (None, key of the Const). None if a port or an edge may
        have another defect, which needs a slower check. Each group of equal layers is checked once.
        """
        body, graph, edges, constants = self.body, self.graph, self.body.edges, self.body.constants
        if body.bodies or body.repeated_layers or graph.file.text.has_asides:
            return None
        sides: dict[bytes, tuple[_Ports, _Ports]] = {}
        for keys in self._equal_layers.values():
            layer, has_one_output = graph.layer(keys[0]), graph.type_of(keys[0]) in {CONST, PARAMETER}
            inputs, outputs = (  # a port without dimensions is a scalar, or has an unknown rank
                {port.id: (port.element_type, port.shape or ()) for port in side}
                for side in (layer.inputs, layer.outputs)
            )
            ports = layer.inputs + layer.outputs
            is_unusual = len(inputs) + len(outputs) < len(ports) or (has_one_output and len(outputs) > 1)
            if is_unusual or any(port.bad_dims or not _is_number(port.id) for port in ports):
                return None
            if not all(is_precision(port.precision) for port in layer.outputs):
                return None
            sides.update(dict.fromkeys(keys, (inputs, outputs)))
        unequal: list[tuple[Edge | None, bytes]] = []
        produced: dict[bytes, _Ports] = {}
        for key in body.layers:
            fed, (consumed, stored) = edges.get(key, ()), sides[key]
            if len(consumed) != len(fed) or (len(fed) > 1 and len({edge[3] for edge in fed}) < len(fed)):
                return None
            try:
                unequal += [(edge, key) for edge in fed if produced[edge[0]][edge[1]] != consumed[edge[3]]]
            except LookupError:
                return None
            produced[key] = stored
            if key in constants and stored.get(b"0") != graph.declared(key)[:2]:
                unequal.append((None, key))
        return unequal if edges.keys() <= produced.keys() else None

    @cached_property
    def check_results(self) -> Sequence[tuple[bytes, CheckResult]]:
        """The results of operator checks, by key.

        Layers upstream of scatter layers are checked with their constant inputs, others without.
        """
        results, is_usual = dict[bytes, tuple[CheckResult, bytes]](), self._differing_edges is not None
        for form, keys in self._equal_layers.items():
            result = self._operators.check(keys[0])
            if result is not NOTHING:
                results |= {key: (result, form if is_usual else key) for key in keys if b"\0" not in key}
        near = (
            self.graph.upstream_of_scatter
            if any(result.needs_constants for result, _ in results.values())
            else ()
        )
        return [
            (
                key,
                self._operators.check_with_constants(key, form)
                if result.needs_constants and key in near
                else result,
            )
            for key, (result, form) in ((key, results[key]) for key in self.body.layers if key in results)
        ]

    def contradictions(self) -> Iterator[FileDefect]:
        """Yield ports whose stored type or shape contradicts a declaration, an operator or their source."""
        graph, unequal = self.graph, self._differing_edges
        if unequal is None:
            edges = [edge for fed in self.body.edges.values() for edge in fed]
            declaring = graph.keys_of(PARAMETER) + graph.keys_of(CONST)
        else:
            edges = [edge for edge, _ in unequal if edge is not None]
            constants = [key for edge, key in unequal if edge is None]
            declaring = graph.keys_of(PARAMETER) + constants
        reported = set[bytes]()
        stale = [(key, *output) for key, result in self.check_results for output in result.stale]
        yield from _limited(self._stale_output(*output) for output in stale)
        for key in declaring:
            for port in graph.layer(key).outputs[:1]:
                element_type, shape, _ = graph.declared(key)
                contrast = difference(element_type, shape, port, Part(Side.OUTPUT))
                if graph.layer(key).attributes.get("shape", "").strip() == "..." and port.shape is not None:
                    part = contrast[2] if contrast else Part(Side.OUTPUT, name="shape")
                    contrast = show(None), show(port.shape), part
                if contrast:
                    is_, stored, part = contrast
                    reported.add(key)
                    place = graph.file.text.data.find(b"<port", self.body.layers[key][1])
                    message = f"{self._name(key)} declares {is_}, its output port stores {stored}"
                    location = graph.file.text.location(place, graph.node(key).scope)
                    name = "element_type" if part.name == "type" else "shape"
                    places = [(location, self._span(key, part))]
                    yield self._contradiction(key, message, Part(Side.ATTRIBUTE, name=name), places)
        stale_ports = {(key, graph.layer(key).outputs[number].id) for key, number, _, _ in stale}
        unlike: dict[tuple[Port, tuple[str, str]], list[tuple[bytes, Part]]] = {}
        for to, fed in groupby(edges, itemgetter(2)):
            inputs = graph.layer(to).inputs if to in self.body.layers else ()
            consumers = {port.id: (index, port) for index, port in enumerate(inputs)}
            for origin, id, _, to_port in fed:
                number = graph.output_ports(origin).get(id)
                if graph.is_scatter(to) and (graph.is_scatter(origin) or graph.type_of(origin) in _ENDS):
                    continue  # a rule reports this contradiction
                is_reported = origin in reported or (origin, id) in stale_ports
                if number is not None and to_port in consumers and not is_reported:
                    output = graph.layer(origin).outputs[number]
                    type, shape = output.element_type, output.shape
                    if graph.type_of(origin) in {CONST, PARAMETER}:
                        type, shape, _ = graph.declared(origin)
                    index, consumer = consumers[to_port]
                    contrast = difference(type, shape, consumer, Part(Side.INPUT, index))
                    if contrast:
                        unlike.setdefault(((origin, id), contrast[:2]), []).append((to, contrast[2]))
        yield from _limited(
            self._differing_ports(*value, *texts, ends) for (value, texts), ends in unlike.items()
        )
        yield from self._body_inputs()

    def _stale_output(self, key: bytes, number: int, type: ElementType | None, shape: Shape) -> FileDefect:
        port = self.graph.layer(key).outputs[number]
        contrast = difference(type, shape, port, Part(Side.OUTPUT, number))
        assert contrast is not None
        message = (
            f"{self._name(key)} computes {contrast[0]} from its inputs, its output port {_text(port.id)}"
        )
        return self._contradiction(key, f"{message} stores {contrast[1]}", contrast[2])

    def _differing_ports(
        self, origin: bytes, id: bytes, is_: str, stored: str, ends: list[tuple[bytes, Part]]
    ) -> FileDefect:
        message = f"output port {_text(id)} of {self._name(origin)} is {is_}"
        message = f"{message}, the connected input of {self._name(ends[0][0])} stores {stored}"
        part = ends[0][1]._replace(side=Side.OUTPUT, number=self.graph.output_ports(origin)[id])
        places = [(self.graph.node(key).location, self._span(key, end)) for key, end in ends[:_NODES_NAMED]]
        return self._contradiction(origin, message, part, places)

    def _body_inputs(self) -> Iterator[FileDefect]:
        """Yield body inputs whose declaration contradicts the incoming value."""
        for key in self.body.bodies:
            from ir_scatter.core.dataflow import inflows  # imported here, as only files with bodies need it
            from ir_scatter.formats.openvino.dataflow import IrWiring

            node = self.graph.node(key)
            for input, _, value, shape in inflows(IrWiring, node):
                declared = PortText(b"", input.element_type, input.shape)
                contrast = difference(value.element_type, shape, declared, _WHOLE) if value else None
                if contrast:
                    message = f"{_printable(input.names[-1], _NAME_LIMIT)} declares {contrast[1]}"
                    message = f"{message} in a body, but receives {contrast[0]}"
                    places = [(node.location, self._span(key, _WHOLE))]
                    yield self._contradiction(key, message, _WHOLE, places)

    def _name(self, key: bytes) -> str:
        return _printable(self.graph.node(key).name, _NAME_LIMIT)

    def _contradiction(
        self, key: bytes, message: str, part: Part, stored: Sequence[tuple[Location, Span]] = ()
    ) -> FileDefect:
        node = self.graph.node(key)
        related = tuple(Related("stored here", *place) for place in stored)
        span = self.graph.span_of(node, part)
        return FileDefect(CONTRADICTION, message, node.location, node, None, related, span=span)

    def _ports(self, key: bytes) -> Iterator[FileDefect]:
        """Yield the defects of a layer's ports and of the edges that end there."""
        layer = self.graph.layer(key)
        sides = ((Side.INPUT, layer.inputs), (Side.OUTPUT, layer.outputs))
        for number, port in enumerate(layer.outputs):
            if not is_precision(port.precision):
                written = f"precision of output port {_text(port.id)} is {show_text(port.precision)!r}"
                message = f"the {written}, expected a type such as 'FP32'"
                part = Part(Side.OUTPUT, number, "type")
                meant = meant_in_ir(port.precision)
                example = 'write a type that OpenVINO has, such as precision="FP32"'
                help = f'did you mean precision="{meant.ir_name}"?' if meant else example
                yield self._defect("bad-number", message, key, part=part, help=help)
        for side, ports in sides:
            for number, port in enumerate(ports):
                if not _is_number(port.id):
                    message = f"port id is {show_text(decoded(port.id))!r}, expected a number"
                    yield self._defect("bad-number", message, key, part=Part(side, number, "id"))
                for dim, text in port.bad_dims:
                    written = f"a dimension of port {_text(port.id)} is {show_text(text)!r}"
                    message = f"{written}, expected a number >= -1"
                    yield self._defect("bad-number", message, key, part=Part(side, number, dim=dim))
        if self.graph.type_of(key) in {CONST, PARAMETER} and len({port.id for port in layer.outputs}) > 1:
            message = "the layer has several output ports, expected one"
            help = "keep the first output port"
            yield self._defect("unknown-port", message, key, part=Part(Side.OUTPUT, 1), help=help)
        for side, ports in sides:
            last = {port.id: number for number, port in enumerate(ports)}
            for id, count in Counter(port.id for port in ports).items() if len(ports) > 1 else ():
                if count > 1:
                    message = f"port id {_text(id)} is used {count} times, expected once"
                    yield self._defect("duplicate-id", message, key, part=Part(side, last[id], "id"))
        if b"\0" in key:
            return
        fed = self.body.edges.get(key, [])
        counts = Counter([edge[3] for edge in fed])
        last_edges = {edge[3]: edge for edge in fed}
        for index, port in enumerate(layer.inputs):
            count, to = counts[port.id], f"port {_text(port.id)}"
            if count > 1:
                message = f"{count} edges go to {to}, expected one"
                defect = self._defect("duplicate-edge", message, key, index)
                yield replace(defect, span=self._edge_span(last_edges[port.id], is_last=True))
            elif not count:
                ends = show_text(self.graph.id_of(key)), show_text(decoded(port.id))
                written = 'to-layer="{}" to-port="{}"'.format(*ends)
                help = f'add <edge from-layer="..." from-port="..." {written}/>'
                message = f"no edge goes to {to}, expected one"
                yield self._defect("unconnected-input", message, key, index, help=help)
        indices = {port.id: index for index, port in enumerate(layer.inputs)}
        free = [port for port in indices if not counts[port]]
        for edge in fed:
            yield from self._edge(edge, indices, free)

    def _edge(self, edge: Edge, indices: Mapping[bytes, int], free: Sequence[bytes]) -> Iterator[FileDefect]:
        """Yield the defects of both ends of an edge. `free` are inputs of the consumer that have no edge."""
        origin, port, to, to_port = edge
        if to_port not in indices:
            message = f"an edge goes to port {_text(to_port)} of {self._name(to)}, which has no such input"
            help = f'did you mean to-port="{show_text(decoded(free[0]))}"?' if len(free) == 1 else ""
            defect = self._edge_defect("unknown-port", message, edge)
            yield replace(defect, node=self.graph.node(to), help=help)
        outputs = self.graph.output_ports(origin)
        if port not in outputs:
            missing = f"port {_text(port)} of " if origin in self.body.layers else ""
            message = f"port {_text(to_port)} is fed by {missing}layer {_text(origin)}, which does not exist"
            only = show_text(decoded(next(iter(outputs)))) if len(outputs) == 1 else None
            help = "" if only is None else f'did you mean from-port="{only}"?'
            defect = self._defect("unknown-value", message, to, indices.get(to_port), help=help)
            yield replace(defect, span=self._edge_span(edge))

    def _edge_defect(self, kind: str, message: str, edge: Edge) -> FileDefect:
        span = self._edge_span(edge)
        location = Location(self.graph.file.text.path, *span[:2], self.graph.scope.rstrip("/"))
        return FileDefect(kind, message, location, span=span)

    def _edge_span(self, edge: Edge, *, is_last: bool = False) -> Span:
        """Return the place of an edge: of duplicates the first, with `is_last` the last."""
        return self.graph.file.text.span(*self._edge_places[is_last][edge])

    @cached_property
    def _edge_places(self) -> tuple[dict[Edge, tuple[int, int]], dict[Edge, tuple[int, int]]]:
        """Byte ranges by edge, in two mappings: of the first and of the last among equal edges."""
        places = [*edge_places(self.graph.file.text.data, self.body)]
        first = {place.edge: (place.start, place.end) for place in reversed(places)}
        return first, {place.edge: (place.start, place.end) for place in places}


def _limited(defects: Iterable[FileDefect]) -> Iterator[FileDefect]:
    """Yield the first contradictions; the last one also says how many more there are."""
    iterator = iter(defects)
    yield from islice(iterator, _REPORTED)
    rest = [*iterator]
    if rest:
        more = f"; {len(rest) - 1:,} more contradictions of this kind" if len(rest) > 1 else ""
        yield replace(rest[0], message=rest[0].message + more)


def _constants(net: IrGraph) -> Iterator[FileDefect]:
    """Yield the defects of every Const and Parameter, including bodies; a missing `.bin` comes last.

    Raises:
        UnreadableModel: the `.bin` has changed since the model was read.
    """
    weights = net.file.weights
    if weights is not None:
        weights.demand_unchanged()
    available = None if weights is None else weights.size
    end = sys.maxsize if available is None else available
    count = 0
    for graph in net.with_bodies():
        indexed = graph.body.constants
        for key, (type, shape, offset, size) in indexed.items():
            needed = _needed_bytes(decoded(type), decoded(shape))
            if needed is None or int(size) < needed or int(offset) + int(size) > end:
                yield from _declaration(graph, key)
        for key, (type, _, _) in graph.body.layers.items():
            if type.lower() in {CONST, PARAMETER} and key not in indexed:
                yield from _declaration(graph, key)
        if available is None:
            count += sum(graph.declared(key)[2] is not None for key in graph.keys_of(CONST))
    if count:
        reason = f"{weights.path.name} cannot be read ({weights.error})" if weights else ""
        reason = reason or "a model from standard input has no .bin"
        message = f"{reason}: the values of {counted(count, 'constant')} are unknown"
        is_refused = weights is not None  # whether weights exist is unknown for a stream
        yield FileDefect("weights-missing", message, Location(net.file.text.path), is_refused=is_refused)


def _declaration(graph: IrGraph, key: bytes) -> Iterator[FileDefect]:
    """Yield the defects of a Const or a Parameter."""
    layer, node, weights = graph.layer(key), graph.node(key), graph.file.weights
    shape, type = layer.attributes.get("shape"), layer.attributes.get("element_type", "")
    is_const = graph.type_of(key) == CONST

    def defect(kind: str, message: str, attribute: str, help: str = "") -> FileDefect:
        span = graph.span_of(node, Part(Side.ATTRIBUTE, name=attribute))
        return FileDefect(kind, message, node.location, node, span=span, help=help)

    problems = list(_problems(type, shape, is_const=is_const))
    place = byte_range(layer) if is_const else None
    if is_const and place is None:
        texts = [layer.attributes.get(name) for name in ("offset", "size")]
        offset, size = (None if text is None else show_text(text) for text in texts)
        has_offset = byte_range(layer._replace(attributes={**layer.attributes, "size": "0"})) is not None
        wrong = "size" if has_offset else "offset"
        problems.append((wrong, f"offset and size are {offset!r} and {size!r}, expected numbers"))
    for attribute, problem in problems:
        meant = meant_in_ir(type)
        help, example = "", "2,3" if is_const else "2,?,1..5"
        if attribute == "shape":
            help = f'write the dimensions as numbers, such as shape="{example}"'
        elif attribute == "element_type":
            help = f'did you mean element_type="{meant.name}"?' if meant else "write a type such as f32"
        yield defect("bad-number", problem, attribute, help)
    if place is None:
        return
    needed = (not problems and _needed_bytes(type, shape or "")) or 0
    if place[1] < needed:
        message = f"the constant has {counted(place[1], 'byte')}, its type and shape need {needed}"
        help = f'write size="{needed}" if the file has these bytes, or fix the type or the shape'
        yield defect("constant-size", message, "size", help)
    if weights is not None and weights.size is not None and sum(place) > weights.size:
        message = f"the constant ends at byte {sum(place)} of {weights.path.name}, which has {weights.size}"
        yield defect("weights-truncated", message, "offset")


@lru_cache(1 << 10)
def _needed_bytes(type: str, shape: str) -> int | None:
    """Return the number of bytes of a constant: 0 for strings, None if type or shape is invalid."""
    if any(_problems(type, shape, is_const=True)):
        return None
    element_type = from_element_type(type)
    count = element_count(parse_shape(shape))
    if element_type is None or count is None or element_type.kind == "string":
        return 0
    return element_type.byte_size(count)


def _problems(type: str, shape: str | None, *, is_const: bool) -> Iterator[tuple[str, str]]:
    """Yield (attribute, sentence) for each invalid attribute."""
    if shape is None and is_const:
        yield "shape", "<data> has no shape, expected one"
    elif shape is not None:
        try:
            parsed = parse_shape(shape)
        except ValueError as error:
            yield "shape", f"shape is {show_text(shape)!r}: {error}"
        else:
            if len(parsed or ()) > MAX_RANK:
                yield "shape", f"shape has {len(parsed or ())} dimensions, expected at most {MAX_RANK}"
            elif is_const and (not is_static(parsed) or "[" in shape or shape.isspace()):
                yield (
                    "shape",
                    f"shape is {show_text(shape)!r}, expected the dimensions of a constant as numbers",
                )
    if not is_element_type(type) or (is_const and from_element_type(type) is None):
        yield "element_type", f"element_type is {show_text(type)!r}, expected a type such as 'f32'"


def _is_number(id: bytes) -> bool:
    return id.isdigit() and len(id) < 20


def _text(id: bytes) -> str:
    return _printable(decoded(id))


def _printable(text: str, limit: int = 40) -> str:
    text = show_text(text, limit)
    return text if text and text.isprintable() else repr(text)


# Port maps


def _port_maps(graph: IrGraph, key: bytes) -> Iterator[_Problem]:
    """Yield the defects of the port maps and back edges of a layer.

    An If may leave inputs unmapped. OpenVINO sorts outputs by port number and ignores the numbers themselves,
    so only the number of outputs must suffice.
    """
    type, layer, element = graph.type_of(key), graph.layer(key), graph.places(key).layer
    ports, targets = ({port.id for port in side} for side in (layer.inputs, layer.outputs))
    for prefix in BODIES[type]:
        body, written_map = graph.graphs(key).get(f"{prefix}body"), element.find(f"{prefix}port_map")
        if body is None or not body.body.has_layers:
            yield _MISMATCH, f"there is no <{prefix}body> with <layers>, expected one", element, ""
            continue
        parameters, results = _ids(body, PARAMETER), _ids(body, RESULT)
        port_map = written_map or XmlElement("")
        inputs, outputs = [*port_map.iterfind("input")], [*port_map.iterfind("output")]
        for entry in inputs:
            yield from _dangling(entry, "external_port_id", ports, "input port of the layer")
            yield from _dangling(entry, "internal_layer_id", parameters, "Parameter of the body")
            yield from _cut(entry)
        for entry in outputs:
            yield from _dangling(entry, "external_port_id", targets, "output port of the layer", dangles=True)
            yield from _dangling(entry, "internal_layer_id", results, "Result of the body")
            yield from _cut(entry)
        if type != b"if":
            first = 2 if type == b"loop" else 0  # trip count and condition come first
            needed = [port.id for port in layer.inputs][first:]
            yield from _unmapped(needed, inputs, f"input of <{prefix}port_map>", written_map or element)
        if len({entry.id("external_port_id") for entry in outputs if not _is_negative(entry)}) < len(targets):
            needed = [port.id for port in layer.outputs]
            yield from _unmapped(needed, outputs, f"output of <{prefix}port_map>", written_map or element)
        if type == b"loop" and all(entry.get("purpose") != "execution_condition" for entry in outputs):
            message = "no output of <port_map> has purpose='execution_condition', expected one"
            yield _MISMATCH, message, written_map or element, ""
        internal = [entry.id("internal_layer_id") for entry in inputs if _is_negative(entry)]
        for edge in element.iterfind("back_edges/edge"):
            yield from _dangling(edge, "from-layer", results, "Result of the body")
            yield from _dangling(edge, "to-layer", parameters, "Parameter of the body", dangles=True)
            if edge.id("to-layer") in internal:
                message = f"a back edge goes to Parameter {edge.get('to-layer')} of the body"
                yield _MISMATCH, f"{message}, which no input port of the layer feeds", edge, "to-layer"


def _ids(body: IrGraph, type: bytes) -> set[bytes]:
    return {key.partition(b"\0")[0] for key in body.keys_of(type)}


def _is_negative(entry: XmlElement) -> bool:
    """Return whether a port map entry has a negative port id, which stands for no port of the layer."""
    text = entry.get("external_port_id")
    return text.strip().startswith("-") and _INTEGER.fullmatch(text) is not None


def _dangling(
    entry: XmlElement, attribute: str, ids: Collection[bytes], kind_of_id: str, *, dangles: bool = False
) -> Iterator[_Problem]:
    """Yield a problem if an entry refers to an id that does not exist.

    The kind is "dangling-edge" if `dangles` is set and the id is a number, else "body-mismatch".
    """
    id = entry.id(attribute)
    if id not in ids and not (attribute == "external_port_id" and _is_negative(entry)):
        kind = _DANGLING if dangles and id.isdigit() else _MISMATCH
        text = entry.attributes.get(attribute)
        is_ = "is missing" if text is None else f"is {show_text(text)!r}"
        place = "a back edge" if entry.name == "edge" else f"an {entry.name} of a port map"
        expected = f"expected the id of {'an' if kind_of_id[0] in 'io' else 'a'} {kind_of_id}"
        yield kind, f"{attribute} of {place} {is_}, {expected}", entry, attribute


def _cut(entry: XmlElement) -> Iterator[_Problem]:
    for word in _CUT if "axis" in entry.attributes else ():
        text = entry.get(word, "1")
        least = {"part_size": "other than 0", "axis": "of 0 or more"}.get(word, "")
        least = least if entry.name == "input" else ""
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or (least and (number == 0 if word == "part_size" else number < 0)):
            expected = f"a number {least}".strip()
            place = f"{word} of an {entry.name} of a port map"
            yield _MISMATCH, f"{place} is {show_text(text)!r}, expected {expected}", entry, word


def _unmapped(
    ids: list[bytes], entries: list[XmlElement], subject: str, at: XmlElement
) -> Iterator[_Problem]:
    named = {entry.id("external_port_id") for entry in entries}
    for id in ids:
        if id not in named:
            name = id.decode() if id.isdigit() else repr(show_text(id.decode("utf-8", "replace")))
            yield _MISMATCH, f"no {subject} refers to port {name}, expected one", at, ""
