"""Cases follow from decisions: the same ones give the same case, simpler ones a legal case all the same."""

import numpy as np
import pytest

from ir_scatter import evaluate
from ir_scatter.cases.case import Case, Limits, repeats
from ir_scatter.cases.draw import Draws, draw_case, draw_form
from ir_scatter.cases.judge import contradicted, judge, reference
from ir_scatter.core.arrays import are_equal
from ir_scatter.fuzz.features import described, features
from ir_scatter.fuzz.rounds import Coverage, Drawer, again, variations
from ir_scatter.fuzz.shrink import shrink, size
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Layout, OpSpec, Role
from ir_scatter.runners.base import Status, Streamed
from tests.scale import thinned

ROWS = {str(key): spec for key, spec in SPECS.items()}


def plain(case: Case) -> str:
    return repr((case.arguments(), case.constants, case.shapes, case.element_type.name))


@pytest.fixture
def drawer() -> Drawer:
    return Drawer(7, "any", Coverage())


@pytest.mark.parametrize("name", ROWS)
def test_the_same_decisions_give_the_same_case(name: str, drawer: Drawer) -> None:
    for case in [*drawer.batch(ROWS[name], 0, 20), *drawer.forms(ROWS[name], 1)[:20]]:
        found = again(case, case.decisions)
        assert found is not None
        assert plain(found) == plain(case)


@pytest.mark.parametrize("name", ROWS)
def test_other_decisions_give_legal_cases(name: str, drawer: Drawer) -> None:
    spec = ROWS[name]
    first = drawer.batch(spec, 0, 3)
    cases = [one for case in first for one in variations(case, 20)]
    cases.append(draw_case(Draws(), draw_form(Draws(), spec)))
    for case in cases:
        with np.errstate(all="ignore"):
            found = evaluate(case.operator, **case.arguments())
        assert are_equal(found, reference(case).values)


@pytest.mark.parametrize("name", thinned(ROWS, 4))
def test_one_seed_draws_the_same_cases(name: str, drawer: Drawer) -> None:
    other = Drawer(7, "any", Coverage())
    for number in range(1):
        first, second = drawer.forms(ROWS[name], number), other.forms(ROWS[name], number)
        assert list(map(plain, first)) == list(map(plain, second))
    assert drawer.coverage.as_json() == other.coverage.as_json()


def test_pairs_that_were_not_seen_come_first(drawer: Drawer) -> None:
    """After so many forms a plain draw has seen fewer pairs."""
    spec, chance = ROWS["ScatterElementsUpdate-12"], Coverage()
    for number in range(60):
        drawer.batch(spec, number, 1)
        draws = Draws(number)
        from ir_scatter.fuzz.rounds import form_features

        chance.count(str(spec.key), form_features(draw_form(draws, spec)), 1)
    assert len(drawer.coverage.pairs) > 1.1 * len(chance.pairs)


@pytest.mark.parametrize("name", ["ScatterUpdate-3", "ScatterNDUpdate-15", "ScatterElements-18"])
def test_shrinking_ends_with_a_small_case_that_shows_the_same(name: str, drawer: Drawer) -> None:
    def shows(cases: "list[Case] | tuple[Case, ...]") -> list[bool]:
        return [case.data.ndim >= 2 and case.updates.size >= 1 for case in cases]

    case = next(one for one in drawer.batch(ROWS[name], 0, 200) if shows([one])[0] and one.data.size > 30)
    found = shrink(case, shows, lambda: False)  # type: ignore[arg-type]
    assert shows([found])[0]
    assert size(found) < size(case)
    assert found.data.size <= 2
    assert found.element_type.name == "f32"
    assert found.shapes == "static"


def _answer(case: Case, spec: OpSpec) -> Streamed:
    return Streamed(Status.OK, [reference(case).values])


def test_what_the_document_says_is_judged_right_and_what_it_does_not_wrong(drawer: Drawer) -> None:
    wrong = 0
    for name, spec in ROWS.items():
        for case in drawer.batch(spec, 3, 20):
            answer = _answer(case, spec)
            assert judge(case, answer).symptom is None
            values = np.array(answer.outputs[0], copy=True)
            if values.size and values.dtype.kind in "iu":
                values.reshape(-1)[0] ^= 1
                found = judge(case, Streamed(Status.OK, [values]))
                # An element that two updates hit may have either value.
                is_open = reference(case).contested.reshape(-1)[0]
                assert is_open or str(found.symptom) == "wrong-value", name
                wrong += found.symptom is not None
    assert wrong > 20


def test_features_are_words_of_a_sentence(drawer: Drawer) -> None:
    for spec in ROWS.values():
        for case in drawer.batch(spec, 5, 5):
            assert all(isinstance(value, str | int | bool) for value in features(case).values())


