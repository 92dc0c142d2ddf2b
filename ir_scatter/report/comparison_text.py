"""A comparison as text: the verdict in one sentence, tables, differences and remarks."""

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from ir_scatter.compare.headline import NOTHING, Headline, State, headline, headline_of_many, is_single
from ir_scatter.compare.known import lines_of
from ir_scatter.compare.measure import Excuse, ExplainedDifference, Measure, Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, Comparison, Guarded, Level, NotTapped, Relation, short_names
from ir_scatter.core.parameters import Parameter, Text
from ir_scatter.core.words import counted
from ir_scatter.report.characters import Table, TableCell, table_text, visible, without_middle, wrap_line
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
    unmentioned_outliers,
    verdict_matrix,
)
from ir_scatter.runners.base import Status

IMPLICIT = Text(
    "the reference, which follows the specification; leave it out with {}", Parameter("reference", False)
)

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


def render(done: ComparedModels, *, each: bool = False, color: bool = False, width: int | None = None) -> str:
    """Return the verdict in one sentence, then tables, then details, all wrapped to the terminal.

    With `each`: the verdict on all models, a table of operators by runners, the verdict on each model, then
    the details of models with differences.
    """
    operators = operator_matrix(done.found)
    if is_single(done):
        single = text(done.found[0], color=color, width=width)
        return f"{single}\n{table_text(operators, color=color, width=width)}" if each else single
    heads = [headline(compared) for compared in done.found]
    names = [name_of_model(compared) for compared in done.found]
    folders = [name.split("/")[:-1] for name in names]
    levels = enumerate(zip(*folders, strict=False))
    common = next((at for at, same in levels if len({*same}) > 1), min(map(len, folders), default=0))
    rows = [
        (
            TableCell(name, narrow="/".join(name.split("/")[common:])),
            TableCell(head.sentence, _COLORS[head.state]),
        )
        for name, head in zip(names, heads, strict=True)
    ]
    overall = headline_of_many(done)
    parts = [_first_line(overall, color=color, width=width)]
    parts += [
        table_text(table, color=color, width=width)
        for table in (operators, Table(("model", "result"), rows))
        if table.rows
    ]
    for compared, head in zip(done.found, heads, strict=True):
        if head.state in {State.DIFFERS, State.ILLEGAL} or len(compared.failed) > 1:
            parts.append(
                "\n\n".join([_model_line(compared, width), *_body(compared, head, color=color, width=width)])
            )
    return "\n\n".join(part.rstrip("\n") for part in parts if part.strip()) + "\n"


def text(compared: Compared, *, color: bool = False, width: int | None = None) -> str:
    """Return the report on one model."""
    head = headline(compared)
    first = f"{_first_line(head, color=color, width=width)}\n{_model_line(compared, width)}"
    return "\n\n".join([first, *_body(compared, head, color=color, width=width)]) + "\n"


def _first_line(head: Headline, *, color: bool, width: int | None) -> str:
    line = wrap_line(visible(head.sentence), width)
    return f"\x1b[1;{_SEQUENCES[_COLORS[head.state]]}m{line}\x1b[0m" if color else line


def _model_line(compared: Compared, width: int | None) -> str:
    name = visible(name_of_model(compared))
    if not compared.other or width is None or len(name) <= width:
        return without_middle(name, width)
    first, second = visible(compared.other), f"against {visible(compared.model)}"
    return f"{without_middle(first, width)}\n{without_middle(second, width)}"


def name_of_model(compared: Compared) -> str:
    return f"{compared.other} against {compared.model}" if compared.other else compared.model


def _body(compared: Compared, head: Headline, *, color: bool, width: int | None) -> list[str]:
    """Return the lines after the verdict: tables, then details."""
    parts = [table_text(table, color=color, width=width) for table in _tables(compared)]
    for lines in (
        _differences(compared, head),
        _leads(compared),
        _indices(compared.guarded, head),
        _outliers(compared, head),
        _notes(compared, head),
    ):
        parts.append("\n".join(wrap_line(visible(line), width, "    ") for line in lines))
    parts.append(last_line(compared))
    return [part.rstrip("\n") for part in parts if part.strip()]


def _tables(compared: Compared) -> Iterator[Table]:
    rows: list[tuple[object, ...]] = []
    for outcome in compared.outcomes:
        is_ok = outcome.status is Status.OK
        word = status_words(compared, outcome)
        status = TableCell(
            word, "green" if is_ok else "" if outcome.implicit or NOT_APPLICABLE in word else "red"
        )
        seconds = f"{outcome.seconds:.2f} s" if is_ok else ""
        rows.append((outcome.runner, status, outcome.precision if is_ok else "", seconds))
    yield Table(("runner", "status", "precision", "time"), rows)
    for level in (Level.NODE, Level.MODEL):
        for noun, comparisons in groups_of(compared, level):
            if level is Level.MODEL and outputs_are_nodes(compared):
                continue
            yield verdict_matrix(comparisons, noun)
    yield kernel_table(compared)


