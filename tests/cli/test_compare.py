"""`ir-scatter compare`: what it says, what it writes, and how it ends."""

import hashlib
import json
import platform
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from ir_scatter import runners
from ir_scatter.formats import dataflow_of
from ir_scatter.inputs.model import make_feeds
from ir_scatter.reading import read
from ir_scatter.runners.base import Status
from tests.cli.conftest import COMMAND, Cli, copy_sample
from tests.compare.models import floats, write_node
from tests.compare.planted import FakeRunner, wrong_at
from tests.models.onnx_text import LEGAL, save
from tests.report.comparisons import parse_page

Voices = Callable[..., None]


@pytest.fixture
def voices(monkeypatch: pytest.MonkeyPatch) -> Voices:
    """Let names stand for runners that do what they are told."""

    def set_them(**made: FakeRunner) -> None:
        def find(name: str, also: object = ()) -> Any:
            return made.get(name.removeprefix("openvino:")) or real(name, ("numpy",))

        real = runners.find
        monkeypatch.setattr(runners, "find", find)
        monkeypatch.setattr(runners, "known", lambda: [f"openvino:{name}" for name in made])

    return set_them


@pytest.fixture
def model(elsewhere: Path) -> str:
    inputs = [floats(3, 4), np.array([2, 0]), -floats(2, 4), np.array(0)]
    path, feeds = write_node(elsewhere, "ScatterUpdate", "opset3", inputs)
    np.savez(elsewhere / "feeds.npz", **feeds)  # type: ignore[arg-type]
    return path.name


def test_a_difference(cli: Cli, model: str, voices: Voices) -> None:
    voices(a=FakeRunner("a", wrong_at(3)), b=FakeRunner("b"))
    done = cli("compare", model, "--on", "numpy", "--on", "a", "--on", "b", "--inputs", "feeds.npz")
    assert done.code == 1
    assert done.out.startswith("a is wrong at node: [0, 3] is -1, the specification requires -2\nmodel.xml\n")
    assert "mismatch: node (ScatterUpdate-3) on a against numpy: 1 of 12 elements differ" in done.out
    assert "output" not in done.out  # a model of one node is not shown at two levels


@pytest.mark.parametrize("ending", [one for one in Status if one is not Status.OK])
def test_a_named_runner_that_fails_is_4_and_a_difference_is_more(
    cli: Cli, model: str, voices: Voices, ending: Status
) -> None:
    voices(bad=FakeRunner("bad", ending=ending, message="why"), wrong=FakeRunner("wrong", wrong_at(0)))
    named = cli("compare", model, "--on", "numpy", "--on", "bad")
    assert named.code == 4
    assert f"{ending}" in named.out
    assert "why" in named.out
    assert cli("compare", model, "--on", "numpy", "--on", "bad", "--on", "wrong").code == 1


def test_nothing_compared_is_no_success_of_a_runner_that_was_named(
    cli: Cli, model: str, voices: Voices
) -> None:
    voices(a=FakeRunner("a"), gone=FakeRunner("gone", ending=Status.UNAVAILABLE, message="no driver"))
    done = cli("compare", model, "--on", "numpy")
    assert done.code == 4
    assert "nothing was compared: only numpy ran the model, and no scatter node" in done.out
    assert done.out.endswith("\nnothing compared\n")
    done = cli("compare", model, "--on", "gone", "--skip-missing", "--format", "json")
    assert done.code == 4
    assert json.loads(done.out)["remarks"] == ["nothing was compared: no runner ran the model"]
    voices()
    assert cli("compare", model).code == 0
    voices(a=FakeRunner("a"))
    assert cli("compare", "--each", model, model, "--on", "numpy").code == 4
    assert cli("compare", "--each", model, "--on", "a").code == 0
    assert cli("compare", model, model, "--on", "a").code == 0


OTHER_FORMAT = {"status": "unsupported", "reason": "format"}


