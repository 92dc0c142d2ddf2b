"""Exit codes, the same for every sub-command and every format."""

OK = 0
FINDINGS = 1
USAGE = 2
UNREADABLE = 3
RUNTIME = 4
BUG = 70
INTERRUPTED = 130
