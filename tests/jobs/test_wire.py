"""What travels comes back as it was; what is no job of ours is refused with a sentence, and nothing runs."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ir_scatter import all_jobs
from ir_scatter.compare.result import CompareSettings
from ir_scatter.core.arrays import are_equal
from ir_scatter.core.files import Source
from ir_scatter.jobs import TABLE
from ir_scatter.jobs.wire import (
    INLINE_BYTES,
    MOST_BYTES,
    Head,
    RequestRefused,
    SentFile,
    decode,
    encode,
    read_head,
)
from ir_scatter.runners.base import Availability, Outcome, Status, Tap

HASH = "0" * 64
HEAD = Head("validate", "/home", (SentFile("/models/m.xml", HASH, 3),), ((HASH, 5),))


@pytest.mark.parametrize(
    "value",
    [
        (Source("m.xml"), CompareSettings(), {"a": (1, 2.5, None, True)}, frozenset({"x"}), b"\0"),
        Outcome("r", Status.REFUSED, "why", versions={"openvino": "1"}),
        Availability("r", True),
        [Tap("scope", shapes=((1, 2), None))],
        np.float32(2.5),
        "\ud800 is no character",
    ],
    ids=lambda one: type(one).__name__,
)
def test_data_and_records_travel(value: Any) -> None:
    data, large = encode(value)
    found = decode(data)
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    assert not large


@given(
    st.sampled_from(
        ["f4", "i8", "?", "u1", "c8", ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e4m3fn]
    ),
    st.lists(st.integers(0, 4), max_size=3),
)
def test_arrays_travel(kind: Any, shape: list[int]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(kind)
    found = decode(encode({"x": array})[0])["x"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert are_equal(found, array)
    assert found.flags.writeable


def test_words_in_arrays_travel() -> None:
    array = np.array([["a", "bé"]], dtype=object)
    assert decode(encode(array)[0]).tolist() == array.tolist()


def test_large_arrays_travel_apart() -> None:
    array = np.zeros(INLINE_BYTES, "u1")
    data, large = encode([array, array])
    assert len(data) < 1000
    assert [len(one) for one in large.values()] == [INLINE_BYTES]
    assert are_equal(decode(data, large=large.__getitem__)[1], array)
    with pytest.raises(RequestRefused, match="large arrays cannot be fetched"):
        decode(data)


def test_paths_mean_the_same_file_in_a_mirror() -> None:
    data, _ = encode(("/models/m.xml", "/models/other"), paths={"/models/m.xml"})
    root = "/cache/mirrors/1-2"
    assert decode(data, root=root) == (f"{root}/models/m.xml", "/models/other")
    told, _ = encode(f"{root}/models/m.xml is no model, nor is {root}/x", root=root)
    assert decode(told) == "/models/m.xml is no model, nor is /x"


class _Runs:
    def __init__(self, call: Callable[..., Any], *arguments: Any) -> None:
        self.what = call, arguments

    def __reduce__(self) -> Any:
        return self.what


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (_Runs(os.system, "false"), "system is not a record"),
        (_Runs(eval, "1"), "eval is not a record"),
        (_Runs(getattr, Source, "x"), "getattr is not a record"),
        (_Runs(__import__("ir_scatter.core.process").core.process.Child, "m"), "Child is not a record"),
        (_Runs(__import__("ir_scatter.jobs").jobs.perform, ()), "perform is not a record"),
        (Path, "is not a record"),
    ],
)
def test_code_is_refused(value: Any, message: str) -> None:
    with pytest.raises(RequestRefused, match=message):
        decode(pickle.dumps(value))


def test_no_name_leads_through_a_module_of_ours() -> None:
    data = b"\x80\x04\x8c\x15ir_scatter.core.files\x8c\tos.system\x93\x8c\x04true\x85R."
    with pytest.raises(RequestRefused, match=r"os\.system is not a record"):
        decode(data)


@given(st.binary(max_size=60))
def test_other_bytes_are_refused(data: bytes) -> None:
    with suppress(RequestRefused):
        decode(data)


def test_a_head_is_read_as_it_was_written() -> None:
    assert read_head(HEAD.as_text(), b"") == HEAD


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "os.system"}, "there is no job 'os.system', expected one of compare, "),
        ({"version": "9"}, "the job is from ir-scatter 9, this machine has"),
        ({"protocol": 2}, "the job is from ir-scatter"),
        ({"folder": "home"}, "'home' is not an absolute path without '..'"),
        ({"files": [["/a/../../etc/x", HASH, 1]]}, "is not an absolute path without '..'"),
        ({"files": [["/a", "../x", 1]]}, "its head is malformed"),
        ({"files": [["/a", HASH, -1]]}, "its head is malformed"),
        ({"files": [["/a", HASH]]}, "its head is malformed"),
        ({"arrays": 1}, "its head is malformed"),
        ({"name": None}, "its head is malformed"),
    ],
)
def test_a_head_that_is_none(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRefused, match=message):
        read_head(json.dumps({**json.loads(HEAD.as_text()), **changes}), b"")


@pytest.mark.parametrize("text", ["", "[]", "{", "null", b"{}", None, '{"protocol": 1}', "[" * 100_000])
def test_what_is_no_head(text: Any) -> None:
    with pytest.raises(RequestRefused, match="this is not a job"):
        read_head(text, b"")


def test_a_job_may_have_so_many_bytes() -> None:
    with pytest.raises(RequestRefused, match=rf"has \d+ bytes, expected at most {MOST_BYTES}"):
        read_head(HEAD.as_text(), bytes(MOST_BYTES))


def test_the_owners_of_all_jobs_register_them() -> None:
    owners = {owner.__name__ for owner in all_jobs.OWNERS}
    assert {name: function.__module__ for name, function in TABLE.items()} == {
        "validate": "ir_scatter.lint",
        "validate-for": "ir_scatter.convert.fixes",
        "compare": "ir_scatter.compare.request",
        "doctor": "ir_scatter.doctor",
        "run": "ir_scatter.jobs.model_runs",
        "stream": "ir_scatter.jobs.model_runs",
    }
    assert {function.__module__ for function in TABLE.values()} == owners


def test_a_worker_spells_messages_as_the_command_does_that_submits_a_job(tmp_path: Path) -> None:
    """Else a fleet's findings would name parameters of Python: guard="drop" for --guard drop."""
    program = (
        "from ir_scatter_cli import worker_child\n"
        "from ir_scatter.core.parameters import Parameter\n"
        "from ir_scatter.jobs.child import SPELLINGS\n"
        "print(sorted(SPELLINGS), SPELLINGS['validate-for'](Parameter('guard', 'drop', 'convert')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert done.stdout == "['compare', 'doctor', 'run', 'validate', 'validate-for'] --guard drop\n", (
        done.stderr
    )
