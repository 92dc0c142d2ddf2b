"""The command group: loads each sub-command on first use, and maps errors to exit codes."""

import atexit
import errno
import gc
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from ir_scatter_cli import exits

_SECTIONS = {
    "What is in a model, and what is wrong": {
        "validate": "Check scatter operators of models against their specifications.",
        "inspect": "List the scatter nodes of models.",
        "contract": "Say what inputs must satisfy so that every index is in range.",
        "explain": "Explain a rule or an operator, or print a page.",
        "rules": "List all rules with their codes and names.",
    },
    "What it computes, and which runtime is wrong": {
        "run": "Compute a model with NumPy.",
        "compare": "Run a model on several runtimes and compare the results.",
        "fuzz": "Search for runtime bugs, and shrink each one.",
        "devices": "List the devices and runtimes that work here.",
        "doctor": "Test devices for known defects.",
    },
    "A model that a runtime accepts": {
        "convert": "Rewrite scatter operators into equivalent ones.",
        "routes": "List the rewrites that convert supports.",
    },
    "Many machines": {
        "scheduler": "Run the scheduler of a fleet.",
        "worker": "Run the jobs of a fleet on this machine.",
    },
}
_COMMANDS = [name for section in _SECTIONS.values() for name in section]
_COMPLETION = "_IR_SCATTER_COMPLETE"
_EXAMPLES = (
    "ir-scatter validate model.xml",
    "ir-scatter explain SCT203",
    "ir-scatter compare model.onnx --on CPU --on onnxruntime",
    "ir-scatter convert model.onnx --to ScatterND -o new.onnx",
)
_GC_THRESHOLD = 200_000
"""Allocations between garbage collections: most objects live until the command ends."""
_STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_REPORT = (
    "ir-scatter: this is a bug in ir-scatter, not in your input: {reason}\n"
    "Please report it, with the command and the file if you may. "
    "IR_SCATTER_DEBUG=1 shows where it happened."
)


