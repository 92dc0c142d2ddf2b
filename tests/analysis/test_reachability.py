"""Which nodes are computed, and which values are folded, in models of both formats."""

from pathlib import Path

import pytest

from ir_scatter.analysis.constants import Facts
from ir_scatter.analysis.reachability import Extent, Folding, Reach, SkipReason, UseKind, reachability_of
from ir_scatter.core.model import Model, Node
from ir_scatter.reading import read
from tests.models.ir_text import IrText, Output
from tests.models.nested_ir import put_in, put_out, result
from tests.models.onnx_text import save

HEADER = '<ir_version: 10, opset_import: ["" : 18, "own" : 1]>\n'
SCATTER = "y = ScatterND (x, at, new)"
CONSTANTS = "<int64[1, 1] at = {1}, float[1, 2] new = {5, 6}, bool no = {0}, bool yes = {1}>"


def model_of(text: str, folder: Path) -> Model:
    return read(save(HEADER + text, folder / "model.onnx"))


def main(body: str, folder: Path, inputs: str = "float[3, 2] x") -> Model:
    return model_of(f"g ({inputs}) => (out) {CONSTANTS} {{ {body} }}", folder)


def scatter_of(model: Model) -> Node:
    (found,) = [node for node in model.walk() if node.type.startswith("Scatter")]
    return found


def reach_of(model: Model) -> Reach:
    reachability = reachability_of(Facts(model=model))
    assert reachability is not None
    return reachability.reach(scatter_of(model))


@pytest.mark.parametrize(
    ("body", "uses", "extent"),
    [
        (f"{SCATTER} out = Relu (y)", UseKind.NUMBERS, Extent.ALWAYS),
        (f"{SCATTER} out = Relu (x)", UseKind.UNREAD, Extent.NEVER),
        (f"{SCATTER} z = Relu (y) out = Relu (x)", UseKind.UNREAD, Extent.NEVER),
        (f"{SCATTER} out = Shape (y)", UseKind.STATIC_SHAPE, Extent.NEVER),
        (f"{SCATTER} z = Relu (y) out = Shape (z)", UseKind.STATIC_SHAPE, Extent.NEVER),
        (f"{SCATTER} out = Size (y)", UseKind.STATIC_COUNT, Extent.NEVER),
        (f"{SCATTER} z = Shape (y) u = Relu (y) out = Cast <to = 1> (z)",
         UseKind.STATIC_SHAPE | UseKind.UNREAD, Extent.NEVER),
        (f"{SCATTER} z = Shape (y) v = Cast <to = 1> (z) out = Add (v, y)",
         UseKind.STATIC_SHAPE | UseKind.NUMBERS, Extent.ALWAYS),
    ],
)  # fmt: skip
def test_uses(body: str, uses: UseKind, extent: Extent, tmp_path: Path) -> None:
    found = reach_of(main(body, tmp_path))
    assert (found.uses, found.extent) == (uses, extent)


def test_a_dynamic_shape_is_computed(tmp_path: Path) -> None:
    found = reach_of(main(f"{SCATTER} out = Shape (y)", tmp_path, "float[N, 2] x"))
    assert (found.uses, found.extent) == (UseKind.SHAPE, Extent.ALWAYS)


def branch(condition: str) -> str:
    return (
        f"out = If ({condition}) <then_branch = a () => (p) {{ p = ScatterND (x, at, new) }}, "
        "else_branch = b () => (q) { q = Relu (x) }>"
    )


@pytest.mark.parametrize(
    ("body", "kind", "extent"),
    [
        (branch("yes"), None, Extent.ALWAYS),
        (branch("no"), SkipReason.NOT_TAKEN, Extent.NEVER),
        (f"n = Identity (no) i = Identity (n) {branch('i')}", SkipReason.NOT_TAKEN, Extent.NEVER),
        (branch("flag"), SkipReason.CHOICE, Extent.MAYBE),
        (f"i = Not (flag) {branch('i')}", SkipReason.CHOICE, Extent.MAYBE),
    ],
)
def test_branches(body: str, kind: SkipReason | None, extent: Extent, tmp_path: Path) -> None:
    found = reach_of(main(body, tmp_path, "float[3, 2] x, bool flag"))
    assert [one.reason for one in found.skippable] == ([] if kind is None else [kind])
    assert found.extent is extent
    assert found.when == ("the branch is taken" if extent is Extent.MAYBE else "")


