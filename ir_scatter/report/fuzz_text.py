"""Findings of the fuzzer as text, and a summary of the campaign."""

from ir_scatter.core.words import counted
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.report.characters import visible, wrap_line

_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


def render(campaign: Campaign, *, color: bool = False, width: int | None = None) -> str:
    """Return the new findings of a campaign as its report has them, and a summary."""
    record = campaign.as_json()
    new = [finding for finding in campaign.reported if not finding.is_known]
    old, left_out = len(campaign.reported) - len(new), len(campaign.findings) - len(campaign.reported)
    runners = ", ".join(record["runners"])
    lines = [
        f"{counted(len(new), 'finding')} in {counted(record['cases'], 'case')} "
        f"and {record['seconds']:g} seconds on {runners}" + (f"; {old} known before" if old else ""),
        f"{record['rates']['forms']:g} cases/s one form at a time, "
        f"{record['rates']['batches']:g} in mixed batches; "
        f"{record['coverage']['pairs']} pairs of features covered; seed {record['seed']}",
    ]
    if record["not_run"]:
        lines.append(
            f"{counted(record['not_run'], 'answer')} not judged: known to fail, or not supported there"
        )
    if left_out:
        lines.append(f"{counted(left_out, 'finding')} more explained by known defects, which are left out")
    if record["unexplained"] or campaign.is_interrupted:
        why = "interrupted" if campaign.is_interrupted else "time limit reached"
        lines.append(f"{counted(record['unexplained'], 'failure')} more not examined: {why}")
    findings = [_finding(finding, color) for finding in new]
    return "".join([*findings, *(f"{wrap_line(visible(line), width)}\n" for line in lines)])


def title(finding: FuzzFinding) -> str:
    return f"{finding.operator}: {finding.symptom} on {finding.runner}"


def _finding(finding: FuzzFinding, color: bool) -> str:
    """Return a finding: operator, symptom and runner, the condition, the smallest case, its folder."""
    record, head = finding.as_json(), title(finding)
    minimal = record["minimal"]
    shapes = ", ".join(f"{name} {shape}" for name, shape in minimal.get("shapes", {}).items())
    attributes = ", ".join(f"{name}={value}" for name, value in minimal.get("attributes", {}).items())
    types, iterations = minimal.get("element_types", {}), minimal.get("iterations", 0)
    loop = f"in a loop of {counted(iterations, 'iteration')}" if iterations else ""
    shapes = shapes.replace("indices ", f"{types.get('indices')} indices ")
    lines = [
        finding.when,
        f"for {types.get('data', '')} " + "; ".join(filter(None, (shapes, attributes, loop))),
        record["message"],
        f"known as {' and '.join(record['defects'])}" if record["defects"] else "like no known defect",
        f"only {finding.outlier} differs: the other results are right" if finding.outlier else "",
        finding.path or finding.signature,
    ]
    first = f"{_BOLD}{_RED}{visible(head)}{_PLAIN}" if color else visible(head)
    return f"{first}\n" + "".join(f"    {visible(line)}\n" for line in lines if line)
