import threading

import pytest

from ir_scatter.compare.guard import in_background, printed
from ir_scatter.compare.run import computed_in, facts_about
from ir_scatter.runners.base import NodeFacts


def facts(*originals: str, precision: str = "f32", kind: str = "X") -> NodeFacts:
    return NodeFacts(originals[0], originals, kind, "kernel", precision, (precision,), 1.0)


def test_an_error_comes_with_the_result() -> None:
    failing = in_background(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(5)
    thread = in_background(threading.current_thread).result(5)
    assert thread is not threading.current_thread()
    assert thread.daemon, "what never ends does not keep the process alive"


def test_the_coarsest_precision_of_any_node() -> None:
    assert computed_in([facts("a"), facts("b", precision="BF16"), facts("c", precision="i32")]) == "bf16"
    assert computed_in([facts("c", precision="i32")]) == computed_in([]) == ""


def test_what_a_plugin_renamed() -> None:
    found = facts_about(
        [
            facts("other"),
            facts("node.0.0", kind="Convert"),
            facts("node.0", precision="i32"),
            facts("fused", "second"),
        ],
        {"node": "body/node", "second": "second", "absent": "absent"},
    )
    assert [(one.name, one.originals) for one in found] == [
        ("node.0", ("body/node",)),
        ("fused", ("second",)),
    ]
    exact = facts_about([facts("node.0"), facts("node")], {"node": "node", "node.0": "node.0"})
    assert [one.originals for one in exact] == [("node.0",), ("node",)]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("node", "node"),
        ("call:own::Store/written", "own::Store/written"),
        ("a:own::Twice/once:own::Store/written", "own::Store/written"),
        ("if:then_branch/node", "if:then_branch/node"),
        ("call:own::Other/written", None),
        ("", None),
    ],
)
def test_paths_as_validate_prints_them(scope: str, expected: str | None) -> None:
    assert printed(scope, {"node", "own::Store/written", "if:then_branch/node"}) == expected
