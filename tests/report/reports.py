"""Reports made by hand."""

from collections.abc import Mapping

from ir_scatter.core.diagnostics import Diagnostic, Excerpt, Location, NodeRef, Related, Severity, Span
from ir_scatter.lint import FileResult, Place, Report

SHAPE = Diagnostic(
    code="SCT203",
    rule="updates-shape-mismatch",
    severity=Severity.ERROR,
    message="updates is [3, 5], expected [2, 5] = data[:axis] + indices + data[axis+1:]",
    location=Location("decoder.xml", 412, 3, "If_23:then_body/cache/scatter"),
    node=NodeRef("cache/scatter", "ScatterUpdate", 3),
    port="updates",
    port_index=2,
    related=(
        Related(
            'updates comes from Const "new_rows"',
            Location("decoder.xml", 397, 3, "new_rows"),
            Span(398, 28, 398, 40),
        ),
    ),
    span=Span(416, 5, 416, 17),
    label="expected 2",
    help="slice updates to [2, 5]",
)
AXIS = Diagnostic(
    code="SCT301",
    rule="axis-out-of-range",
    severity=Severity.ERROR,
    message="axis is 7, expected -2 to 1",
    location=Location("decoder.xml", 420, 3, "plain"),
    node=NodeRef("plain", "ScatterUpdate", 3),
    port="axis",
    port_index=3,
    span=Span(420, 18, 420, 30),
    help="write an axis from -2 to 1",
)
REPEATED = Diagnostic(
    code="SCT304",
    rule="repeated-targets",
    severity=Severity.WARNING,
    message="2 updates write data[1]",
    location=Location("decoder.xml", 420, 3, "plain"),
    node=NodeRef("plain", "ScatterUpdate", 3),
)
PLAIN = Excerpt('\t\t<layer id="43" name="plain" type="ScatterUpdate" version="opset3">')
EXCERPTS = {
    (398, 28): Excerpt('\t\t\t<data element_type="f32" shape="3, 5" offset="64" size="60"/>'),
    (416, 5): Excerpt("\t\t\t\t<dim>3</dim>"),
    (420, 18): PLAIN,
    (420, 3): PLAIN,
}
ONNX = Diagnostic(
    code="SCT401",
    rule="deprecated-operator",
    severity=Severity.NOTE,
    message="Scatter is deprecated, expected ScatterElements",
    location=Location("model.onnx", scope="old"),
    node=NodeRef("old", "Scatter", None),
    related=(
        Related("called here", Location("model.onnx", scope="main/call")),
        Related("stored there", Location("weights.bin")),
    ),
    fixed_by=(),
    help="replace it by ScatterElements",
)
BROKEN = Diagnostic(
    code="SCT903",
    rule="malformed-xml",
    severity=Severity.ERROR,
    message="the file ends inside <layer>",
    location=Location("broken.xml", 5),
)
REPORT = Report(
    (
        FileResult("clean.xml", "openvino-ir", True, 1, ()),
        FileResult("decoder.xml", "openvino-ir", True, 60, (SHAPE, AXIS, REPEATED), EXCERPTS),
        FileResult("model.onnx", "onnx", True, 10, (ONNX,)),
        FileResult("broken.xml", None, False, 0, (BROKEN,), {(5, 1): Excerpt("  <layer   ")}),
        FileResult("gone.xml", None, False, 0, ()),
    )
)

NAME = "e\x1b[31m\n::error::x%0A\"',:<&>]](1){0}\u202e\x9b\udcff"
HOSTILE = Diagnostic(
    code="SCT203",
    rule="updates-shape-mismatch",
    severity=Severity.WARNING,
    message=f"name is {NAME}\r\nexpected \x00",
    location=Location("a,b:c%\x07 é\udcff.xml", 1, 8, NAME),
    node=NodeRef(NAME, f"Scatter\x1b{NAME}", 3),
    port=NAME,
    port_index=0,
    related=(
        Related(NAME, Location(NAME, 2, 1, NAME)),
        Related(NAME, Location("a,b:c%\x07 é\udcff.xml", 1, 8, NAME), Span(1, 11, 1, 12)),
        Related(NAME, Location("x", scope=NAME)),
    ),
    span=Span(1, 8, 1, 10),
    label=NAME,
    help=NAME,
)
HOSTILE_LINE = Excerpt("\t\x1b]0;x\x07<\x9b32m")
HOSTILE_REPORT = Report(
    (
        FileResult(
            HOSTILE.location.path, None, False, 1, (HOSTILE,), {(1, 8): HOSTILE_LINE, (1, 11): HOSTILE_LINE}
        ),
    )
)
EMPTY = Report(())


def report_of(*found: Diagnostic, excerpts: Mapping[Place, Excerpt] | None = None) -> Report:
    """Return a report of one file with these findings."""
    path = found[0].location.path if found else "model.xml"
    return Report((FileResult(path, "openvino-ir", True, 3, found, excerpts or {}),))
