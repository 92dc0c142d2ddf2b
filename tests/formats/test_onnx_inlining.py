"""Functions are inlined: by hand, and drawn models that compute the same before and after."""

import random
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

from ir_scatter import evaluate_model
from ir_scatter.formats.onnx.inlining import CannotInline, inline
from ir_scatter.reading import read
from tests.scale import cases, generator, in_part_and_whole

HEAD = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>'
OWN = '<domain: "own", opset_import: ["" : 18, "own" : 1]>'

SAME = {
    "a default of an attribute": f"""{HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        {OWN} f <axis: int = 0> (a) => (b) {{ b = Softmax <axis: int = @axis> (a) }}""",
    "an attribute without a value": f"""{HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        {OWN} f <axis> (a) => (b) {{ b = Softmax <axis: int = @axis> (a) }}""",
    "an attribute that two functions pass on": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.g <axis = 0> (x) }}
        {OWN} f <dim: int = 1> (a) => (b) {{ b = Softmax <axis: int = @dim> (a) }}
        {OWN} g <axis> (a) => (b) {{ b = own.f <dim: int = @axis> (a) }}""",
    "a default behind an attribute that is not passed": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.g (x) }}
        {OWN} f <dim: int = 0> (a) => (b) {{ b = Softmax <axis: int = @dim> (a) }}
        {OWN} g <axis> (a) => (b) {{ b = own.f <dim: int = @axis> (a) }}""",
    "an attribute in a body": f"""
        {HEAD} main (float[2, 3] x, bool c) => (float[2, 3] y) {{ y = own.f <axis = 0> (x, c) }}
        {OWN} f <axis> (a, c) => (b) {{ b = If (c) <
            then_branch = t () => (p) {{ p = Softmax <axis: int = @axis> (a) }},
            else_branch = e () => (q) {{ q = Neg (a) }}> }}""",
    "calls in bodies whose values have equal names": f"""
        {HEAD} main (float[2, 3] x, bool c) => (float[2, 3] y) {{ y = If (c) <
            then_branch = t () => (float[2, 3] z) {{ v = own.f (x) z = own.f (v) }},
            else_branch = e () => (float[2, 3] z) {{ v = own.g (x) z = own.f (v) }}> }}
        {OWN} f (a) => (z) {{ v = Neg (a) z = Exp (v) }}
        {OWN} g (a) => (z) {{ v = Exp (a) z = Neg (v) }}""",
    "a call in a loop": f"""
        {HEAD} main (float[2, 3] x, int64 n, bool c) => (float[2, 3] y) {{ y = Loop (n, c, x) <
            body = b (int64 i, bool k, float[2, 3] s) => (bool l, float[2, 3] r) {{
                l = Identity (k) r = own.f (s) }}> }}
        {OWN} f (x) => (y) {{ s = Sin (x) y = Neg (s) }}""",
    "an output of a function that nobody reads": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y, unread = own.f (x) }}
        {OWN} f (a) => (b, c) {{ b = Neg (a) c = Exp (b) }}""",
    "an omitted input": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ low = Constant <value_float = 0.5> ()
            y = own.f (x, , low) }}
        {OWN} f (a, low, high) => (b) {{ b = Clip (a, low, high) }}""",
    "names that are made new": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] v__1) {{ v = own.f (x) v__2 = own.f (v)
            v__1 = Add (v__2, v) }}
        {OWN} f (a) => (b) {{ v = Sin (a) b = Neg (v) }}""",
    "another opset in which the operators are the same": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        <domain: "own", opset_import: ["" : 17]> f (a) => (b) {{ b = Softmax <axis = 0> (a) }}""",
    "another spelling of the default domain": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        <domain: "own", opset_import: ["ai.onnx" : 18]> f (a) => (b) {{ b = ai.onnx.Softmax <axis = 0> (a) }}""",
    "a name of an operator": """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
        main (float[2, 3] x) => (float[2, 3] y) { y = com.microsoft.Gelu (x) }
        <domain: "com.microsoft", opset_import: ["" : 18]> Gelu (a) => (b) { b = Neg (a) }""",
}


def computed(model: ModelProto, seed: int = 0) -> list[np.ndarray]:
    source = read("model.onnx", model.SerializeToString())
    random_state = np.random.default_rng(seed)
    feeds = dict[str, np.ndarray]()
    for info in model.graph.input:
        type = info.type.tensor_type
        shape = [dim.dim_value for dim in type.shape.dim]
        if type.elem_type == onnx.TensorProto.FLOAT:
            feeds[info.name] = random_state.normal(size=shape).astype(np.float32)
        else:
            feeds[info.name] = np.array(3 if type.elem_type == onnx.TensorProto.INT64 else bool(seed % 2))
    return [*evaluate_model(source, feeds).values()]


def assert_equal(before: ModelProto, after: ModelProto, seeds: int = 2) -> None:
    assert not after.functions
    onnx.checker.check_model(after, full_check=True)
    for seed in range(seeds):
        for old, new in zip(computed(before, seed), computed(after, seed), strict=True):
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", SAME)
def test_the_inlined_model_computes_the_same(name: str) -> None:
    before = parser.parse_model(SAME[name])
    assert_equal(before, inline(before).model)


def test_an_output_that_is_an_input_gets_a_node() -> None:
    text = f"""{HEAD} main (float[2, 3] x) => (float[2, 3] y, float[2, 3] z) {{ y, z = own.f (x) }}
        {OWN} f (a) => (a, b) {{ b = Neg (a) }}"""
    after = inline(parser.parse_model(text)).model
    nodes = {node.output[0]: (node.op_type, [*node.input]) for node in after.graph.node}
    assert nodes == {"y": ("Identity", ["x"]), "z": ("Neg", ["x"])}


def test_overloads_are_told_apart() -> None:
    text = f"""{HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ v = own.f (x) y = own.f (v) }}
        {OWN} f (a) => (b) {{ b = Neg (a) }} {OWN} f (a) => (b) {{ b = Exp (a) }}"""
    before = parser.parse_model(text)
    for number, overload in enumerate("pq"):
        before.functions[number].overload = before.graph.node[1 - number].overload = overload
    inlined = inline(before)
    assert [node.op_type for node in inlined.model.graph.node] == ["Exp", "Neg"]
    assert inlined.calls == {"own::f:q": 1, "own::f:p": 1}


def test_what_is_not_of_a_function_stays() -> None:
    before = parser.parse_model(SAME["names that are made new"])
    before.metadata_props.add(key="author", value="somebody")
    before.graph.node[0].metadata_props.add(key="layer", value="1")
    before.functions[0].node[0].metadata_props.add(key="layer", value="2")
    before.graph.node[2].name, before.graph.node[2].doc_string = "sum", "the last node"
    before.graph.initializer.add(name="weights", dims=[2], data_type=1, raw_data=bytes(8))
    before.graph.value_info.add(name="v").type.tensor_type.elem_type = 1
    after = inline(before).model
    assert after.graph.node[-1] == before.graph.node[-1]
    assert [*after.metadata_props] == [*before.metadata_props]
    assert [*after.graph.initializer] == [*before.graph.initializer]
    assert [*after.graph.value_info] == [*before.graph.value_info]
    assert {"layer"} <= {entry.key for entry in after.graph.node[0].metadata_props}
    assert [entry.domain for entry in after.opset_import] == [""]


REFUSED = {
    "function own::f calls itself": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        {OWN} f (a) => (b) {{ b = own.f (a) }}""",
    "function own::f is of opset 12, and Softmax is another operator in opset 18 of the model": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f (x) }}
        <domain: "own", opset_import: ["" : 12]> f (a) => (b) {{ b = Softmax (a) }}""",
    "inlining creates more than 200000 nodes": f"""
        {HEAD} main (float[2, 3] x) => (float[2, 3] y) {{ y = own.f20 (x) }}
        {OWN} f0 (a) => (b) {{ b = Neg (a) }}
        {" ".join(f"{OWN} f{k + 1} (a) => (b) {{ c = own.f{k} (a) b = own.f{k} (c) }}" for k in range(20))}""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_model_that_cannot_be_inlined_is_refused(reason: str) -> None:
    with pytest.raises(CannotInline) as caught:
        inline(parser.parse_model(REFUSED[reason]))
    assert str(caught.value) == reason


