"""What a rule or a rewrite declares to read decides which nodes it is asked about: none is passed over."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import ir_scatter.rules
from ir_scatter.analysis.signature import EVERYTHING, Fact
from ir_scatter.convert.pipeline import convert
from ir_scatter.core.diagnostics import Severity
from ir_scatter.core.errors import UnreadableModel
from ir_scatter.core.model import Graph, Value
from ir_scatter.formats.openvino.graph import IrGraph
from ir_scatter.ops.spec import OpSpec
from ir_scatter.reading import read
from ir_scatter.rewrites.base import BY_SIGNATURE, Rewrite, View
from ir_scatter.rewrites.builder import Builder
from ir_scatter.rewrites.refusals import Reason, Refusal
from ir_scatter.rules import all_rules
from ir_scatter.rules.base import Rule
from ir_scatter.validate import validate
from tests.analysis.declared import Undeclared, enforced, one_by_one, with_rewrites
from tests.analysis.worlds import (
    FLAT,
    IR_CHOICES,
    PROMISES,
    TARGETS,
    IrWorld,
    OnnxText,
    OnnxWorld,
    converted,
    outputs,
)
from tests.cli.conftest import ROOT
from tests.rules.expectations import case_files, write_case
from tests.scale import NIGHTLY

FEW = settings(max_examples=max(settings().max_examples // 12, 2))
MODELS = ROOT.parent / "shared" / "models"

HEAD = '''"""Something that no rule has looked at before."""

from ir_scatter.analysis.signature import SIGNATURE, Fact
from ir_scatter.core.diagnostics import Severity
from ir_scatter.ops.spec import Role
from ir_scatter.rules.base import Finding, Rule

'''
CONDITIONS: Mapping[str, str] = {
    "updates hold NaN": "(array := numbers(site, site.updates)) is not None and (array != array).any()",
    "index 7 is unlucky": "(array := site.index_array) is not None and (array == 7).any()",
    "name has a digit": "any(letter.isdigit() for letter in site.node.name)",
    "data is zero": "(array := numbers(site, site.data)) is not None and not array.any()",
    "data comes from Relu": (
        "site.data is not None and (producer := site.data.value.producer) is not None "
        'and producer.type.lower() == "relu"'
    ),
}
ADDED: Mapping[str, str] = {
    name: f"""
def numbers(site, operand):
    return None if operand is None else site.facts.array(operand.value)

def _check(site):
    if {condition}:
        yield Finding("{name}")
"""
    for name, condition in CONDITIONS.items()
}


@pytest.fixture
def add_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Add a rule as a user does: one file in the folder of the rules."""
    folder = tmp_path / "more_rules"
    folder.mkdir()
    caches: Any = (ir_scatter.rules.all_rules, ir_scatter.rules.by_code, ir_scatter.rules.by_name)
    modules: list[str] = []

    def add(check: str, declared: str = "", severity: str = "ERROR") -> None:
        name = f"added_{len(modules)}"
        modules.append(f"ir_scatter.rules.{name}")
        rule = (
            f'Rule("SCT39{len(modules)}", "{name.replace("_", "-")}", Severity.{severity}, _check{declared})'
        )
        (folder / f"{name}.py").write_text(f"{HEAD}{check}\n\nRULE = {rule}\n")
        monkeypatch.setattr(ir_scatter.rules, "__path__", [*ir_scatter.rules.__path__, str(folder)])
        for cache in caches:
            cache.cache_clear()

    yield add
    monkeypatch.undo()
    for module in modules:
        sys.modules.pop(module, None)
    for cache in caches:
        cache.cache_clear()


# A rule that is added


BAD: Mapping[str, Mapping[str, Any]] = {
    "updates hold NaN": {"updates": [np.nan, 1.0]},
    "index 7 is unlucky": {"indices": [7, 1]},
    "name has a digit": {"name": True},
    "data is zero": {"data": 0.0},
    "data comes from Relu": {"source": "Relu"},
}
"""How the nodes must be that the rules find; whatever is not named is as they do not find it."""


