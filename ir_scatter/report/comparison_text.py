"""A comparison for people: the verdict in one sentence, tables, and what stands out."""

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ir_scatter.compare.headline import NOTHING, Headline, State, headline, headline_of_many, is_single
from ir_scatter.compare.measure import Excuse, Verdict, shown
from ir_scatter.compare.request import Done
from ir_scatter.compare.result import Compared, Comparison, Guarded, Level, NotTapped, Relation, short_names
from ir_scatter.core.parameters import Parameter, Text
from ir_scatter.core.words import counted
from ir_scatter.report.characters import Cell, Table, table_text, visible, without_middle, wrapped
from ir_scatter.report.comparison_json import summary
from ir_scatter.report.matrices import (
    MOST_ROWS,
    NOT_APPLICABLE,
    groups_of,
    kernel_table,
    name_of,
    operator_matrix,
    outputs_are_nodes,
    status_words,
    untold_outliers,
    verdict_matrix,
)
from ir_scatter.runners.base import Status

IMPLICIT = Text("the reference: what the documents say; {} leaves it out", Parameter("reference", False))

POLICY = "NaN equals NaN; 0.0 and -0.0 are close, not equal"


_COLORS = {
    State.DIFFERS: "red",
    State.ILLEGAL: "red",
    State.FAILED: "yellow",
    State.INTERRUPTED: "yellow",
    State.NOTHING: "yellow",
    State.AGREES: "green",
}
_SEQUENCES = {"red": "31", "yellow": "33", "green": "32"}


def render(done: Done, *, each: bool = False, color: bool = False, width: int | None = None) -> str:
    """The verdict in one sentence, then tables, then details; nothing is wider than the terminal.

    With `each` a table of operators by runners follows the verdict on all models, then that on each, and
    then what there is to say of those that do not agree.
    """
    operators = operator_matrix(done.found)
    if is_single(done):
        found = text(done.found[0], color=color, width=width)
        return f"{found}\n{table_text(operators, color=color, width=width)}" if each else found
    heads = [headline(one) for one in done.found]
    names = [name_of_model(one) for one in done.found]
    folders = [name.split("/")[:-1] for name in names]
    levels = enumerate(zip(*folders, strict=False))
    common = next((at for at, same in levels if len({*same}) > 1), min(map(len, folders), default=0))
    rows = [
        (Cell(name, narrow="/".join(name.split("/")[common:])), Cell(head.sentence, _COLORS[head.state]))
        for name, head in zip(names, heads, strict=True)
    ]
    whole = headline_of_many(done)
    parts = [_first_line(whole, color=color, width=width)]
    parts += [
        table_text(table, color=color, width=width)
        for table in (operators, Table(("model", "result"), rows))
        if table.rows
    ]
    for one, head in zip(done.found, heads, strict=True):
        if head.state in {State.DIFFERS, State.ILLEGAL} or len(one.failed) > 1:
            parts.append("\n\n".join([_model_line(one, width), *_body(one, head, color=color, width=width)]))
    return "\n\n".join(part.rstrip("\n") for part in parts if part.strip()) + "\n"


def text(found: Compared, *, color: bool = False, width: int | None = None) -> str:
    """What there is to say of one model."""
    head = headline(found)
    first = f"{_first_line(head, color=color, width=width)}\n{_model_line(found, width)}"
    return "\n\n".join([first, *_body(found, head, color=color, width=width)]) + "\n"


def _first_line(head: Headline, *, color: bool, width: int | None) -> str:
    line = wrapped(visible(head.sentence), width)
    return f"\x1b[1;{_SEQUENCES[_COLORS[head.state]]}m{line}\x1b[0m" if color else line


def _model_line(found: Compared, width: int | None) -> str:
    whole = visible(name_of_model(found))
    if not found.other or width is None or len(whole) <= width:
        return without_middle(whole, width)
    first, second = visible(found.other), f"against {visible(found.model)}"
    return f"{without_middle(first, width)}\n{without_middle(second, width)}"


def name_of_model(found: Compared) -> str:
    return f"{found.other} against {found.model}" if found.other else found.model


