"""Text, JSON and HTML of a comparison say the same: verdicts, who is wrong, and the sentence that begins them."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ir_scatter import runners as real_runners
from ir_scatter.compare.headline import State
from ir_scatter.compare.measure import Verdict
from ir_scatter.compare.request import ComparedModels
from ir_scatter.compare.result import Compared, CompareSettings
from ir_scatter.compare.run import compare
from ir_scatter.core.errors import Error, NoInputs
from ir_scatter.core.shapes import Bounds
from ir_scatter.formats import dataflow_of
from ir_scatter.reading import read
from ir_scatter.report.registry import render
from ir_scatter.runners.base import OTHER_FORMAT, Outcome, Status
from ir_scatter.runners.defaults import NUMPY
from tests.compare.planted import Array, FakeRunner, Planted, at, unchanged
from tests.compare.test_two_models import onnx, write
from tests.report.comparisons import EVERYTHING, MANY, parse_page
from tests.report.test_html import words
from tests.scale import NIGHTLY

SAMPLES = Path(__file__).parents[2] / "samples"
LARGE = "scatter_update_1.xml"
"""Has millions of elements, as its document has."""
MODELS = sorted(
    path for path in SAMPLES.glob("*/*") if path.suffix in {".xml", ".onnx"} and path.name != LARGE
)
NO_INPUTS = SAMPLES / "broken" / "tensor_scatter.onnx"
"""The sample that no inputs are legal for."""
PAIRS = ("kv_cache/decoder", "nested/branch", "written")
"""One that NumPy does not compute, one that is illegal, and one that is neither."""
ORDER = [verdict.value for verdict in Verdict]

Cells = dict[tuple[str, str, str, str], str]
"""Verdicts by what the table is of, row, runner, and what that is held against."""


class Wrong(FakeRunner):
    """Changes an element of each output, or of each node, in models whose names end with something."""

    def __init__(
        self, name: str, *, output: int | None = None, node: int | None = None, only: str = ""
    ) -> None:
        super().__init__(name)
        self.where, self.of_node, self.only = output, node, only

    def run(self, model_path: Any, feeds: Any, **named: Any) -> Outcome:
        is_meant = str(model_path).endswith(self.only)
        self.node = unchanged if self.of_node is None or not is_meant else self._changed(self.of_node)
        self.output = unchanged if self.where is None or not is_meant else self._changed(self.where)
        return super().run(model_path, feeds, **named)

    def _once(self, path: str, feeds: Any, taps: Any, number: int) -> Any:
        try:
            return Planted._once(self, path, feeds, taps, number)
        except Error:  # of a model that NumPy does not compute ones are right
            ones: dict[str, Array] = {}
            for end in dataflow_of(read(path)).outputs:
                shape = [4 if isinstance(dim, Bounds) else dim for dim in end.shape or ()]
                found = self.output(end.name, np.ones(shape, np.float32), bool(taps), number)
                assert found is not None
                ones[end.name] = found
            return ones, ()

    def _changed(self, place: int) -> Any:
        return lambda name, array, *rest: at(place)(name, array, *rest) if array.size else array


class Turning(Wrong):
    """Says something else when it is asked again."""

    def run(self, model_path: Any, feeds: Any, **named: Any) -> Outcome:
        found = super().run(model_path, feeds, **named)
        again = dict(found.outputs)
        for name, array in again.items():
            changed = at(0)(name, array, False, 1) if array.size else array
            assert changed is not None
            again[name] = changed
        return Outcome(self.name, found.status, runs=(*found.runs[:1], again), tapped=found.tapped)


class OnnxOnly(Wrong):
    def run(self, model_path: Any, feeds: Any, **named: Any) -> Outcome:
        if Path(model_path).suffix != ".onnx":
            return Outcome(self.name, Status.UNSUPPORTED, "an IR", reason=OTHER_FORMAT)
        return super().run(model_path, feeds, **named)


PLANTED: dict[str, Callable[[], tuple[Sequence[FakeRunner], dict[str, Any]]]] = {
    "right": lambda: ([Wrong("a"), Wrong("b")], {}),
    "one output": lambda: ([Wrong("a", output=0)], {}),
    "one of two": lambda: ([Wrong("a"), Wrong("b", output=0)], {"cases": 2}),
    "both alike": lambda: ([Wrong("a", output=0), Wrong("b", output=0)], {}),
    "both, apart": lambda: ([Wrong("a", output=0), Wrong("b", output=-1)], {}),
    "a node": lambda: ([Wrong("a", node=0), Wrong("b")], {}),
    "pairs": lambda: ([Wrong("a", output=0), Wrong("b")], {"pairwise": True}),
    "without numpy": lambda: ([Wrong("a"), Wrong("b", output=0)], {"reference": False}),
    "without numpy, three": lambda: ([Wrong("a"), Wrong("b", output=0), Wrong("c")], {"reference": False}),
    "turning": lambda: ([Turning("a"), Wrong("b")], {"repeat": 2}),
    "one that fails": lambda: ([FakeRunner("a", ending=Status.CRASHED, message="SIGSEGV"), Wrong("b")], {}),
    "another format": lambda: ([OnnxOnly("a"), Wrong("b", only=".xml", output=0)], {}),
}  # fmt: skip


def demand_one_truth(*compared: Compared) -> None:
    """Hold the three formats of one comparison, or of several, against each other."""
    done = ComparedModels(compared)
    each = len(compared) > 1
    document = json.loads(render("comparison", "json", done, each=each))
    text = render("comparison", "text", done, each=each)
    page = parse_page(render("comparison", "html", done))
    assert text.splitlines()[0] == document["headline"]
    assert words(page.find_class("banner")[0]).partition(" ")[2] == " ".join(document["headline"].split())
    assert document["state"] in page.find_class("banner")[0].get("class")
    if each:
        return
    (found,) = compared
    cells, on_page, told = cells_of_json(document), cells_of_page(page), cells_of_text(text)
    assert told.items() <= on_page.items() <= cells.items()
    for shown in (told, on_page):
        # hidden is the output of a model of one node, of which nothing else is to be said
        hidden = {key for key in cells if key not in shown}
        nodes = {(runner, verdict) for (table, _, runner, _), verdict in cells.items() if "node" in table}
        assert {(key[2], cells[key]) for key in hidden} <= nodes
        assert all("output" in key[0] for key in hidden)
    demand_lines(text, document)
    demand_who_is_wrong(text, document, page)
    demand_statuses(text, page)
    demand_state(document, found)
    cases = "1 case" if document["cases"] == 1 else f"{document['cases']} cases"
    if document["comparisons"]:
        assert re.search(rf" on {cases}\b", text.splitlines()[-1])
        assert f"Verdicts on {cases}." in words(page)


def cells_of_json(document: Any) -> Cells:
    """Return the worst verdict of each tensor on each runner; what changes goes where the runner is judged."""
    names = {
        document["model"]: Path(document["model"]).name,
        document["other"]: Path(document["other"] or "").name,
    }
    judged: dict[tuple[Any, ...], str] = {}
    rows: list[tuple[tuple[Any, ...], Any]] = []
    for one in document["comparisons"]:
        models = one.get("subject_model", ""), one.get("reference_model", "")
        table = "output" if one["level"] == "model" else "node"
        if document["other"]:
            table += f" of {names[models[0]]}"
            table += f", against {names[models[1]]}" if models[0] != models[1] else ""
        if one["subject"] != one["reference"]:
            judged.setdefault((table, one["subject"]), one["reference"])
        rows.append(((table, one["node"] or one["tensor"], one["subject"]), one))
    found: Cells = {}
    for (table, row, subject), one in rows:
        reference = one["reference"]
        if reference == subject and one["relation"] == "repeat":
            reference = judged.get((table, subject), reference)
        key = (table, row, subject, "" if one["relation"] == "models" else reference)
        found[key] = max(found.get(key, "equal"), one["verdict"], key=ORDER.index)
    return found


def cells_of_text(text: str) -> Cells:
    """Read the tables of verdicts: columns begin where those of the header do."""
    found: Cells = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        is_row = any(word in ORDER for word in line.split()[1:])
        if is_row or not re.match(r"(output|node)\b.*  ", line) or ": " in line or "kernel" in line:
            continue
        heads = [(match.start(), match[0]) for match in re.finditer(r"\S+(?: \S+)*", line)]
        table, _, common = heads[0][1].partition(", against ")
        if " of " in table and common.endswith((".xml", ".onnx")):
            table, common = heads[0][1], ""
        elif ", against " in common:
            first, _, common = common.rpartition(", against ")
            table = f"{table}, against {first}"
        for row in lines[number + 1 :]:
            if not row:
                break
            name = re.split(r"  +", row)[0].partition(" (")[0]
            for place, (start, head) in enumerate(heads[1:], 1):
                end = heads[place + 1][0] if place + 1 < len(heads) else None
                word = row[start:end].strip().partition(" (")[0]
                runner, _, reference = head.partition(" against ")
                if word:
                    is_of_models = table.count(".xml") + table.count(".onnx") == 2
                    found[table, name, runner, "" if is_of_models else reference or common or runner] = word
    return found


def cells_of_page(page: Any) -> Cells:
    """Read the tables of verdicts of a page."""
    found: Cells = {}
    for table in page.xpath("//table[contains(@class, 'matrix')]"):
        heads = table.xpath("thead/tr/th")
        noun = words(heads[0])
        noun = noun[0].lower() + noun[1:]
        leads = table.xpath("preceding::p[contains(@class, 'lead')][starts-with(., 'Each compared with')][1]")
        common = words(leads[0].find_class("name")[0]) if leads else ""
        for row in table.xpath("tbody/tr"):
            name = words(row.xpath("th/bdi")[0])
            for head, cell in zip(heads[1:], row.xpath("td"), strict=True):
                for badge in cell.find_class("badge")[:1]:
                    word = re.sub(r"^[^a-z]+", "", words(badge))
                    if word not in ORDER:
                        continue  # "illegal indices", "not tapped"
                    against = [words(one) for one in head.find_class("against")]
                    runner = words(head.find_class("name")[0])
                    reference = against[0].removeprefix("against ") if against else common
                    if reference == "from run to run":
                        reference = runner
                    is_of_models = noun.count(".xml") + noun.count(".onnx") == 2
                    found[noun, name, runner, "" if is_of_models else reference] = word
    return found


def demand_lines(text: str, document: Any) -> None:
    """Demand that a line that calls something expected is held against NumPy, and that each says what JSON says."""
    lines = [line for line in text.splitlines() if re.match(rf"({'|'.join(ORDER)}): ", line)]
    for line in lines:
        verdict, name = line.split(": ", 1)[0], line.split(": ", 1)[1].split(" ")[0]
        same = [
            one
            for one in document["comparisons"]
            if one["verdict"] == verdict
            and name in {one["tensor"], one["node"]}
            and f" on {one['subject']}" in line
        ]
        assert same, line
        if "expected" in line:
            assert any(one["relation"] == "document" for one in same), line
        if "against" in line:
            assert any(f" against {one['reference']}" in line for one in same), line
    sentence = document["headline"]
    if "the specification requires" in sentence or "NumPy computes" in sentence:
        assert any(one["relation"] == "document" for one in document["comparisons"])
    if not any(one["relation"] == "document" for one in document["comparisons"]):
        assert "expected" not in "\n".join(lines)


def demand_statuses(text: str, page: Any) -> None:
    """Demand that runners ended in the same way in the text and on the page."""
    for row in page.xpath("//section[contains(@id, '-runners')]//tbody/tr"):
        runner, status = words(row.find("th")), words(row.find("td"))
        assert re.search(rf"^{re.escape(runner)} +{re.escape(status)}(  |$)", text, re.MULTILINE), runner


def demand_who_is_wrong(text: str, document: Any, page: Any) -> None:
    differing = {
        (one["level"], one["node"], one["tensor"], one["subject"])
        for one in document["comparisons"]
        if one["verdict"] in {"mismatch", "nondeterministic"}
    }
    for odd in document["odd"]:
        place = odd["level"], odd["node"], odd["tensor"]
        names = {runner for *found, runner in differing if tuple(found) == place or document["other"]}
        assert names, odd
        assert set(odd["runners"]) <= names or odd["runners"] == [NUMPY]
    blames = page.find_class("blame")
    on_page = [words(one) for one in blames[0].iter("li")] if blames else []
    has_outputs = any(table.startswith("output") for table, *_ in cells_of_page(page))
    for odd in document["odd"]:  # of several cases one is told, and of a model of one node the node
        alike = [one for one in document["odd"] if _who(one) == _who(odd)]
        if not has_outputs:
            alike += [one for one in document["odd"] if one["runners"] == odd["runners"]]
        assert any(" ".join(one["message"].split()) in line for one in alike for line in on_page), odd
    assert bool(on_page) is bool(document["odd"])
    for line in re.findall(r"^who is wrong: (.*)", text, re.MULTILINE):
        assert any(line.endswith(odd["message"]) for odd in document["odd"]), line
    blamed = re.match(
        r"(\S+(?:(?:, | and )\S+)*) (?:is|are) wrong at (?:output )?(\S+?)(?: in .*)?: ", document["headline"]
    )
    if blamed and "runners" not in blamed[1]:
        names = set(re.split(r", | and ", blamed[1]))
        assert names <= {runner for _, node, tensor, runner in differing if blamed[2] in {node, tensor}}


def _who(odd: Any) -> tuple[Any, ...]:
    return odd["level"], odd["node"], odd["tensor"], odd["runners"]


def demand_state(document: Any, found: Compared) -> None:
    differs = any(one["verdict"] in {"mismatch", "nondeterministic"} for one in document["comparisons"])
    illegal = any(one["illegal"] for one in document["guard"])
    assert found.differs is (differs or illegal)
    worst = {State.DIFFERS} if differs and not illegal else {State.DIFFERS, State.ILLEGAL}
    assert (document["state"] in worst) is found.differs
    if document["state"] == State.AGREES:
        assert not document["odd"]
        assert "agree" in document["headline"] or "give the same results" in document["headline"]
        assert re.search(rf"\b{document['cases']} cases?\b", document["headline"])


def results(path: Path, planted: str) -> Compared:
    runners, settings = PLANTED[planted]()
    return compare(path, runners, CompareSettings(**settings), with_numpy=False)


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_runners(planted: str) -> None:
    """Of some samples; all of them are for the long profile."""
    names = ("scatter_elements_update_12_sum.xml", "decoder.onnx", "loop.onnx", "branch.xml")
    for path in [path for path in MODELS if path.name in names]:
        demand_one_truth(results(path, planted))


def _in_part(samples: Iterable[Path | str], choices: Iterable[str]) -> list[Any]:
    """Every sample with every choice in the nightly profile; otherwise the samples in turn, and the choices."""
    every = list(product(enumerate(samples), enumerate(choices)))
    rows = 1 + max(row for (row, _), _ in every)
    columns = 1 + max(column for _, (column, _) in every)
    return [
        pytest.param(sample, choice, id=f"{Path(sample).name}-{choice}")
        for (row, sample), (column, choice) in every
        if NIGHTLY or (row - column) % min(rows, columns) == 0
    ]


@pytest.mark.long
@pytest.mark.parametrize(("path", "planted"), _in_part(MODELS, PLANTED))
def test_all_samples(path: Path, planted: str) -> None:
    if path == NO_INPUTS:
        with pytest.raises(NoInputs, match="no legal inputs were found"):
            results(path, planted)
    else:
        demand_one_truth(results(path, planted))


def two_formats(name: str, folder: Path) -> list[Path]:
    if name == "written":
        return [onnx(folder), write(folder, "after")]
    return [SAMPLES / f"{name}.{suffix}" for suffix in ("onnx", "xml")]


@pytest.mark.parametrize(("name", "planted"), _in_part(PAIRS, PLANTED))
def test_two_formats(name: str, planted: str, tmp_path: Path) -> None:
    runners, settings = PLANTED[planted]()
    models = [read(path) for path in two_formats(name, tmp_path)]
    demand_one_truth(compare(models, runners, CompareSettings(**settings), with_numpy=False))


@pytest.mark.parametrize("known", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_one_of_two_models_is_wrong_on_one_runner(name: str, known: int, tmp_path: Path) -> None:
    paths = two_formats(name, tmp_path)
    runners = [Wrong("a", output=0, only=paths[known].name), Wrong("b")]
    demand_one_truth(compare([read(path) for path in paths], runners, CompareSettings(), with_numpy=False))


def test_two_models_that_are_not_the_same(tmp_path: Path) -> None:
    models = [read(onnx(tmp_path)), read(write(tmp_path, "after", first=(2, 1)))]
    for runner in (Wrong("a"), Wrong("a", output=0), Wrong("a", output=0, only=".xml")):
        demand_one_truth(compare(models, [runner], CompareSettings(cases=2), with_numpy=False))


def test_many_models() -> None:
    demand_one_truth(*(results(path, "one of two") for path in MODELS[-4:]))
    demand_one_truth(*MANY.found)
    demand_one_truth(EVERYTHING)


@pytest.mark.long
@pytest.mark.openvino
@pytest.mark.onnxruntime
@pytest.mark.parametrize(("path", "values"), _in_part(MODELS, ["plain", "edge"]))
def test_real_runtimes(path: Path, values: str) -> None:
    asked = [real_runners.find(name) for name in ("CPU", "openvino:fold", "onnxruntime")]
    with ExitStack() as stack:
        for runner in asked:
            stack.callback(runner.close)
        if path == NO_INPUTS:
            with pytest.raises(NoInputs, match="no legal inputs were found"):
                compare(path, asked, CompareSettings(values=values), with_numpy=False)
        else:
            demand_one_truth(compare(path, asked, CompareSettings(values=values), with_numpy=False))