@pytest.mark.parametrize("name", ["onnxruntime", "onnx-reference"])
def test_a_format_that_is_not_the_runtimes_is_no_failure_beside_others(
    cli: Cli, model: str, voices: Voices, name: str
) -> None:
    voices(a=FakeRunner("a"))
    names = ("--on", "numpy", "--on", "a", "--on", name)
    beside = cli("compare", model, *names, "--format", "json")
    assert beside.code == 0
    outcomes = {one["runner"]: one for one in json.loads(beside.out)["outcomes"]}
    assert OTHER_FORMAT.items() <= outcomes[name].items()
    assert outcomes["a"]["reason"] is outcomes["numpy"]["reason"] is None
    shown = cli("compare", "--each", model, *names)
    assert shown.code == 0
    assert "the file is OpenVINO IR, expected ONNX" in shown.out
    assert ["ScatterUpdate-3", "works", "1", "n/a"] in [line.split() for line in shown.out.splitlines()]
    assert cli("compare", model, model, *names).code == 0
    for alone in ([], ["--each"], [model], ["--on", "numpy"], ["--on", "onnxruntime"]):
        assert cli("compare", model, "--on", name, *alone).code == 4  # nobody has anybody to agree with


def test_missing_ones_are_passed_over_if_that_is_wanted(cli: Cli, model: str, voices: Voices) -> None:
    voices(a=FakeRunner("a"), gone=FakeRunner("gone", ending=Status.UNAVAILABLE, message="no driver"))
    names = ("--on", "numpy", "--on", "a", "--on", "gone")
    assert cli("compare", model, *names).code == 4
    done = cli("compare", model, *names, "--skip-missing")
    assert (done.code, done.err) == (0, "ir-scatter: gone is skipped: no driver; needed: pip install it\n")
    found = json.loads(cli("compare", model, *names, "--skip-missing", "--format", "json").out)
    assert found["skipped"] == [{"runner": "gone", "reason": "no driver; needed: pip install it"}]
    assert [one["runner"] for one in found["outcomes"]] == ["numpy", "a"]


