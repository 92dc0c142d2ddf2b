"""Writes the report files of the fuzzer's output folder: `fuzz.json`, and an HTML page of all findings."""

from pathlib import Path

from ir_scatter.core.errors import explained
from ir_scatter.fuzz.campaign import Campaign
from ir_scatter.fuzz.findings import write_whole
from ir_scatter.fuzz.job import PAGE, REPORT
from ir_scatter.report.registry import render


def write_report(campaign: Campaign, folder: Path | None) -> None:
    """Write the findings so far into a folder; do nothing without a folder. Each file is replaced atomically.

    Raises:
        CannotWrite: a file cannot be written.
    """
    if folder is None:
        return
    for name, format in ((REPORT, "json"), (PAGE, "html")):
        path = folder / name
        with explained(path):
            write_whole(path, render("fuzz", format, campaign))
