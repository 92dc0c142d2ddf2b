"""The reasons for which a test may be skipped; any other skip is a failure, so that none goes unnoticed.

The packages of `.[test]` are no reason: the gate has them all. `--allow-skips` accepts every skip, for an
environment that has some of them only.
"""

import re

import pytest

ALLOWED = {
    "the option --benchmark-only": r"^Skipping benchmark ",
    "the folder of real models": r"the folder of real models( is not)? beside the checkout",
    "a recorded release": r" is not recorded",
    "another onnx": r"^this onnx (is older|has no dtype for it)$",
    "another openvino": r"^the samples were made with openvino ",
    "a package beyond `.[test]`": r"^could not import 'pandas'",
    "a package index": r" cannot be installed by pip: ",
    "a browser": r"^there is no browser: |^node and npm are not installed$|^npm cannot install ",
    "a compiler": r"^none of cc, gcc and clang is on PATH",
    "no GPU": r"^there is a GPU here$",
    "an ordinary user": r"^the superuser may read every file$",
    "a program": r"^needs (the program patch|bash|fish)$",
    "Unix": r"^needs (the shells of Unix|named pipes|limits of file sizes|(os\.)?fork|/dev/full)$|^no pipes$",
    "Linux": r"^needs /dev/stdout as Linux has it$|^address space is limited on Linux only$| /proc$",
    "a pseudo-terminal": r"^needs (a pseudo terminal|pseudo-terminals)$",
}
"""What a test needs that is no part of this checkout or of `.[test]`, and the reasons of skips where it is missing."""
_allowed = re.compile("|".join(ALLOWED.values())).search


def is_allowed(reason: str) -> bool:
    """Return whether a test may be skipped for this reason."""
    return _allowed(reason) is not None


def fail_unless_allowed(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure, unless its reason is in the table; an expected failure is no skip."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    assert isinstance(report.longrepr, tuple)
    path, line, text = report.longrepr
    reason = text.removeprefix("Skipped: ")
    if not is_allowed(reason):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped, for a reason that tests/skips.py does not list: {reason}"
