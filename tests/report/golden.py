"""What formats look like: files that a change of a format changes; `pytest --update-golden` writes them anew."""

from pathlib import Path

import pytest

from ir_scatter.version import versions

FOLDER = Path(__file__).parent / "golden"


def assert_golden(request: pytest.FixtureRequest, name: str, text: str) -> None:
    for package, version in versions().items():
        text = text.replace(f'"{package}": "{version}"', f'"{package}": "VERSION"')
    text = text.replace(f'"version": "{versions()["ir-scatter"]}"', '"version": "VERSION"')
    if request.config.getoption("--update-golden"):
        (FOLDER / name).write_text(text, encoding="utf-8")
    assert text == (FOLDER / name).read_text(encoding="utf-8")
