"""Text of a stranger's file, made safe to print."""

_LONGEST, _HEAD, _TAIL = 2000, 1500, 200


def visible(text: str, keep: str = "") -> str:
    r"""Return the text with everything that cannot be seen spelled out.

    Terminal escapes, line ends, text direction marks and bytes that are not UTF-8 become `\x1b`,
    `\n`, `\u202e`, `\xff`: a name inside a model can then neither move the cursor, nor look like
    another line of the report, nor fail to be encoded. What is longer than a screen is shortened.

    Args:
        text: a name, a path, a message or a piece of a file.
        keep: characters that stay as they are.
    """
    if len(text) > _LONGEST:
        text = f"{text[:_HEAD]}...{text[-_TAIL:]}"
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else _spelled(character)
        for character in text
    )


def _spelled(character: str) -> str:
    """Return the escape that Python would print."""
    number = ord(character)
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a path, kept by os.fsdecode
        return f"\\x{number - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