def _body(found: Compared, head: Headline, *, color: bool, width: int | None) -> list[str]:
    """Return tables, then details."""
    parts = [table_text(table, color=color, width=width) for table in _tables(found)]
    for lines in (
        _differences(found, head),
        _indices(found.guarded, head),
        _outliers(found, head),
        _notes(found, head),
    ):
        parts.append("\n".join(wrapped(visible(line), width, "    ") for line in lines))
    parts.append(last_line(found))
    return [part.rstrip("\n") for part in parts if part.strip()]


def _tables(found: Compared) -> Iterator[Table]:
    rows: list[tuple[object, ...]] = []
    for one in found.outcomes:
        is_ok = one.status is Status.OK
        word = status_words(found, one)
        status = Cell(word, "green" if is_ok else "" if one.implicit or NOT_APPLICABLE in word else "red")
        seconds = f"{one.seconds:.2f} s" if is_ok else ""
        rows.append((one.runner, status, one.precision if is_ok else "", seconds))
    yield Table(("runner", "status", "precision", "time"), rows)
    for level in (Level.NODE, Level.MODEL):
        for noun, chosen in groups_of(found, level):
            if level is Level.MODEL and outputs_are_nodes(found):
                continue
            yield verdict_matrix(chosen, noun)
    yield kernel_table(found)


def _differences(found: Compared, head: Headline) -> Iterator[str]:
    """Yield a line for each tensor of each runner that is not equal: its worst case."""
    worst: dict[tuple[object, ...], Comparison] = {}
    for one in found.comparisons:
        is_twice = one.level is Level.MODEL and outputs_are_nodes(found)
        if one.measure.verdict is Verdict.EQUAL or is_twice:
            continue
        models = one.subject_model, one.reference_model
        key = (one.node, one.tensor, one.subject, one.reference, models, one.measure.verdict)
        known = worst.get(key)
        is_worse = known is not None and one.measure.mismatched > known.measure.mismatched
        if known is None or (is_worse and known is not head.subject):
            worst[key] = one
    order = list(Verdict)[::-1]
    ordered = sorted(worst.values(), key=lambda one: (order.index(one.measure.verdict), one.node is None))
    for one in ordered[:MOST_ROWS]:
        yield f"{one.measure.verdict}: {name_of(one)} on {_who(one)}: {_how(one, one is head.subject)}"
    if len(ordered) > MOST_ROWS:
        yield f"and {len(ordered) - MOST_ROWS} more that are not equal"


def _who(one: Comparison) -> str:
    parts = [one.subject]
    if one.relation is Relation.MODELS:
        first, second = short_names(one.reference_model, one.subject_model)
        parts.append(f"between {first} and {second}")
    elif one.subject_model and one.relation is not Relation.REPEAT:
        parts.append(f"against {one.reference} in {PurePath(one.subject_model).name}")
    elif one.subject != one.reference:
        parts.append(f"against {one.reference}")
    elif one.measure.verdict is Verdict.MISMATCH:
        parts.append(f"against {one.subject} with taps")
    if one.place:
        parts.append(f"in iteration {', '.join(map(str, one.place))}")
    if one.caller:
        parts.append(f"called by {one.caller}")
    if one.case:
        parts.append(f"in case {one.case}")
    return " ".join(parts)


def _how(one: Comparison, is_told: bool) -> str:
    """Say how a tensor differs; the worst element only if the first line does not."""
    found = one.measure
    if found.remark:
        return f"{found.remark}; {excuse_text(found.excuse)}" if found.excuse else found.remark
    parts = []
    if found.verdict is Verdict.NONDETERMINISTIC:
        parts.append("changes when nodes are tapped" if one.tapped else "changes from run to run")
    elif found.mismatched:
        parts.append(f"{found.mismatched} of {counted(found.elements, 'element')} differ")
    if found.open_once:
        parts.append(f"{PurePath(getattr(one, f'{found.open_once}_model')).name} does not specify them")
    elif found.excuse is not None:
        parts.append(excuse_text(found.excuse))
    elif found.contested:
        parts.append(f"{counted(found.contested, 'element')} with a value that the document allows")
    elif found.verdict is Verdict.CONTESTED:
        parts.append("an upstream node leaves the result open")
    if one.wrong_runs is not None:
        parts.append(f"in {one.wrong_runs[0]} of {one.wrong_runs[1]} runs")
    if found.worst is not None and not is_told:
        element = f"{list(found.worst.index)} is" if found.worst.index else "it is"
        parts.append(f"{element} {one.both(shown(found.worst.got), shown(found.worst.expected))}")
    if found.max_ulp and math.isfinite(found.max_abs):
        relative = f", rel {found.max_rel:.3g}" if math.isfinite(found.max_rel) else ""
        parts.append(f"needs abs {found.max_abs:.3g}{relative} ({found.max_ulp} ulp)")
    for noun, (got, expected) in (("NaN", found.nans), ("infinities", found.infinities)):
        if got != expected:
            parts.append(one.both(f"{got} {noun}", expected))
    return "; ".join(parts)