LOOP = (
    "out = Loop (t, c, x) <body = b (int64 i, bool go, float[3, 2] old) => (bool go, float[3, 2] y) "
    "{ y = ScatterND (old, at, new) }>"
)


@pytest.mark.parametrize(
    ("trips", "begins", "kind"),
    [
        ("0", "1", SkipReason.NO_TRIPS),
        ("-1", "1", SkipReason.NO_TRIPS),
        ("2", "0", SkipReason.SKIPPED),
        ("2", "1", None),
    ],
)
def test_constant_loops(trips: str, begins: str, kind: SkipReason | None, tmp_path: Path) -> None:
    text = (
        "g (float[3, 2] x) => (out) <int64[1, 1] at = {1}, float[1, 2] new = {5, 6}, "
        f"int64 t = {{{trips}}}, bool c = {{{begins}}}> {{ {LOOP} }}"
    )
    found = reach_of(model_of(text, tmp_path))
    assert [one.reason for one in found.skippable] == ([] if kind is None else [kind])


@pytest.mark.parametrize("fed", ["t", "c"])
def test_loops_whose_trips_are_fed(fed: str, tmp_path: Path) -> None:
    given, constant = ("int64 t", "bool c = {1}") if fed == "t" else ("bool c", "int64 t = {2}")
    text = (
        f"g (float[3, 2] x, {given}) => (out) <int64[1, 1] at = {{1}}, float[1, 2] new = {{5, 6}}, "
        f"{constant}> {{ {LOOP} }}"
    )
    found = reach_of(model_of(text, tmp_path))
    assert (found.extent, found.when) == (Extent.MAYBE, "the loop runs")


FUNCTION = (
    '<domain: "own", opset_import: ["" : 18]>\n'
    "F (d, at, new) => (first, second) { first = Relu (d) second = ScatterND (d, at, new) }"
)


@pytest.mark.parametrize(("output", "extent"), [("a", Extent.NEVER), ("b", Extent.ALWAYS)])
def test_functions(output: str, extent: Extent, tmp_path: Path) -> None:
    call = f"g (float[3, 2] x) => (out) {CONSTANTS} {{ a, b = own.F (x, at, new) out = Relu ({output}) }}\n"
    assert reach_of(model_of(call + FUNCTION, tmp_path)).extent is extent


def test_a_function_is_computed_if_one_call_is(tmp_path: Path) -> None:
    call = (
        f"g (float[3, 2] x) => (out) {CONSTANTS} "
        "{ a, b = own.F (x, at, new) c, d = own.F (x, at, new) out = Add (a, d) }\n"
    )
    found = reach_of(model_of(call + FUNCTION, tmp_path))
    assert (found.uses, found.extent) == (UseKind.UNREAD | UseKind.NUMBERS, Extent.ALWAYS)


@pytest.mark.parametrize(
    ("body", "folding"),
    [
        ("s = Identity (new) i = Identity (s)", Folding.YES),
        ("s = Sin (new) i = Relu (s)", Folding.YES),
        ("s = ScatterND (new, z, new) i = Relu (s)", Folding.YES),
        ("s = Shape (x) i = Cast <to = 1> (s)", Folding.YES),
        ("s = RandomUniform <shape = [3, 2]> () i = Relu (s)", Folding.NO),
        ("s = Elu (new) i = Relu (s)", Folding.NO),
        ("s = GlobalLpPool (new) i = Relu (s)", Folding.MAYBE),
        ("i = Relu (x)", Folding.NO),
    ],
)
def test_folding(body: str, folding: Folding, tmp_path: Path) -> None:
    text = (
        "g (float[3, 2] x) => (out) <int64[1, 1] z = {0}, float[1, 2] new = {5, 6}> "
        f"{{ {body} out = Add (i, x) }}"
    )
    model = model_of(text, tmp_path)
    (add,) = [node for node in model.walk() if node.type == "Add"]
    reachability = reachability_of(Facts(model=model))
    assert reachability is not None
    assert add.inputs[0].value is not None
    assert reachability.folding(add.inputs[0].value) is folding


