"""`--for` of validate and convert: what is known of devices, without running anything."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import parser

from ir_scatter.cases.from_probe import case_of
from ir_scatter.defects.base import Probe
from ir_scatter.formats import FORMATS
from ir_scatter.formats.base import IR
from ir_scatter.ops.spec import Role
from tests.cli.conftest import SAMPLES, Cli, Result

SCALAR = SAMPLES / "plugins" / "scalar_index.xml"
CACHE = SAMPLES / "operators" / "tensor_scatter_24.onnx"
FOLDED = SAMPLES / "plugins" / "one_behind_the_axis.xml"


@pytest.fixture(autouse=True)
def nothing_was_probed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ir_scatter.portability import portability_to

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    portability_to.cache_clear()


def found(cli: Cli, *arguments: str) -> list[dict[str, object]]:
    done = cli("validate", *arguments, "--format", "json")
    return [one for file in json.loads(done.out)["files"] for one in file["diagnostics"]]


def test_a_node_that_a_device_refuses_is_an_error(cli: Cli) -> None:
    done = cli("validate", str(SCALAR), "--for", "CPU@2026.4.1")
    assert done.code == 1
    assert (
        "error DEV101 scalar-indices-refused: indices have no dimensions: openvino:CPU 2026.4.1" in done.out
    )
    assert "recorded" in done.out
    (one,) = found(cli, str(SCALAR), "--for", "openvino@2026.4.1:CPU")
    assert (one["code"], one["severity"], one["port"]) == ("DEV101", "error", "indices")


@pytest.mark.parametrize("name", ["AUTO", "openvino:AUTO", "openvino@2025.4:AUTO", "HETERO:GPU,CPU@2025.4"])
def test_what_hands_on_is_no_device(name: str, cli: Cli) -> None:
    done = cli("validate", str(SCALAR), "--for", name)
    assert (done.code, "distributes work to other devices" in done.err) == (2, True)


def test_two_releases_are_one_too_many(cli: Cli) -> None:
    done = cli("validate", str(SCALAR), "--for", "CPU@2025.4@2024.6")
    assert (done.code, "names more than one release" in done.err) == (2, True)


def test_without_it_nothing_is_said(cli: Cli) -> None:
    assert found(cli, str(SCALAR)) == []


def test_another_device_does_not_mind(cli: Cli) -> None:
    assert "DEV101" not in {one["code"] for one in found(cli, str(SCALAR), "--for", "GPU@cpu@2026.4.1")}


def test_a_stand_in_warns_and_does_not_fail(cli: Cli) -> None:
    done = cli("validate", str(SAMPLES / "kv_cache" / "decoder_opset24.onnx"), "--for", "GPU@2026.4.1")
    assert done.code == 0
    assert "warning DEV100" in done.out
    assert "stand-in" in done.out


def test_several_devices_are_one_finding(cli: Cli) -> None:
    one, *rest = found(cli, str(CACHE), "--for", "CPU@2026.4.1,openvino:fold@2026.4.1")
    assert rest == []
    assert "openvino:CPU" in str(one["message"])
    assert "openvino:fold" in str(one["message"])


def test_a_node_of_constants_is_folded_on_a_device(cli: Cli) -> None:
    assert [one["code"] for one in found(cli, str(FOLDED), "--for", "openvino:fold@2026.4.1")] == ["DEV201"]
    assert "DEV201" not in {one["code"] for one in found(cli, str(FOLDED), "--for", "CPU@2026.4.1")}


def test_what_folding_does_is_told_once_of_all_devices() -> None:
    from ir_scatter.defects import by_code
    from ir_scatter.portability import portability_to

    devices = portability_to(("CPU@2026.4.1", "GPU@cpu@2026.4.1", "openvino:fold@2026.4.1"))
    assert len(devices.evidence(by_code()["DEV201"], is_folded=True)) == 1


@pytest.mark.parametrize(
    "model", sorted((SAMPLES / "nested").glob("*.*ml")) + sorted((SAMPLES / "nested").glob("*.onnx"))
)
def test_nodes_inside_bodies_and_functions_are_looked_at(model: Path, cli: Cli) -> None:
    done = cli("validate", str(model), "--for", "CPU@2026.4.1,GPU@2026.4.1,onnxruntime", "--format", "json")
    assert "SCT999" not in done.out, done.out
    scopes = [one["scope"] for one in json.loads(done.out)["files"][0]["diagnostics"]]
    assert any("/" in scope for scope in scopes)


def test_what_nobody_probed_is_never_silent(cli: Cli) -> None:
    for name in ("NPU", "CPU@2019.1", "GPU.1@2019"):
        (one,) = found(cli, str(SCALAR), "--for", name)
        assert (one["code"], one["severity"]) == ("SCT942", "note")
        assert "untested" in str(one["message"])


def test_between_two_records_it_is_inferred(tmp_path: Path, cli: Cli) -> None:
    rows = [
        {"runtime": "openvino", "release": release, "device": "CPU", "results": {"DEV101/0-d": "refused"}}
        for release in ("2018.1.0", "2018.6.0")
    ]
    (tmp_path / "ir-scatter").mkdir()
    (tmp_path / "ir-scatter" / "doctor.json").write_text(json.dumps({"schema": 1, "rows": rows}))
    (one,) = found(cli, str(SCALAR), "--for", "CPU@2018.3", "--select", "DEV")
    assert "inferred, as in 2018.1.0 and 2018.6.0" in str(one["message"])
    (one,) = found(cli, str(SCALAR), "--for", "CPU@2018.6", "--select", "DEV")
    assert "probed here" in str(one["message"])


def test_a_cache_that_is_broken_is_none(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "ir-scatter").mkdir()
    (tmp_path / "ir-scatter" / "doctor.json").write_text('{"schema": 1, "rows": [{"runtime": 7}]}')
    assert [one["code"] for one in found(cli, str(SCALAR), "--for", "CPU@2026.4.1")] == ["DEV101"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("AUTO:GPU,CPU", "AUTO:GPU distributes work to other devices, expected those"),
        ("HETERO", "HETERO distributes work to other devices"),
        ("CPUU", "there is no runner 'CPUU' (did you mean CPU?)"),
        (",", "names no device"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "convert"])
def test_a_wrong_name_is_told(cli: Cli, command: str, name: str, sentence: str) -> None:
    more = ["-o", "new.xml"] if command == "convert" else []
    done = cli(command, str(SCALAR), "--for", name, *more)
    assert done.code == 2
    assert sentence in done.err


def test_codes_are_selected_and_ignored_as_those_of_rules(cli: Cli) -> None:
    name = "CPU@2026.4.1"
    assert found(cli, str(SCALAR), "--for", name, "--ignore", "DEV101") == []
    assert found(cli, str(SCALAR), "--for", name, "--select", "SCT") == []
    assert len(found(cli, str(SCALAR), "--for", name, "--select", "DEV1")) == 1
    assert len(found(cli, str(SCALAR), "--for", name, "--select", "scalar-indices-refused")) == 1
    assert found(cli, str(SCALAR), "--for", name, "--ignore", "scalar_indices_refused") == []
    done = cli("validate", str(SCALAR), "--select", "scalar-indices-refusd")
    assert (done.code, "did you mean scalar-indices-refused?" in done.err) == (2, True)


@pytest.mark.parametrize("format", ["sarif", "html", "junit", "github", "concise", "text"])
def test_every_format_has_them(cli: Cli, format: str) -> None:
    done = cli("validate", str(SCALAR), "--for", "CPU@2026.4.1", "--format", format)
    assert done.code == 1, done.err
    assert "DEV101" in done.out


def test_a_defect_is_explained(cli: Cli) -> None:
    for word in ("DEV101", "dev101", "scalar-indices-refused"):
        done = cli("explain", word)
        assert done.code == 0
        assert "OpenVINO's CPU plugin refuses 0-D indices." in done.out
        assert "2026.4.1" in done.out


def test_a_defect_that_nobody_knows_is_no_page(cli: Cli) -> None:
    done = cli("explain", "DEV110")
    assert done.code == 2
    assert "did you mean DEV1" in done.err


def test_a_baseline_holds_them(cli: Cli) -> None:
    cli("validate", str(SCALAR), "--for", "CPU@2026.4.1", "--write-baseline", "known.json")
    assert cli("validate", str(SCALAR), "--for", "CPU@2026.4.1", "--baseline", "known.json").code == 0


def test_convert_goes_around_and_once_only(cli: Cli, tmp_path: Path) -> None:
    target = tmp_path / "new.xml"
    done = cli("convert", str(SCALAR), "--for", "CPU@2026.4.1", "-o", str(target))
    assert done.code == 0, done.err
    assert "1 node converted, verified" in done.out
    left = found(cli, str(target), "--for", "CPU@2026.4.1")
    assert {one["severity"] for one in left} <= {"warning", "note"}, left  # what a run decides
    before = target.read_bytes()
    done = cli("convert", str(target), "--for", "CPU@2026.4.1", "--in-place")
    assert (done.code, target.read_bytes()) == (0, before)
    assert "nothing to convert" in done.out


def test_convert_leaves_nodes_that_no_defect_meets(cli: Cli) -> None:
    """A deprecated operator stays, too: nothing but this happens."""
    done = cli("convert", str(SAMPLES / "operators" / "scatter_9.onnx"), "--for", "CPU@2026.4.1", "--dry-run")
    assert done.code == 0
    assert "nothing to convert" in done.out


def test_an_opset_is_not_ignored(cli: Cli, tmp_path: Path) -> None:
    done = cli("convert", str(CACHE), "--for", "CPU@2026.4.1", "--opset", "24", "-o", "new.onnx")
    assert done.code == 2
    assert "known defects alone do not change the opset" in done.err
    assert not (tmp_path / "new.onnx").exists()


def test_doctor_asks_no_device_that_hands_on_to_others(cli: Cli) -> None:
    done = cli("doctor", "--on", "AUTO")
    assert done.code == 2
    assert "AUTO distributes work to other devices" in done.err


def test_convert_says_what_stands_in_the_way(cli: Cli, tmp_path: Path) -> None:
    """What is asked for is refused by the device, so that the file is not written."""
    done = cli(
        "convert", str(SAMPLES / "operators" / "scatter_elements_update_12_sum.xml"),
        "--for", "GPU@2026.4.1", "--to", "ScatterNDUpdate-15", "-o", "new.xml",
    )  # fmt: skip
    assert done.code == 1
    assert "CVT113" in done.out
    assert "DEV305" in done.out
    assert not (tmp_path / "new.xml").exists()


def test_what_may_be_met_is_avoided_at_no_cost(cli: Cli, tmp_path: Path) -> None:
    """Packed elements: slices may share bytes, the elements of a row and tuples do not."""
    for data, updates, is_converted in (((5,), (2,), True), ((5, 3), (2, 3), True)):
        probe = Probe("packed", "ScatterUpdate-3", data, [3, 0], updates, 0, "u4")
        for suffix, content in FORMATS[IR].nodes([case_of(probe).node()]).items():
            (tmp_path / f"packed{suffix}").write_bytes(content)
        source, target = str(tmp_path / "packed.xml"), tmp_path / f"new{len(data)}.xml"
        codes = [one["code"] for one in found(cli, source, "--for", "CPU@2026.4.1")]
        assert "DEV104" in codes
        done = cli("convert", source, "--for", "CPU@2026.4.1", "-o", str(target))
        assert done.code == 0, done.err
        assert ("1 node converted, verified" in done.out) == is_converted
        left = [
            one["code"]
            for one in found(cli, str(target if is_converted else source), "--for", "CPU@2026.4.1")
        ]
        assert ("DEV104" in left) != is_converted


def written(probe: Probe, folder: Path) -> Path:
    """Write the model of a probe."""
    case = case_of(probe)
    files = FORMATS[case.format].nodes([case.node()])
    for suffix, content in files.items():
        (folder / f"model{suffix}").write_bytes(content)
    return folder / f"model{next(iter(files))}"


@pytest.mark.parametrize("shapes", ["static", "dynamic"])
def test_a_negative_axis_becomes_a_positive_one(cli: Cli, tmp_path: Path, shapes: str) -> None:
    """It costs nothing, so that it is done where the axis may be wrong, too; and where no device minds, not."""
    source = written(Probe("p", "ScatterUpdate-3", (2, 3), [2, 0], (2, 2), -1, shapes=shapes), tmp_path)
    new, device = tmp_path / "new.xml", ("--for", "GPU@cpu@2026.4.1")
    (one,) = [one for one in found(cli, str(source), *device) if one["code"] == "DEV308"]
    assert (one["severity"], one["port"]) == ("error" if shapes == "static" else "warning", "axis")
    done = cli("convert", str(source), *device, "-o", str(new), "--format", "json")
    (converted,) = json.loads(done.out)["converted"]
    assert converted["rewrites"] == ["slices-flattened"]
    assert "DEV308" not in {one["code"] for one in found(cli, str(new), *device)}
    again = cli("convert", str(new), *device, "--dry-run")
    assert (again.code, "nothing to convert" in again.out) == (0, True)
    for more in (("--for", "CPU@2026.4.1"), ("--to", "ScatterUpdate")):
        assert "nothing to convert" in cli("convert", str(source), *more, "--dry-run").out


def test_a_constant_row_is_gone_around_or_refused(cli: Cli, tmp_path: Path) -> None:
    new, device = tmp_path / "new.xml", ("--for", "GPU@cpu@2026.4.1")
    for role, code in ((Role.INDICES, 0), (Role.DATA, 0)):
        held = frozenset({Role.AXIS, role})
        probe = Probe("p", "ScatterElementsUpdate-12", (4,), [1, 0], (2,), 0, constants=held)
        done = cli("convert", str(written(probe, tmp_path)), *device, "-o", str(new), "--overwrite")
        assert (done.code, "DEV309" in done.out) == (code, bool(code)), done.out


@pytest.mark.parametrize(
    ("probe", "code"),
    [
        # refused as elements; tuples of indices with five dimensions would be wrong
        (Probe("p", "ScatterElementsUpdate-12", (1, 2, 1, 2), (1, 1, 1, 2), (1, 1, 1, 2), 3, "i8"), "DEV303"),
        (Probe("p", "ScatterElementsUpdate-3", (2, 1, 2, 1, 2), (1, 1, 2, 1, 1), (1, 1, 2, 1, 1), 0, "u8"), "DEV303"),
        (Probe("p", "ScatterNDUpdate-3", (2, 2, 2, 2, 2), [[[1, 1]], [[0, 1]]], (2, 1, 2, 2, 2)), "DEV314"),
        (Probe("p", "ScatterNDUpdate-3", (1, 2, 1, 2), (1, 1, 1, 1, 4), (1, 1, 1, 1), None, "i8"), "DEV314"),
    ],
)  # fmt: skip
def test_no_form_has_tuples_of_mixed_ranks(cli: Cli, tmp_path: Path, probe: Probe, code: str) -> None:
    new, device = tmp_path / "new.xml", ("--for", "GPU@cpu@2026.4.1")
    source = written(probe, tmp_path)
    before = cli("validate", str(source), *device, "--format", "concise")
    assert f"error {code} " in before.out
    done = cli("convert", str(source), *device, "-o", str(new))
    assert done.code == 0, done.out
    after = cli("validate", str(new), *device, "--format", "concise")
    assert after.code == 0, after.out
    assert "DEV314" not in after.out


def convert_probe(cli: Cli, folder: Path, probe: Probe, *words: str) -> tuple[Result, Path]:
    """Convert a model of one node for devices; return what is said and the new file."""
    case = case_of(probe)
    files = FORMATS[case.format].nodes([case.node()])
    for suffix, content in files.items():
        (folder / f"model{suffix}").write_bytes(content)
    source, new = folder / f"model{next(iter(files))}", folder / f"new{next(iter(files))}"
    return cli("convert", str(source), *words, "-o", str(new)), new


def test_a_node_that_writes_nothing_is_left_out(cli: Cli, tmp_path: Path) -> None:
    """Whoever reads the empty initializer is refused, so that nobody reads it any more."""
    constants = frozenset({Role.INDICES})
    probe = Probe("p", "ScatterElements-18", (2, 3), (0, 3), (0, 3), 0, constants=constants)
    done, new = convert_probe(cli, tmp_path, probe, "--for", "CPU@2026.4.1")
    assert done.code == 0, done.out
    assert "left-out" in done.out
    assert "DEV134" not in {each["code"] for each in found(cli, str(new), "--for", "CPU@2026.4.1")}


@pytest.mark.parametrize(
    ("probe", "device"),
    [
        # packed elements: CPU refuses the type, and computes slices of it wrongly
        (Probe("p", "ScatterNDUpdate-15", [1, 2, 3, 0], [[2]], [1], None, "u2"), "CPU@2026.4.1"),
        # booleans have no kernel for elements on GPU, and tuples take no negative index there
        pytest.param(
            Probe("p", "ScatterElementsUpdate-12", (4,), [1], (1,), 0, "boolean", shapes="dynamic"),
            "GPU@cpu@2026.4.1",
            marks=pytest.mark.long,
        ),
    ],
)
def test_elements_are_cast_where_no_other_form_runs(
    cli: Cli, tmp_path: Path, probe: Probe, device: str
) -> None:
    done, new = convert_probe(cli, tmp_path, probe, "--for", device)
    assert (done.code, "safe, cast-to-i32" in done.out) == (0, True), done.out
    assert "error" not in {one["severity"] for one in found(cli, str(new), "--for", device)}
    compared = cli("compare", str(new), "--on", device.rpartition("@")[0])
    assert compared.code == 0, compared.out


def test_without_it_validate_imports_none_of_it() -> None:
    code = (
        "import sys; from ir_scatter_cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if 'defects' in name or 'portability' in name or 'doctor' in name"
        " if name != 'ir_scatter.rules.file_defects'])"
    )
    arguments = [sys.executable, "-c", code, "validate", str(SCALAR)]
    done = subprocess.run(arguments, capture_output=True, text=True, env=os.environ, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


RUNTIME = SAMPLES / "operators" / "scatter_update_3_axis_0.xml"


def warned(cli: Cli, model: Path, *arguments: str) -> list[str]:
    done = cli("convert", str(model), *arguments, "--dry-run", "--format", "json")
    assert done.code == 0, done.err
    return list(json.loads(done.out)["remarks"])


def test_runtime_indices_are_warned_of_and_guarded(cli: Cli, tmp_path: Path) -> None:
    """The defect says it of a node that stays, and nothing says it again; of a new form it is said."""
    new, devices = tmp_path / "new.xml", ("--for", "CPU@2026.4.1")
    (told,) = warned(cli, RUNTIME, *devices)
    assert "DEV143" in told
    (told,) = warned(cli, SCALAR, *devices)
    assert "CVT115 indices may be out of range when the model runs, expected 0 to size - 1; --guard" in told
    done = cli("convert", str(RUNTIME), *devices, "--guard", "clamp", "-o", str(new))
    assert done.code == 0
    assert "ScatterUpdate-3 -> ScatterUpdate-3  safe, indices-clamped" in done.out
    assert warned(cli, new, *devices) == []


def test_unguarded_indices_are_told_of_once(cli: Cli) -> None:
    every = warned(cli, SAMPLES / "kv_cache" / "decoder.xml", "--for", "openvino:fold@2026.4.1")
    (told,) = [one for one in every if "CVT115" in one]
    assert "expected 0 to size - 1; 1 other node as well" in told


def test_a_guarded_form_is_met_by_no_defect_either(cli: Cli, tmp_path: Path) -> None:
    scalar = SAMPLES / "operators" / "scatter_update_3_scalar_index.xml"
    new = tmp_path / "new.xml"
    done = cli(
        "convert",
        str(scalar),
        "--for",
        "CPU@2026.4.1",
        "--guard",
        "clamp",
        "-o",
        str(new),
        "--format",
        "json",
    )
    (one,) = json.loads(done.out)["converted"]
    assert one["rewrites"][0] == "indices-clamped"
    assert len(one["rewrites"]) == 2
    assert not [one for one in found(cli, str(new), "--for", "CPU@2026.4.1") if one["severity"] == "error"]
    again = cli("convert", str(new), "--for", "CPU@2026.4.1", "--guard", "clamp", "--dry-run")
    assert "nothing to convert" in again.out
    shown = cli("convert", str(scalar), "--for", "CPU@2026.4.1", "--guard", "clamp", "--dry-run").out
    assert "ScatterUpdate-3 -> ScatterNDUpdate-15  safe, indices-clamped" in shown


def test_proven_negative_tuples_are_wrapped(cli: Cli, tmp_path: Path) -> None:
    """The help of DEV306 names --guard wrap: it changes indices that are legal, too, and then nothing is left."""
    text = """
        <ir_version: 8, opset_import: ["" : 18]>
        graph (float[s, 3] d, int64[2, 1] g, float[2, 3] u) => (float[s, 3] o)
        <int64 least = {-2}, int64 most = {-1}>
        { i = Clip(g, least, most) o = ScatterND(d, i, u) }"""
    onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
    devices, new = ("--for", "GPU@cpu@2026.4.1"), tmp_path / "new.onnx"
    (told,) = [one for one in found(cli, str(path), *devices) if one["code"] == "DEV306"]
    assert "--guard wrap" in str(told["help"])
    done = cli("convert", str(path), *devices, "--guard", "wrap", "-o", str(new))
    assert (done.code, "safe, indices-wrapped" in done.out) == (0, True)
    assert "DEV306" not in [one["code"] for one in found(cli, str(new), *devices)]


def test_a_file_that_one_runtime_refuses(cli: Cli, tmp_path: Path) -> None:
    path, branch = tmp_path / "names.onnx", "branch = {0} () => (float[4] {0}) {{ {0} = {1} (x) }}"
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
    m (float[4] x, bool c, int64[1] i, float[1] u) => (float[4] y)
    {{ z = If (c) <then_{branch.format("a", "Neg")}, else_{branch.format("b", "Abs")}>
       a = Constant <value = float {{1}}> () y = ScatterElements (z, i, u) }}"""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    for targets, severity in [
        ([], "warning"),
        (["--for", "CPU"], "warning"),
        (["--for", "onnxruntime"], "error"),
    ]:
        said = [(one["code"], one["severity"]) for one in found(cli, str(path), *targets)]
        assert ("SCT920", severity) in said
        assert cli("validate", str(path), *targets).code == (severity == "error")


