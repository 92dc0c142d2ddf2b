"""What the fuzzer found, in a few lines each, and what it looked at."""

from ir_scatter.core.words import counted
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.fuzz.explain import FuzzFinding
from ir_scatter.report.characters import visible, wrapped

_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


def render(found: Campaign, *, width: int | None = None) -> str:
    """Say what was looked at; `one_finding` says what was found."""
    told = found.as_json()
    new = [one for one in found.findings if not one.is_known]
    known = len(found.findings) - len(new)
    runners = ", ".join(told["runners"])
    lines = [
        f"{counted(len(new), 'finding')} in {counted(told['cases'], 'case')} and {told['seconds']:g} seconds"
        f" on {runners}" + (f"; {known} known before" if known else ""),
        f"{told['rates']['forms']:g} cases/s of forms, {told['rates']['batches']:g} of batches; "
        f"{told['coverage']['pairs']} pairs of features were drawn; seed {told['seed']}",
    ]
    if told["not_run"]:
        lines.append(f"{counted(told['not_run'], 'answer')} not judged: known to fail, or not computed there")
    if told["unexplained"]:
        lines.append(f"no time was left to look at {counted(told['unexplained'], 'failure')} more")
    return "".join(f"{wrapped(visible(line), width)}\n" for line in lines)


def one_finding(one: FuzzFinding, *, color: bool = False) -> str:
    """Say one finding: what is wrong where, when, the simplest case, and its name."""
    told = one.as_json()
    head = f"{one.operator}: {one.symptom} on {one.runner}"
    minimal = told["minimal"]
    shapes = ", ".join(f"{name} {shape}" for name, shape in minimal.get("shapes", {}).items())
    attributes = ", ".join(f"{name}={value}" for name, value in minimal.get("attributes", {}).items())
    types, iterations = minimal.get("element_types", {}), minimal.get("iterations", 0)
    loop = f"in a loop of {counted(iterations, 'iteration')}" if iterations else ""
    shapes = shapes.replace("indices ", f"{types.get('indices')} indices ")
    lines = [
        one.when,
        f"for {types.get('data', '')} " + "; ".join(filter(None, (shapes, attributes, loop))),
        told["message"],
        f"known as {' and '.join(told['defects'])}" if told["defects"] else "like no known defect",
        f"{one.outlier} stands alone: what others give is right" if one.outlier else "",
        one.path or one.signature,
    ]
    shown = f"{_BOLD}{_RED}{visible(head)}{_PLAIN}" if color else visible(head)
    return f"{shown}\n" + "".join(f"    {visible(line)}\n" for line in lines if line)
