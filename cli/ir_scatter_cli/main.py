"""The group of commands, loaded one at a time."""

import atexit
import gc
import os
import sys
from importlib import import_module

import click

from ir_scatter_cli import exits

_COMMANDS = {
    "validate": "Hold the scatter operators of models against their documents.",
    "inspect": "List the scatter nodes of models.",
    "explain": "Explain a rule or an operator.",
    "run": "Compute a model with NumPy.",
    "convert": "Rewrite scatter operators into equal forms.",
    "routes": "List the rewrites that convert knows.",
    "compare": "Run a model on several runtimes and compare.",
    "devices": "List what can run here.",
}
_ALLOCATIONS = 200_000
_REPORT = (
    "ir-scatter: this is a bug in ir-scatter, not in your input: {reason}\n"
    "Please report it, with the command and the file if you may. "
    "IR_SCATTER_DEBUG=1 shows where it happened."
)


class _LazyGroup(click.Group):
    """Imports a sub-command when it is called, so that help and explain stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"ir_scatter_cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


def _show_versions(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from ir_scatter.version import versions

    for package, version in versions().items():
        click.echo(f"{package} {version}")
    ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_versions,
    help="Show the versions of ir-scatter and of the packages it reads models with.",
)
def group() -> None:
    """Find, validate and explain the scatter operators of OpenVINO IR and ONNX models.

    Exit codes: 0 clean; 1 findings; 2 wrong usage; 3 some input could not be read; 4 a runtime
    failed or is missing; 70 a bug in ir-scatter.
    """


def _leave_stdout() -> None:
    """Let what is still to be written to standard output go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; no input ends in a traceback."""
    gc.set_threshold(_ALLOCATIONS)  # most of what a command makes lives until it ends,
    atexit.register(gc.freeze)  # and goes with the process rather than piece by piece
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        code = group.main(standalone_mode=False, prog_name="ir-scatter")
        sys.stdout.flush()
    except click.exceptions.Abort:
        sys.exit(exits.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (BrokenPipeError, exits.ReaderGone):
        _leave_stdout()
        sys.exit(exits.OK)
    except OSError as error:
        _leave_stdout()
        click.echo(f"ir-scatter: {(error.strerror or str(error)).lower()}", err=True)
        sys.exit(exits.UNREADABLE)
    except Exception as error:
        if os.environ.get("IR_SCATTER_DEBUG"):
            raise
        click.echo(_REPORT.format(reason=f"{type(error).__name__}: {error}"), err=True)
        sys.exit(exits.BUG)
    sys.exit(code if isinstance(code, int) else exits.OK)