def test_constant_indices_on_an_open_size_may_be_out_of_range(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rows.onnx"
    text = """<ir_version: 8, opset_import: ["" : 18]>
    m (float[N, 5] data, float[2, 5] updates) => (float[N, 5] y)
    <int64[2, 1] rows = {0, LAST}> { y = ScatterND (data, rows, updates) }"""
    for last, expected in (("8", "indices hold 8, if N is less than 9 and one thread computes"), ("0", "")):
        model = onnx.parser.parse_model(text.replace("LAST", last))
        path.write_bytes(model.SerializeToString())
        met = [one for one in found(cli, str(path), "--for", "CPU@2026.4.1") if one["code"] == "DEV143"]
        assert [str(one["message"]).partition(": ")[0] for one in met] == [expected] * bool(expected)


def test_tuples_without_coordinates_have_no_bounds(cli: Cli, tmp_path: Path) -> None:
    """With k = 0 each update is the whole tensor; the bounds of indices are known, and count on no size."""
    text = """
        <ir_version: 8, opset_import: ["" : 18]>
        graph (float[4, 3] d, int64[2, 0] g, float[2, 4, 3] u) => (float[4, 3] o)
        <int64 least = {0}, int64 most = {3}>
        { i = Clip(g, least, most) o = ScatterND(d, i, u) }"""
    onnx.save(parser.parse_model(text), path := tmp_path / "model.onnx")
    result = cli("validate", str(path), "--for", "CPU@2026.4.1,GPU@2026.4.1")
    assert result.code in {0, 1}, result.err
    assert "index-out-of-range" not in result.out


def test_constant_indices_beyond_an_open_dimension(cli: Cli, tmp_path: Path) -> None:
    """Rows 0 to 8 of a dimension that may be smaller: validate and convert say the same of CPU."""
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[n, 5] data, float[9, 5] updates) => (float[n, 5] y)
        <int64[9, 1] rows = {0, 1, 2, 3, 4, 5, 6, 7, 8}> { y = ScatterND(data, rows, updates) }
    """)
    path, after = tmp_path / "rows.onnx", tmp_path / "after.onnx"
    onnx.save(model, path)
    reported = {str(one["code"]): str(one["message"]) for one in found(cli, str(path), "--for", "CPU")}
    assert set(reported) == {"SCT308", "DEV143"}
    assert "n must be 9 or more" in reported["SCT308"]
    assert "if n is less than 9 and one thread computes" in reported["DEV143"]
    done = cli("convert", str(path), "--for", "CPU", "-o", str(after))
    assert done.code == 0
    assert f"DEV143 {reported['DEV143'].partition(':')[0]}" in done.out + done.err
    guarded = cli("convert", str(path), "--for", "CPU", "--guard", "clamp", "-o", str(after), "--overwrite")
    assert guarded.code == 0
    assert not {one["code"] for one in found(cli, str(after), "--for", "CPU")} & set(reported)


@pytest.mark.openvino
def test_what_cpu_does_with_rows_beyond(tmp_path: Path) -> None:
    """Refused by two threads, and accepted by one, as DEV143 says; right where there are enough rows."""
    pytest.importorskip("openvino")
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 18]>
        g (float[n, 5] data, float[9, 5] updates) => (float[n, 5] y)
        <int64[9, 1] rows = {0, 1, 2, 3, 4, 5, 6, 7, 8}> { y = ScatterND(data, rows, updates) }
    """)
    onnx.save(model, tmp_path / "rows.onnx")
    program = """
import numpy, openvino
core = openvino.Core()
for threads in (1, 2):
    for rows in (8, 9):
        compiled = core.compile_model("rows.onnx", "CPU", {"INFERENCE_NUM_THREADS": threads})
        try:
            compiled([numpy.zeros((rows, 5), "f"), numpy.ones((9, 5), "f")])
            print(threads, rows, "accepted")
        except RuntimeError:
            print(threads, rows, "refused")
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == ["1 8 accepted", "1 9 accepted", "2 8 refused", "2 9 accepted"], (
        done.stderr
    )


@pytest.mark.parametrize(
    ("model", "devices"),
    [
        ("plugins/scalar_index.xml", ["CPU"]),
        ("operators/scatter_elements_update_12_bytes.xml", ["CPU", "GPU"]),
        ("operators/scatter_nd_update_15_sum.xml", ["GPU"]),
        ("operators/scatter_update_3_last_axis.xml", ["GPU"]),
        ("operators/scatter_nd_update_3_elements.xml", ["GPU"]),
    ],
)
def test_help_that_is_a_command_does_what_it_says(
    model: str, devices: list[str], cli: Cli, elsewhere: Path
) -> None:
    """Each command is run as it stands; the new model no longer has the finding."""
    shutil.copy(SAMPLES / model, "my model.xml")
    if (binary := (SAMPLES / model).with_suffix(".bin")).exists():
        shutil.copy(binary, "my model.bin")
    line = ["my model.xml", *(word for device in devices for word in ("--for", device))]
    findings = [finding for finding in found(cli, *line) if finding["severity"] != "note"]
    commands = [str(finding["help"]).partition(": ir-scatter ")[2] for finding in findings]
    assert any(commands)
    for finding, command in zip(findings, commands, strict=True):
        if command:
            assert "'my model.xml'" in command
            assert cli(*shlex.split(command)).code == 0
            codes = {each["code"] for each in found(cli, "NEW.xml", *line[1:])}
            assert finding["code"] not in codes, command
            for path in Path().glob("NEW.*"):
                path.unlink()


def test_help_names_no_conversion_that_is_refused(cli: Cli) -> None:
    """A finding without a command has only a sentence."""
    findings = found(cli, str(SAMPLES / "operators" / "tensor_scatter_24.onnx"), "--for", "GPU")
    for finding in findings:
        command = str(finding["help"]).partition(": ir-scatter ")[2]
        assert not command or cli(*shlex.split(command), "--dry-run").code == 0


def test_two_releases_say_what_is_different(cli: Cli, elsewhere: Path) -> None:
    shutil.copy(SAMPLES / "operators" / "scatter_update_3_matrix_of_indices.xml", "a.xml")
    shutil.copy(SAMPLES / "operators" / "scatter_nd_update_15_none.xml", "b.xml")
    releases = [word for name in ("CPU@2024.6", "CPU@2026.4.1") for word in ("--for", name)]
    done = cli("validate", "a.xml", "b.xml", *releases)
    lines = done.out.splitlines()
    (start,) = [at for at, line in enumerate(lines) if line.startswith("new in openvino:CPU 2026.4.1: ")]
    assert lines[start].endswith("(as in openvino:CPU 2024.6)")
    assert "DEV143" in lines[start].partition(";")[0]
    assert lines[start + 1] == "  a.xml: scatter +DEV143"
    same = cli("validate", "a.xml", "--for", "CPU@2026.4.1", "--for", "CPU@2026.4.1")
    assert "new in" not in same.out
    left_out = cli("validate", "a.xml", *releases, "--ignore", "DEV143")
    assert "new in openvino:CPU 2026.4.1: none; gone: none; same: " in left_out.out
    assert "new in" not in cli("validate", "a.xml", *releases, "-q").out
