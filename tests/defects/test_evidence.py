"""What an answer rests on."""

from ir_scatter.defects import by_code
from ir_scatter.defects.evidence import Result, Row, Target, evidence

_DEFECT = by_code()["DEV301"]
_GPU = Target("openvino:GPU", "2026.4.1")


def _row(release: str, driver: str, result: Result) -> Row:
    return Row("openvino", release, "GPU", {"DEV301/slices": result}, "Arc", driver)


def test_a_driver_is_told_unless_it_comes_with_the_release() -> None:
    of_its_own = _row("2026.4.1", "25.22.33944", Result.REFUSED)
    assert evidence(_DEFECT, _GPU, [of_its_own], []).told == "2026.4.1 on Arc, driver 25.22.33944"
    of_the_release = _row("2026.4.1", "plugin 2026.4.1-22982", Result.REFUSED)
    assert evidence(_DEFECT, _GPU, [of_the_release], []).told == "2026.4.1 on Arc"