def _differences(compared: Compared, head: Headline) -> Iterator[str]:
    """Yield a line for each tensor and runner whose result is not equal, with the worst case."""
    worst: dict[tuple[object, ...], Comparison] = {}
    for comparison in compared.comparisons:
        is_twice = comparison.level is Level.MODEL and outputs_are_nodes(compared)
        if comparison.measure.verdict is Verdict.EQUAL or is_twice:
            continue
        models = comparison.subject_model, comparison.reference_model
        key = (
            comparison.node,
            comparison.tensor,
            comparison.subject,
            comparison.reference,
            models,
            comparison.measure.verdict,
        )
        previous = worst.get(key)
        is_worse = previous is not None and comparison.measure.mismatched > previous.measure.mismatched
        if previous is None or (is_worse and previous is not head.subject):
            worst[key] = comparison
    order = list(Verdict)[::-1]
    ordered = sorted(
        worst.values(), key=lambda worst: (order.index(worst.measure.verdict), worst.node is None)
    )
    for comparison in ordered[:MOST_ROWS]:
        tensor = f"{name_of(comparison)} on {_name_pair(comparison)}"
        difference = _describe_difference(comparison, comparison is head.subject)
        yield f"{comparison.measure.verdict}: {tensor}: {difference}"
    if len(ordered) > MOST_ROWS:
        yield f"and {len(ordered) - MOST_ROWS} more that are not equal"


def _leads(compared: Compared) -> Iterator[str]:
    """Yield the known defects that explain results, and suggestions, once for all nodes and cases."""
    for lead in compared.leads[:MOST_ROWS]:
        yield from lines_of(lead)
    if len(compared.leads) > MOST_ROWS:
        yield f"and {len(compared.leads) - MOST_ROWS} more to look at"


def _name_pair(comparison: Comparison) -> str:
    parts = [comparison.subject]
    if comparison.relation is Relation.MODELS:
        first, second = short_names(comparison.reference_model, comparison.subject_model)
        parts.append(f"between {first} and {second}")
    elif comparison.subject_model and comparison.relation is not Relation.REPEAT:
        parts.append(f"against {comparison.reference} in {PurePath(comparison.subject_model).name}")
    elif comparison.subject != comparison.reference:
        parts.append(f"against {comparison.reference}")
    elif comparison.measure.verdict is Verdict.MISMATCH:
        parts.append(f"against {comparison.subject} with taps")
    if comparison.place:
        parts.append(f"in iteration {', '.join(map(str, comparison.place))}")
    if comparison.caller:
        parts.append(f"called by {comparison.caller}")
    if comparison.case:
        parts.append(f"in case {comparison.case}")
    return " ".join(parts)


def _describe_difference(comparison: Comparison, is_in_headline: bool) -> str:
    """Return how a tensor differs; without the worst element if the headline already names it."""
    measure = comparison.measure
    if measure.remark:
        return f"{measure.remark}; {excuse_text(measure.excuse)}" if measure.excuse else measure.remark
    parts = []
    if measure.verdict is Verdict.NONDETERMINISTIC:
        parts.append("changes when nodes are tapped" if comparison.tapped else "changes from run to run")
    elif measure.mismatched:
        parts.append(f"{measure.mismatched} of {counted(measure.elements, 'element')} differ")
    if measure.explanation is not None:
        parts.append(rounding_text(measure, measure.explanation))
    if measure.unspecified_in:
        parts.append(
            f"{PurePath(getattr(comparison, f'{measure.unspecified_in}_model')).name} does not specify them"
        )
    elif measure.excuse is not None:
        parts.append(excuse_text(measure.excuse))
    elif measure.contested:
        parts.append(f"{counted(measure.contested, 'element')} with a value that the specification allows")
    elif measure.verdict is Verdict.CONTESTED:
        parts.append("an upstream node has an unspecified result")
    if comparison.wrong_runs is not None:
        parts.append(f"in {comparison.wrong_runs[0]} of {comparison.wrong_runs[1]} runs")
    if measure.worst is not None and not is_in_headline:
        element, got_text, expected_text = measure.worst.words
        parts.append(f"{element} {comparison.describe_pair(got_text, expected_text)}")
    if measure.max_ulp and math.isfinite(measure.max_abs) and not _is_explained(measure):
        relative = f", rel {measure.max_rel:.3g}" if math.isfinite(measure.max_rel) else ""
        parts.append(f"needs abs {measure.max_abs:.3g}{relative} ({measure.max_ulp} ulp)")
    for noun, (got, expected) in (("NaN", measure.nans), ("infinities", measure.infinities)):
        if got != expected:
            parts.append(comparison.describe_pair(f"{got} {noun}", expected))
    return "; ".join(parts)


