"""No name of a model, of a file or of an option is a command for the system that prints what we write."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ir_scatter.core.display import is_seen, visible, without_commands
from ir_scatter.report.characters import dumps
from tests.cli.conftest import Cli, copy_sample
from tests.models.onnx_graph import OnnxGraph
from tests.scale import in_part_and_whole

NAMES = (
    "::stop-commands::token", "\n::error::x", "\r::error::x", "\r\n::add-mask::x", "  ::warning::x", "%0A::error::x",
    "\t::group::x", "##[set-env name=x]y", "x ##vso[task.complete]", "\u2028::error::x", "\x1b[0m::error::x",
    "\x85::error::x", "\u200b::error::x", "\ufeff::error::x", "a\u202e::error", "x" * 90 + " ::error::x",
)  # fmt: skip


def is_command(line: str) -> bool:
    """Tell whether GitHub Actions or Azure Pipelines would execute a line, as their runners read it."""
    return line.strip().startswith("::") or "##[" in line or "##vso[" in line.lower()


def commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if is_command(line)]


def model(path: Path, name: str, *, is_broken: bool = False) -> Path:
    """Write a model in which every name that there is begins with a name."""
    x, y, i, u, n = (f"{name}{word}" for word in ("x", "y", "i", "u", ""))
    graph = OnnxGraph(name=name or "g")
    graph.input(x, shape=[4])
    graph.constant(i, [0, 1])
    graph.constant(u, np.zeros(2, np.float32))
    graph.add("ScatterElements", [x, i, u], y, n, axis=7 if is_broken else 0)
    graph.output(y, shape=[4])
    return graph.write(path)


LINES = (
    ["inspect"], ["validate"], ["validate", "--format", "concise", "--statistics"], ["run"],
    ["convert", "--to", "ScatterND", "--diff"], ["convert", "--to", "ScatterND", "-o", "new.onnx", "--overwrite"],
    ["compare", "--on", "numpy"], ["compare", "--on", "onnx-reference"], ["inspect", "--format", "json"],
    ["validate", "--format", "json"], ["validate", "--format", "sarif"], ["validate", "--format", "junit"],
    ["validate", "--format", "html"],
)  # fmt: skip


@in_part_and_whole
@pytest.mark.parametrize("number", range(len(NAMES)), ids=map(ascii, NAMES))
@pytest.mark.parametrize("is_broken", [False, True])
def test_names_in_a_model(cli: Cli, number: int, is_broken: bool, elsewhere: Path, is_whole: bool) -> None:
    """Each name in each line, or in every fifth, others for the next name."""
    path = model(elsewhere / "m.onnx", NAMES[number], is_broken=is_broken)
    for command, *options in LINES if is_whole else LINES[number % 5 :: 5]:
        done = cli(command, path.name, *options)
        assert commands(done.out) + commands(done.err) == []
        assert done.code != 70


@pytest.mark.parametrize("name", [name for name in NAMES if "\0" not in name and "/" not in name], ids=ascii)
def test_names_of_files_and_arguments(cli: Cli, name: str, elsewhere: Path) -> None:
    """What is there, what is not there, and what no option, command, rule, runner or operator is called."""
    there = f"{name}.onnx"
    model(elsewhere / there, "x", is_broken=True)
    for words in (
        ["inspect", there], ["validate", there], ["validate", there, "--format", "concise"], ["run", there],
        ["compare", there, "--on", "numpy"], ["convert", there, "--diff"], ["inspect", name], ["validate", name],
        ["run", name], ["compare", name], ["convert", name, "--diff"], [name], [f"--{name}"],
        ["validate", there, f"--{name}"], ["validate", there, "--select", name], ["explain", name],
        ["validate", there, "--format", name], ["validate", there, "--baseline", name], ["run", there, "--inputs", name],
        ["validate", there, "--input-shape", name], ["validate", there, "--input-shape", f"{name}=1"],
        ["validate", there, "--for", name], ["compare", there, "--on", name], ["convert", there, "--to", name],
        ["convert", there, "-o", "new.onnx", "--node", name], ["fuzz", "--operator", name], ["fuzz", "--replay", name],
        ["fuzz", "--seconds", name], ["devices", "--install", name], ["doctor", "--on", name], ["worker", name],
        ["scheduler", "--listen", name], ["validate", there, "-o", f"{name}/x"], ["inspect", there, "extra", name],
    ):  # fmt: skip
        done = cli(*words)
        assert commands(done.out) + commands(done.err) == [], words
        assert done.code != 70, done.err


def test_findings_of_a_stranger_that_are_run_again(cli: Cli, elsewhere: Path) -> None:
    findings = [{"signature": name, "runner": name, "symptom": name} for name in NAMES]
    (elsewhere / "fuzz.json").write_text(json.dumps({"schema": 1, "findings": findings}))
    done = cli("fuzz", "--replay", ".")
    assert done.code == 4
    assert commands(done.out) + commands(done.err) == []


@settings(
    max_examples=10 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sampled_from([*NAMES, "a", " ", "\n", ":", "#", "\x1b[1m", "[", "vso["])).map("".join))
def test_lines_of_any_names(text: str) -> None:
    lines = "".join(f"{visible(line, keep=' ')}\n" for line in text.split("\n"))
    assert commands(without_commands(lines)) == []
    assert commands(without_commands(f"\x1b[1m{lines}".replace("\x1b[1m", ""))) == []
    assert commands(dumps({"name": text, text: [text]})) == []
    assert json.loads(dumps({"name": text})) == {"name": text}


def test_what_is_no_command_stays() -> None:
    text = "a::b : c\n:x\n# y\n## z\nstd::vector [::1]\n"
    assert without_commands(text) == text
    assert without_commands("  ::x\n") == "  \\x3a:x\n"


@pytest.mark.parametrize(
    "character", "\u00ad\u034f\u061c\u115f\u180e\u200b\u200d\u200e\u202e\u2060\u2066\u2028\u3164\ufe0f\ufeff\uffa0"
    "\U000e0001\U000e0041\U000e0100\x85\x7f\ud800", ids=ascii,
)  # fmt: skip
def test_what_is_not_seen_is_escaped(character: str) -> None:
    assert not is_seen(character)
    assert character not in visible(f"a{character}b")
    text = dumps({"a": character})
    assert text.isascii()
    assert json.loads(text) == {"a": character}


def test_letters_stay_letters() -> None:
    text = "äöü Ελλ 中文 عربي 😀 é"
    assert visible(text) == text
    assert text in dumps({"a": text})


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "JavaScript:alert(1)", " javascript:x", "java\nscript:x", "data:text/html,x",
            "file:///etc", "vbscript:x", "//host/x", "\\\\host", "https://", "http:x", "ftp://x", "C:\\docs", "a b"],
)  # fmt: skip
def test_pages_are_on_the_web_or_beside(cli: Cli, url: str, elsewhere: Path) -> None:
    copy_sample("documented/scatter_1.onnx", elsewhere)
    line = ("validate", "scatter_1.onnx", "--format", "html", "-o", "page.html")
    done = cli(*line, "--docs-url", url)
    assert (done.code, done.out, os.path.exists("page.html")) == (2, "", False)
    assert "is not a site, expected one like https://example.org/pages or a relative path" in done.err
    Path("pyproject.toml").write_text(f"[tool.ir-scatter]\ndocs-url = {json.dumps(url)}\n")
    done = cli(*line)
    assert (done.code, done.out, os.path.exists("page.html")) == (2, "", False)
    assert "docs-url" in done.err


@pytest.mark.parametrize(
    "url", ["https://x.example/y", "http://x:80", "pages", "../pages/", "/pages", "pages/ä"]
)
def test_sites_that_may_be_linked(cli: Cli, url: str, elsewhere: Path) -> None:
    copy_sample("documented/scatter_1.onnx", elsewhere)
    done = cli("validate", "scatter_1.onnx", "--format", "html", "-o", "page.html", "--docs-url", url)
    assert done.code == 0, done.err
    assert f'href="{url.rstrip("/")}/rules/' in Path("page.html").read_text(encoding="utf-8")
