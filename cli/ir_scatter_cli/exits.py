"""Exit codes, the same for every sub-command and every format."""

import click

OK = 0
FINDINGS = 1
USAGE = 2
UNREADABLE = 3
RUNTIME = 4
BUG = 70
INTERRUPTED = 130


class WrongUsage(click.ClickException):
    """What the user asked for does not exist, or does not fit; the sentence says it all."""

    exit_code = USAGE


class ReaderGone(Exception):
    """Nobody reads standard output any more, which is no failure; click would make one of it."""
