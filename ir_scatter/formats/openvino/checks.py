"""Whether the parts of an IR fit together: ids, ports, edges, cycles, constants and their bytes."""

import re
import sys
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeAlias

from ir_scatter.core.diagnostics import Location, Part, Related, Side, Span
from ir_scatter.core.element_types import from_element_type, is_element_type, is_precision, meant_in_ir
from ir_scatter.core.model import Defect, Node
from ir_scatter.core.shapes import MAX_RANK, counted, element_count, is_static, parse_shape, show
from ir_scatter.formats.cycles import find_cycles
from ir_scatter.formats.openvino.graph import BODIES, CONST, PARAMETER, RESULT, IrGraph, Port, byte_range
from ir_scatter.formats.openvino.index import OPSET, Edge, edge_places
from ir_scatter.formats.openvino.layers import PortText
from ir_scatter.formats.openvino.operators import NOTHING, Look, OperatorChecks, Stale, difference, differing
from ir_scatter.formats.openvino.xml_text import decoded, shown

CONTRADICTION = "stored-contradiction"

_PORT_START = b'<port id="'
_PORT = re.compile(
    rb'(0|[1-9]\d*)"(?: precision="([^"<&]*)")?'
    rb"(?:\s*/>|>\s*((?:<dim>(?:-1|\d{1,18})</dim>\s*)*)</port>)"
    rb"\s*(?:</input>\s*)?(?:<output>\s*)?(?:</output>\s*)?(?:</layer>)?"
)
_PortKey: TypeAlias = tuple[bytes | None, bytes]
_NO_CONST = frozenset({b"const", b"constant"})
_Sides: TypeAlias = tuple[Mapping[bytes, _PortKey], Mapping[bytes, _PortKey]]
_ALWAYS_READ = frozenset({"bad-number", "missing-attribute"})
"""The kinds that OpenVINO refuses in layers that it drops, too."""
_ENDS = frozenset({CONST, PARAMETER, RESULT})
_NODES_NAMED = 5
_TOLD = 9
"""How many contradictions of one kind are told one by one."""

_WHOLE = Part(Side.NODE)
_ID, _TYPE, _OPSET = (Part(Side.NODE, name=name) for name in ("id", "type", "opset"))
_NAME_LIMIT = 200


class Checks:
    """What is broken in a file itself, and where it contradicts itself."""

    def __init__(self, net: IrGraph) -> None:
        self._net = net
        self._structures = [_Structure(graph) for graph in net.with_bodies()]

    def defects(self) -> Iterator[Defect]:
        """Yield what is broken in the file itself, body by body, then what is wrong with constants."""
        for structure in self._structures:
            yield from structure.defects()
        yield from _constants(self._net)

    def contradictions(self) -> Iterator[Defect]:
        """Yield where two places store different shapes or types; nothing if a runtime propagated them."""
        if not self._net.file.options.shapes:
            for structure in self._structures:
                yield from structure.contradictions()

    def feeding(self, is_all: bool) -> Iterator[Node]:
        """Yield loops that cut, and what scatter nodes depend on; all of that, or what looks misused."""
        for structure in self._structures:
            graph, every = structure.graph, structure.body.layers
            keys = [*every] if is_all else [key for key, look in structure.looks if look.is_misused]
            keys = [key for key in keys if key in graph.feeding and not graph.is_scatter(key)]
            keys += [key for key in structure.body.bodies if b"axis=" in graph.text_of(key)]
            yield from map(graph.node, dict.fromkeys(keys))