def test_what_runtimes_get_wrong_seldom_is_drawn(drawer: Drawer) -> None:
    """Empty indices for data that is not, constant too; and large data on which many updates meet."""
    spec = ROWS["ScatterElementsUpdate-12"]
    empty = [
        case
        for number in range(3)
        for case in drawer.batch(spec, number, 100)
        if case.indices is not None and not case.indices.size and case.data.size
    ]
    assert {Role.INDICES in case.constants for case in empty} == {False, True}
    large = []
    for seed in range(40):
        draws = Draws(seed)
        large.append(draw_case(draws, draw_form(draws, ROWS["ScatterND-18"], Limits(elements=1 << 15))))
    large = [case for case in large if case.updates.size > 10_000]
    assert len(large) >= 5
    assert all(map(repeats, large))


def test_ranks_go_up_to_eight_and_large_cases_name_many_targets(drawer: Drawer) -> None:
    """A device may refuse more than six dimensions; where one place is written, threads do not race."""
    for name in ("ScatterUpdate-3", "ScatterND-18"):
        spec = ROWS[name]
        assert {case.data.ndim for case in drawer.batch(spec, 0, 200)} == {*range(1, 9)}
        rounds = [drawer.forms(spec, number) for number in range(60)]
        large = [case for cases in rounds for case in cases if case.within.elements]
        assert large
        least = 2 if spec.layout is Layout.TUPLES else 1
        assert min(case.indices.ndim for case in large if case.indices is not None) == least
        # Memory is flat only where what failed, and is kept, is small: so many elements are 4 MB at most.
        assert 1 << 17 <= max(case.updates.size for case in large) <= 1 << 18


def test_forbidden_indices_are_near_and_far_and_negative(drawer: Drawer) -> None:
    drawn = [case for number in range(12) for case in drawer.illegal(ROWS["ScatterElementsUpdate-3"], number)]
    indices = {
        word: [int(abs(case.indices.astype(np.int64)).max()) for case in drawn if case.indices is not None
               and case.broken == word]
        for word in ("index-out-of-range", "negative-index")
    }  # fmt: skip
    assert min(indices["index-out-of-range"]) < 10
    assert max(indices["index-out-of-range"]) > 100_000
    assert indices["negative-index"]
    assert {case.shapes for case in drawn} == {"static", "dynamic"}


def test_a_batch_has_what_else_shows_in_other_code(drawer: Drawer) -> None:
    """Loops, and open shapes beside constants; what ONNX has no word for here stands in no loop."""
    cases = drawer.batch(ROWS["ScatterNDUpdate-15"], 0, 200)
    assert any(case.iterations > 1 for case in cases)
    assert all(case.shapes == "static" for case in cases if case.iterations)
    assert any(case.shapes != "static" and case.constants for case in cases)
    assert not any(case.iterations for case in drawer.batch(ROWS["ScatterND-18"], 0, 200))


@pytest.mark.parametrize("name", ["ScatterUpdate-3", "ScatterElements-18", "ScatterND-18"])
def test_an_index_out_of_range_says_on_which_side_and_how_far(name: str, drawer: Drawer) -> None:
    sides = set()
    for number in range(60):
        case = drawer.broken(ROWS[name], f"{number}", "index-out-of-range")
        if case is None:
            continue
        found = described(case)
        assert case.indices is not None
        rows = case.indices.reshape(-1, len(case.limits)).astype(int).tolist()
        beyond = [
            max(-size - index if index < 0 else index - size + 1, 0)
            for row in rows
            for index, size in zip(row, case.limits, strict=True)
            if size is not None
        ]
        assert found["an index is beyond by"] == max(beyond)
        sides.add(found["an index is below its range"])
    assert sides == {False, True}


def test_text_where_none_is_legal_flows_in(drawer: Drawer) -> None:
    """An IR with constants of text is not written here."""
    cases = [drawer.broken(ROWS["ScatterUpdate-3"], f"{number}", "element-type") for number in range(200)]
    texts = [case for case in cases if case is not None and case.element_type.kind == "string"]
    assert texts
    assert not any(case.constants & {Role.DATA, Role.UPDATES} for case in texts)


def test_twins_of_one_wrong_shape_are_wrong_and_no_mistake_of_ours(drawer: Drawer) -> None:
    cases = [case for case in drawer.batch(ROWS["ScatterElementsUpdate-12"], 0, 40) if case.twin]
    assert cases
    for case in cases:
        got = np.zeros(97, case.data.dtype if case.data.dtype != object else np.float32)
        judged = judge(case, Streamed(Status.OK, [got]))
        assert contradicted(case, judged, got) == judged
        assert judged.message.startswith("the output ")


def test_tuples_of_static_shapes_have_indices_of_many_ranks() -> None:
    """Plugins hold tensors of 4, 5 and 6 dimensions apart."""
    limits = Limits(ranks=8, shapes=("static",))
    forms = [draw_form(Draws(seed), ROWS["ScatterNDUpdate-15"], limits) for seed in range(600)]
    assert {form.index_rank for form in forms} == {*range(1, 9)}
    assert {form.rank for form in forms} == {*range(1, 9)}