def mutants(model: ModelProto) -> Iterator[ModelProto]:
    """Yield models that compute something else than a model whose functions are inlined."""
    for number, node in enumerate(model.graph.node):
        for at in range(len(node.input)):
            other = ModelProto()
            other.CopyFrom(model)
            other.graph.node[number].input[at] = model.graph.input[0].name
            yield other
        other = ModelProto()
        other.CopyFrom(model)
        other.graph.node[number].op_type = "Cos"
        yield other


def test_the_proof_fails_for_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    before = parser.parse_model(SAME["names that are made new"])
    right = inline(before).model
    count = 0
    for wrong in mutants(right):
        if wrong == right or wrong.graph.node[0].input[0] != "x":
            continue
        monkeypatch.setattr("onnx.inliner.inline_selected_functions", lambda *_, wrong=wrong: wrong)
        with pytest.raises(CannotInline, match="would compute something else"):
            inline(before)
        count += 1
    assert count > 5


class Drawn:
    """Draws a model whose functions call each other, with few names, so that many are equal."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.names = ["a", "b", "c", "d", "a__1", "b__2"]

    def nodes(
        self, scope: list[str], callable: list[str], names: list[str], depth: int, attribute: str
    ) -> str:
        """Return the text of some nodes; the last defines the last name."""
        draw, lines = self.random, list[str]()
        for name in names:
            operand, second = draw.choice(scope), draw.choice(scope)
            kind = draw.choice(
                ["call", "call", "Neg", "Add", "Softmax", "If"] if depth < 1 else ["call", "Sin"]
            )
            axis = draw.choice(
                ["", "<axis = 0>", "<axis = 1>", *([f"<axis: int = @{attribute}>"] * bool(attribute))]
            )
            if kind == "call" and callable:
                lines.append(f"{name} = own.{draw.choice(callable)} {axis} ({operand}, {second})")
            elif kind == "If":
                fresh = [f"{name}_{at}" for at in range(3)]
                bodies = [
                    f"{branch} = t () => ({fresh[-1]}) {{ {self.nodes(scope, callable, fresh, depth + 1, attribute)} }}"
                    for branch in ("then_branch", "else_branch")
                ]
                lines.append(f"total_{name} = ReduceSum <keepdims = 0> ({operand})")
                lines.append(f"one_{name} = Sub (total_{name}, total_{name})")
                lines.append(f"is_{name} = Less (one_{name}, total_{name})")
                lines.append(f"{name} = If (is_{name}) <{', '.join(bodies)}>")
            elif kind == "Softmax":
                lines.append(f"{name} = Softmax {axis} ({operand})")
            elif kind == "Add":
                lines.append(f"{name} = Add ({operand}, {second})")
            else:
                lines.append(f"{name} = {'Neg' if kind != 'Sin' else 'Sin'} ({operand})")
            scope = [*scope, name]
        return " ".join(lines)

    def model(self) -> ModelProto:
        draw, functions, callable = self.random, list[str](), list[str]()
        for number in range(draw.randint(1, 3)):
            default = draw.choice(["<axis>", "<axis: int = 0>", "<axis: int = 1>"])
            inputs = draw.sample(self.names, 2)
            free = [name for name in self.names if name not in inputs]
            names = draw.sample(free, draw.randint(1, 4))
            result = draw.choice(names)
            body = self.nodes(inputs, callable, names, 0, "axis")
            opset = draw.choice([17, 18])
            functions.append(
                f'<domain: "own", opset_import: ["" : {opset}, "own" : 1]> '
                f"f{number} {default} ({', '.join(inputs)}) => ({result}) {{ {body} }}"
            )
            callable.append(f"f{number}")
        names = draw.sample(self.names, 4)
        body = self.nodes(["x", "w"], callable, [*names, "y"], 0, "")
        head = f"main (float[3, 3] x, float[3, 3] w) => (float[3, 3] y) {{ {body} }}"
        return parser.parse_model(f"{HEAD} {head} {' '.join(functions)}")


@in_part_and_whole
def test_drawn_models_compute_the_same(is_whole: bool) -> None:
    reasons = list[int]()
    for number in cases(150, is_whole):
        before = Drawn(generator("inlined functions", number)).model()
        try:
            after = inline(before).model
        except CannotInline:
            reasons.append(number)
            continue
        assert_equal(before, after, 1)
    assert not reasons
