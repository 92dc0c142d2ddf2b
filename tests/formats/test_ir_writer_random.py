"""Patches written into IRs that are written at random."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given as drawn
from hypothesis import strategies as st

from ir_scatter.core.errors import NotEditable
from ir_scatter.core.fragment import Fragment, NewConstant, NewNode, Patch
from ir_scatter.core.model import Model, Node, Value
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.formats.openvino.reader import read
from ir_scatter.formats.openvino.writer import write_ir
from tests.formats.edited_ir import constant, demand_nothing_else, load, new, value
from tests.formats.ir_files import write
from tests.formats.test_xml_index import FIELDS
from tests.formats.test_xml_random import Writer

TARGET = frozenset({"ScatterUpdate"})


class WiredWriter(Writer):
    """Writes bodies in which layers 1 to 3 are fed properly by layer 0, among whatever else."""

    def fed_layer(self, id: int, inputs: int) -> str:
        pairs = [("id", f'"{id}"'), ("name", self.value(f"n/{id}")), ("type", '"ScatterUpdate"')]
        pairs += [] if self.odd() else [("version", self.value("opset1"))]
        parts = [self.element("data", self.attributes([("a", self.value("b"))]), "")] if self.odd() else []
        counts = {"input": range(inputs), "output": range(inputs, inputs + 1)}
        for tag, numbers in counts.items():
            ports = []
            for number in numbers:
                dims = [self.element("dim", "", "4")] * self.random.randrange(3)
                attributes = self.attributes([("precision", self.value("FP32"))])
                ports.append(self.element("port", f' id="{number}"{attributes}', self.joined(dims)))
            parts.append(self.element(tag, "", self.joined(ports)))
        parts += [self.junk()] if self.odd() else []
        if self.odd():
            self.random.shuffle(parts)
        attributes = "".join(f" {name}={text}" for name, text in pairs)
        return self.element("layer", attributes + self.attributes([]), self.joined(parts))

    def body(self, tag: str, attributes: str, depth: int) -> str:
        source = (
            '<layer id="0" name="source" type="Source"><output><port id="0"/><port id="1"/></output></layer>'
        )
        layers, edges = [source], []
        for id in range(1, 4):
            inputs = self.random.randrange(1, 4)
            layers.append(self.fed_layer(id, inputs))
            for number in range(inputs):
                ends = ["0", str(self.random.randrange(2)), str(id), str(number)]
                pairs = [(name, f'"{end}"') for name, end in zip(FIELDS, ends, strict=True)]
                if self.odd():
                    self.random.shuffle(pairs)
                written = "".join(f" {name}={end}" for name, end in pairs) + self.attributes([])
                edges.append(self.element("edge", written, self.junk() if self.odd() else ""))
        layers.append(self.layer(4, depth))
        self.random.shuffle(edges)
        self.random.shuffle(layers)
        parts = [
            self.element(name, "", self.joined(found))
            for name, found in (("layers", layers), ("edges", edges))
        ]
        if self.odd():
            self.random.shuffle(parts)
        if self.odd():
            parts.append(self.junk())
        return self.element(tag, attributes, self.joined(parts))


def fragment(node: Node, random: Random) -> Fragment:
    """Return one to three nodes that read the inputs of another in any order, and new constants."""
    given = [Value("", one.element_type, one.shape) for one in (port.value for port in node.inputs) if one]
    known = [*given, constant("few", "i64", [1, 2]), constant("one", "f32", np.float32(1))]
    news = []
    for number in range(random.randrange(1, 4)):
        inputs = random.sample(known, random.randrange(1, len(known)))
        output = value("f32", random.choice([None, (), (4, 5)]))
        attributes = random.choice([{}, {"a": "b"}, {"c": "<"}])
        news.append(
            new(
                f"step {number}",
                random.choice(["ScatterUpdate", "Other"]),
                "opset1",
                inputs,
                output,
                **attributes,
            )
        )
        known.append(output)
    return Fragment(given, news)


def same_graph(model: Model, graph: IrGraph) -> IrGraph:
    """Return the graph of another model in the place of one."""
    if graph.owner is None or graph.outer is None:
        assert isinstance(model.graph, IrGraph)
        return model.graph
    place = [*graph.outer.body.bodies].index(graph.owner.handle)
    outer = same_graph(model, graph.outer)
    return outer.graphs([*outer.body.bodies][place])[graph.name]


def demand_same_inputs(patch: Patch, graph: IrGraph) -> None:
    """Demand that a graph holds a fragment in the place of a node."""
    old, key = patch.node.graph, patch.node.handle
    assert isinstance(old, IrGraph)
    producers = old.body.producers(key)
    given = [producers[port.id] for port in old.layer(key).inputs]

    def demand(key: bytes, made: NewNode) -> None:
        node, layer, found = graph.node(key), graph.layer(key), graph.body.producers(key)
        assert (node.type, node.opset, dict(node.attributes)) == (
            made.type,
            made.opset,
            dict(made.attributes),
        )
        assert len(found) == len(layer.inputs) == len(made.inputs)
        for port, wanted in zip(layer.inputs, made.inputs, strict=True):
            assert wanted is not None
            number, producer = patch.fragment.number_given(wanted), patch.fragment.producer(wanted)
            if number is not None:
                assert found[port.id] == given[number]
            elif producer is not None:
                demand(found[port.id][0], producer)
            else:
                assert isinstance(wanted.constant, NewConstant)
                (output,) = graph.node(found[port.id][0]).outputs
                assert output.constant is not None
                np.testing.assert_array_equal(output.constant.load(), wanted.constant.array, strict=True)

    demand(key, patch.fragment.result)


@drawn(st.integers(0, 2**63), st.sampled_from([0.0, 0.02, 0.1]))
def test_nothing_else_changes_in_files_written_at_random(seed: int, oddity: float) -> None:
    random = Random(seed)
    text = WiredWriter(random, oddity).file().encode()
    model = load(text, bytes(64))
    patches, places = [], set()
    for node in model.walk(TARGET):
        if random.random() < 0.7 and node.handle in (b"1", b"2", b"3"):
            patches.append(Patch(node, fragment(node, random)))
            places.add((node.scope.removesuffix(node.name), node.handle.decode()))
    try:
        written = write_ir(model, patches)
    except NotEditable:
        assert oddity
        return
    demand_nothing_else(text, written.content, places)
    with TemporaryDirectory() as folder:
        again = read(
            str(write(Path(folder), written.content, bytes(128) + written.appended)), written.content
        )
        for patch in patches:
            assert isinstance(patch.node.graph, IrGraph)
            demand_same_inputs(patch, same_graph(again, patch.node.graph))
