"""What doctor found, as text and as a page: what changed since recorded comes first."""

import re
from dataclasses import replace

from ir_scatter.defects import by_code
from ir_scatter.defects.base import Result
from ir_scatter.defects.evidence import Basis, Evidence, Row
from ir_scatter.doctor import DefectCheck, Diagnosis
from ir_scatter.report import doctor_html, doctor_text
from ir_scatter.runners.base import Availability

PLACE = "2026.4.1 on another machine"


def checked(
    code: str, result: Result | None, before: Result | None, missed: tuple[str, ...] = ()
) -> DefectCheck:
    basis = Basis.UNTESTED if before is None else Basis.RECORDED
    evidence = Evidence(basis, before, "" if before is None else PLACE)
    return DefectCheck(by_code()[code], result, evidence, missed)


CPU = Availability(
    "openvino:CPU", True, full_name="A <processor>", driver="plugin 2026", capabilities=("FP32", "BF16")
)
FOUND = Diagnosis(
    CPU,
    "2026.4.1",
    (
        checked("DEV104", Result.WRONG, Result.WRONG),
        checked("DEV101", Result.REFUSED, Result.REFUSED),
        checked("DEV102", Result.RIGHT, Result.REFUSED),
        checked("DEV103", Result.CRASHED, Result.RIGHT),
        checked("DEV105", Result.CRASHED, Result.WRONG),
        checked("DEV107", Result.WRONG, None),
        checked("DEV120", None, None),
        checked("DEV121", Result.WRONG, Result.WRONG, ("a near miss",)),
    ),
    Row("openvino", "2026.4.1", "CPU", {}),
)
MISSING = Diagnosis(Availability("openvino:NPU", False, reason="there is <none>"), "2026.4.1")
EVERY = (FOUND, replace(FOUND, defects=FOUND.defects[:2]), MISSING)


def test_what_is_not_as_recorded_comes_first() -> None:
    lines = doctor_text.render([FOUND], verbose=True).splitlines()
    assert lines[:4] == [
        "openvino:CPU: A <processor>, 2026.4.1, plugin 2026",
        "  FP32 BF16",
        "  6 of 8 known defects present; 4 changed since recorded, 2 untested before",
        "  changed since recorded",
    ]
    said = [line.split(": ", 1)[1] for line in lines[4:8]]
    assert said == [
        "gone, recorded: refused",
        "new: crashed, recorded: right",
        "present: crashed, recorded: wrong",
        "present, also affects: a near miss",
    ]
    assert "    DEV107 mean-of-large-integers: present, untested before" in lines
    assert "    DEV120 computed-in-i32: no answer, untested before" in lines


def test_a_device_that_does_not_run_says_so_and_nothing_else() -> None:
    assert doctor_text.render([MISSING]) == "openvino:NPU: 2026.4.1\n  not available: there is <none>\n"


def test_a_driver_that_tells_how_it_was_compiled_is_cut() -> None:
    long = replace(FOUND, device=replace(CPU, driver="x" * 500))
    assert len(doctor_text.render([long]).splitlines()[0]) < 200


def test_the_page_says_what_the_text_says() -> None:
    page = doctor_html.render(EVERY)
    assert page.count("<article") == 3
    assert "A &lt;processor&gt;" in page
    assert "there is &lt;none&gt;" in page
    assert "<script" not in page
    words = re.sub(r"<[^>]+>", " ", page)
    titles = ["changed since recorded", "wrong values", "refusals"]
    assert sorted(titles, key=words.index) == titles
    for said in ("gone, recorded: refused", "new: crashed", "untested before", "FP32 BF16", PLACE):
        assert said in words
    banner = "4 results changed since recorded, and not every device is available"
    assert f'<p class="banner differs">{banner}</p>' in page


def test_the_banner_says_that_nothing_was_recorded() -> None:
    unknown = replace(FOUND, defects=(checked("DEV104", Result.WRONG, None),))
    assert 'banner nothing">no earlier results to compare with' in doctor_html.render([unknown])
    known = replace(FOUND, defects=FOUND.defects[:2])
    assert 'banner agrees">all as recorded' in doctor_html.render([known])


def test_two_devices_say_what_is_different() -> None:
    """The first is compared with each other one, by release if they are of one kind."""
    older = replace(
        FOUND,
        release="2025.4.0",
        device=replace(CPU, runner="openvino@2025.4.0:CPU"),
        defects=(checked("DEV104", Result.WRONG, Result.WRONG), checked("DEV102", Result.REFUSED, None)),
    )
    line = "new in 2026.4.1: DEV101, DEV103, DEV105, DEV107, DEV121; gone: DEV102; same: 1 (as in 2025.4.0)"
    assert doctor_text.render([older, FOUND]).splitlines()[-1] == line
    assert line in doctor_html.render([older, FOUND])
    other = replace(FOUND, device=replace(CPU, runner="onnxruntime"), defects=FOUND.defects[:1])
    assert doctor_text.render([FOUND, other, MISSING]).splitlines()[-1] == (
        "new in onnxruntime: none; gone: DEV101, DEV103, DEV105, DEV107, DEV121; same: 1 (as in openvino:CPU)"
    )
    assert "new in" not in doctor_text.render([FOUND, MISSING])
