"""The child processes of a worker: messages of a job name the options of the command that submits it."""

from importlib.util import find_spec

from ir_scatter import all_jobs
from ir_scatter.jobs import TABLE, child
from ir_scatter_cli.spelling import OptionSpelling

_COMMANDS = {name: name.partition("-")[0] for name in TABLE}  # "validate-for" is a job of validate
child.SPELLINGS.update(
    {
        name: OptionSpelling(command).spell
        for name, command in _COMMANDS.items()
        if find_spec(f"ir_scatter_cli.{command}") is not None
    }
)

handlers = all_jobs.handlers
