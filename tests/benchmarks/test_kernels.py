"""The kernels against what other runtimes take for the same operator in the same run.

    pytest tests/benchmarks/test_kernels.py --benchmark-only -s

Nothing is asserted about seconds: machines differ, ratios say what matters.
"""

import warnings
from collections.abc import Iterable
from functools import partial
from statistics import geometric_mean
from typing import Any

import pytest

from tests.benchmarks.scatter_grid import Entry, Work, large, small
from tests.benchmarks.timing import medians, seconds

_COLUMNS = ("onnxruntime", "OpenVINO", "onnx.reference", "data.copy()")


def measure(entry: Entry) -> tuple[float, list[float | None]]:
    """Return our seconds, and the ratio to each of the others; None where another has no such operator."""
    others = [entry.onnxruntime(), entry.openvino(), entry.copy()]
    present = [work for work in others if work is not None]
    works = [entry.ours(), *present]
    for work in works:
        work()
    ours, *times = medians(works, rounds=9)
    rest = iter(times)
    ratios = [None if work is None else ours / next(rest) for work in others]
    slow = entry.reference()
    ratios.insert(2, None if slow is None else ours / _once(slow))
    return ours, ratios


def _once(work: Work) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return seconds(work)


def table(entries: Iterable[Entry]) -> list[list[str]]:
    """Measure the cases; return the rows of a table, the first its head, the last geometric means."""
    rows = [["case", "ours", *(f"ours / {name}" for name in _COLUMNS)]]
    kept: list[list[float | None]] = []
    for entry in entries:
        ours, ratios = measure(entry)
        kept.append(ratios)
        rows.append([entry.label, f"{ours * 1000:.2f} ms", *map(_show, ratios)])
    means = [_geometric_mean([row[column] for row in kept]) for column in range(len(_COLUMNS))]
    return [*rows, ["geometric mean", "", *map(_show, means)]]


def _show(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2g}" if ratio < 0.1 else f"{ratio:.2f}"


def _geometric_mean(ratios: list[float | None]) -> float | None:
    known = [ratio for ratio in ratios if ratio is not None]
    return geometric_mean(known) if known else None


def as_markdown(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, " | ".join("-" * width for width in widths))
    return "\n".join(f"| {line} |" for line in lines)


def overheads() -> list[list[str]]:
    """Return rows that hold the small cases against the bare NumPy statement, in microseconds."""
    rows = [["case of 1,000 elements", "ours", "bare NumPy", "more"]]
    for entry in small():
        assert entry.bare is not None
        bare = partial(entry.bare, entry.inputs)
        ours, plain = medians([entry.ours(), bare], rounds=15, repeats=200)
        rows.append([entry.label, *(f"{time * 1e6:.1f} us" for time in (ours, plain, ours - plain))])
    return rows


@pytest.mark.openvino
@pytest.mark.onnxruntime
def test_large_cases(benchmark: Any) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("openvino")
    rows = benchmark.pedantic(lambda: table(large()), rounds=1)
    print("\n" + as_markdown(rows))


def test_small_cases(benchmark: Any) -> None:
    rows = benchmark.pedantic(overheads, rounds=1)
    print("\n" + as_markdown(rows))
