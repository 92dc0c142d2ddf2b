"""English for messages: counts, lists, articles."""

from collections.abc import Sequence


def counted(number: float, noun: str, plural: str = "") -> str:
    """Return "1 file", "2 files", "0.5 seconds"; `plural` is needed only if it is irregular."""
    digits = f"{number:g}" if isinstance(number, float) else str(number)
    return f"{digits} {noun if number == 1 else plural or f'{noun}s'}"


def counted_bytes(count: int) -> str:
    """Return "12 bytes", "3.4 KB", "1.2 GB"."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return counted(count, "byte")


def listed(words: Sequence[str]) -> str:
    """Return "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def with_article(word: str) -> str:
    """Return "an int", "a list", "a uint8"."""
    is_spoken_with_y = word.startswith("uint")
    return f"an {word}" if word[:1].lower() in set("aeiou") and not is_spoken_with_y else f"a {word}"
