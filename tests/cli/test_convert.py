"""`ir-scatter convert`: what is chosen, what comes out, what is said, and the exit codes."""

import json
import shlex
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.cli.conftest import Cli, copy_sample
from tests.cli.scatter_models import (
    chain,
    demand_equal,
    deprecated,
    elements,
    files,
    findings,
    onnx_model,
    operators,
    slices,
    tuples,
)

_NAMED = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[4,5] data, int64[2,5] at, float[2,5] rows) => (float[4,5] out) {
      a = ScatterElements (data, at, rows)
      b = ScatterElements <axis = 1> (a, at, rows)
      out = ScatterElements <reduction = "add"> (b, at, rows)
    }
"""
_NAMES = ["enc/a*", "enc/ab", "größe/é"]


def _document(cli: Cli, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    result = cli("convert", *arguments, "--format", "json")
    assert (result.code, result.err) == (code, "")
    found: dict[str, Any] = json.loads(result.out)
    return found


def _chosen(cli: Cli, *arguments: str | Path) -> list[str]:
    return [one["node"] for one in _document(cli, *arguments, "--dry-run")["converted"]]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("ScatterNDUpdate", "ScatterNDUpdate-15"),
        ("ScatterNDUpdate-3", "ScatterNDUpdate-3"),
        ("ScatterElementsUpdate", "ScatterElementsUpdate-12"),
        ("scatterelementsupdate-3", "ScatterElementsUpdate-3"),
    ],
)
def test_an_ir_is_converted(target: str, expected: str, cli: Cli) -> None:
    source, new = slices(), Path("new.xml")
    result = cli("convert", source, "-o", new, "--to", target)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        f"7: scatter  ScatterUpdate-3 -> {expected}  safe",
        "1 node converted, verified on 8 cases each; new.xml written",
    ]
    assert operators(new) == [expected]
    assert findings(new) == []
    demand_equal(source, new)


@pytest.mark.parametrize(("indices", "axis"), [((), 1), ((), -1), ((2, 3), 0), ((), None), ((2, 2), None)])
def test_indices_become_one_dimensional(indices: tuple[int, ...], axis: int | None, cli: Cli) -> None:
    source, new = slices(indices=indices, axis=axis), Path("new.xml")
    result = cli("convert", source, "-o", new, "--to", "ScatterUpdate")
    assert result.code == 0
    assert "ScatterUpdate-3 -> ScatterUpdate-3  safe, slices-flattened\n" in result.out
    assert operators(new) == ["ScatterUpdate-3"]
    demand_equal(source, new, **({"axis": 1} if axis is None else {}))


def test_nothing_to_do_is_a_copy(cli: Cli) -> None:
    source = slices()
    result = cli("convert", source, "-o", "new.xml", "--to", "ScatterUpdate")
    assert (result.code, result.out) == (0, "nothing to convert; copied unchanged to new.xml\n")
    assert Path("new.xml").read_bytes() == source.read_bytes()
    assert Path("new.bin").read_bytes() == source.with_suffix(".bin").read_bytes()
    assert cli("convert", source, "-o", "other.xml").code == 0
    assert Path("other.xml").read_bytes() == source.read_bytes()


def test_nested_bodies(cli: Cli, elsewhere: Path) -> None:
    for name in ("branch", "loop"):
        source = copy_sample(f"nested/{name}.xml", elsewhere)
        document = _document(
            cli, source, "-o", "new.xml", "--to", "ScatterElementsUpdate", "--overwrite", code=1
        )
        assert [one["code"] for one in document["refused"]] == ["CVT101"]
        assert document["output"] is None
        assert not Path("new.xml").exists()
    arguments = (source, "-o", "new.xml", "--to", "ScatterElementsUpdate", "--partial")
    document = _document(cli, *arguments, code=1)
    assert [(one["scope"], one["to"]) for one in document["converted"]] == [
        ("loop:body/write", "ScatterElementsUpdate-12")
    ]
    assert operators(Path("new.xml")) == ["ScatterElementsUpdate-12", "ScatterNDUpdate-15"]
    assert findings(Path("new.xml")) == findings(source)


def test_every_node_of_another_operator_is_meant(cli: Cli) -> None:
    source = chain(["a", "b", "c"])
    assert _chosen(cli, source, "--to", "ScatterNDUpdate") == ["a", "b", "c"]
    assert _chosen(cli, source, "--to", "ScatterUpdate") == []
    new = Path("new.xml")
    assert cli("convert", source, "-o", new, "--to", "ScatterElementsUpdate", "--node", "b").code == 0
    assert operators(new) == ["ScatterUpdate-3", "ScatterElementsUpdate-12", "ScatterUpdate-3"]
    assert _chosen(cli, new, "--to", "ScatterNDUpdate", "--from", "ScatterElementsUpdate") == ["b"]
    assert _chosen(cli, new, "--to", "ScatterNDUpdate", "--from", "ScatterElementsUpdate-12") == ["b"]
    assert _chosen(cli, new, "--to", "ScatterNDUpdate", "--from", "ScatterElementsUpdate-3") == []
    both = ["--from", "ScatterElementsUpdate", "--from", "ScatterUpdate"]
    assert _chosen(cli, new, "--to", "ScatterNDUpdate", *both) == ["a", "b", "c"]
    assert _chosen(cli, new, "--to", "ScatterNDUpdate", "--from", "ScatterUpdate", "--node", "[ab]") == ["a"]
    demand_equal(source, new)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["enc/a*"], ["enc/a*"]),
        (["enc/*"], ["enc/a*", "enc/ab"]),
        (["größe/é", "enc/ab"], ["enc/ab", "größe/é"]),
        (["*"], _NAMES),
        (["enc/?*", "größe/é"], _NAMES),
        (["enc/a[*]"], ["enc/a*"]),
    ],
)
def test_nodes_are_named_literally_first(patterns: list[str], expected: list[str], cli: Cli) -> None:
    source = onnx_model(_NAMED, names=_NAMES)
    options = [part for pattern in patterns for part in ("--node", pattern)]
    assert _chosen(cli, source, "--to", "ScatterND", *options) == expected


def test_nodes_are_named_by_their_scope_and_have_strange_names(cli: Cli, elsewhere: Path) -> None:
    nested = copy_sample("nested/branch.xml", elsewhere)
    for pattern in ("branch:else_body/scatter", "branch:else*"):
        assert _chosen(cli, nested, "--to", "ScatterNDUpdate", "--node", pattern) == ["scatter"]
    name = 'dec/*[0] "é<&>'
    source, new = slices(node=name), Path("new.xml")
    assert _chosen(cli, source, "--to", "ScatterNDUpdate", "--node", name) == [name]
    result = cli("convert", source, "-o", new, "--to", "ScatterElementsUpdate", "--node", name)
    assert result.code == 0
    assert f"7: {name}  ScatterUpdate-3" in result.out
    demand_equal(source, new)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--to", "ScatterNDUpdat"],
            "'ScatterNDUpdat' is no target (did you mean ScatterNDUpdate?), expected one of ScatterElementsUpdate-3, ",
        ),
        (
            ["--to", "ScatterND"],
            "'ScatterND' is not a target in OpenVINO, expected one of ScatterElementsUpdate-3",
        ),
        (["--to", "ScatterUpdate-4"], "ScatterUpdate-3, or one without its version"),
        (
            ["--from", "ScatterND", "--to", "ScatterUpdate"],
            "'ScatterND' is not a scatter operator of OpenVINO",
        ),
        (["--from", "ScatterUpdate-9", "--to", "ScatterUpdate"], "expected one of ScatterElementsUpdate-3"),
        (["--to", "ScatterUpdate", "--node", "nobody"], "no scatter node is named 'nobody'; `ir-scatter"),
        (["--to", "ScatterUpdate", "--node", "scatter", "--node", "n*"], "no scatter node is named 'n*'"),
        (["--opset", "13"], "an opset can be chosen for ONNX models only"),
        (
            ["--assume", "unique"],
            "'unique' cannot be assumed (did you mean unique-indices?), expected one of unique-indices, non-negative-",
        ),
        (["--verify", "-1"], "-1 is not in the range x>=0"),
        (["--verify-on", "GPUU", "--to", "ScatterNDUpdate"], "there is no runner 'GPUU'"),
        (["--in-place"], "--in-place goes without -o"),
        ([None], "-o FILE is missing, expected it, --in-place, --diff or --dry-run"),
        ([None, "--dry-run", "--in-place"], "--dry-run goes without --in-place"),
    ],
)
def test_wrong_usage(options: list[str | None], sentence: str, cli: Cli) -> None:
    """All but those that begin with None have an output."""
    source = slices()
    before = files()
    output = [] if None in options else ["-o", "new.xml"]
    result = cli("convert", source, *output, *filter(None, options))
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert files() == before


def test_unreadable_models(cli: Cli) -> None:
    Path("no.onnx").write_text("nothing")
    for name in ("no.onnx", "missing.xml", "."):
        result = cli("convert", name, "-o", "new.xml", "--to", "ScatterUpdate")
        assert (result.code, result.out) == (3, "")
        assert result.err.startswith(f"ir-scatter: {name}: ")
    result = cli("convert", "-", "-o", "new.xml")
    assert result.code == 2
    assert "standard input cannot be converted, expected the path of a model" in result.err


def test_refused_nodes(cli: Cli, broken: Path) -> None:
    before = files()
    result = cli("convert", broken, "-o", "new.xml", "--to", "ScatterNDUpdate")
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert lines[:3] == [
        "54: negative        ScatterUpdate-3 -> ScatterNDUpdate-15  refused: CVT101",
        "    breaks SCT303: indices[1] is -1, expected 0 to 3 in ScatterUpdate-3",
        "84: past_end        ScatterUpdate-3 -> ScatterNDUpdate-15  refused: CVT101",
    ]
    assert "144: old_opset      ScatterUpdate -> ScatterNDUpdate-15    refused: CVT101" in lines
    assert lines[-1] == "1 node converted, 5 refused, verified on 8 cases each; nothing written"
    assert files() == before
    result = cli("convert", broken, "-o", "new.xml", "--to", "ScatterNDUpdate", "--partial")
    assert result.code == 1
    assert result.out.endswith("5 refused, verified on 8 cases each; new.xml written\n")
    assert operators(Path("new.xml")).count("ScatterNDUpdate-15") == 1
    assert sorted(findings(Path("new.xml"))) == sorted(findings(broken))


def test_unknown_conditions_are_promised(cli: Cli) -> None:
    source, new = elements(reduction="sum", use_init_val="false"), Path("new.xml")
    options: list[str] = []
    for condition in ("equal-indices", "unique-indices"):
        result = cli("convert", source, "-o", new, "--to", "ScatterUpdate", *options)
        assert result.code == 1
        assert "refused: CVT105\n" in result.out
        assert f"--assume {condition} asserts them" in result.out
        options += ["--assume", condition]
    document = _document(cli, source, "-o", new, "--to", "ScatterUpdate", *options)
    (one,) = document["converted"]
    assert (one["applicability"], one["assumptions"]) == ("assumed", ["equal-indices", "unique-indices"])
    assert operators(new) == ["ScatterUpdate-3"]
    result = cli("convert", source, "--dry-run", "--to", "ScatterUpdate", *options)
    assert "-> ScatterUpdate-3  assumed: equal-indices, unique-indices\n" in result.out


def test_the_document(cli: Cli) -> None:
    source = slices()
    document = _document(
        cli, source, "-o", "new.xml", "--to", "ScatterNDUpdate", "--seed", "5", "--verify", "3"
    )
    assert list(document) == [
        "schema", "versions", "model", "output", "opset", "seed", "converted", "refused", "verified",
        "verified_on", "risks", "remarks", "diff", "verification",
    ]  # fmt: skip
    place = {"node": "scatter", "scope": "scatter", "line": 7}
    assert document["converted"] == [
        {
            **place,
            "from": "ScatterUpdate-3",
            "to": "ScatterNDUpdate-15",
            "applicability": "safe",
            "assumptions": [],
            "rewrites": ["slices-to-tuples"],
        }
    ]
    assert document["verified"] == [{**place, "cases": 3}]
    assert (document["refused"], document["remarks"], document["verified_on"]) == ([], [], {})
    assert (document["model"], document["output"]) == ("model.xml", "new.xml")
    assert (document["schema"], document["seed"], document["opset"], document["diff"]) == (1, 5, None, None)
    assert document["verification"] == {
        "verified": True, "nodes": {"numpy": 3}, "models": {}, "reason": None,
    }  # fmt: skip
    document = _document(cli, source, "--dry-run", "--to", "ScatterNDUpdate", "--verify", "0")
    assert (document["verified"], len(document["converted"])) == ([], 1)
    assert document["verification"] == {
        "verified": False, "nodes": {}, "models": {}, "reason": "no case was requested (--verify 0)",
    }  # fmt: skip


def test_the_document_of_a_refusal(cli: Cli, broken: Path) -> None:
    document = _document(cli, broken, "--dry-run", "--to", "ScatterNDUpdate", code=1)
    assert document["output"] is None
    assert document["refused"][0] == {
        "node": "negative",
        "scope": "negative",
        "line": 54,
        "from": "ScatterUpdate-3",
        "to": "ScatterNDUpdate-15",
        "code": "CVT101",
        "reason": "breaks SCT303: indices[1] is -1, expected 0 to 3 in ScatterUpdate-3",
    }
    (old,) = [one for one in document["refused"] if one["node"] == "old_opset"]
    assert old["from"] == "ScatterUpdate"


def test_a_dry_run_writes_nothing(cli: Cli) -> None:
    source = slices()
    before = files()
    for options in (
        ["--dry-run"],
        ["--dry-run", "-o", "new.xml"],
        ["--diff"],
        ["--dry-run", "-o", str(source.with_name("x.xml"))],
    ):
        assert cli("convert", source, "--to", "ScatterNDUpdate", *options).code == 0
        assert files() == before
    result = cli("convert", source, "--to", "ScatterNDUpdate", "--dry-run", "-o", source)
    assert result.code == 2


@pytest.mark.parametrize(
    ("make", "way"),
    [
        (slices, ["ScatterElementsUpdate", "ScatterUpdate"]),
        (slices, ["ScatterNDUpdate-3", "ScatterUpdate"]),
        (slices, ["ScatterElementsUpdate-3", "ScatterNDUpdate", "ScatterElementsUpdate"]),
        (lambda: elements("opset4"), ["ScatterElementsUpdate-12", "ScatterElementsUpdate-3"]),
        (elements, ["ScatterNDUpdate", "ScatterElementsUpdate"]),
        (lambda: elements(reduction="sum"), ["ScatterNDUpdate", "ScatterElementsUpdate"]),
        (tuples, ["ScatterElementsUpdate", "ScatterNDUpdate"]),
        (lambda: tuples("opset4"), ["ScatterUpdate", "ScatterNDUpdate-3"]),
        (lambda: tuples("opset4"), ["ScatterNDUpdate-15", "ScatterNDUpdate-3"]),
    ],
)
def test_there_and_back_in_place(make: Any, way: list[str], cli: Cli) -> None:
    source = make()
    original = Path("original.xml")
    for suffix in (".xml", ".bin"):
        original.with_suffix(suffix).write_bytes(source.with_suffix(suffix).read_bytes())
    for number, target in enumerate(way):
        result = cli("convert", source, "--in-place", "--to", target)
        assert result.code == 0, result.out
        row = target if "-" in target else {"ScatterUpdate": "ScatterUpdate-3"}.get(target)
        assert operators(source)[0].startswith(row or target), number
        assert findings(source) == []
        demand_equal(original, source)
    before = files()
    assert (
        cli("convert", source, "--in-place", "--to", way[-1]).out == "nothing to convert; nothing written\n"
    )
    assert files() == before


def test_refusals_are_explained(cli: Cli) -> None:
    words = {"CVT101": "breaks-rules (refused conversion)", "cvt105": "promise it with `--assume NAME`"}
    for code, part in words.items():
        result = cli("explain", code)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"{code.upper()} ")
        assert part in result.out


@pytest.mark.parametrize(
    ("make", "code", "expected"),
    [
        (lambda: deprecated(13), "SCT401", "ir-scatter convert model.onnx -o NEW.onnx"),
        (
            lambda: elements("opset4", rows=7).rename("my model.xml"),
            "SCT211",
            "ir-scatter convert 'my model.xml' --from ScatterElementsUpdate "
            "--to ScatterElementsUpdate -o NEW.xml",
        ),
        (lambda: slices(values=[0, -1]), "SCT303", ""),
    ],
)
def test_validate_names_the_conversion(make: Any, code: str, expected: str, cli: Cli) -> None:
    source = make()
    if Path("model.bin").exists():
        Path("model.bin").rename(source.with_suffix(".bin"))
    lines = cli("validate", source).out.splitlines()
    helps = [line.partition("help: ")[2] for line in lines if "= help: " in line]
    assert any(line.startswith("For more: ir-scatter explain ") and code in line for line in lines)
    commands = [
        line[line.index("ir-scatter convert") :].strip("`") for line in helps if "ir-scatter convert" in line
    ]
    assert expected in commands if expected else not commands
    if expected:
        _, _, *options = shlex.split(expected)
        place = options.index("-o") + 1
        options[place] = options[place].replace("NEW", "new")
        assert options[0] == str(source)
        assert cli("convert", *options).code == 0
        assert code not in findings(Path(options[place]))


@pytest.mark.openvino
@pytest.mark.parametrize(("version", "is_lost"), [(8, True), (3, False)])
def test_an_input_with_a_default_is_a_constant_of_the_ir(
    version: int, is_lost: bool, cli: Cli, tmp_path: Path
) -> None:
    """Before version 4 of the format each initializer had to be an input, and was a constant all the same."""
    text = f"""<ir_version: {version}, opset_import: ["" : 13]>
    m (float[4, 2] x, int64[1, 1] i = {{2}}, float[1, 2] u) => (float[4, 2] y) {{ y = ScatterND (x, i, u) }}"""
    source = tmp_path / "default.onnx"
    source.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    done = cli("convert", str(source), "-o", str(tmp_path / "new.xml"))
    said = "i: CVT118 input 'i' becomes a constant: the IR contains its default value, and is verified for this value only"
    assert done.code == 0
    assert (said in done.out + done.err) == is_lost


@pytest.mark.parametrize(
    ("row", "nodes", "code"),
    [
        ("float[1, 2]", "y = ScatterND (x, i, u)", 0),
        ("float[1, 2]", "z = Clip <min = 0.0> (x) y = ScatterND (z, i, u)", 0),
        ("float[3, 2]", "y = ScatterND (x, i, u)", 1),  # breaks a rule in opset 11 too
        ("float[1, 2]", 'y = ScatterND <reduction = "add"> (x, i, u)', 1),  # is of opset 16
    ],
)
def test_a_node_that_its_opset_does_not_contain_moves_to_one_that_does(
    row: str, nodes: str, code: int, cli: Cli, tmp_path: Path
) -> None:
    """What validate advises, raise the opset of the model, convert does."""
    text = f"""<ir_version: 8, opset_import: ["" : 9]>
    m (float[4, 2] x, int64[1, 1] i, {row} u) => (float[4, 2] y) {{ {nodes} }}"""
    source, new = tmp_path / "old.onnx", tmp_path / "new.onnx"
    source.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert cli("validate", str(source)).code == 1
    assert cli("convert", str(source), "--opset", "11", "-o", str(new)).code == code
    assert new.exists() == (code == 0)
    if code == 0:
        assert cli("validate", str(new)).code == 0
        onnx.checker.check_model(str(new), full_check=True)
        assert onnx.load(new).opset_import[0].version == 11
