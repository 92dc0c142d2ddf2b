"""Findings of the fuzzer as text, and a summary of the campaign."""

from ir_scatter.core.words import counted
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.report.characters import visible, wrap_line

_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


def render(campaign: Campaign, *, width: int | None = None) -> str:
    """Return the summary of a campaign; `one_finding` prints the findings."""
    record = campaign.as_json()
    new = [finding for finding in campaign.findings if not finding.is_known]
    old = len(campaign.findings) - len(new)
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
    if record["unexplained"]:
        lines.append(f"{counted(record['unexplained'], 'failure')} more not examined: time limit reached")
    return "".join(f"{wrap_line(visible(line), width)}\n" for line in lines)


def one_finding(finding: FuzzFinding, *, color: bool = False) -> str:
    """Return the text of a finding: operator, symptom, runner, condition, smallest case, folder."""
    record = finding.as_json()
    head = f"{finding.operator}: {finding.symptom} on {finding.runner}"
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
    title = f"{_BOLD}{_RED}{visible(head)}{_PLAIN}" if color else visible(head)
    return f"{title}\n" + "".join(f"    {visible(line)}\n" for line in lines if line)
