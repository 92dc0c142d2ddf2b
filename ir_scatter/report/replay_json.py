"""Outcomes of replayed findings as JSON."""

from collections.abc import Sequence

from ir_scatter.fuzz.replay import Replayed
from ir_scatter.report.characters import as_document, dumps


def render(replays: Sequence[Replayed]) -> str:
    return dumps(as_document(findings=[replay._asdict() for replay in replays]))