class _Structure:
    """Holds the ids, ports and edges of one body against each other."""

    def __init__(self, graph: IrGraph) -> None:
        self.graph = graph
        self.body = graph.body
        self._operators = OperatorChecks(graph)
        self._looks: list[tuple[bytes, Look, Hashable]] = []

    def defects(self) -> Iterator[Defect]:
        first: dict[bytes, bytes] = {}
        for key in self.body.layers if self.body.repeated_layers else ():
            repeated = key.partition(b"\0")[0]
            if repeated in first:
                message = f"layer id {_text(repeated)} is used twice, expected once"
                message = f"{message}: OpenVINO takes the last layer"
                location, span = self.graph.node(first[repeated]).location, self._span(first[repeated], _ID)
                related = (Related("the first layer with this id", location, span),)
                help = f'write id="{self._free_id}", which no layer of this graph has'
                found = self._defect("duplicate-id", message, key, part=_ID, help=help)
                yield replace(found, is_always_read=True, related=related)
            first.setdefault(repeated, key)
        for key in self.body.layers:
            if not _is_number(key) and b"\0" not in key:
                id = shown(self.graph.id_of(key))
                help = f'write id="{self._free_id}" here and in the edges'
                message = f"layer id is {id!r}, expected a number"
                yield self._defect("bad-number", message, key, part=_ID, help=help)
        for key, (type, _, _) in self.body.layers.items():
            lower = type.lower()
            if lower in BODIES:
                from ir_scatter.formats.openvino.port_maps import port_map_defects

                for kind, message, element, attribute in port_map_defects(self.graph, key):
                    place = self.graph.places(key).attribute(element, attribute.encode())
                    yield replace(self._defect(kind, message, key), span=self.graph.span(key, place))
            elif lower in _NO_CONST and type != b"Const":
                then = "OpenVINO's process ends here" if type == b"Constant" else "no operator has that name"
                message = f"the type is {decoded(type)!r}, expected 'Const': {then}"
                yield self._defect("unknown-type", message, key, part=_TYPE, help='write type="Const"')
            elif not type:
                message = "the layer has no type, expected one"
                defect = self._defect("unknown-type", message, key, part=_TYPE, help="write its type")
                yield replace(defect, is_always_read="type" not in self.graph.element(key).attributes)
        for key in self.graph.keys_of(RESULT):
            if len(self.graph.layer(key).inputs) != 1:
                message, part = "the Result has not one input port", Part(Side.INPUT, 1)
                help = "give it one <port> in <input>, and an edge"
                yield self._defect("unconnected-input", message, key, part=part, help=help)
        for key in self.body.unusual:
            layer, node = self.graph.layer(key), self.graph.node(key)
            is_told = self.graph.is_scatter(key) and not self.graph.is_dropped(node)  # a rule's
            for name, text in (("name", layer.name), ("version", "" if is_told else layer.version)):
                if text is None:
                    message = f"the layer has no {name}, expected one"
                    example = "opset1" if name == "version" else shown(node.name)
                    help = f'write the {name} of the layer, such as {name}="{example}"'
                    yield self._defect("missing-attribute", message, key, help=help)
            version = "opset1" if layer.version is None else layer.version
            if self.graph.type_of(key) in _ENDS and not OPSET.fullmatch(version.encode()):
                message, help = f"the version {shown(version)!r} is no opset", 'write version="opset1"'
                yield self._defect("unknown-type", message, key, part=_OPSET, help=help)
        if self._unequal is not None:
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
    ) -> Defect:
        """Return a defect of a layer; a port is what is wrong with it, unless a part is."""
        node = self.graph.node(key)
        part = part if port is None or part is not _WHOLE else Part(Side.INPUT, port)
        defect = Defect(kind, message, node.location, node, port, is_always_read=kind in _ALWAYS_READ)
        return replace(defect, span=self._span(key, part), help=help)

    def _span(self, key: bytes, part: Part) -> Span:
        """Return where a part of a layer is written, not what it declares elsewhere."""
        return self.graph.span(key, self.graph.places(key).find(part))

    @cached_property
    def _free_id(self) -> int:
        ids = [key.partition(b"\0")[0] for key in self.body.layers]
        return max([int(id) for id in ids if _is_number(id)], default=-1) + 1

    @cached_property
    def _unequal(self) -> list[tuple[Edge | None, bytes]] | None:
        """Say where ports are not what they are fed with, without parsing any layer; None if it takes that.

        An edge, or none and the key of a Const. Where every edge fits and comes from a layer before, and
        ports are written as usual, nothing else can be wrong with them.
        """
        body, text = self.body, self.graph.file.text
        data, edges, constants = text.data, self.body.edges, self.body.constants
        if body.bodies or body.repeated_layers or text.has_asides:
            return None
        unequal, looks = list[tuple[Edge | None, bytes]](), self._looks
        made: dict[bytes, Mapping[bytes, _PortKey]] = {}
        parsed: dict[bytes, tuple[bytes, _PortKey]] = {}
        seen: dict[tuple[bytes, int], tuple[_Sides, Look]] = {}
        find, find_before, known = data.find, data.rfind, seen.get
        try:
            for key, (_, start, end) in body.layers.items():
                fed, first = edges.get(key, ()), find(b' type="', start, end)
                if key in constants:  # what they declare is their own
                    first = find_before(b"<", start, find(b"<port", start, end))
                form = data[first:end]
                before, names, behind = form.rpartition(b' names="')
                form = before + behind.partition(b'"')[2] if names else form
                found = known((form, len(fed)))
                if found is None:
                    found = _parse_sides(form, len(fed), parsed), self._operators.look(key)
                    seen[form, len(fed)] = found
                (inputs, outputs), look = found
                if not fed and len(outputs) != 1:
                    return None
                if len(fed) > 1 and len({edge[3] for edge in fed}) < len(fed):
                    return None
                for edge in fed:
                    if made[edge[0]][edge[1]] != inputs[edge[3]]:
                        unequal.append((edge, key))
                made[key] = outputs
                if look is not NOTHING:
                    looks.append((key, look, form))
                if key in constants and outputs.get(b"0") != _declared_key(*constants[key][:2]):
                    unequal.append((None, key))
        except LookupError:
            return None
        odd = {port for _, port in parsed.values() if port[0] is None or not is_precision(decoded(port[0]))}
        if odd and any(not odd.isdisjoint(outputs.values()) for outputs in made.values()):
            return None
        return unequal if edges.keys() <= made.keys() else None

    @cached_property
    def looks(self) -> Sequence[tuple[bytes, Look]]:
        """What is to be told of operators; those in front of scatter nodes are seen closely."""
        looks, closely = self._looks, self._operators.look_closely
        if self._unequal is None:
            every = [(key, self._operators.look(key), key) for key in self.body.layers if b"\0" not in key]
            looks = [found for found in every if found[1] is not NOTHING]
        near = self.graph.feeding if any(look.is_particular for _, look, _ in looks) else ()
        return [
            (key, closely(key, form) if look.is_particular and key in near else look)
            for key, look, form in looks
        ]

    def contradictions(self) -> Iterator[Defect]:
        """Yield where what is declared or made is not what ports store."""
        graph, unequal = self.graph, self._unequal
        if unequal is None:
            edges = [edge for fed in self.body.edges.values() for edge in fed]
            declaring = graph.keys_of(PARAMETER) + graph.keys_of(CONST)
        else:
            edges = [edge for edge, _ in unequal if edge is not None]
            other = [key for edge, key in unequal if edge is None]
            declaring = graph.keys_of(PARAMETER) + other
        told = set[bytes]()
        stale: list[tuple[bytes, Stale]] = [(key, one) for key, look in self.looks for one in look.stale]
        yield from _few(self._stale(key, one) for key, one in stale)
        for key in declaring:
            for port in graph.layer(key).outputs[:1]:
                element_type, shape, _ = graph.declared(key)
                shown = difference(element_type, shape, port)
                if graph.layer(key).attributes.get("shape", "").strip() == "..." and port.shape is not None:
                    shown = show(None), show(port.shape)
                if shown:
                    told.add(key)
                    place = graph.file.text.data.find(b"<port", self.body.layers[key][1])
                    message = "{} declares {}, its output port stores {}".format(self._name(key), *shown)
                    location = graph.file.text.location(place, graph.node(key).scope)
                    part = differing(Side.OUTPUT, 0, element_type, shape, port)
                    name = "element_type" if part.name == "type" else "shape"
                    places = [(location, self._span(key, part))]
                    yield self._contradiction(key, message, Part(Side.ATTRIBUTE, name=name), places)
        stale_ports = {(key, graph.layer(key).outputs[one.number].id) for key, one in stale}
        others: dict[tuple[Port, tuple[str, str]], list[tuple[bytes, Part]]] = {}
        for to, fed in groupby(edges, itemgetter(2)):
            inputs = graph.layer(to).inputs if to in self.body.layers else ()
            takers = {port.id: (index, port) for index, port in enumerate(inputs)}
            for origin, id, _, to_port in fed:
                number = graph.output_ports(origin).get(id)
                if graph.is_scatter(to) and (graph.is_scatter(origin) or graph.type_of(origin) in _ENDS):
                    continue  # rules say what its inputs store
                is_told = origin in told or (origin, id) in stale_ports
                if number is not None and to_port in takers and not is_told:
                    made = graph.layer(origin).outputs[number]
                    type, shape = made.element_type, made.shape
                    if graph.type_of(origin) in {CONST, PARAMETER}:
                        type, shape, _ = graph.declared(origin)
                    index, taker = takers[to_port]
                    shown = difference(type, shape, taker)
                    if shown:
                        part = differing(Side.INPUT, index, type, shape, taker)
                        others.setdefault(((origin, id), shown), []).append((to, part))
        yield from _few(self._unlike(*value, *shown, ends) for (value, shown), ends in others.items())
        yield from self._body_inputs()

    def _stale(self, key: bytes, one: Stale) -> Defect:
        port = self.graph.layer(key).outputs[one.number]
        message = f"{self._name(key)} makes {one.made} of its inputs, its output port {_text(port.id)}"
        return self._contradiction(key, f"{message} stores {one.stored}", one.part)

    def _unlike(
        self, origin: bytes, id: bytes, is_: str, stored: str, ends: list[tuple[bytes, Part]]
    ) -> Defect:
        message = f"output port {_text(id)} of {self._name(origin)} is {is_}"
        message = f"{message}, the input of {self._name(ends[0][0])} that it feeds stores {stored}"
        part = ends[0][1]._replace(side=Side.OUTPUT, number=self.graph.output_ports(origin)[id])
        places = [(self.graph.node(key).location, self._span(key, end)) for key, end in ends[:_NODES_NAMED]]
        return self._contradiction(origin, message, part, places)

    def _body_inputs(self) -> Iterator[Defect]:
        """Yield where inputs of bodies declare something else than what flows into them."""
        for key in self.body.bodies:
            from ir_scatter.formats.openvino.dataflow import inflows  # which files without bodies do not need

            node = self.graph.node(key)
            for input, value, cut in inflows(node):
                shape = value.shape
                if cut is not None and shape is not None and -len(shape) <= cut.axis < len(shape):
                    axis = cut.axis % len(shape)
                    shape = (*shape[:axis], abs(cut.part), *shape[axis + 1 :])
                declared = PortText(b"", input.element_type, input.shape)
                shown = difference(value.element_type, shape, declared)
                if shown:
                    message = f"{_printable(input.names[-1], _NAME_LIMIT)} declares {shown[1]}"
                    message = f"{message} in a body, what flows in is {shown[0]}"
                    places = [(node.location, self._span(key, _WHOLE))]
                    yield self._contradiction(key, message, _WHOLE, places)

    def _name(self, key: bytes) -> str:
        return _printable(self.graph.node(key).name, _NAME_LIMIT)

    def _contradiction(
        self, key: bytes, message: str, part: Part, stored: Sequence[tuple[Location, Span]] = ()
    ) -> Defect:
        node = self.graph.node(key)
        related = tuple(Related("stored here", *place) for place in stored)
        span = self.graph.span_of(node, part)
        return Defect(CONTRADICTION, message, node.location, node, None, related, span=span)

    def _ports(self, key: bytes) -> Iterator[Defect]:
        """Yield what is wrong with the ports of a layer and the edges into it."""
        layer = self.graph.layer(key)
        sides = ((Side.INPUT, layer.inputs), (Side.OUTPUT, layer.outputs))
        for number, port in enumerate(layer.outputs):
            if not is_precision(port.precision):
                written = f"precision of output port {_text(port.id)} is {shown(port.precision)!r}"
                message = f"the {written}, expected a type such as 'FP32'"
                part = Part(Side.OUTPUT, number, "type")
                meant = meant_in_ir(port.precision)
                example = 'write a type that OpenVINO has, such as precision="FP32"'
                help = f'did you mean precision="{meant.ir_name}"?' if meant else example
                yield self._defect("bad-number", message, key, part=part, help=help)
        for side, ports in sides:
            for number, port in enumerate(ports):
                if not _is_number(port.id):
                    message = f"port id is {shown(decoded(port.id))!r}, expected a number"
                    yield self._defect("bad-number", message, key, part=Part(side, number, "id"))
                for dim, text in port.bad_dims:
                    written = f"a dimension of port {_text(port.id)} is {shown(text)!r}"
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
                ends = shown(self.graph.id_of(key)), shown(decoded(port.id))
                written = 'to-layer="{}" to-port="{}"'.format(*ends)
                help = f'add <edge from-layer="..." from-port="..." {written}/>'
                message = f"no edge goes to {to}, expected one"
                yield self._defect("unconnected-input", message, key, index, help=help)
        indices = {port.id: index for index, port in enumerate(layer.inputs)}
        free = [port for port in indices if not counts[port]]
        for edge in fed:
            yield from self._edge(edge, indices, free)

    def _edge(self, edge: Edge, indices: Mapping[bytes, int], free: Sequence[bytes]) -> Iterator[Defect]:
        """Yield what is wrong with the two ends of an edge; no edge goes to the inputs that are free."""
        origin, port, to, to_port = edge
        if to_port not in indices:
            message = f"an edge goes to port {_text(to_port)} of {self._name(to)}, which has no such input"
            help = f'did you mean to-port="{shown(decoded(free[0]))}"?' if len(free) == 1 else ""
            found = self._edge_defect("unknown-port", message, edge)
            yield replace(found, node=self.graph.node(to), help=help)
        outputs = self.graph.output_ports(origin)
        if port not in outputs:
            missing = f"port {_text(port)} of " if origin in self.body.layers else ""
            message = f"port {_text(to_port)} is fed by {missing}layer {_text(origin)}, which does not exist"
            only = shown(decoded(next(iter(outputs)))) if len(outputs) == 1 else None
            help = "" if only is None else f'did you mean from-port="{only}"?'
            found = self._defect("unknown-value", message, to, indices.get(to_port), help=help)
            yield replace(found, span=self._edge_span(edge))

    def _edge_defect(self, kind: str, message: str, edge: Edge) -> Defect:
        span = self._edge_span(edge)
        location = Location(self.graph.file.text.path, *span[:2], self.graph.scope.rstrip("/"))
        return Defect(kind, message, location, span=span)

    def _edge_span(self, edge: Edge, *, is_last: bool = False) -> Span:
        """Return where an edge stands, of equal ones the first or the last."""
        return self.graph.file.text.span(*self._edge_places[is_last][edge])

    @cached_property
    def _edge_places(self) -> tuple[dict[Edge, tuple[int, int]], dict[Edge, tuple[int, int]]]:
        """The place of every edge, the first one's and the last one's for equal edges."""
        places = [*edge_places(self.graph.file.text.data, self.body)]
        first = {place.edge: (place.start, place.end) for place in reversed(places)}
        return first, {place.edge: (place.start, place.end) for place in places}


