"""Translates a user's selection of rules and known defects to code prefixes."""

from collections.abc import Iterable

from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.rules import all_rules, by_code, by_name


def code_prefixes(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return the code prefixes that a user selects; upper and lower case are equal.

    Args:
        texts: code prefixes, codes or names: "SCT3", "SCT203", "index-out-of-range", "DEV1" for known defects
            of devices. A text may list several, separated by commas.

    Raises:
        UsageError: a word matches no rule and no known defect.
    """
    prefixes: list[str] = []
    for text in (texts,) if isinstance(texts, str) else texts:
        words = [word for part in text.split(",") if (word := part.strip())]
        prefixes += map(_prefix, words or [""])
    return tuple(prefixes)


def _prefix(word: str) -> str:
    rule, prefix = by_name().get(word.lower().replace("_", "-")), word.upper()
    if rule is not None:
        return rule.code
    if prefix and any(code.startswith(prefix) for code in by_code()):
        return prefix
    from ir_scatter.defects import all_defects  # slow to import and rarely selected

    for defect in all_defects():
        if word.lower().replace("_", "-") == defect.name:
            return defect.code
        if prefix and defect.code.startswith(prefix):
            return prefix
    candidates = [word for rule in all_rules() for word in (rule.name, rule.code)]
    candidates += [word for defect in all_defects() for word in (defect.name, defect.code)]
    span = f"{all_rules()[0].code} to {all_rules()[-1].code}"
    raise UsageError(
        f"there is no rule {word!r}{did_you_mean(word, candidates)}, expected the beginning of {span}, "
        "or a name; `ir-scatter rules` lists them"
    )
