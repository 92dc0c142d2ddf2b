"""`ir-scatter convert` on ONNX models: deprecated operators, opsets, and all that must survive."""

from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli, copy_sample
from tests.cli.scatter_models import demand_equal, deprecated, files, findings, onnx_model, operators, opsets

_KV = "kv_cache/decoder_opset24.onnx"
_FUNCTION = """
    <ir_version: 8, opset_import: ["" : {main}, "own" : 1]>
    g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {{
      a = own.F <where = 0> (data, at, rows)
      out = own.F <where = -2> (a, at, rows)
    }}
    <domain: "own", opset_import: ["" : {inner}]>
    F <where> (data, at, rows) => (o) {{ o = Scatter <axis: int = @where> (data, at, rows) }}
"""
_EXPORT = """
    <ir_version: 4, opset_import: ["" : 9]>
    g (float[4,5] data, int64[2,5] at, float[2,5] rows, float[2,3,4] q) => (float[4,5] out, float[3,2,4] p) {
      a = Scatter (data, at, rows)
      out = Clip <min = -1.0, max = 1.0> (a)
      b = Dropout <ratio = 0.25> (q)
      c = Slice <axes = [1], starts = [0], ends = [2]> (b)
      d, places = TopK <k = 4, axis = 2> (c)
      p = Pad <pads = [0, 0, 0, 1, 0, 0]> (d)
    }
"""
_STUCK = """
    <ir_version: 4, opset_import: ["" : 9]>
    g (float[4,5] data, int64[2,5] at, float[2,5] rows, float[2,2] q)
      => (float[4,5] out, float[2,2] odd, float[4,5] bad) {
      out = Scatter (data, at, rows)
      bad = Scatter <axis = 7> (data, at, rows)
      odd = Mystery (q)
    }
"""


@pytest.mark.parametrize("opset", [9, 10])
def test_deprecated_operators_move_to_11(opset: int, cli: Cli) -> None:
    source, new = deprecated(opset), Path("new.onnx")
    result = cli("convert", source, "-o", new)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "first   Scatter-9 -> ScatterElements-11  safe",
        "second  Scatter-9 -> ScatterElements-11  safe",
        "2 nodes converted, verified on 8 cases each, opset 11; new.onnx written",
    ]
    assert (operators(new), opsets(new), findings(new)) == (["ScatterElements-11"] * 2, [11], [])
    demand_equal(source, new)
    onnx.checker.check_model(str(new), full_check=True)


@pytest.mark.parametrize(
    ("opset", "wanted", "version"),
    [*((at, None, version) for at, version in ((11, 11), (12, 11), (13, 13), (16, 16), (18, 18), (24, 18))),
     (9, 13, 13), (10, 18, 18), (13, 18, 18), (13, 11, 11)],
)  # fmt: skip
def test_deprecated_operators_become_their_successors(
    opset: int, wanted: int | None, version: int, cli: Cli
) -> None:
    source, new = deprecated(opset), Path("new.onnx")
    assert findings(source) == ["SCT401"] * 2
    options = ["--opset", str(wanted)] if wanted else []
    assert cli("convert", source, "-o", new, *options).code == 0
    assert (operators(new), opsets(new)) == ([f"ScatterElements-{version}"] * 2, [wanted or opset])
    assert findings(new) == []
    onnx.checker.check_model(str(new), full_check=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--opset", "10"], "opset 10 has no ScatterElements, expected opset 11 to 28"),
        (["--opset", "0"], "the opset is 0, expected 1 to 28"),
        (["--opset", "29"], "the opset is 29, expected 1 to 28, the newest that was checked"),
        (
            ["--opset", "11", "--to", "ScatterElements-13"],
            "opset 11 has no ScatterElements-13, expected opset 13 to 15",
        ),
        (
            ["--to", "ScatterUpdate"],
            "'ScatterUpdate' is not a target in ONNX, expected one of ScatterElements-11, ",
        ),
        (["--to", "Scatter"], "'Scatter' is no target, expected one of ScatterElements-11, "),
        (["--to", "TensorScatter"], "'TensorScatter' is no target"),
        (
            ["--from", "Scatter-10"],
            "'Scatter-10' is not a scatter operator of ONNX (did you mean Scatter-11?), expected one of Scatter-9, ",
        ),
    ],
)
def test_wrong_usage(options: list[str], sentence: str, cli: Cli) -> None:
    source = deprecated(9)
    before = files()
    result = cli("convert", source, "-o", "new.onnx", *options)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert files() == before


@pytest.mark.parametrize(("main", "inner"), [(10, 10), (10, 9), (9, 10), (13, 13)])
def test_functions_move_too(main: int, inner: int, cli: Cli) -> None:
    source, new = onnx_model(_FUNCTION.format(main=main, inner=inner)), Path("new.onnx")
    result = cli("convert", source, "-o", new)
    assert result.code == 0
    assert result.out.startswith("own::F/o  Scatter-")
    assert opsets(new) == [max(main, 11)] * 2
    assert findings(new) == []
    node = onnx.load(str(new)).functions[0].node[0]
    assert [(one.name, one.ref_attr_name) for one in node.attribute] == [("axis", "where")]
    if main < 11:
        demand_equal(source, new)


