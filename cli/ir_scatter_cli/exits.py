"""Exit codes, the same for every sub-command and every format."""

import click

OK = 0
FINDINGS = 1
USAGE = 2
UNREADABLE = 3
RUNTIME = 4
BUG = 70
INTERRUPTED = 130
TERMINATED = 143


class WrongUsage(click.ClickException):
    """Wrong usage; the message is complete, so that no usage text follows."""

    exit_code = USAGE


class ReaderGone(Exception):
    """The reader of standard output is gone (`| head`): no failure, although click treats it as one."""