def _few(found: Iterable[Defect]) -> Iterator[Defect]:
    """Yield the first of many that are alike, and one that tells how many more there are."""
    defects = iter(found)
    yield from islice(defects, _TOLD)
    rest = [*defects]
    if rest:
        more = f"; {len(rest) - 1:,} more places contradict each other like this" if len(rest) > 1 else ""
        yield replace(rest[0], message=rest[0].message + more)


def _constants(net: IrGraph) -> Iterator[Defect]:
    """Yield what is wrong with every Const and Parameter, bodies included, the missing `.bin` last."""
    weights = net.file.weights
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
        constants = "1 constant is" if count == 1 else f"{count} constants are"
        reason = f"{weights.path.name} cannot be read ({weights.error})" if weights else ""
        message = f"{reason or 'there is no .bin beside standard input'}: the values of {constants} unknown"
        yield Defect("weights-missing", message, Location(net.file.text.path))


def _declaration(graph: IrGraph, key: bytes) -> Iterator[Defect]:
    """Yield what is wrong with a Const or a Parameter."""
    layer, node, weights = graph.layer(key), graph.node(key), graph.file.weights
    shape, type = layer.attributes.get("shape"), layer.attributes.get("element_type", "")
    is_const = graph.type_of(key) == CONST

    def defect(kind: str, message: str, attribute: str, help: str = "") -> Defect:
        span = graph.span_of(node, Part(Side.ATTRIBUTE, name=attribute))
        return Defect(kind, message, node.location, node, span=span, help=help)

    problems = list(_problems(type, shape, is_const=is_const))
    place = byte_range(layer) if is_const else None
    if is_const and place is None:
        texts = [layer.attributes.get(name) for name in ("offset", "size")]
        offset, size = (None if text is None else shown(text) for text in texts)
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
        help = f'write size="{needed}" if these bytes stand there, or mend the type or the shape'
        yield defect("constant-size", message, "size", help)
    if weights is not None and weights.size is not None and sum(place) > weights.size:
        message = f"the constant ends at byte {sum(place)} of {weights.path.name}, which has {weights.size}"
        yield defect("weights-truncated", message, "offset")