@pytest.mark.parametrize(
    ("fed", "data", "folding"),
    [
        ("bool c", "new", Folding.MAYBE),
        ("int64 t", "new", Folding.NO),
        ("bool c", "x", Folding.NO),
        ("bool c", "new, x", Folding.MAYBE),  # the body does not read x
    ],
)
def test_folding_of_loops(fed: str, data: str, folding: Folding, tmp_path: Path) -> None:
    """Measured: the GPU plugin unrolls a loop with a constant trip count, whatever its first condition is."""
    constants = "float[1, 2] new = {5, 6}, " + ("int64 t = {3}" if fed == "bool c" else "bool c = {1}")
    unread, output, kept = (", float[1, 2] d", ", w", ", r = Relu (d)") if ", " in data else ("", "", "")
    result = ", r" if unread else ""
    body = f"b (int64 n, bool a, float[1, 2] p{unread}) => (o, q{result})"
    nodes = "o = Constant <value = bool {1}> () q = Relu (p)" + kept.replace(",", "")
    text = (
        f"g (float[1, 2] x, {fed}) => (out) <{constants}> "
        f"{{ i{output} = Loop (t, c, {data}) <body = {body} {{ {nodes} }}> out = Add (i, x) }}"
    )
    model = model_of(text, tmp_path)
    (add,) = [node for node in model.walk() if node.type == "Add"]
    reachability = reachability_of(Facts(model=model))
    assert reachability is not None
    assert add.inputs[0].value is not None
    assert reachability.folding(add.inputs[0].value) is folding


def scattered(ir: IrText, data: Output) -> Output:
    index, axis = ir.const(f"at{ir.count}", "i64", [1]), ir.const(f"axis{ir.count}", "i64", 0)
    new = ir.const(f"new{ir.count}", "f32", [[5, 6]])
    inputs = [data, index, new, axis]
    return ir.add("scatter", "ScatterUpdate", "opset3", inputs, [("f32", data.dims)])


@pytest.mark.parametrize("is_read", [True, False])
def test_ir(is_read: bool, tmp_path: Path) -> None:
    ir = IrText()
    data = ir.parameter("x", shape=(3, 2))
    new = scattered(ir, data)
    result(ir, new if is_read else data)
    assert reach_of(read(ir.write(tmp_path))).extent is (Extent.ALWAYS if is_read else Extent.NEVER)


@pytest.mark.parametrize("condition", [True, False])
def test_branches_of_an_ir(condition: bool, tmp_path: Path) -> None:
    ir = IrText()
    data, flag, inside = ir.parameter("x", shape=(3, 2)), ir.const("flag", "boolean", condition), ""
    for name in ("then", "else"):
        body = IrText(ir.weights)
        old = body.parameter("old", shape=(3, 2))
        number = result(body, scattered(body, old) if name == "then" else old)
        maps = put_in(1, old) + put_out(2, number)
        inside += f"<{name}_port_map>{maps}</{name}_port_map>{body.body(f'{name}_body')}"
    result(ir, ir.add("if", "If", "opset8", [flag, data], [("f32", (3, 2))], inside=inside))
    found = reach_of(read(ir.write(tmp_path)))
    assert found.extent is (Extent.ALWAYS if condition else Extent.NEVER)


@pytest.mark.parametrize(
    ("returned", "uses"), [("state", UseKind.NUMBERS), ("input", UseKind.STATE), ("both", UseKind.NUMBERS)]
)
def test_states(returned: str, uses: UseKind, tmp_path: Path) -> None:
    """Of a state that no output depends on, wrong numbers are seen only where the state itself is read."""
    ir, named = IrText(), {"variable_id": "cache", "variable_type": "f32", "variable_shape": "3,2"}
    start = ir.parameter("start", shape=(3, 2))
    state = ir.add("state", "ReadValue", "opset6", [start], [("f32", (3, 2))], named)
    ir.add("assign", "Assign", "opset6", [scattered(ir, state)], [("f32", (3, 2))], {"variable_id": "cache"})
    if returned != "state":
        result(ir, ir.add("relu", "ReLU", "opset1", [start], [("f32", (3, 2))]))
    if returned != "input":
        result(ir, state)
    assert reach_of(read(ir.write(tmp_path))) == Reach(uses)
