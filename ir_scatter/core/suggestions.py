"""What somebody may have meant who wrote a word that is none."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

_SHORTEST = 3
"""Letters of a word that may stand for a longer one."""
_LIKENESS = 0.65
_MOST_FILES = 5000
"""A folder with more files is not searched to the end."""


def close_words(word: str, words: Iterable[str], most: int = 3) -> list[str]:
    """Return known words like this one, in any case: of its letters, then with it in them, then others."""
    from difflib import get_close_matches

    lowered, lower = {candidate.lower(): candidate for candidate in words}, word.lower()
    swapped = [low for low in lowered if sorted(low) == sorted(lower)]
    longer = [low for low in lowered if len(lower) >= _SHORTEST and lower in low]
    close = get_close_matches(lower, lowered, most, _LIKENESS)
    return [lowered[low] for low in dict.fromkeys(swapped + longer + close)][:most]


def did_you_mean(word: str, words: Iterable[str]) -> str:
    """Return " (did you mean X?)", "" if no known word is like this one."""
    near = close_words(word, words, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def why_missing(path: str | Path, suffixes: Sequence[str] = ()) -> str:
    """Return why there is no such file, and which one may have been meant, of these suffixes if any.

    What is missing may be a folder on the way there.
    """
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