def write_onnx(rule: str, folder: Path) -> tuple[str, set[str]]:
    """Write six nodes that differ in nothing but what the rule looks at; return the names of the bad ones."""
    text, names = OnnxText(), set()
    for key in "abcdef":
        bad = BAD[rule] if key in "cdf" else {}
        text.hold(f"{key}_d", np.full(9, bad.get("data", 5.0), np.float32))
        text.hold(f"{key}_i", np.array(bad.get("indices", [3, 1])))
        text.hold(f"{key}_u", np.array(bad.get("updates", [2.0, 1.0]), np.float32))
        source = f"{key}_d"
        if rule == "data comes from Relu":
            source = text.add("Relu" if bad else "Sigmoid", [source], f"{key}_calm")
        text.add("ScatterElements", [source, f"{key}_i", f"{key}_u"], f"{key}_out", axis=0)
        text.nodes[-1].name = f"scatter_{key}" if "name" not in bad else f"scatter{'abcdef'.index(key)}"
        text.outputs += outputs(f"{key}_out")
        if bad:
            names.add(text.nodes[-1].name)
    return text.write(folder), names


@pytest.mark.parametrize("rule", ADDED)
def test_a_new_rule_is_asked_about_each_node(
    rule: str, tmp_path: Path, add_rule: Callable[..., None]
) -> None:
    """Nodes that look alike to all other rules are no reason to show it the first of them only."""
    path, bad = write_onnx(rule, tmp_path)
    add_rule(ADDED[rule])
    found = [one.node.name for one in validate(read(path)) if one.code == "SCT391" and one.node]
    assert sorted(found) == sorted(bad)
    refused = convert(read(path), "ScatterND", assume=PROMISES, verify=0).refused
    assert {one.name for one in refused} >= bad
    if rule != "name has a digit":  # new nodes are named anew
        assert {one.name for one in refused} == bad


def test_a_new_rule_that_declares_is_asked_about_what_differs(
    tmp_path: Path, add_rule: Callable[..., None]
) -> None:
    """One that reads shapes only is asked about each shape."""
    main = OnnxText()
    for key, size in (("a", 4), ("b", 4), ("c", 5), ("d", 5)):
        main.input(f"{key}_d", [size, 4])
        main.hold(f"{key}_i", FLAT)
        main.hold(f"{key}_u", np.zeros(np.shape(FLAT), np.float32))
        main.add("ScatterElements", [f"{key}_d", f"{key}_i", f"{key}_u"], f"{key}_out", axis=1)
        main.outputs += outputs(f"{key}_out")
    check = """
SHOWN = []
def _check(site):
    SHOWN.append(site.data_shape)
    if site.data_shape == (5, 4):
        yield Finding("data is [5, 4]", role=Role.DATA)
"""
    add_rule(check, ", reads=frozenset({Fact.SHAPES})")
    found = validate(read(main.write(tmp_path)), select=["SCT391"])
    assert [one.node.name for one in found if one.node] == ["c_out_node", "d_out_node"]
    shown = sys.modules["ir_scatter.rules.added_0"].SHOWN
    assert shown == [(4, 4), (5, 4)]


def test_every_rule_and_every_rewrite_declares() -> None:
    from ir_scatter.rewrites import all_rewrites

    assert [rule.code for rule in all_rules() if rule.check is not None and rule.reads == EVERYTHING] == []
    assert [one.name for one in all_rewrites() if not one.reads <= BY_SIGNATURE] == []
    assert Rule("SCT391", "added", Severity.ERROR).reads == EVERYTHING == frozenset(Fact)


# Grouped equals one by one, and nobody reads what it does not declare


EVERY_WAY = slice(None)


def found_in(path: str | Path, ways: slice = EVERY_WAY) -> dict[str, object]:
    """Return the findings in a model and what becomes of it on some ways, in an order that is no matter."""
    try:
        model = read(path)
    except UnreadableModel as error:
        return {"unreadable": str(error)}
    found: dict[str, object] = {
        "validate": _sorted(validate(model)),
        "few numbers": _sorted(validate(model, max_index_elements=3)),
    }
    for to in TARGETS[model.format][ways]:
        found[f"{to}"] = converted(model, to, (), keeps=False)
        found[f"{to} with promises"] = converted(model, to, PROMISES, keeps=True)
    return found


def _sorted(found: Sequence[object]) -> list[str]:
    return sorted(map(repr, found))


