"""Every operator has a page with a picture. `UPDATE_README=1 pytest tests/samples` writes both."""

import numpy as np
import pytest
from lxml import etree

from ir_scatter.ops.lookup import SPECS
from tests.samples.operator_pages import EXAMPLES, computed, groups, page, picture
from tests.samples.pages import DOCS, IS_UPDATE

NAMES = list(dict.fromkeys(spec.key.type for spec in SPECS.values()))


@pytest.mark.parametrize("name", NAMES)
def test_page_and_picture_are_those_of_the_code(name: str) -> None:
    for suffix, text in (("md", page(name)), ("svg", picture(name))):
        path = DOCS / "operators" / f"{name}.{suffix}"
        if IS_UPDATE:
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_shows_every_update_where_it_went(name: str) -> None:
    example = EXAMPLES[name]
    output = computed(name, example)
    cells = etree.fromstring(picture(name).encode()).findall("{*}text")
    shown = [int(cell.text) for cell in cells if cell.text and cell.text.lstrip("-").isdecimal()]
    assert shown[: example.data.size] == [*example.data.flat]
    assert shown[-output.size :] == [*output.flat]
    assert sorted(shown[example.data.size : -output.size]) == sorted(
        (*example.indices.flat, *example.updates.flat)
    )
    assert set(example.updates.flat) <= set(output.flat)
    assert (output != example.data).sum() == example.updates.size == groups(name, example).size
    assert np.unique(groups(name, example)).size <= 8


def test_nothing_else_is_there() -> None:
    files = {path.name for path in (DOCS / "operators").iterdir()}
    assert files == {"index.md", *(f"{name}.{suffix}" for name in NAMES for suffix in ("md", "svg"))}
