"""Risks belong to the node that they come from, and are found in one pass over the nodes."""

from pathlib import Path

import onnx
import pytest
from onnx import parser

from ir_scatter.convert import risks
from ir_scatter.convert.pipeline import convert
from ir_scatter.portability import portability_to
from tests.operations import executed_lines

DEVICE = "CPU@2026.4.1"


def chain(count: int, folder: Path, names: list[str] | None = None) -> Path:
    """Write a chain of scatter nodes of i64, which CPU computes as i32."""
    nodes = [f"v{number + 1} = ScatterElements (v{number}, at, new)" for number in range(count)]
    model = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 18]> main (int64[4] v0, int64[2] at, int64[2] new)
        => (int64[4] v{count}) {{ {" ".join(nodes)} }}"""
    )
    for node, name in zip(model.graph.node, names or [], strict=False):
        node.name = name
    onnx.save(model, path := folder / f"{count}.onnx")
    return path


@pytest.mark.parametrize(
    "names", [["b", "a"], ["a", "a/b", "a/b/c"], ["a/b", "a", "c"], ["a/b/updated", "a/b"]]
)
@pytest.mark.parametrize("target", [None, "ScatterND"])
def test_a_risk_belongs_to_its_own_node(names: list[str], target: str | None, tmp_path: Path) -> None:
    """New nodes are named after the node that they replace, which may be the name of another node, too."""
    path = chain(len(names), tmp_path, names)
    for chosen in ([name] for name in names if target) if target else [[]]:
        conversion = convert(path, target, targets=[DEVICE], nodes=chosen)
        assert [converted.name for converted in conversion.converted] == chosen
        assert sorted(risk.scope for risk in conversion.risks) == sorted(names)
        assert {risk.node for risk in conversion.risks} == set(names)


def test_the_work_grows_with_the_number_of_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[int]()
    portability = portability_to((DEVICE,))
    for count in (50, 200):
        conversion = convert(chain(count, tmp_path), "ScatterND", targets=[DEVICE], verify=0)
        assert len(conversion.risks) == count
        old = [*risks._met(conversion.model, portability, ())]
        new = [*risks._met(risks._written(conversion), portability, ())]
        with monkeypatch.context() as patched:
            patched.setattr(risks, "_met", lambda *arguments, old=old, new=new: old if arguments[3:] else new)
            patched.setattr(risks, "_written", lambda conversion: conversion.model)
            lines.append(executed_lines(lambda: risks.risks_of(conversion, portability, {})))  # noqa: B023
    assert lines[1] < 4.5 * lines[0]
