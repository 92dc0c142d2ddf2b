"""Every job that a machine of a fleet does: importing this module registers them; its children do them."""

from ir_scatter import doctor, lint
from ir_scatter.compare import request
from ir_scatter.jobs import child, model_runs

OWNERS = (lint, request, doctor, model_runs)
"""The modules that register jobs."""

handlers = child.handlers
