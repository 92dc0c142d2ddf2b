from dataclasses import replace

import numpy as np

from ir_scatter.compare.result import Level, Settings, Verdict
from ir_scatter.report.comparison_text import last_line, text
from ir_scatter.report.matrices import kernel_table, verdict_matrix
from ir_scatter.runners.base import NodeFacts, Outcome, Status
from tests.report.comparisons import (
    CPU,
    EVERYTHING,
    GPU,
    ONE_OFF,
    OPERATOR,
    ZEROS,
    compared,
    of_node,
    of_output,
)

QUIET = compared(of_output("y", ZEROS, ZEROS), of_node("n", ZEROS, ZEROS))


def test_a_quiet_one() -> None:
    assert text(QUIET) == (
        "model.xml\n"
        "\n"
        "runner        status  precision  time\n"
        "numpy         ok      f32        0.50 s\n"
        "openvino:CPU  ok      f32        0.50 s\n"
        "\n"
        "output, against numpy  openvino:CPU\n"
        "y                      equal\n"
        "\n"
        "node, against numpy  openvino:CPU\n"
        "n (ScatterUpdate-3)  equal\n"
        "\n"
        "seed 0, 1 case, precision f32; NaN equals NaN; 0.0 and -0.0 are close, not equal\n"
        "\n"
        "2 equal\n"
    )


def test_everything_is_said() -> None:
    shown = text(EVERYTHING)
    for line in (
        "openvino:NPU      unavailable                     no such device",
        f"mismatch: loud ({OPERATOR}) on {GPU} against numpy: 1 of 20 elements differ; "
        "[2, 3] is 7.5, expected 0; needs abs 7.5, rel inf (1089470464 ulp)",
        f"nondeterministic: logits on {GPU}: changes from run to run; [2, 3] is 15, expected 7.5; "
        "needs abs 7.5, rel 1 (8388608 ulp)",
        f"contested: open ({OPERATOR}) on {CPU} against numpy: 1 element with a value that the document allows",
        f"out-of-range indices: bad ({OPERATOR}): indices[0] is 9, expected 0 to 3 (seen by {CPU})",
        f"repeated indices: open ({OPERATOR}): several updates meet in 1 of 20 elements (seen by {CPU})",
        "who is wrong: loud: the GPU departs from what the others say",
        f"not compared on {CPU}: hidden: its body is fused away",
        "output logits changes when nodes are tapped",
        "loud  openvino:CPU  jit_avx512  f32        1234 us",
    ):
        assert line in shown.splitlines() or line in shown, line
    assert last_line(EVERYTHING) in shown
    assert last_line(EVERYTHING).endswith("1 illegal node")


def test_lines_fit_the_terminal() -> None:
    long = of_node("model.layers.11.self_attn/aten::index_put_/ScatterNDUpdate_12" * 2, ONE_OFF, ZEROS)
    for width in (60, 80, 120):
        shown = text(compared(long, of_output("y", ONE_OFF, ZEROS)), width=width)
        assert max(map(len, shown.splitlines())) <= width, width


def test_worst_first_and_the_rest_counted() -> None:
    many = [of_node(f"n{number:03}", ZEROS, ZEROS) for number in range(500)]
    loud = [of_node(f"loud{number:03}", ONE_OFF, ZEROS) for number in range(3)]
    lines = text(compared(*many, *loud)).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("node, against"))
    assert [line.split()[0] for line in lines[start + 1 : start + 4]] == ["loud000", "loud001", "loud002"]
    assert lines[start + 13].split() == ["and", "491", "more", "equal"]
    shown = text(compared(*(of_node(f"n{number}", ONE_OFF, ZEROS) for number in range(100))))
    assert "and 60 more, at worst" in shown
    assert "and 60 more that are not equal" in shown
    assert len(shown.splitlines()) < 120


def test_several_cases_and_iterations_in_one_cell() -> None:
    cases = [of_node("n", ONE_OFF if case == 2 else ZEROS, ZEROS, case=case) for case in range(4)]
    assert "n (ScatterUpdate-3)  mismatch (1 of 4)" in text(compared(*cases))
    looped = [of_node("n", ONE_OFF, ZEROS, place=(3, 1))]
    assert "on openvino:CPU against numpy in iteration 3, 1: 1 of 20" in text(compared(*looped))
    assert "against numpy in case 2:" in text(compared(*cases))