def excuse_text(excuse: Excuse) -> str:
    if excuse.is_random:
        return f"no verdict: {excuse.why}"
    start = "an upstream node leaves the result open"
    if excuse.elements is None:
        return f"{start}, its shape as well: {excuse.why}"
    where = f"{start} in {counted(excuse.elements, 'element')}"
    return f"{where}: {excuse.why}" if excuse.is_whole else where


def _indices(guarded: Sequence[Guarded], head: Headline) -> Iterator[str]:
    """Yield what is to be said of indices: once for all runners and cases that have the same."""
    subject = head.subject
    same: dict[tuple[str, str, str], list[Guarded]] = {}
    for one in guarded:
        where = f" in {PurePath(one.model).name}" if one.model else ""
        same.setdefault((one.kind, f"{one.node} ({one.operator}){where}", one.message), []).append(one)
    groups = sorted(same.items(), key=lambda item: not item[1][0].is_illegal)
    for (kind, node, message), members in groups[:MOST_ROWS]:
        what = {"illegal": "not legal", "nan": "left open"}.get(kind, f"{kind} indices")
        runners = ", ".join(dict.fromkeys(one.runner for one in members))
        told = "" if subject in members else f": {message}"
        yield f"{what}: {node}{told} (seen by {runners})"
    if len(groups) > MOST_ROWS:
        yield f"and {counted(len(groups) - MOST_ROWS, 'more node')} with such indices"


def _outliers(found: Compared, head: Headline) -> Iterator[str]:
    """Yield who is wrong where verdicts alone do not tell."""
    told = untold_outliers(found, head.sentence)
    for one in told[:MOST_ROWS]:
        where = one.node if one.node is not None else one.tensor
        yield f"who is wrong: {where}: {one.message}"
    if len(told) > MOST_ROWS:
        yield f"and {len(told) - MOST_ROWS} more"


def _notes(found: Compared, head: Headline) -> Iterator[str]:
    for outcome in found.outcomes:
        if outcome.message and outcome.message not in head.sentence:
            yield f"{outcome.runner}: {outcome.message}"
        elif outcome.implicit and outcome.status is Status.OK:
            yield f"{outcome.runner} is {IMPLICIT}"
    same: dict[tuple[str, str], list[NotTapped]] = {}
    for one in found.not_tapped:
        same.setdefault((one.runner, one.reason), []).append(one)
    for (runner, reason), members in same.items():
        names = ", ".join(one.node for one in members[:MOST_ROWS])
        more = f" and {len(members) - MOST_ROWS} more" if len(members) > MOST_ROWS else ""
        yield f"not compared on {runner}: {names}{more}: {reason}"
    yield from (remark for remark in found.remarks if not remark.startswith(NOTHING))
    for runner, remarks in found.about.items():
        more = "; `ir-scatter devices -v` says more" if len(" ".join(remarks).split(". ")) > 1 else ""
        yield f"{runner}: {remarks[0].partition('. ')[0].removesuffix('.')}{more}"
    cases = counted(len(found.feeds), "case")
    precision = found.settings.precision
    yield f"seed {found.settings.seed}, {cases}, precision {precision}; {POLICY}"


def last_line(found: Compared) -> str:
    shown = [one for one in found.comparisons if one.level is Level.NODE or not outputs_are_nodes(found)]
    counts = summary(shown)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    words = f"{words} on {counted(len(found.feeds), 'case')}" if words else "nothing compared"
    illegal = len({one.node for one in found.guarded if one.is_illegal})
    return words + (f", {counted(illegal, 'illegal node')}" if illegal else "")