def test_what_old_exports_hold_is_adapted(cli: Cli) -> None:
    source, new = onnx_model(_EXPORT), Path("new.onnx")
    result = cli("convert", source, "-o", new, "--diff")
    assert result.code == 0
    assert result.out.splitlines()[-1] == "~4 other nodes converted to their versions in opset 11"
    onnx.checker.check_model(str(new), full_check=True)
    assert opsets(new) == [11]


@pytest.mark.onnxruntime
def test_what_was_adapted_computes_the_same(cli: Cli) -> None:
    pytest.importorskip("onnxruntime")
    source = onnx_model(_EXPORT)
    result = cli("convert", source, "-o", "new.onnx", "--verify-on", "onnxruntime")
    assert result.code == 0
    assert "equal on onnxruntime (2 cases)" in result.out
    assert "not verified" not in result.out
    result = cli("convert", source, "-o", "other.onnx")
    assert ", not verified: 4 other nodes in the new opset (--verify-on compares both" in result.out


def test_nodes_in_the_way_are_named(cli: Cli) -> None:
    source = onnx_model(_STUCK)
    before = files()
    for options in ([], ["--partial"]):
        result = cli("convert", source, "-o", "new.onnx", "--opset", "13", *options)
        assert (result.code, result.err) == (1, "")
        lines = result.out.splitlines()
        assert lines[1:3] == [
            "bad  Scatter-9 -> ScatterElements-13  refused: CVT101",
            "    breaks SCT301: axis is 7, expected -2 to 1 for data [4, 5]",
        ]
        assert lines[3].split() == ["odd", "Mystery", "refused:", "CVT110"]
        assert lines[-1].endswith("opset 13; nothing written")
        assert files() == before
    assert "note: no part of the model can be written" in lines


def test_a_refused_node_that_the_new_opset_forbids_stops_the_move(cli: Cli) -> None:
    source = onnx_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
          a = ScatterElements (data, at, rows)
          out = ScatterElements <reduction = "add"> (a, at, rows)
        }
    """)
    before = files()
    result = cli("convert", source, "-o", "new.onnx", "--to", "ScatterElements-13", "--partial")
    assert result.code == 1
    assert "out  ScatterElements-18 -> ScatterElements-13  refused: CVT105\n" in result.out
    assert result.out.endswith("opset 15; nothing written\n")
    assert files() == before
    options = ["--to", "ScatterElements-13", "--assume", "unique-indices"]
    assert cli("convert", source, "-o", "new.onnx", *options).code == 0
    assert (operators(Path("new.onnx")), opsets(Path("new.onnx"))) == (["ScatterElements-13"] * 2, [15])


def test_a_part_of_a_model_that_stays_in_its_opset(cli: Cli) -> None:
    source, new = onnx_model(_STUCK.replace('"" : 9', '"" : 13')), Path("new.onnx")
    assert cli("convert", source, "-o", new).code == 1
    assert not new.exists()
    assert cli("convert", source, "-o", new, "--partial").code == 1
    assert operators(new) == ["ScatterElements-13", "Scatter-11"]


def test_tensor_scatter(cli: Cli, elsewhere: Path) -> None:
    source, new = copy_sample(_KV, elsewhere), Path("new.onnx")
    result = cli("convert", source, "-o", new, "--to", "ScatterElements")
    assert result.code == 0
    assert result.out.startswith("key_cache    TensorScatter-24 -> ScatterElements-18  safe\n")
    assert (operators(new), opsets(new), findings(new)) == (["ScatterElements-18"] * 2, [24], [])
    lowered = Path("lowered.onnx")
    assert cli("convert", new, "-o", lowered, "--opset", "18").code == 0
    assert (operators(lowered), opsets(lowered), findings(lowered)) == (["ScatterElements-18"] * 2, [18], [])
    both = Path("both.onnx")
    assert cli("convert", source, "-o", both, "--to", "ScatterElements", "--opset", "18").code == 0
    assert (operators(both), opsets(both)) == (["ScatterElements-18"] * 2, [18])
    for path in (new, lowered, both):
        onnx.checker.check_model(str(path), full_check=True)


def test_tensor_scatter_stands_in_the_way_of_lower_opsets(cli: Cli, elsewhere: Path) -> None:
    result = cli("convert", copy_sample(_KV, elsewhere), "-o", "new.onnx", "--opset", "18")
    assert result.code == 1
    assert result.out.splitlines()[:2] == [
        "key_cache    TensorScatter  refused: CVT110",
        "    TensorScatter is new in opset 24",
    ]


def test_nested_bodies_and_functions(cli: Cli, elsewhere: Path) -> None:
    for name, expected in (("branch", 1), ("loop", 1), ("function", 1)):
        source, new = copy_sample(f"nested/{name}.onnx", elsewhere), Path(f"new_{name}.onnx")
        target = "ScatterElements" if operators(source)[0].startswith("ScatterND") else "ScatterND"
        result = cli("convert", source, "-o", new, "--to", target, "--partial")
        assert result.code == expected, result.out
        assert sorted(findings(new)) == sorted(findings(source))
    assert {operator.split("-")[0] for operator in operators(Path("new_branch.onnx"))} == {
        "ScatterElements",
        "ScatterND",
    }