def test_pairs_and_what_changes_from_run_to_run() -> None:
    pairs = verdict_matrix(
        [of_output("y", ZEROS, ZEROS, GPU, CPU), of_output("y", ZEROS, ZEROS)], "output", 9
    )
    assert pairs.header == ("output", f"{GPU} against {CPU}", f"{CPU} against numpy")
    own = verdict_matrix(
        [of_output("y", ZEROS, ZEROS), of_output("y", ONE_OFF, ZEROS, CPU, CPU)], "output", 9
    )
    assert own.header == ("output, against numpy", CPU)
    assert own.rows[0][1].text == "nondeterministic (1 of 2)"  # type: ignore[attr-defined]
    two = replace(of_output("y", ZEROS, ZEROS, CPU, CPU), subject_model="b", reference_model="a")
    assert verdict_matrix([two], "output", 9).header == ("output", CPU)


def test_two_models() -> None:
    assert text(replace(QUIET, other="after.xml")).startswith("after.xml against model.xml\n")


def test_nothing() -> None:
    gone = Outcome("openvino:GPU", Status.UNAVAILABLE, "no driver")
    shown = text(compared(outcomes=(gone,)))
    assert "openvino:GPU  unavailable  no driver" in shown
    assert shown.endswith("\n\nnothing compared\n")


def test_names_cannot_speak_to_the_terminal() -> None:
    evil = "\x1b[31mred\n\u202e"
    found = compared(
        of_node(evil, ONE_OFF, ZEROS),
        of_output(evil, ONE_OFF, ZEROS),
        outcomes=(Outcome(CPU, Status.REFUSED, evil),),
        remarks=(evil,),
        model=evil,
    )
    shown = text(found, color=False)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\x1b[31mred" in shown
    coloured = text(found, color=True, width=100)
    assert "\x1b[31mred" not in coloured
    assert "\x1b[31mmismatch" in coloured


def test_facts_of_few_nodes_and_of_many() -> None:
    def facts(count: int) -> tuple[NodeFacts, ...]:
        return tuple(
            NodeFacts(f"n{n}", (f"n{n}",), "X", "kernel", "i32", ("i32",), 2.0) for n in range(count)
        )

    def found(count: int, *loud: int) -> list[tuple[object, ...]]:
        nodes = [of_node(f"n{n}", ONE_OFF if n in loud else ZEROS, ZEROS) for n in range(count)]
        types = {f"n{n}": "i64" for n in range(count)}
        return list(kernel_table(compared(*nodes, facts={CPU: facts(count)}, types=types), 40).rows)

    assert found(2) == [(f"n{n}", CPU, "kernel", "i32", "i64 -> i32", "2 us") for n in range(2)]
    assert found(100, 7) == [
        ("n7", CPU, "kernel", "i32", "i64 -> i32", "2 us"),
        ("99 nodes", CPU, "kernel", "i32", "i64 -> i32", "198 us"),
    ]


def test_what_must_be_known_of_a_runner_is_said_once_and_short() -> None:
    shown = text(replace(QUIET, about={GPU: ("It is no GPU.", "More.")}))
    assert f"{GPU}: It is no GPU; `ir-scatter devices` says more\n" in shown


def test_the_settings_are_said() -> None:
    shown = text(replace(QUIET, settings=Settings(seed=7, precision="f16")))
    assert "seed 7, 1 case, precision f16;" in shown


def test_contested_downstream() -> None:
    one = of_output("y", ONE_OFF, ZEROS)
    contested = replace(one, measure=replace(one.measure, verdict=Verdict.CONTESTED))
    assert one.level is Level.MODEL
    assert "an upstream node leaves the result open" in text(compared(contested))


def test_nan_is_counted() -> None:
    lost = ZEROS.copy()
    lost[0, 0] = np.nan
    assert "; 1 NaN, expected 0" in text(compared(of_node("n", lost, ZEROS)))
    assert "ulp" not in text(compared(of_node("n", lost, ZEROS)))
