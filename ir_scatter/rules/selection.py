"""Which rules and defects a user selects: by names, codes or beginnings of codes."""

from collections.abc import Iterable

from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.rules import all_rules, by_code, by_name


def code_prefixes(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return what codes begin with that are meant by beginnings of codes or names, in any case.

    Args:
        texts: "SCT3", "SCT203", "index-out-of-range", "DEV1" for known defects of devices; each text may hold
            several with commas between.

    Raises:
        UsageError: a text means no rule and no defect.
    """
    found: list[str] = []
    for text in (texts,) if isinstance(texts, str) else texts:
        words = [word for part in text.split(",") if (word := part.strip())]
        found += map(_prefix, words or [""])
    return tuple(found)


def _prefix(word: str) -> str:
    named, prefix = by_name().get(word.lower().replace("_", "-")), word.upper()
    if named is not None:
        return named.code
    if prefix and any(code.startswith(prefix) for code in by_code()):
        return prefix
    from ir_scatter.defects import all_defects  # which seldom are meant

    for defect in all_defects():
        if word.lower().replace("_", "-") == defect.name:
            return defect.code
        if prefix and defect.code.startswith(prefix):
            return prefix
    known = [word for rule in all_rules() for word in (rule.name, rule.code)]
    known += [word for defect in all_defects() for word in (defect.name, defect.code)]
    span = f"{all_rules()[0].code} to {all_rules()[-1].code}"
    raise UsageError(
        f"there is no rule {word!r}{did_you_mean(word, known)}, expected the beginning of {span}, or a name; "
        "`ir-scatter rules` lists them"
    )
