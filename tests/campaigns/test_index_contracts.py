"""Contracts of drawn graphs: no run breaks what is proven, or what follows from inputs that satisfy conditions.

As a program it checks a range of graphs with a number of runs each, and prints what is wrong:
`python -m tests.campaigns.test_index_contracts 0 1000 50`.
"""

import sys
from collections import Counter
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest

from ir_scatter.evaluate import model as evaluated
from tests.contract.drawn_graphs import violations
from tests.scale import cases, in_part_and_whole

_RUNS = 20
_MOST_ELEMENTS = 1 << 14
"""Numbers that are drawn may be lengths of a Range: no run gets more memory than that takes."""


@in_part_and_whole
def test_no_run_breaks_what_is_proven(
    monkeypatch: pytest.MonkeyPatch, figures: "Counter[str]", is_whole: bool, tmp_path: Path
) -> None:
    monkeypatch.setattr(evaluated, "MOST_ELEMENTS", _MOST_ELEMENTS)
    broken = [text for seed in cases(300, is_whole) for text in violations(seed, _RUNS, figures, tmp_path)]
    assert broken == []
    assert figures["range conditional"] + figures["range proven"] > figures["graphs"] / 2
    assert figures["which broke an index"] >= figures["conditions broken"] * 0.9


if __name__ == "__main__":
    evaluated.MOST_ELEMENTS = _MOST_ELEMENTS
    counted = Counter[str]()
    with TemporaryDirectory() as name:
        for number in range(int(sys.argv[1]), int(sys.argv[2])):
            for text in violations(number, int(sys.argv[3]), counted, Path(name)):
                print(text, flush=True)
            rmtree(Path(name) / str(number), ignore_errors=True)
            if number % 1000 == 999:
                print(number, dict(counted), flush=True)
    print(dict(counted))
