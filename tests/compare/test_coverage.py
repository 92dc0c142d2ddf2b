"""Which bodies run and which indices are tried: further cases, and what the first line says otherwise."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter.compare.headline import headline
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.result import Compared, CompareSettings, Relation
from ir_scatter.compare.run import compare
from ir_scatter.reading import read
from ir_scatter.report.comparison_json import document
from ir_scatter.report.comparison_text import text
from tests.compare.planted import Planted
from tests.models.onnx_text import save

HEADER = '<ir_version: 9, opset_import: ["" : 18]>\n'

CHOICE = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u, {inputs}) => (float[6, 6] o) {{
  {condition}
  o = If (k) <
    then_branch = t () => (float[6, 6] a) {{ a = ScatterND <reduction = "add"> (d, i, u) }},
    else_branch = e () => (float[6, 6] b) {{ {other} }}
  >
}}
"""
MULTIPLIED = 'b = ScatterND <reduction = "mul"> (d, i, u)'
ADDED = 'b = ScatterND <reduction = "add"> (d, i, u)'

CONDITIONS = {
    "fed": ("bool k", ""),
    "of a number": ("int64 n", "limit = Constant <value_int = 7> () k = Greater (n, limit)"),
    "of a negative number": ("float n", "limit = Constant <value_float = -40.0> () k = Less (n, limit)"),
    "of a sum": (
        "float[5] x",
        "s = ReduceSum <keepdims = 0> (x) limit = Constant <value_float = 60.0> () k = Greater (s, limit)",
    ),
    "of two": ("bool p, bool q", "k = And (p, q)"),
    "of two that differ": ("bool p, bool q", "k = Xor (p, q)"),
    "of a dynamic input": (
        "float[N] x",
        "s = ReduceMax <keepdims = 0> (x) limit = Constant <value_float = 50.0> () k = Greater (s, limit)",
    ),
    "of indices": (
        "bool unused",
        "m = ReduceMin <keepdims = 0> (i) limit = Constant <value_int = 1> () k = Less (m, limit)",
    ),
}

LOOP = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u, int64 n, bool k) => (float[6, 6] o) {{
  o = Loop (n, k, d) <
    body = b (int64 step, bool again, float[6, 6] old) => (bool more, float[6, 6] new) {{
      more = Identity (again)
      new = ScatterND <reduction = "{reduction}"> (old, i, u)
    }}
  >
}}
"""
NESTED = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u, bool k, bool p) => (float[6, 6] o) {{
  o = If (k) <
    then_branch = t () => (float[6, 6] a) {{ a = Identity (d) }},
    else_branch = e () => (float[6, 6] b) {{
      b = If (p) <
        then_branch = tt () => (float[6, 6] c) {{ c = Identity (d) }},
        else_branch = ee () => (float[6, 6] f) {{ f = ScatterND <reduction = "{reduction}"> (d, i, u) }}
      >
    }}
  >
}}
"""
ADD = 'g (float[6, 6] d, int64[4, 1] i, float[4, 6] u) => (float[6, 6] o) { o = ScatterND <reduction = "add"> (d, i, u) }'
BY_HAND = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u) => (float[6, 6] o) {
  before = GatherND (d, i) sum = Add (before, u) o = ScatterND (d, i, sum)
}
"""
OVERWRITE = "g (float[6, 6] d, int64[4, 1] i, float[4, 6] u) => (float[6, 6] o) { o = ScatterND (d, i, u) }"
ONE_BY_ONE = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u) => (float[6, 6] o) {
  o = Scan <num_scan_inputs = 2, body = b (float[6, 6] old, int64[1] j, float[6] v) => (float[6, 6] new) {
    axes = Constant <value_ints = [0]> ()
    jj = Unsqueeze (j, axes) vv = Unsqueeze (v, axes)
    new = ScatterND (old, jj, vv)
  }> (d, i, u)
}
"""

FEEDS = {
    "d": np.ones((6, 6), np.float32),
    "i": np.arange(4).reshape(4, 1),
    "u": np.ones((4, 6), np.float32),
    "k": np.array(True),
}


