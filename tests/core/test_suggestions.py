"""What somebody may have meant."""

from pathlib import Path

import pytest

from ir_scatter.core.suggestions import close_words, did_you_mean, why_missing

KNOWN = ["openvino:CPU", "CPU", "onnxruntime", "numpy", "SCT203", "SCT302"]


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("onnxruntme", "onnxruntime"),
        ("NUMPI", "numpy"),
        ("cpu", "CPU"),
        ("SCT230", "SCT203"),
        ("302", "SCT302"),
        ("E501", None),
        ("zzz", None),
    ],
)
def test_a_word(word: str, near: str | None) -> None:
    assert close_words(word, KNOWN, 1) == ([near] if near else [])
    assert did_you_mean(word, KNOWN) == (f" (did you mean {near}?)" if near else "")


def test_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    for name in ("decoder.xml", "decoder.bin", "other.npz"):
        (tmp_path / "models" / name).touch()
    monkeypatch.chdir(tmp_path)
    for path, suffixes, reason in (
        ("models/decodr.xml", [], "no such file or directory (did you mean models/decoder.xml?)"),
        ("models/decoder", [".xml", ".onnx"], "no such file or directory (did you mean models/decoder.xml?)"),
        ("models/decoder", [".npz"], "no such file or directory"),
        ("modles/decoder.xml", [], "there is no folder modles (did you mean models?)"),
        ("zzz/deep/decoder.xml", [], "there is no folder zzz"),
        ("models/decoder.xml/deeper", [], "there is no folder models/decoder.xml"),
        ("models/*.onnx", [], "no file matches this pattern"),
        (str(tmp_path / "model"), [], f"no such file or directory (did you mean {tmp_path / 'models'}?)"),
    ):
        assert why_missing(path, suffixes) == reason
