"""Reads the expectations that a case file carries as comments.

In an IR they stand on the lines before the one that is to be reported:

    <!-- weights: i64 3 1 7; i64 0 -->       the .bin: values one after another
    <!-- expect: SCT203 error updates is [3, 5], expected [2, 5] -->
    <!-- expect-file: SCT930 warning legal.bin cannot be read -->

The severity and the words of the message may be left out. ONNX text has no places, so that an
expectation names the scope, "-" for the file:

    # expect: SCT105 error y: reduction is 'sum'

What is given about inputs stands at the beginning, `<!-- given: position in 0..15 -->` or `# given: ...`.

The notes beside a finding follow behind an arrow, all of them:

    <!-- expect: SCT302 error indices[1] is 7 <- indices comes from Const "half" -->
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnx import parser

from ir_scatter import Diagnostic
from tests.models.ir_text import array_of

FOLDER = Path(__file__).parent
_EXPECTED = re.compile(r"(?P<code>SCT\d{3})(?: (?P<severity>error|warning|note)\b)?(?: (?P<rest>.*))?")
_IR_COMMENT = re.compile(r"\s*<!-- (expect|expect-file|weights): (.*?) -->\s*")
_GIVEN = re.compile(r"\s*(?:<!-- given: (.*?) -->|# given: (.*?))\s*")
_ONNX_COMMENT = re.compile(r"\s*# expect: (.*?)\s*")


@dataclass(frozen=True, order=True)
class Expectation:
    """What one finding must look like; `place` is a line or a scope."""

    place: str
    code: str
    severity: str = ""
    words: str = ""
    notes: str = ""

    def is_met_by(self, found: Diagnostic) -> bool:
        notes = "; ".join(note.message for note in found.related)
        is_noted = self.notes in ("", notes)
        return self.severity in ("", found.severity) and self.words in found.message and is_noted


def case_files(suffix: str) -> list[Path]:
    return sorted(FOLDER.glob(f"SCT*{suffix}"))


def ir_expectations(text: str) -> list[Expectation]:
    """Return what the comments of an IR expect, by line."""
    found: list[Expectation] = []
    pending: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = _IR_COMMENT.fullmatch(line)
        if match is None:
            found += [_expectation(str(number), words) for words in pending]
            pending = []
        elif match[1] == "expect":
            pending.append(match[2])
        elif match[1] == "expect-file":
            found.append(_expectation("None", match[2]))
    assert not pending, "an expectation on the last line"
    return sorted(found)


def onnx_expectations(text: str) -> list[Expectation]:
    """Return what the comments of ONNX text expect, by scope."""
    found = []
    for line in text.splitlines():
        match = _ONNX_COMMENT.fullmatch(line)
        if match is None:
            continue
        before, _, words = match[1].partition(": ")
        parts = before.split()
        scope = "" if parts[-1] == "-" else parts[-1]
        found.append(_expectation(scope, " ".join([*parts[:-1], words]).strip()))
    return sorted(found)


def givens_of(text: str) -> list[str]:
    """Return what the comments of a case file give about its inputs."""
    matches = [_GIVEN.fullmatch(line) for line in text.splitlines()]
    return [match[1] or match[2] for match in matches if match is not None]


def write_weights(text: str, path: Path) -> None:
    """Write the `.bin` that the comments of an IR describe; none if they do not."""
    parts = [part for line in text.splitlines() for part in _weights(line)]
    if parts:
        path.write_bytes(b"".join(parts))


def write_case(path: Path, folder: Path) -> Path:
    """Write the model of a case file, with its weights; return its path."""
    text = path.read_text()
    if path.suffix == ".onnxtxt":
        copy = folder / f"{path.stem}.onnx"
        copy.write_bytes(parser.parse_model(text).SerializeToString())
        return copy
    copy = folder / path.name
    copy.write_text(text)
    write_weights(text, copy.with_suffix(".bin"))
    return copy


def without_comments(text: str) -> str:
    """Return the text with its comments blanked out, so that nothing changes its place."""
    return re.sub(r"<!--.*?-->", lambda match: " " * len(match[0]), text)


def _weights(line: str) -> Iterator[bytes]:
    match = _IR_COMMENT.fullmatch(line)
    if match is None or match[1] != "weights":
        return
    for part in match[2].split(";"):
        type, *numbers = part.split()
        if type == "bytes":
            yield bytes(int(number) for number in numbers)
        else:
            values = [float(number) if type.startswith("f") else int(number) for number in numbers]
            yield array_of(type, values, [len(values)]).tobytes()


def _expectation(place: str, text: str) -> Expectation:
    match = _EXPECTED.fullmatch(text)
    assert match is not None, f"no expectation: {text}"
    words, _, notes = (match["rest"] or "").partition(" <- ")
    return Expectation(place, match["code"], match["severity"] or "", words, notes)
