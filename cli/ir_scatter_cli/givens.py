"""Reads the values of --given: conditions, or files with one condition per line."""

from collections.abc import Sequence
from pathlib import Path

from ir_scatter.core.errors import UsageError


def read_texts(values: Sequence[str]) -> list[str]:
    """Return the conditions of --given; @FILE stands for the lines of a file, without comments."""
    texts = list[str]()
    for value in values:
        if not value.startswith("@"):
            texts.append(value)
            continue
        try:
            lines = Path(value[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or "it is no text").lower()
            raise UsageError(f"--given: {value[1:]} cannot be read: {reason}") from None
        texts += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return texts
