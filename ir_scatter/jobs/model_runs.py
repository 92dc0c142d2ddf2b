"""Jobs that run a model on a runner of this machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from ir_scatter import runners
from ir_scatter.core.arrays import Array
from ir_scatter.jobs import register
from ir_scatter.runners.base import Outcome, Streamed

RUN, STREAM = "run", "stream"


@register(RUN)
def run(name: str, model: str, feeds: Mapping[str, Array], options: Mapping[str, Any]) -> Outcome:
    """Run a model on a runner of this machine."""
    return runners.find(name).run(model, feeds, **options)


@register(STREAM)
def stream(
    name: str, model: str, feeds: Sequence[Mapping[str, Array]], options: Mapping[str, Any]
) -> list[Streamed]:
    """Run a model on a runner of this machine once per feed; return one result per feed."""
    return runners.find(name).stream(model, feeds, **options)
