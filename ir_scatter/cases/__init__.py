"""Makes legal inputs: for a whole model, and for one operator."""

from ir_scatter.cases.case import Case
from ir_scatter.cases.feeds import Drawn, draw_feeds, make_feeds
from ir_scatter.cases.operators import BROKEN, random_case

__all__ = ["BROKEN", "Case", "Drawn", "draw_feeds", "make_feeds", "random_case"]
