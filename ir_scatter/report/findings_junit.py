"""Findings as JUnit XML for CI servers (Jenkins, GitLab): a suite per file, a test case per finding."""

from collections import Counter
from xml.etree import ElementTree

from ir_scatter.core.diagnostics import Diagnostic, Severity
from ir_scatter.lint import FileResult, Report
from ir_scatter.report import phrases
from ir_scatter.report.characters import visible

_UNREADABLE = "the file could not be read"


def render(report: Report, *, strict: bool = False) -> str:
    """Return JUnit XML; without durations, so that the same input gives the same output.

    Findings of severity error are failures, or errors if the file cannot be read. Warnings and notes pass
    (with `strict`, warnings fail); their text is in `system-out`. A file without findings is one passing
    case.
    """
    failing = {Severity.ERROR, Severity.WARNING} if strict else {Severity.ERROR}
    root = ElementTree.Element("testsuites", name="ir-scatter")
    for file in report.files:
        suite = ElementTree.SubElement(root, "testsuite", name=visible(file.path))
        names: Counter[str] = Counter()
        for diagnostic in file.diagnostics:
            name = _name(diagnostic)
            names[name] += 1
            numbered = f"{name} ({names[name]})" if names[name] > 1 else name
            case = _case(suite, file, numbered)
            if diagnostic.location.line is not None:
                case.set("line", str(diagnostic.location.line))
            if diagnostic.severity not in failing:
                ElementTree.SubElement(case, "system-out").text = _body(diagnostic)
                continue
            is_error = diagnostic.severity is Severity.ERROR and not file.is_readable
            outcome = ElementTree.SubElement(case, "error" if is_error else "failure")
            outcome.set("message", visible(diagnostic.message))
            outcome.set("type", visible(diagnostic.code))
            outcome.text = _body(diagnostic)
        has_error = any(diagnostic.severity is Severity.ERROR for diagnostic in file.diagnostics)
        if not file.is_readable and not has_error:
            case = _case(suite, file, "readable")
            ElementTree.SubElement(case, "error", message=_UNREADABLE, type="unreadable")
        elif not file.diagnostics:
            _case(suite, file, "no findings")
        _count(suite)
    _count(root)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _case(suite: ElementTree.Element, file: FileResult, name: str) -> ElementTree.Element:
    path = visible(file.path)
    return ElementTree.SubElement(
        suite, "testcase", {"classname": path, "name": name, "file": path, "time": "0"}
    )


def _name(diagnostic: Diagnostic) -> str:
    """Return the name of a test case: it stays the same when lines are added to the file."""
    name = visible(f"{diagnostic.code} {diagnostic.rule}")
    parts = [visible(part) for part in (diagnostic.location.scope, diagnostic.port) if part]
    return f"{name}: {', '.join(parts)}" if parts else name


def _body(diagnostic: Diagnostic) -> str:
    lines = [f"{phrases.place(diagnostic.location)}: {phrases.one_line(diagnostic)}"]
    subject = phrases.subject(diagnostic)
    if subject:
        lines.append(f"in {subject}")
    lines += [f"note: {phrases.note(related, diagnostic)}" for related in diagnostic.related]
    help = phrases.whole_help(diagnostic)
    if help:
        lines.append(f"help: {help}")
    return "\n".join(lines)


def _count(element: ElementTree.Element) -> None:
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(attribute, str(len(element.findall(f".//{tag}"))))
    element.set("time", "0")
