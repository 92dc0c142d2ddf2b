"""Suggestions for unknown words and missing files: "did you mean"."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

_SHORTEST = 3
"""Fewest letters of a word that may stand for a longer word that contains it."""
_LIKENESS = 0.65
_MOST_FILES = 5000
"""Limit of files in a folder that are compared with a missing name."""


def close_words(word: str, words: Iterable[str], most: int = 3) -> list[str]:
    """Return similar words, ignoring case: first permutations of its letters, then words that contain it."""
    from difflib import get_close_matches

    lowered, lower = {candidate.lower(): candidate for candidate in words}, word.lower()
    swapped = [low for low in lowered if sorted(low) == sorted(lower)]
    longer = [low for low in lowered if len(lower) >= _SHORTEST and lower in low]
    close = get_close_matches(lower, lowered, most, _LIKENESS)
    return [lowered[low] for low in dict.fromkeys(swapped + longer + close)][:most]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return " (did you mean X?)" for the most similar word, or "" if no word is similar."""
    near = close_words(word, words, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def why_missing(path: str | Path, suffixes: Sequence[str] = ()) -> str:
    """Explain why a path does not exist, and suggest a similar path with one of the suffixes."""
    import glob

    if glob.has_magic(str(path)):
        return "no file matches this pattern"
    missing = Path(path)
    while not missing.parent.is_dir():
        missing = missing.parent
    is_folder = missing != Path(path)
    names: list[str] = []
    with suppress(OSError), os.scandir(missing.parent) as entries:
        files = [] if os.path.lexists(missing) else islice(entries, _MOST_FILES)
        names = [file.name for file in files if not is_folder or file.is_dir()]
    if not is_folder:
        names = [name for name in names if name.endswith(tuple(suffixes) or "")]
    near = close_words(missing.name, names, 1)
    guess = f" (did you mean {missing.parent / near[0]}?)" if near else ""
    return f"there is no folder {missing}{guess}" if is_folder else f"no such file or directory{guess}"