def compared(
    folder: Path, *texts: str, runners: Sequence[Any] = (), feeds: Any = None, **settings: Any
) -> Compared:
    paths = [save(HEADER + one, folder / f"{name}.onnx") for name, one in zip("ab", texts, strict=False)]
    models = [read(path) for path in paths]
    has_numpy = settings.get("reference", True)
    return compare(models, [*runners], CompareSettings(**settings), with_numpy=has_numpy, feeds=feeds)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("cases", [1, 3])
def test_both_branches_of_two_models_run(name: str, cases: int, tmp_path: Path) -> None:
    inputs, condition = CONDITIONS[name]
    texts = [CHOICE.format(inputs=inputs, condition=condition, other=other) for other in (MULTIPLIED, ADDED)]
    found = compared(tmp_path, *texts, cases=cases)
    assert found.differs
    assert found.not_run == found.not_tried == ()
    assert len(found.feeds) <= cases + 1


@pytest.mark.parametrize("text_", [LOOP, NESTED])
def test_bodies_of_loops_and_of_branches_in_branches_run(text_: str, tmp_path: Path) -> None:
    for seed in range(4):
        found = compared(tmp_path, text_.format(reduction="add"), text_.format(reduction="mul"), seed=seed)
        assert found.differs
        assert found.not_run == ()


def test_a_branch_with_a_scatter_node_of_one_model_runs(tmp_path: Path) -> None:
    choice = CHOICE.format(inputs="bool k", condition="", other="b = Identity (d)")
    for seed in range(4):
        wrong = Planted("planted", node=lambda name, array, *_: array + 1)
        assert compared(tmp_path, choice, seed=seed, runners=[wrong]).differs
        right = compared(tmp_path, choice, seed=seed, runners=[Planted("right")])
        assert "1 node" in headline(right).sentence
        assert right.not_run == ()


def test_the_first_line_says_which_body_was_not_run(tmp_path: Path) -> None:
    choice = CHOICE.format(inputs="bool k", condition="", other=MULTIPLIED)
    found = compared(tmp_path, choice, choice, feeds=FEEDS)
    assert headline(found).sentence.endswith("1 case; branch o:else_branch was not run")
    assert document(found)["not_run"] == ["o:else_branch"]
    assert document(found)["state"] == "agrees"
    alone = compared(tmp_path, choice, feeds=FEEDS, runners=[Planted()])
    assert headline(alone).sentence.endswith("1 case; branch o:else_branch was not run")
    assert text(alone).splitlines()[0] == headline(alone).sentence


def test_a_branch_that_cannot_run_is_not_missed(tmp_path: Path) -> None:
    condition = "k = Constant <value = bool {1}> ()"
    choice = CHOICE.format(inputs="bool unused", condition=condition, other=MULTIPLIED)
    found = compared(tmp_path, choice, choice)
    assert (found.not_run, found.not_tried, len(found.feeds)) == ((), (), 1)


def test_a_condition_that_nothing_fulfils_is_said(tmp_path: Path) -> None:
    condition = "zero = Sub (n, n) limit = Constant <value_int = 5> () k = Less (zero, limit)"
    choice = CHOICE.format(inputs="int64 n", condition=condition, other=MULTIPLIED)
    found = compared(tmp_path, choice, choice)
    assert "branch o:else_branch was not run" in headline(found).sentence


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    """Without the reference nobody tells which branch of two models ran; of one, its tapped nodes do."""
    choice = CHOICE.format(inputs="bool k", condition="", other=MULTIPLIED)
    options: dict[str, Any] = {"feeds": FEEDS, "runners": [Planted()], "reference": False}
    found = compared(tmp_path, choice, choice, **options)
    assert found.not_run == ()
    assert found.not_tried == tuple(
        f"whether branch o:{name}_branch runs is not known" for name in ("then", "else")
    )
    alone = compared(tmp_path, choice, **options)
    assert (alone.not_run, alone.not_tried) == (("branch o:else_branch",), ())


