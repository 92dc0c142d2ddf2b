"""Registers every job that a worker of a fleet can run; a worker's child processes import this module."""

from ir_scatter import doctor, lint
from ir_scatter.compare import request
from ir_scatter.convert import fixes
from ir_scatter.jobs import child, model_runs

OWNERS = (lint, fixes, request, doctor, model_runs)
"""The modules that register jobs."""

handlers = child.handlers