def rounding_text(measure: Measure, explanation: ExplainedDifference) -> str:
    """Return "7 of 810 elements differ by at most 3e-09, f32 explains 2e-07"."""
    explains = f"{explanation.precision} explains {explanation.bound:.2g}"
    if measure.verdict.is_difference:
        return explains
    count = f"{explanation.differing} of {counted(measure.elements, 'element')}"
    text = f"{count} differ by at most {explanation.difference:.2g}, {explains}"
    if measure.verdict is not Verdict.UNKNOWN:
        return text
    if not explanation.is_complete:
        return f"{text} or more, which was not measured within the time limit"
    return f"{text}, too much for a verdict"


def excuse_text(excuse: Excuse) -> str:
    if excuse.is_random:
        return f"no verdict: {excuse.why}"
    if excuse.elements is None:
        return f"unspecified by an upstream node, even its shape: {excuse.why}"
    text = f"{counted(excuse.elements, 'element')} unspecified by an upstream node"
    return f"{text}: {excuse.why}" if excuse.why else text


def _is_explained(measure: Measure) -> bool:
    return measure.explanation is not None and not measure.verdict.is_difference


def _indices(guarded: Sequence[Guarded], head: Headline) -> Iterator[str]:
    """Yield a line for each node with illegal or unusual indices, once for all runners and cases."""
    subject = head.subject
    same: dict[tuple[str, str, str], list[Guarded]] = {}
    for violation in guarded:
        in_model = f" in {PurePath(violation.model).name}" if violation.model else ""
        same.setdefault(
            (violation.kind, f"{violation.node} ({violation.operator}){in_model}", violation.message), []
        ).append(violation)
    groups = sorted(same.items(), key=lambda item: not item[1][0].is_illegal)
    for (kind, node, message), members in groups[:MOST_ROWS]:
        label = {"illegal": "not legal", "nan": "unspecified"}.get(kind, f"{kind} indices")
        runners = ", ".join(dict.fromkeys(violation.runner for violation in members))
        suffix = "" if subject in members else f": {message}"
        yield f"{label}: {node}{suffix} (seen by {runners})"
    if len(groups) > MOST_ROWS:
        yield f"and {counted(len(groups) - MOST_ROWS, 'more node')} with such indices"


def _outliers(compared: Compared, head: Headline) -> Iterator[str]:
    """Yield a line for each tensor on which runners differ, unless the headline names the wrong one."""
    outliers = unmentioned_outliers(compared, head.sentence)
    for outlier in outliers[:MOST_ROWS]:
        where = outlier.node if outlier.node is not None else outlier.tensor
        yield f"who is wrong: {where}: {outlier.message}"
    if len(outliers) > MOST_ROWS:
        yield f"and {len(outliers) - MOST_ROWS} more"


def _notes(compared: Compared, head: Headline) -> Iterator[str]:
    for difference in compared.first_differences:
        if difference.message not in head.sentence:
            case = f" in case {difference.case}" if difference.case else ""
            yield f"{difference.runner}{case}: {difference.message}"
    for outcome in compared.outcomes:
        if outcome.message and outcome.message not in head.sentence:
            yield f"{outcome.runner}: {outcome.message}"
        elif outcome.implicit and outcome.status is Status.OK:
            yield f"{outcome.runner} is {IMPLICIT}"
    same: dict[tuple[str, str], list[NotTapped]] = {}
    for node in compared.not_tapped:
        same.setdefault((node.runner, node.reason), []).append(node)
    for (runner, reason), members in same.items():
        names = ", ".join(node.node for node in members[:MOST_ROWS])
        more = f" and {len(members) - MOST_ROWS} more" if len(members) > MOST_ROWS else ""
        yield f"not compared on {runner}: {names}{more}: {reason}"
    yield from (remark for remark in compared.remarks if not remark.startswith(NOTHING))
    for runner, remarks in compared.about.items():
        more = "; for more, see ir-scatter devices -v" if len(" ".join(remarks).split(". ")) > 1 else ""
        yield f"{runner}: {remarks[0].partition('. ')[0].removesuffix('.')}{more}"
    cases = counted(len(compared.feeds), "case")
    precision = compared.settings.precision
    yield f"seed {compared.settings.seed}, {cases}, precision {precision}; {POLICY}"


def last_line(compared: Compared) -> str:
    comparisons = [
        comparison
        for comparison in compared.comparisons
        if comparison.level is Level.NODE or not outputs_are_nodes(compared)
    ]
    counts = summary(comparisons)
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    words = f"{words} on {counted(len(compared.feeds), 'case')}" if words else "nothing compared"
    illegal = len({violation.node for violation in compared.guarded if violation.is_illegal})
    return words + (f", {counted(illegal, 'illegal node')}" if illegal else "")