@lru_cache(1 << 10)
def _needed_bytes(type: str, shape: str) -> int | None:
    """Return the bytes of a constant; 0 if its type has no size, None if something is wrong."""
    if any(_problems(type, shape, is_const=True)):
        return None
    element_type = from_element_type(type)
    count = element_count(parse_shape(shape))
    if element_type is None or count is None or element_type.kind == "string":
        return 0
    return element_type.byte_size(count)


def _problems(type: str, shape: str | None, *, is_const: bool) -> Iterator[tuple[str, str]]:
    """Yield the attribute that is wrong, and what is."""
    if shape is None and is_const:
        yield "shape", "<data> has no shape, expected one"
    elif shape is not None:
        try:
            parsed = parse_shape(shape)
        except ValueError as error:
            yield "shape", f"shape is {shown(shape)!r}: {error}"
        else:
            if len(parsed or ()) > MAX_RANK:
                yield "shape", f"shape has {len(parsed or ())} dimensions, expected at most {MAX_RANK}"
            elif is_const and (not is_static(parsed) or "[" in shape or shape.isspace()):
                yield "shape", f"shape is {shown(shape)!r}, expected the dimensions of a constant as numbers"
    if not is_element_type(type) or (is_const and from_element_type(type) is None):
        yield "element_type", f"element_type is {shown(type)!r}, expected a type such as 'f32'"