@pytest.mark.parametrize(("first", "second"), [(ADD, BY_HAND), (BY_HAND, ADD)])
def test_repeated_indices_tell_a_sum_from_one_by_hand(first: str, second: str, tmp_path: Path) -> None:
    found = compared(tmp_path, first, second, runners=[Planted()], cases=2)
    wrong = [one for one in found.comparisons if one.measure.verdict is Verdict.MISMATCH]
    by_hand = next(
        path for path, one in zip((found.model, found.other), (first, second), strict=True) if one is BY_HAND
    )
    assert {(one.case, one.relation) for one in wrong} == {(2, Relation.MODELS)}
    name = Path(by_hand).name
    assert (
        f"differ only where an index is repeated, which {name} does not specify: ["
        in headline(found).sentence
    )
    assert {one.get("unspecified_in") for one in document(found)["comparisons"]} == {None, by_hand}
    assert f"{name} does not specify them" in text(found)


def test_the_second_model_may_choose_what_the_first_one_leaves_open(tmp_path: Path) -> None:
    assert not compared(tmp_path, OVERWRITE, ONE_BY_ONE).differs
    found = compared(tmp_path, ONE_BY_ONE, OVERWRITE, runners=[Planted(order="first")])
    differing = [one for one in found.comparisons if one.measure.verdict is Verdict.MISMATCH]
    assert [(one.subject, one.measure.open_once) for one in differing] == [("planted", "subject")]


def test_two_models_that_both_forbid_repeated_indices_get_none(tmp_path: Path) -> None:
    found = compared(tmp_path, OVERWRITE, OVERWRITE)
    assert (found.differs, len(found.feeds), found.not_tried) == (False, 1, ())
    assert "repeated indices were not tried: o has no reduction" in found.remarks


def test_a_model_without_reduction_says_that_repeated_indices_were_not_tried(tmp_path: Path) -> None:
    found = compared(tmp_path, OVERWRITE, runners=[Planted()])
    assert "repeated indices were not tried: o has no reduction" in found.remarks
    assert not any("repeated" in remark for remark in compared(tmp_path, ADD, runners=[Planted()]).remarks)


NARROWED = """
g (float[6, 6] d, int64[4, 1] i, float[4, 6] u) => (float[6, 6] o) {
  whole = Cast <to = 6> (d) wide = Cast <to = 1> (whole) o = ScatterND (wide, i, u)
}
"""


def test_edge_values_that_a_cast_does_not_take_are_said_not_to_be_tried(tmp_path: Path) -> None:
    found = compared(tmp_path, OVERWRITE, NARROWED, values="edge")
    assert found.not_tried == ("edge values of d were not tried",)
    assert compared(tmp_path, OVERWRITE, OVERWRITE, values="edge").not_tried == ()
    assert compared(tmp_path, OVERWRITE, NARROWED).not_tried == ()
    alone = compared(tmp_path, NARROWED, values="edge", runners=[Planted()])
    assert headline(alone).sentence.endswith("; edge values of d were not tried")


@pytest.mark.parametrize(("first", "second"), [(ADD, BY_HAND), (BY_HAND, ADD), (ADD, ADD)])
@pytest.mark.parametrize("places", [[1, 0, 3, 5], [1, 0, 1, 5]])
def test_inputs_of_ones_own_say_that_repeated_indices_were_not_tried(
    places: list[int], first: str, second: str, tmp_path: Path
) -> None:
    """Two models are compared on these inputs alone: only if no index repeats in them that is said."""
    feeds = {
        "d": np.ones((6, 6), np.float32),
        "i": np.array(places, np.int64).reshape(4, 1),
        "u": np.arange(24, dtype=np.float32).reshape(4, 6),
    }
    found = compared(tmp_path, first, second, runners=[Planted()], feeds=feeds)
    is_said = first != second and len({*places}) == len(places)
    assert ("repeated indices were not tried" in found.not_tried) is is_said
    assert ("repeated indices were not tried" in headline(found).sentence) is is_said
    assert ("repeated indices were not tried" in document(found)["not_tried"]) is is_said
