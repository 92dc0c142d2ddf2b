"""What a comparison says beside its tables: indices, who is wrong, what was not tapped, how it ran."""

from collections.abc import Iterator
from dataclasses import dataclass

from ir_scatter.compare.result import Compared, Outlier, Verdict
from ir_scatter.compare.tolerance import Tolerance
from ir_scatter.report.html.difference import kind_of


@dataclass(frozen=True, slots=True)
class Remark:
    """A line about a node on a runner, said once however often it holds."""

    node: str
    runner: str
    kind: str
    message: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Blame:
    """Who says something else about a tensor."""

    subject: str
    runners: tuple[str, ...]
    message: str
    cases: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a runner ran a node."""

    node: str
    runner: str
    kernel: str
    precision: str
    outputs: str
    time: str


def indices(found: Compared) -> tuple[Remark, ...]:
    """Return what is to be said of indices, the illegal ones first."""
    groups: dict[tuple[bool, str, str, str], list[str]] = {}
    for one in found.guarded:
        key = (not one.is_illegal, one.node, one.runner, one.kind)
        groups.setdefault(key, []).append(one.message)
    return tuple(
        Remark(node, runner, kind if is_legal else f"illegal: {kind}", messages[0], len(messages))
        for (is_legal, node, runner, kind), messages in sorted(groups.items(), key=lambda item: item[0][0])
    )


def blames(found: Compared) -> tuple[Blame, ...]:
    """Return who is wrong, once for each tensor."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[Outlier]] = {}
    for one in found.odd:
        name = one.tensor if one.node is None else one.node
        groups.setdefault((one.level, name, one.runners), []).append(one)
    ordered = sorted(groups.items(), key=lambda item: item[1][0].node is None)
    return tuple(
        Blame(name, runners, said[0].message, tuple(sorted({one.case for one in said})))
        for (_, name, runners), said in ordered
    )


def not_tapped(found: Compared) -> tuple[Remark, ...]:
    """Return the nodes without a level of their own."""
    return tuple(Remark(one.node, one.runner, "", one.reason) for one in found.not_tapped)


def kernels(found: Compared) -> tuple[Kernel, ...]:
    """Return how the scatter nodes were really run."""
    names = {one.node for one in found.comparisons if one.node is not None}
    return tuple(
        Kernel(
            ", ".join(one.originals),
            runner,
            one.kernel,
            one.precision,
            ", ".join(one.outputs),
            _time(one.microseconds),
        )
        for runner, facts in found.facts.items()
        for one in facts
        if not names.isdisjoint(one.originals)
    )


def _time(microseconds: float | None) -> str:
    if microseconds is None:
        return ""
    return "< 1 µs" if microseconds < 1 else f"{microseconds:,.0f} µs"


def tolerances(found: Compared) -> tuple[tuple[str, str, Tolerance], ...]:
    """Return which tolerances were used: level, element type, how much."""
    rows: dict[tuple[str, str, Tolerance], None] = {}
    for one in found.comparisons:
        if one.expected is not None and not one.measure.remark and one.measure.verdict is not Verdict.EQUAL:
            kind = kind_of(one.expected).split("[")[0]
            rows[("outputs" if one.node is None else "nodes", kind, one.measure.tolerance)] = None
    return tuple(sorted(rows, key=lambda row: row[:2]))


def feeds(found: Compared) -> Iterator[tuple[str, str]]:
    """Yield the inputs of the model: name, type and shape in the first case."""
    for name, array in (found.feeds[0] if found.feeds else {}).items():
        yield name, kind_of(array)
