"""Every rule and every operator in words."""

import subprocess
import sys

import pytest

from ir_scatter import UsageError
from ir_scatter.explain import explain, pages
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import OpSpec
from ir_scatter.rules import all_rules


def test_every_rule() -> None:
    for rule in all_rules():
        text = explain(rule.code)
        assert text.startswith(f"{rule.code} {rule.name} ({rule.severity})\n\n")
        assert rule.documentation in text
        for other in (rule.code.lower(), rule.name, rule.name.upper(), f"  {rule.code} "):
            assert explain(other) == text
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert max(map(len, text.partition("\n## ")[0].splitlines())) <= 110


@pytest.mark.parametrize("spec", SPECS.values(), ids=lambda spec: str(spec.key))
def test_every_operator(spec: OpSpec) -> None:
    text = explain(str(spec.key))
    assert explain(str(spec.key).lower()) == text
    for part in (str(spec.key), spec.url, spec.summary, spec.output, spec.updates_formula, *spec.errata):
        assert part in text
    for port in spec.ports:
        assert f" {port.name}: " in text
    for row in spec.attributes:
        assert f"{row.name} = " in text
        for word in row.choices:
            assert word in text
    assert explain(spec.key.type).count("\nSpecification\n") == sum(
        1 for other in SPECS.values() if other.key.type == spec.key.type
    )


@pytest.mark.parametrize(
    ("topic", "near"),
    [
        ("SCT2033", "SCT203"),
        ("updates-shape-mismach", "updates-shape-mismatch"),
        ("ScatterNDUpdate-14", "ScatterNDUpdate-15"),
        ("scatterndupdat", "ScatterNDUpdate"),
        ("TensorScater-24", "TensorScatter-24"),
        ("kv-cahce", "kv-cache"),
    ],
)
def test_close_matches(topic: str, near: str) -> None:
    with pytest.raises(UsageError, match="did you mean") as caught:
        explain(topic)
    assert near in str(caught.value)
    assert repr(topic) in str(caught.value)


@pytest.mark.parametrize("topic", ["", "  ", "qqqqqqqqq", "203", "ScatterUpdate-"])
def test_unknown_topics(topic: str) -> None:
    with pytest.raises(UsageError, match="there is no rule, operator or page"):
        explain(topic)


def test_a_warning_for_some_operators_is_said() -> None:
    text = explain("SCT303")
    assert "A warning for ScatterElementsUpdate-3" in text
    assert "ScatterUpdate-3" not in text.rpartition("A warning for ")[2].partition(",")[0]
    assert "A warning for Scatter-9" in explain("SCT401")


@pytest.mark.parametrize("name", pages())
def test_every_page(name: str) -> None:
    text = explain(name)
    assert explain(f" {name.upper()}\n") == text
    assert "<!--" not in text
    assert "](../" not in text
    where = explain("json") if name.endswith(".json") else explain()
    assert name == "index" or f"| {name} |" in where or f", {name}\n" in where


def test_former_names_of_pages() -> None:
    assert explain("gpu-differs") == explain("results-differ")
    assert explain("github-actions") == explain("ci")


def test_explaining_imports_nothing_heavy() -> None:
    code = (
        "import sys; from ir_scatter.explain import explain; explain('SCT203'); explain('ScatterNDUpdate');"
        "print(sorted({'numpy', 'onnx', 'openvino', 'lxml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