def demand_same(path: str | Path, ways: slice = EVERY_WAY) -> int:
    """Demand that grouping changes nothing; return how often somebody was held to what is declared."""
    with enforced() as reader:
        grouped = found_in(path, ways)
    with one_by_one():
        single = found_in(path, ways)
    for key, found in grouped.items():
        assert found == single[key], key
    return reader.asked


@pytest.mark.parametrize("seed", range(24 if NIGHTLY else 4))
def test_without_the_short_cut_the_same_is_found(seed: int, tmp_path: Path) -> None:
    choices = {
        **IR_CHOICES,
        "data": ("relu", "relu", "relu", "const", "chain"),
        "updates": ("const", "const", "relu", "data"),
        "indices": ("const", "const", "const", "shared"),
        "axis_from": ("const", "const", "list", "shared"),
    }
    path = IrWorld(seed, choices).write(tmp_path)
    found = found_in(path, slice(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IrGraph, "key_of", Graph.key_of)
        assert found_in(path, slice(2)) == found


CASES = [*case_files(".xml"), *case_files(".onnxtxt")]


FIRST_CASES = [*{(path.name[:6], path.suffix): path for path in reversed(CASES)}.values()]
"""A case of each rule in each format."""


@pytest.mark.parametrize("number", range(len(FIRST_CASES)), ids=[path.name for path in FIRST_CASES])
def test_a_case_of_each_rule_one_by_one(number: int, tmp_path: Path) -> None:
    """By validating, or by one way of converting that is another for the next case."""
    path = write_case(FIRST_CASES[number], tmp_path)
    way = number % (5 if path.suffix == ".xml" else 3)
    demand_same(path, slice(way, way + 1))


@pytest.mark.long
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_cases_of_rules_one_by_one(path: Path, tmp_path: Path) -> None:
    demand_same(write_case(path, tmp_path))


@pytest.mark.parametrize("world", [IrWorld, OnnxWorld])
@FEW
@given(seed=st.integers(0, 1 << 30))
def test_drawn_nodes_one_by_one(
    world: Callable[[int], Any], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    assert demand_same(world(seed).write(tmp_path_factory.mktemp("world")))


@pytest.mark.models
@pytest.mark.skipif(not MODELS.is_dir(), reason="needs the folder of real models beside the checkout")
def test_real_models_one_by_one(add_rule: Callable[..., None]) -> None:
    for check in ADDED.values():
        add_rule(check, severity="NOTE")
    entries = json.loads((MODELS / "manifest.json").read_text())
    asked = [demand_same(MODELS / entry["path"], slice(2)) for entry in entries]
    assert len(asked) > 50
    assert sum(asked) > 1000


# Rewrites


def _refusing_seven(rewrite: Rewrite, indices: Callable[[View], Any]) -> Rewrite:
    def build(view: View, builder: Builder, target: OpSpec) -> Value | Refusal:
        array = indices(view)
        if array is not None and (array == 7).any():
            return Refusal(Reason.NOT_EQUAL, "7 is unlucky")
        return rewrite.build(view, builder, target)

    return replace(rewrite, build=build)


def unlucky(rewrite: Rewrite) -> Rewrite:
    """Return a rewrite that looks at the numbers of the indices."""
    return replace(_refusing_seven(rewrite, lambda view: view.scatter.index_array), reads=EVERYTHING)


def noted(rewrite: Rewrite) -> Rewrite:
    """Return a rewrite that asks for the numbers of the indices, as it declares."""
    return _refusing_seven(rewrite, View.index_numbers)


@pytest.mark.parametrize("change", [unlucky, noted])
def test_a_new_rewrite_is_asked_about_each_node(change: Callable[[Rewrite], Rewrite], tmp_path: Path) -> None:
    """What it makes of one node serves no other whose numbers it would have looked at."""
    path, bad = write_onnx("index 7 is unlucky", tmp_path)
    with with_rewrites(change):
        found = convert(read(path), "ScatterND", verify=0)
    assert {one.name for one in found.refused} == bad
    assert {one.node.name for one in found.converted}.isdisjoint(bad)


@pytest.mark.parametrize(("reduction", "is_refused"), [("add", True), ("none", False)])
def test_function_called_with_other_indices(reduction: str, is_refused: bool, tmp_path: Path) -> None:
    """What is proven for the first call is not proven for the others."""
    inner = [
        helper.make_node("ScatterElements", ["d", "i", "u"], ["y"], name="s", axis=0, reduction=reduction)
    ]
    function = helper.make_function("my", "F", ["d", "i", "u"], ["y"], inner, [helper.make_opsetid("", 18)])
    main = OnnxText()
    main.input("d", [4])
    main.input("u", [2])
    for number, indices in enumerate(([0, 1], [2, 1], [1, 1] if is_refused else [3, 0])):
        main.hold(f"i{number}", np.array(indices))
        main.nodes.append(helper.make_node("F", ["d", f"i{number}", "u"], [f"o{number}"], domain="my"))
        main.outputs += outputs(f"o{number}")
    found = convert(read(main.write(tmp_path, functions=[function])), "ScatterElements", opset=11)
    assert [one.code for one in found.refused] == ([Reason.CONDITION_UNKNOWN] if is_refused else [])


# Whoever reads more than it declares is told so


@pytest.mark.parametrize("rule", ADDED)
def test_a_rule_that_reads_more_than_it_declares_is_caught(
    rule: str, tmp_path: Path, add_rule: Callable[..., None]
) -> None:
    path, _ = write_onnx(rule, tmp_path)
    add_rule(ADDED[rule], ", reads=SIGNATURE")
    with enforced(), pytest.raises(Undeclared):
        validate(read(path))


def test_a_rewrite_that_reads_more_than_it_declares_is_caught(tmp_path: Path) -> None:
    path, _ = write_onnx("index 7 is unlucky", tmp_path)
    with (
        with_rewrites(lambda one: replace(unlucky(one), reads=one.reads)),
        enforced(),
        pytest.raises(Undeclared),
    ):
        convert(read(path), "ScatterND", verify=0)


# Particular nodes


def bfloat16(text: OnnxText, prefix: str, domain: str) -> None:
    """Add ScatterElements of constants of a type that version 11 does not take."""
    for name, type, size, width in (("data", 16, 4, 2), ("indices", 7, 1, 8), ("updates", 16, 1, 2)):
        held = onnx.TensorProto(data_type=type, dims=[size], raw_data=b"\0" * (size * width))
        text.add("Constant", [], f"{prefix}_{name}", value=held)
    operands = [f"{prefix}_{name}" for name in ("data", "indices", "updates")]
    text.add("ScatterElements", operands, f"{prefix}_out", domain=domain)


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_function_of_another_opset(domain: str, tmp_path: Path) -> None:
    """The opset counts, by whichever of its two names a node calls the domain."""
    main, inner = OnnxText(), OnnxText()
    bfloat16(main, "main", domain)
    bfloat16(inner, "inner", domain)
    function = helper.make_function("my", "F", [], ["inner_out"], inner.nodes, [helper.make_opsetid("", 11)])
    main.add("F", [], "called", domain="my")
    main.outputs = outputs("main_out", "called")
    path = main.write(tmp_path, opset=13, functions=[function])
    assert [one.code for one in validate(read(path)) if one.location.scope.startswith("my::F")] == ["SCT201"]
    demand_same(path)


def test_function_of_several_signatures(tmp_path: Path) -> None:
    main, inner = OnnxText(), OnnxText()
    inner.add("Relu", ["data"], "calm")
    inner.add("Constant", [], "indices", value=onnx.numpy_helper.from_array(FLAT))
    for axis in (0, 1):
        inner.add("ScatterElements", ["calm", "indices", "updates"], f"along{axis}", axis=axis)
        inner.add("ScatterElements", [f"along{axis}", "indices", "updates"], f"again{axis}", axis=axis)
    imports = [helper.make_opsetid("", 18)]
    names = ["data", "updates"], ["again0", "again1"]
    function = helper.make_function("my", "F", *names, inner.nodes, imports)
    main.input("updates", [2, 2])
    signatures: Sequence[Sequence[int | str] | None] = [4, 4], [4, 4], [3, 4], ["n", 2], [2, 2], None
    for number, dims in enumerate(signatures):
        given = [main.input(f"data{number}", dims), "updates"]
        main.nodes.append(helper.make_node("F", given, [f"a{number}", f"b{number}"], domain="my"))
        main.outputs += outputs(f"a{number}", f"b{number}")
    demand_same(main.write(tmp_path, functions=[function]))
