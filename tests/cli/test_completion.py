"""What shells offer: the words that an option takes, nodes of the model on the line; never a failure."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, Cli, copy_sample

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs the shells of Unix")


@pytest.fixture(autouse=True)
def models(elsewhere: Path) -> None:
    for name in ("kv_cache/decoder.xml", "kv_cache/decoder.onnx"):
        copy_sample(name, elsewhere)


def offered(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """Return what is offered at the end of a line."""
    for name, value in (
        ("_IR_SCATTER_COMPLETE", "bash_complete"), ("COMP_WORDS", line), ("COMP_CWORD", line),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    result = cli()
    assert (result.code, result.err) == (0, "")
    return [row.partition(",")[2] for row in result.out.splitlines() if row]


LINES = {
    "va": "validate",
    "validate x.xml --select SCT30": "SCT301 SCT302 SCT303 SCT304 SCT305 SCT306 SCT307 SCT308 SCT309",
    "validate x.xml --select SCT2,neg": "SCT2,negative-index",
    "validate x.xml --ignore=sct90": " ".join(f"SCT90{last}" for last in range(1, 10)),
    "validate x.xml --format s": "sarif",
    "explain cvt11": "CVT110 CVT111 CVT112 CVT113 CVT114 CVT115 CVT116 CVT117 CVT118",
    "explain tensors": "TensorScatter TensorScatter-24",
    "compare decoder.xml --on c": "CPU",
    "compare decoder.xml --on openvino:c": "openvino:CPU",
    "compare decoder.xml --on num": "numpy",
    "convert decoder.xml --verify-on num": "",
    "convert decoder.xml --to ": "ScatterUpdate ScatterUpdate-3 ScatterElementsUpdate "
    "ScatterElementsUpdate-3 ScatterElementsUpdate-12 ScatterNDUpdate ScatterNDUpdate-3 ScatterNDUpdate-15",
    "convert decoder.onnx --to scattern": "ScatterND ScatterND-11 ScatterND-13 ScatterND-16 ScatterND-18",
    "convert decoder.onnx --from TensorS": "TensorScatter TensorScatter-24",
    "convert decoder.xml --from TensorS": "",
    "convert x.onnx --to ScatterU": "ScatterUpdate ScatterUpdate-3",
    "convert decoder.xml --node ": "value_cache/scatter key_cache/scatter",
    "convert --node k decoder.xml --node k": "key_cache/scatter",
    "convert decoder.xml --node=V": "value_cache/scatter",
    "convert none.xml --node ": "",
    "convert --node ": "",
    "convert decoder.xml --assume e": "equal-indices",
    "convert decoder.xml --to": "--to",
    "convert decoder.xml --ass": "--assume",
    "convert decoder.onnx --node ": "key_cache value_cache",
}


@pytest.mark.parametrize("line", LINES)
def test_words(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    assert offered(cli, monkeypatch, f"ir-scatter {line}") == LINES[line].split()


@pytest.mark.parametrize("line", ["convert 'unfinished --node ", "nonsense --node ", "--nonsense", ""])
def test_a_line_that_means_nothing_ends_well(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    offered(cli, monkeypatch, f"ir-scatter {line}")


@pytest.mark.parametrize("text", [b"", b"<net", b"\x08\x07\x12\xff", b"<net version='11'><layers/></net>"])
def test_a_damaged_model_offers_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    for name in ("damaged.xml", "damaged.onnx"):
        Path(name).write_bytes(text)
        assert offered(cli, monkeypatch, f"ir-scatter convert {name} --node ") == []
        assert offered(cli, monkeypatch, f"ir-scatter convert {name} --to ScatterElements")


def test_settings_that_mean_nothing_do_not_matter(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("pyproject.toml").write_text("[tool.ir-scatter]\ncolour = 1\n")
    assert offered(cli, monkeypatch, "ir-scatter validate x.xml --select SCT203") == ["SCT203"]


def _run(shell: str, script: str) -> str:
    path = f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [shell, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PATH": path},
    )
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_behind_colons_and_quotes_what_it_must() -> None:
    text = Path("decoder.xml").read_text()
    Path("decoder.xml").write_text(text.replace('name="key_cache/scatter"', 'name="key cache"'))
    script = """
        eval "$(_IR_SCATTER_COMPLETE=bash_source ir-scatter)"
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        compopt() { echo "$@"; }
        for COMP_LINE in "ir-scatter compare decoder.xml --on openvino:C" "ir-scatter convert decoder.xml --node k" \\
            "ir-scatter validate x --select SCT301,neg" "ir-scatter validate d"; do
            COMP_POINT=${#COMP_LINE} COMPREPLY=()
            _ir_scatter_completion ir-scatter
            printf '%s\\n' "${COMPREPLY[@]}"
        done
    """
    assert _run("bash", script) == "CPU\nkey\\ cache\nSCT301,negative-index\n-o default\n\n"


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish() -> None:
    script = """
        _IR_SCATTER_COMPLETE=fish_source ir-scatter | source
        complete -C "ir-scatter compare decoder.xml --on openvino:C"
        complete -C "ir-scatter validate x --select SCT301,neg"
    """
    assert _run("fish", script).split() == ["openvino:CPU", "SCT301,negative-index", "SCT303"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(cli: Cli, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_IR_SCATTER_COMPLETE", f"{shell}_source")
    result = cli()
    assert (result.code, result.err) == (0, "")
    assert f"_IR_SCATTER_COMPLETE={shell}_complete" in result.out
