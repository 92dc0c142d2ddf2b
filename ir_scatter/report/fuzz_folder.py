"""The report of the fuzzer beside its findings: `fuzz.json`, and a page over all of them."""

from pathlib import Path

from ir_scatter.core.errors import explained
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.fuzz.findings import write_whole
from ir_scatter.fuzz.job import PAGE, REPORT
from ir_scatter.report.registry import render


def write_report(campaign: Campaign, folder: Path | None) -> None:
    """Write what was found so far, if there is a folder for it; each file appears whole or not at all.

    Raises:
        CannotWrite: one cannot be written.
    """
    if folder is None:
        return
    for name, format in ((REPORT, "json"), (PAGE, "html")):
        path = folder / name
        with explained(path):
            write_whole(path, render("fuzz", format, campaign))
