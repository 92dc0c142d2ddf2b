"""What each rewrite writes into a file: NAME.before.xml or .onnxtxt, and the changes in NAME.diff.

The first lines of a file say what it becomes and what is in its `.bin`:

    <!-- convert: ScatterNDUpdate-15 -->
    <!-- weights: i64 1; i64 0 2 4 -->

`pytest --update-golden` writes the changes anew.
"""

import re
from pathlib import Path

import pytest
from onnx import ModelProto, checker, parser

from ir_scatter import convert, read, validate
from ir_scatter.convert.conversion import Conversion
from ir_scatter.rewrites import all_rewrites
from tests.rules.expectations import write_weights

FOLDER = Path(__file__).parent
BEFORE = sorted([*FOLDER.glob("*.before.xml"), *FOLDER.glob("*.before.onnxtxt")])
_ORDER = re.compile(r"(?:<!--|#) convert: ([\w-]+)")


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def converted(path: Path, folder: Path) -> Conversion:
    """Convert a file as its first lines say."""
    text = path.read_text()
    order = _ORDER.search(text)
    assert order is not None
    copy = folder / f"{name_of(path)}{'.xml' if path.suffix == '.xml' else '.onnx'}"
    if path.suffix == ".xml":
        copy.write_text(text)
        write_weights(text, copy.with_suffix(".bin"))
    else:
        copy.write_bytes(parser.parse_model(text).SerializeToString())
    return convert(copy.name, order[1])


@pytest.mark.parametrize("path", BEFORE, ids=name_of)
def test_the_changes_are_those_that_are_written_down(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    conversion = converted(path, tmp_path)
    assert conversion.refused == ()
    assert conversion.converted
    assert all(one.cases == 8 for one in conversion.verified)
    golden = path.with_name(f"{name_of(path)}.diff")
    if request.config.getoption("--update-golden"):
        golden.write_text(conversion.diff())
    assert conversion.diff() == golden.read_text()


@pytest.mark.parametrize("path", BEFORE, ids=name_of)
def test_a_result_breaks_no_rule_and_holds_nothing_to_convert(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    conversion = converted(path, tmp_path)
    result = tmp_path / f"result{Path(conversion.model.path).suffix}"
    conversion.write(result)
    assert [one.code for one in validate(read(result)) if one.severity != "note"] == []
    if result.suffix == ".onnx":
        model = ModelProto()
        model.ParseFromString(result.read_bytes())
        checker.check_model(model, full_check=True)
    order = _ORDER.search(path.read_text())
    assert order is not None
    again = convert(result, order[1])
    assert again.converted == ()
    assert again.refused == ()
    assert again.diff() == ""


def test_each_rewrite_has_its_changes_written_down() -> None:
    """One of each rewrite and dialect; what is written down belongs to one of them."""
    wanted = {
        f"{'' if rewrite.source.key.domain else 'onnx_'}{rewrite.name.replace('-', '_')}"
        for rewrite in all_rewrites()
    }
    names = {name_of(path) for path in BEFORE}
    assert wanted <= names
    for name in names:
        assert any(name.startswith(one) for one in wanted), name
    assert {path.stem for path in FOLDER.glob("*.diff")} == names