def test_nondeterminism_and_illegal_indices_are_1(
    cli: Cli, elsewhere: Path, model: str, voices: Voices
) -> None:
    voices(a=FakeRunner("a", np.copy, wrong_at(0)))
    assert cli("compare", model, "--on", "a", "--repeat", "2").code == 1
    assert cli("compare", model, "--on", "a").code == 0
    np.savez("bad.npz", data=floats(3, 4), indices=np.array([0, 3]), updates=floats(2, 4))
    done = cli("compare", model, "--on", "numpy", "--on", "a", "--inputs", "bad.npz")
    assert done.code == 1
    assert done.out.startswith("node gets illegal indices: indices[1] is 3, expected 0 to 2\nmodel.xml\n")
    assert "out-of-range indices: node (ScatterUpdate-3) (seen by numpy, a)" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--on", "CUP"), "there is no runner 'CUP' (did you mean CPU?), expected numpy, openvino:CPU"),
        (("--on", "saved"), "there is no runner 'saved'"),
        (("--inputs", "none.npz"), "none.npz: no such file or directory"),
        (("--inputs", "model.xml"), "model.xml: not an npz file"),
        (("--tolerance", "nodes=1,1"), "no output and no scatter node 'nodes' (did you mean node?)"),
        (("--tolerance", "x"), "'x' is not a tolerance, expected OUTPUT=ABSOLUTE,RELATIVE"),
        (("--input-shape", "nothing=3"), "nothing"),
        (("--against", "none"), "none/results.json: there is no folder none, expected results that"),
        (("--cases", "0"), "0 is not in the range"),
        (("--values", "odd"), "'odd' is not one of"),
        (("--precision", "f64"), "'f64' is not one of"),
        (("--timeout", "0"), "0"),
        (("--timeout", "nan"), "'nan' is not a number of seconds"),
        (("model.xml", "model.xml"), "there are 3 models, expected one or two, or --each"),
        (("model.xml", "--save", "x"), "--save, --against and --extract are for one model, not two"),
        (("--each", "--inputs", "feeds.npz"), "--inputs and --against are for one model, not for --each"),
        (("--against", "x", "--cases", "2"), "--against goes without --inputs and --cases"),
    ],
)
def test_wrong_usage(cli: Cli, model: str, arguments: tuple[str, ...], message: str) -> None:
    done = cli("compare", model, "--on", "numpy", *arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_what_cannot_be_read_is_3(cli: Cli, elsewhere: Path, model: str) -> None:
    assert cli("compare", "none.xml").code == 3
    (elsewhere / "text.onnx").write_text("no model")
    done = cli("compare", "text.onnx", "--on", "numpy")
    assert done.code == 3
    assert done.err.startswith("ir-scatter: text.onnx: ")
    assert cli("compare", model, "none.xml").code == 3


def test_what_cannot_be_written_is_3_and_what_was_found_is_not_lost(
    cli: Cli, model: str, voices: Voices
) -> None:
    voices(a=FakeRunner("a", wrong_at(0)))
    for option in ("--save", "--extract"):
        done = cli("compare", model, "--on", "a", option, model)
        assert done.code == 3
        assert "1 mismatch" in done.out
        assert "cannot be written" in done.err
    done = cli("compare", model, "--on", "a", "-o", "none/x.txt")
    assert done.code == 3


def test_each_model_for_itself(cli: Cli, elsewhere: Path, model: str, voices: Voices) -> None:
    voices(a=FakeRunner("a", wrong_at(0)))
    for folder in ("one", "two"):
        (elsewhere / folder).mkdir()
        inputs = [floats(3), np.array([1]), floats(1), np.array(0)]
        write_node(elsewhere / folder, "ScatterUpdate", "opset3", inputs)
    (elsewhere / "two" / "broken.xml").write_text('<net name="old" version="7"></net>')
    each = ("compare", "--each", "one", "two", "--on", "a")
    done = cli(*each, "--save", "s", "--extract", "x", "--format", "json")
    assert done.code == 3
    found = json.loads(done.out)
    assert [one["model"] for one in found["reports"]] == ["one/model.xml", "two/model.xml"]
    assert [one["model"] for one in found["failures"]] == ["two/broken.xml"]
    assert sorted(path.name for path in (elsewhere / "s").iterdir()) == ["model", "two__model"]
    assert (elsewhere / "x" / "two__model" / "node__a" / "model.xml").exists()
    (elsewhere / "two" / "broken.xml").unlink()
    done = cli(*each)
    assert done.code == 1
    assert done.out.index("one/model.xml\n") < done.out.index("two/model.xml\n")


def test_two_models(cli: Cli, elsewhere: Path, model: str) -> None:
    (elsewhere / "after").mkdir()
    inputs = [floats(3, 4), np.array([[2] * 4, [0] * 4]), -floats(2, 4), np.array(0)]
    write_node(elsewhere / "after", "ScatterElementsUpdate", "opset12", inputs)
    done = cli("compare", model, "after/model.xml", "--on", "numpy")
    assert done.code == 2
    wrong = "input indices (i64 [2]) of model.xml and indices (i64 [2, 4]) of after/model.xml"
    assert f"{wrong} have the same name, but are not compatible; pair inputs with --map-input A=B" in done.err
    same = cli("compare", model, model, "--on", "numpy", "--format", "json")
    assert same.code == 0
    one = json.loads(same.out)["comparisons"][0]
    assert (one["subject_model"], one["reference_model"], one["level"]) == (model, model, "model")


def test_two_formats_of_one_model(cli: Cli, elsewhere: Path, voices: Voices) -> None:
    """All names differ, and one type is narrower, as converters leave them."""
    voices(a=FakeRunner("a"))
    save(
        """<ir_version: 10, opset_import: ["" : 18]>
        model (float[5, 3] cache, int64[2, 1] position, float[2, 3] row) => (float[5, 3] kept) {
          kept = ScatterND (cache, position, row)
        }""",
        elsewhere / "model.onnx",
    )
    inputs = [floats(5, 3), np.array([[4], [0]], np.int32), -floats(2, 3)]
    path, _ = write_node(elsewhere, "ScatterNDUpdate", "opset15", inputs)
    pair = ("compare", "model.onnx", path.name)
    done = cli(*pair, "--on", "a", "--on", "onnxruntime", "--cases", "3")
    assert done.code == 0
    assert "inputs are matched by their order: cache=data, position=indices, row=updates" in done.out
    assert "input position is i64 in model.onnx, i32 in model.xml: both get the same numbers" in done.out
    assert "ok, n/a" in done.out
    maps = ("--map-input", "row=updates", "--map-input", "cache=data", "--map-output", "kept=output")
    mapped = json.loads(cli(*pair, "--on", "a", *maps, "--format", "json").out)
    assert [one["by"] for one in mapped["matching"]["inputs"]] == ["map", "map", "order"]
    assert {one["tensor"] for one in mapped["comparisons"] if one["relation"] == "models"} == {"kept"}
    for wrong, message in (
        (
            ("--map-input", "rows=updates"),
            "model.onnx has no input 'rows' (did you mean row?), expected cache, ",
        ),
        (
            ("--map-output", "kept=out"),
            "model.xml has no output 'out' (did you mean output?), expected output",
        ),
        (("--map-input", "cache=updates"), "pair inputs with --map-input A=B"),
        (("--tolerance", "keep=1"), "no output and no scatter node 'keep' (did you mean kept?)"),
    ):
        done = cli(*pair, "--on", "a", *wrong)
        assert (done.code, message in done.err) == (2, True), done.err
    alone = cli("compare", "model.onnx", "--map-input", "cache=data")
    assert "--map-input and --map-output are for two models" in alone.err
    assert cli(*pair, "--on", "onnxruntime").code == 4  # the only one named reads one of them only


@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize("sample", ["operators/scatter_nd_18_max.onnx", "operators/scatter_elements_13.onnx"])
def test_a_model_and_the_ir_that_it_became(cli: Cli, elsewhere: Path, sample: str) -> None:
    pytest.importorskip("onnxruntime")
    name = Path(copy_sample(sample, elsewhere)).name
    assert cli("convert", name, "-o", "became.xml").code == 0
    done = cli("compare", name, "became.xml", "--on", "CPU", "--on", "onnxruntime", "--cases", "3")
    assert done.code == 0, done.out
    first = done.out.splitlines()[0]
    assert first.startswith(f"{name} and became.xml give the same results on numpy and openvino:CPU: ")
    assert first.endswith(f" 3 cases; onnxruntime agrees on {name}")


def test_hostile_names_in_every_output(cli: Cli, elsewhere: Path, voices: Voices) -> None:
    voices(a=FakeRunner("a", wrong_at(0)))
    text = """<ir_version: 10, opset_import: ["" : 18]>
    model (float[4] data, int64[1, 1] indices, float[1] updates) => (float[4] output) {
      output = ScatterND (data, indices, updates)
    }"""
    path = save(text, elsewhere / "model.onnx")
    evil = "\x1b[31m\n"
    path.write_bytes(path.read_bytes().replace(b"output", b"\x1b[31m\n"))
    done = cli("compare", "model.onnx", "--on", "numpy", "--on", "a", "--extract", "x")
    assert evil not in done.out
    assert "\x1b" not in done.out + done.err
    assert done.code == 1
    found = json.loads(cli("compare", "model.onnx", "--on", "a", "--format", "json").out)
    assert found["comparisons"][0]["tensor"] == evil


@pytest.mark.openvino
def test_a_sample(cli: Cli, elsewhere: Path) -> None:
    """Differs, is shown, is extracted, and the extracted node shows it by its own command."""
    copy_sample("plugins/large_numbers.xml", elsewhere)
    words = ("compare", "large_numbers.xml", "--on", "numpy", "--on", "CPU")
    done = cli(*words, "--values", "edge", "--extract", "x", "--report", "report.html")
    assert done.code == 1
    page = parse_page((elsewhere / "report.html").read_text(encoding="utf-8"))
    assert page.findtext(".//title") == f"{done.out.splitlines()[0]} – large_numbers.xml"
    told = " ".join(page.get_element_by_id("told").itertext())
    assert "--values" in told
    assert f"Python {platform.python_version()}" in told
    assert hashlib.sha256((elsewhere / "large_numbers.bin").read_bytes()).hexdigest() in told
    assert "opset1, opset3" in told
    (driver, *_) = page.xpath("//tr[th[contains(., 'openvino:CPU')]]/td//span[@class='sub']")
    assert driver.text.startswith("plugin 20")
    (device,) = page.xpath("//tr[th[contains(., 'openvino:CPU')]]/td[@class='device']//bdi")
    assert device.text
    (folder,) = (elsewhere / "x").iterdir()
    text = (folder / "README.txt").read_text()
    (command,) = [line.strip() for line in text.splitlines() if line.startswith("    ir-scatter")]
    again = subprocess.run(
        [COMMAND, *shlex.split(command)[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert again.returncode == 1, again.stderr
    assert "mismatch: node (ScatterUpdate-3) on openvino:CPU against numpy" in again.stdout
    assert "i64 -> i32" in again.stdout


@pytest.mark.openvino
def test_one_process_for_each_runtime(cli: Cli, elsewhere: Path) -> None:
    copy_sample("plugins/large_numbers.xml", elsewhere)
    copy_sample("kv_cache/decoder.xml", elsewhere)
    runner: Any = runners.find("CPU")
    before = runner.child.starts
    assert cli("compare", "--each", ".", "--on", "CPU", "--cases", "2", "--repeat", "2").code == 0
    assert runner.child.starts == before + 1
    assert runner.child.process_id is None


@pytest.mark.openvino
def test_a_device_that_is_not_here_and_a_time_limit_that_nobody_keeps(cli: Cli, elsewhere: Path) -> None:
    copy_sample("plugins/large_numbers.xml", elsewhere)
    done = cli("compare", "large_numbers.xml", "--on", "GPU.7", "--format", "json")
    assert done.code == 4  # though NumPy, that nobody named, computes it
    numpy, outcome = json.loads(done.out)["outcomes"]
    assert (numpy["status"], numpy["implicit"], outcome["implicit"]) == ("ok", True, False)
    alone = cli("compare", "large_numbers.xml", "--on", "GPU.7", "--no-reference", "--format", "json")
    assert json.loads(alone.out)["outcomes"] == [outcome]
    assert outcome["status"] == "unavailable"
    assert "openvino:GPU@cpu" in outcome["message"]
    done = cli("compare", "large_numbers.xml", "--on", "CPU", "--timeout", "0.001")
    assert done.code == 4
    assert "timeout" in done.out
    assert "no answer within 0.001 seconds" in done.out


def test_drawn_inputs_that_do_not_fit(cli: Cli, elsewhere: Path) -> None:
    path = save(
        """<ir_version: 10, opset_import: ["" : 18]>
        g (float[3] x, int64[4] at) => (float[4] y) {
          noise = RandomUniformLike (x)
          distinct = Unique <sorted = 1> (noise)
          four = Constant <value = float[4] {1, 2, 3, 4}> ()
          sum = Add (distinct, four)
          y = ScatterElements <axis = 0> (sum, at, four)
        }""",
        elsewhere / "model.onnx",
    )
    result = cli("compare", path, "--on", "onnxruntime")
    assert result.code == 4
    assert result.out.startswith("drawn inputs do not fit: Add: ")
    assert "inputs that fit are set by --inputs, --input-range or --input-shape" in result.out
    result = cli("compare", path, "--on", "onnxruntime", "--format", "json")
    assert json.loads(result.out)["outcomes"][-1]["status"] == "inputs-do-not-fit"


def test_inputs_of_several_cases(cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["direct"], elsewhere / "model.onnx")
    inputs = dataflow_of(read(path)).inputs
    for number in range(2):
        folder = elsewhere / "all" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        for place, (name, array) in enumerate(make_feeds(path, number).items()):
            assert name == inputs[place].names[0]
            (folder / f"input_{place}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    result = cli("compare", path, "--on", "numpy", "--on", "onnxruntime", "--inputs", "all")
    assert (result.code, result.err) == (0, "")
    assert "2 cases" in result.out
    result = cli("run", path, "--inputs", "all")
    assert (result.code, result.out) == (2, "")
    assert result.err == "Error: all has 2 sets of inputs, expected one\n"
    assert cli("run", path, "--inputs", "all/test_data_set_1").code == 0


@pytest.mark.parametrize("command", ["compare", "run"])
@pytest.mark.parametrize("inputs", ["make.py:inputs", "set", "all"])
def test_inputs_are_not_overwritten(command: str, inputs: str, cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["direct"], elsewhere / "model.onnx")
    output = {"make.py:inputs": "make.py", "set": "set/input_0.pb", "all": "all/test_data_set_0/input_0.pb"}
    file = Path(output[inputs])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("inputs")
    result = cli(command, path, "--inputs", inputs, "-o", file, "--overwrite")
    assert result.code == 2
    assert f"{file} is an input, too, expected another file" in result.err
    assert file.read_text() == "inputs"


@pytest.mark.parametrize("command", ["compare", "run"])
@pytest.mark.parametrize(
    ("ends", "sentence"),
    [
        ("dato=0..1", "the model has no input 'dato' (did you mean data?), expected one of data, "),
        ("data", "'data' is not an input range, expected NAME=LOW..HIGH"),
        ("data=1", "'data=1': '1' is not a range, expected LOW..HIGH, like 0..31999 or -0.5..0.5"),
        ("data=2..1", "'data=2..1': the range begins at 2 and ends at 1"),
        ("at=0.25..0.75", "at is i64, which has no number in 0.25..0.75"),
    ],
)
def test_ranges_that_are_wrong(command: str, ends: str, sentence: str, cli: Cli, elsewhere: Path) -> None:
    path = save(LEGAL["dynamic"], elsewhere / "model.onnx")
    result = cli(command, path, "--input-range", ends)
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert "Traceback" not in result.err