def _is_number(id: bytes) -> bool:
    return id.isdigit() and len(id) < 20


def _text(id: bytes) -> str:
    return _printable(decoded(id))


def _printable(text: str, limit: int = 40) -> str:
    text = shown(text, limit)
    return text if text and text.isprintable() else repr(text)


def _parse_sides(text: bytes, width: int, parsed: dict[bytes, tuple[bytes, _PortKey]]) -> _Sides:
    """Return the input ports, of which there are so many, and the output ports that a text holds.

    LookupError if they are not written as usual.
    """
    head, *chunks = text.split(_PORT_START)
    ports = [parsed.get(chunk) or _parse_port(chunk, parsed) for chunk in chunks]
    inputs, outputs = dict(ports[:width]), dict(ports[width:])
    before = chunks[width - 1] if 0 < width <= len(chunks) else head
    is_usual = len(inputs) == width and len(inputs) + len(outputs) == len(ports)
    if not is_usual or b"<port" in head or (outputs and b"<output>" not in before):
        raise LookupError(text)
    return inputs, outputs


def _parse_port(chunk: bytes, parsed: dict[bytes, tuple[bytes, _PortKey]]) -> tuple[bytes, _PortKey]:
    """Return id, precision and dimensions of a port from what stands behind `<port id="`.

    It is remembered by that text without names, as most ports are like others. LookupError if it is unusual.
    """
    before, names, behind = chunk.partition(b' names="')
    text = before + behind.partition(b'"')[2] if names else chunk
    if text not in parsed:
        match = _PORT.fullmatch(text)
        if match is None:
            raise LookupError(text)
        parsed[text] = match[1], (match[2], b"".join((match[3] or b"").split()))
    return parsed[text]


@lru_cache(1 << 10)
def _declared_key(type: bytes, shape: bytes) -> _PortKey | None:
    """Return the port of a Const of a type and a static shape, None if there is none."""
    element_type = from_element_type(type.decode("utf-8", "replace"))
    sizes = [size.strip() for size in shape.split(b",")] if shape.strip() else []
    if element_type is None or element_type.ir_name is None or not all(size.isdigit() for size in sizes):
        return None
    return element_type.ir_name.encode(), b"".join(b"<dim>%s</dim>" % size for size in sizes)