class _LazyGroup(click.Group):
    """A group that imports a sub-command when it is called, so that help and explain start quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"ir_scatter_cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept other common spellings, too: `help COMMAND`, `version` and -V."""
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        elif args in (["version"], ["-V"]):
            args = ["--version"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the sub-command; for an unknown name suggest a similar one, or `validate` if it is a file."""
        name = args[0]
        if name not in _COMMANDS and not ctx.resilient_parsing and not name.startswith("-"):
            from ir_scatter.core.suggestions import did_you_mean

            words = [*_COMMANDS, "--help", "--version"]
            is_file = os.path.exists(name) or name.lower().endswith((".xml", ".onnx"))
            meant = f"ir-scatter validate {name}" if is_file else _MEANT_COMMANDS.get(name.lower(), "")
            guess = f" (did you mean {meant}?)" if meant else did_you_mean(name, words)
            raise exits.WrongUsage(f"there is no command {name!r}{guess}, expected {', '.join(_COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in commands.items()])
        with formatter.section("Examples"):
            for line in _EXAMPLES:
                formatter.write(f"  {line}\n")


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
    """The command group; its help text is set below, as it needs backspace escapes."""


group.help = """Find, validate, convert and compare the scatter operators of OpenVINO IR and ONNX models.

Every COMMAND has examples in its --help.

\b
Exit codes: 0 clean; 1 findings; 2 wrong usage; 3 some input cannot be read;
4 a runtime failed or is missing; 70 a bug in ir-scatter; 130 interrupted;
143 terminated.

\b
Completion in bash (in zsh: zsh_source):
eval "$(_IR_SCATTER_COMPLETE=bash_source ir-scatter)"
In fish: _IR_SCATTER_COMPLETE=fish_source ir-scatter | source
"""


_MEANT = {
    **dict.fromkeys(("-d", "--device", "--devices", "--target", "--runtime"), ("--for", "--on")),
    **dict.fromkeys(("--out", "--output-file", "--out-file"), ("--output",)),
    "--input": ("--inputs",),
    "--force": ("--overwrite",),
}
"""Options of other tools, each with the options that mean the same here; a command has at most one of these.
"""


_MEANT_COMMANDS = {
    **dict.fromkeys(("check", "lint", "verify", "analyze"), "validate"),
    **dict.fromkeys(("show", "list", "ls", "info", "print"), "inspect"),
    **dict.fromkeys(("diff", "benchmark", "accuracy"), "compare"),
    **dict.fromkeys(("fix", "rewrite", "export", "optimize", "transform"), "convert"),
    **dict.fromkeys(("infer", "eval", "evaluate", "execute"), "run"),
    **dict.fromkeys(("docs", "man", "describe"), "explain"),
}
"""Commands of other tools, with those that do the same here."""


def _meant(option: str, command: click.Command) -> str:
    """Return "--for" for an option of other tools that has another name here; else ""."""
    known = {name for parameter in command.params for name in parameter.opts}
    return next((name for name in _MEANT.get(option, ()) if name in known), "")


def _show(error: click.ClickException) -> None:
    """Print the error, then a hint at the help instead of the whole usage."""
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        error.show()
        return
    from ir_scatter.report.characters import visible, without_commands

    context = getattr(error, "ctx", None)
    message = visible(error.format_message().rstrip("."))
    if isinstance(error, click.NoSuchOption) and context is not None and context.parent is None:
        message += "; options of a command come after its name"
    elif isinstance(error, click.NoSuchOption) and context is not None:
        if meant := _meant(error.option_name, context.command):
            message = f"No such option '{error.option_name}' (did you mean {meant}?)"
    elif message.startswith("Got unexpected extra argument") and context is not None:
        arguments = [param for param in context.command.params if isinstance(param, click.Argument)]
        names = " ".join(str(argument.metavar) for argument in arguments) or "no arguments"
        message += f"; {context.info_name} accepts {names}"
    click.echo(without_commands(f"Error: {message}"), err=True)
    if context is not None:
        click.echo(f"Try '{context.command_path} --help'.", err=True)


def _leave_stdout() -> None:
    """Redirect standard output to the null device, so that buffered output cannot raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _stop(number: int, _: object) -> NoReturn:
    """Shut down as on Ctrl-C (partial results are written, temporary folders removed); exit by the signal."""
    for other_signal in _STOP_SIGNALS:
        signal.signal(other_signal, lambda *_: None)  # SIGHUP and SIGTERM often come together
    atexit.register(_end_by, number)
    raise KeyboardInterrupt


def _end_by(number: int) -> None:
    """Exit with 143 after SIGTERM; die by any other signal, so that a shell recognises it."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    from ir_scatter.core.temporary import remove_process_folder

    remove_process_folder()
    if number == signal.SIGTERM:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(exits.TERMINATED)  # sys.exit has no effect here: Python is already exiting
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _handle_signals() -> None:
    """Handle SIGTERM and SIGHUP like Ctrl-C, unless the caller ignores them (nohup)."""
    for number in _STOP_SIGNALS:
        with suppress(ValueError):  # not in the main thread
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _stop)


def main() -> None:
    """Run the command line: every error becomes a message and an exit code, never a traceback."""
    from ir_scatter.core.shortage import cannot_run, demand_memory

    _handle_signals()
    demand_memory()
    gc.set_threshold(_GC_THRESHOLD)
    atexit.register(gc.freeze)  # memory is returned with the process, not object by object
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    is_completing = _COMPLETION in os.environ
    if is_completing:
        import ir_scatter_cli.completion  # noqa: F401  # registers its own bash and fish completion
    try:
        code = group.main(standalone_mode=False, prog_name="ir-scatter")
        sys.stdout.flush()
    except click.exceptions.Abort:
        sys.exit(exits.INTERRUPTED)
    except click.ClickException as error:
        _show(error)
        sys.exit(error.exit_code)
    except (BrokenPipeError, exits.ReaderGone):
        _leave_stdout()
        sys.exit(exits.OK)
    except OSError as error:
        _leave_stdout()
        from ir_scatter_cli.output import say

        if error.errno in {None, errno.ENOMEM, errno.EAGAIN} and (reason := cannot_run(error)):
            say(reason)
            sys.exit(exits.RUNTIME)
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        say(f"{where}{(error.strerror or str(error)).lower()}")
        sys.exit(exits.UNREADABLE)
    except Exception as error:
        if (reason := cannot_run(error)) and not is_completing:
            click.echo(f"ir-scatter: {reason}", err=True)
            sys.exit(exits.RUNTIME)
        if os.environ.get("IR_SCATTER_DEBUG"):
            raise
        if is_completing:  # a shell would print the message into the command line
            sys.exit(exits.OK)
        from ir_scatter.report.characters import visible, without_commands

        reason = visible(f"{type(error).__name__}: {error}")
        click.echo(without_commands(_REPORT.format(reason=reason)), err=True)
        sys.exit(exits.BUG)
    sys.exit(code if isinstance(code, int) else exits.OK)
