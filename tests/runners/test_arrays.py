"""Arrays in files: every element type, layout and shape comes back as it went."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ir_scatter.core.element_types import ELEMENT_TYPES, dtype
from ir_scatter.runners.arrays import read, type_name, write

TYPES = {row.name: found for row in ELEMENT_TYPES.values() if (found := dtype(row)) is not None}


def through_a_file(arrays: list[npt.NDArray[Any]], folder: Path) -> list[npt.NDArray[Any]]:
    path, table = write([str(folder)], "arena", arrays)
    found = read(path, table)
    assert list(folder.iterdir()) == []
    return found


@pytest.mark.parametrize("name", TYPES)
def test_every_element_type_and_rank(name: str, tmp_path: Path) -> None:
    sent = []
    for shape in ((2, 3), (), (0, 4), (7,)):
        count = int(np.prod(shape))
        texts = np.array(["", "ä", "b\0", "\udc80", "日本", "e", "f"][:count], object)
        bits = np.arange(count * TYPES[name].itemsize, dtype=np.uint8) % 2
        sent.append((texts if name == "string" else bits.view(TYPES[name])).reshape(shape))
    for found, array in zip(through_a_file(sent, tmp_path), sent, strict=True):
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes() if name != "string" else found.tolist() == array.tolist()


LAYOUTS: list[np.dtype[Any]] = [np.dtype(text) for text in ("<f4", ">f4", ">i8", "u1", "?")]


@given(
    st.lists(
        st.sampled_from(LAYOUTS).flatmap(
            lambda type: hnp.arrays(type, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
        ),
        max_size=5,
    ),
    st.booleans(),
)
def test_every_layout(arrays: list[npt.NDArray[Any]], transposed: bool) -> None:
    sent = [array.T if transposed else array[..., ::-1] if array.ndim else array for array in arrays]
    with tempfile.TemporaryDirectory() as folder:
        received = through_a_file(sent, Path(folder))
    for before, after in zip(sent, received, strict=True):
        assert after.dtype == before.dtype.newbyteorder("=")
        assert np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
        assert after.flags.c_contiguous
        assert after.flags.aligned


def test_text_of_fixed_width_becomes_strings(tmp_path: Path) -> None:
    (found,) = through_a_file([np.array(["a", "bcd"])], tmp_path)
    assert found.dtype == object
    assert found.tolist() == ["a", "bcd"]


def test_a_type_that_no_model_has_is_told() -> None:
    with pytest.raises(KeyError):
        type_name(np.zeros(1, "datetime64[s]"))


def test_without_a_folder_with_room_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write([str(tmp_path / "missing")], "arena", [np.zeros(3)])


def test_arrays_go_to_the_next_folder_where_the_first_has_no_room(tmp_path: Path) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    full.mkdir()
    roomy.mkdir()
    (full / "a").symlink_to("/dev/full")
    path, table = write([str(full), str(roomy)], "a", [np.arange(100_000)])
    assert Path(path) == roomy / "a"
    assert np.array_equal(read(path, table)[0], np.arange(100_000))
