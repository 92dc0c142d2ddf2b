"""The child processes of a worker: messages of a job name the options of the command that submits it."""

from importlib.util import find_spec

from ir_scatter import all_jobs
from ir_scatter.jobs import TABLE, child
from ir_scatter_cli.spelling import OptionSpelling

child.SPELLINGS.update(
    {name: OptionSpelling(name).spell for name in TABLE if find_spec(f"ir_scatter_cli.{name}") is not None}
)

handlers = all_jobs.handlers
