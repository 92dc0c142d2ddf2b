"""Help, versions, and what happens when something goes wrong outside of a sub-command."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from ir_scatter.analysis.scatter_node import ScatterNode
from ir_scatter.explain import explain
from ir_scatter.rules import by_code
from ir_scatter.rules.base import Finding
from tests.cli.conftest import COMMAND, SAMPLES, Cli, Result, run_script

COMMANDS = ["validate", "inspect", "explain"]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_commands_and_the_exit_codes(cli: Cli, flag: str) -> None:
    result = cli(flag)
    assert (result.code, result.err) == (0, "")
    assert all(f"\n  {name} " in result.out for name in COMMANDS)
    assert all(f"{code} " in result.out for code in (0, 1, 2, 3, 4, 70))


def test_version_names_the_packages(cli: Cli) -> None:
    result = cli("--version")
    rows = dict(line.split(" ", 1) for line in result.out.splitlines())
    assert (result.code, result.err) == (0, "")
    assert set(rows) == {"ir-scatter", "openvino", "onnx", "lxml", "numpy"}
    assert rows["onnx"] == metadata.version("onnx")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["validate"],
        ["inspect"],
        ["validate", "--nonsense", "x.xml"],
        ["validate", "--format", "yaml", "x.xml"],
        ["validate", "--min-severity", "fatal", "x.xml"],
        ["validate", "-j", "0", "x.xml"],
        ["validate", "-j", "two", "x.xml"],
        ["validate", "--max-index-elements", "-1", "x.xml"],
        ["validate", "--stdin-format", "pickle", "-"],
        ["inspect", "--format", "sarif", "x.xml"],
    ],
)
def test_wrong_usage_ends_with_2(cli: Cli, arguments: list[str]) -> None:
    result = cli(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "Error: " in result.err


def test_the_script_and_the_module_are_the_same() -> None:
    shown = run_script("--help").out
    for name in ("ir_scatter_cli", "ir_scatter"):
        module = subprocess.run(
            [sys.executable, "-m", name, "--help"], capture_output=True, text=True, check=True
        )
        assert shown == module.stdout
    done = subprocess.run(
        [sys.executable, "-m", "ir_scatter", "valdate"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "did you mean validate?" in done.stderr


def _imported(arguments: list[str], *, code: int = 0) -> set[str]:
    """Return the modules that a call has imported."""
    program = (
        "import sys\n"
        "from ir_scatter_cli.main import main\n"
        f"sys.argv = ['ir-scatter', *{arguments!r}]\n"
        f"try:\n    main()\nexcept SystemExit as end:\n    assert end.code == {code}\n"
        "print('\\n', *sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments", [["--help"], ["validate", "--help"], ["explain", "SCT203"], ["explain", "ScatterND-18"]]
)
def test_heavy_packages_are_not_imported(arguments: list[str]) -> None:
    heavy = {"numpy", "onnx", "openvino", "onnxruntime", "rich", "ml_dtypes"}
    assert not heavy & _imported(arguments)


def test_validating_an_ir_imports_nothing_of_child_processes(clean: Path) -> None:
    """They take 20 ms to import, a tenth of what it takes to validate a model of a megabyte."""
    ours = {"ir_scatter.core.process", "ir_scatter.core.temporary", "ir_scatter.jobs.worker"}
    children = {"subprocess", "tempfile", "pickle", "random", "traceback", "importlib.abc"}
    assert not (ours | children) & _imported(["validate", str(clean)])


def test_validating_an_ir_imports_neither_runtime_nor_rich(broken: Path) -> None:
    assert not {"onnx", "openvino", "onnxruntime", "rich"} & _imported(["validate", str(broken)], code=1)


def test_validating_a_sound_ir_imports_nothing_that_bodies_and_contradictions_need(clean: Path) -> None:
    found = _imported(["validate", str(clean)])
    assert "ir_scatter.formats.openvino.checks" in found
    assert not {"ir_scatter.analysis.propagation", "ir_scatter.core.dataflow"} & found


def test_converting_onnx_imports_neither_lxml_nor_what_runs_whole_models(tmp_path: Path) -> None:
    source = f"{SAMPLES}/documented/scatter_1.onnx"
    found = _imported(["convert", source, "-o", str(tmp_path / "out.onnx")])
    assert "ir_scatter.convert.proof" in found
    assert not {"lxml", "ir_scatter.inputs.model", "openvino", "onnxruntime", "rich"} & found


@pytest.mark.parametrize("command", ["validate", "inspect"])
def test_a_broken_pipe_is_silent(command: str) -> None:
    with subprocess.Popen(
        [COMMAND, command, SAMPLES], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() in {0, 1}


def test_shell_completion(script: Cli) -> None:
    source = script(_IR_SCATTER_COMPLETE="bash_source")
    assert source.code == 0
    assert "ir-scatter" in source.out
    offered = script(_IR_SCATTER_COMPLETE="bash_complete", COMP_WORDS="ir-scatter val", COMP_CWORD="1")
    assert offered.out.strip() == "plain,validate"
    formats = script(
        _IR_SCATTER_COMPLETE="bash_complete", COMP_WORDS="ir-scatter validate --format s", COMP_CWORD="3"
    )
    assert formats.out.strip() == "plain,sarif"


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError("a cog is loose")


def _rule_with_a_bug(site: ScatterNode) -> Iterator[Finding]:
    if site.node.name == "negative":
        raise RuntimeError("a cog is loose")
    yield Finding("is well")


def test_a_bug_in_a_rule_ends_with_70_and_the_other_files_are_reported(
    cli: Cli, broken: Path, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = replace(by_code()["SCT203"], check=_rule_with_a_bug)
    monkeypatch.setattr(sys.modules["ir_scatter.validate"], "all_rules", lambda: (rule,))
    for arguments in ([broken, clean], [clean, "no.xml", broken]):
        result = cli("validate", *arguments, "--format", "concise")
        assert result.code == 70
        assert "scatter_update.xml: error SCT999 " in result.out
        assert result.out.count("error SCT203 is well") == 2
        assert "a cog is loose" in result.err
        assert "report it" in result.err
        assert "Traceback" not in result.out + result.err


def test_a_bug_shows_where_it_is_when_asked(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ir_scatter_cli.main import main

    monkeypatch.setenv("IR_SCATTER_DEBUG", "1")
    monkeypatch.setattr("ir_scatter_cli.validate.make_report", _fail)
    monkeypatch.setattr(sys, "argv", ["ir-scatter", "validate", str(broken)])
    with pytest.raises(RuntimeError, match="a cog is loose"):
        main()


@pytest.mark.parametrize("command", ["inspect", "validate"])
def test_a_bug_in_reading_ends_with_70(
    cli: Cli, broken: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ir_scatter.formats.read", _fail)
    result = cli(command, broken)
    assert result.code == 70
    assert "a cog is loose" in result.err
    assert "report it" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["validate", SAMPLES], ["inspect", SAMPLES], ["explain", "SCT203"]])
def test_a_full_disk_is_no_bug_of_ours(arguments: list[str | Path]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode not in {0, 1, 70}
    assert "no space left on device" in done.stderr.lower()
    assert "bug" not in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-"])
def test_closed_streams_are_no_bug_of_ours(broken: Path, closed: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"'{COMMAND}' validate {broken} {closed}"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 70
    assert "bug" not in done.stderr


def test_a_topic_is_explained(cli: Cli) -> None:
    assert cli("explain", "scatternd-18") == Result(0, explain("ScatterND-18"), "")
    result = cli("explain", "SCT2033")
    assert (result.code, result.out) == (2, "")
    assert "did you mean SCT203" in result.err
