"""The rules: checks of scatter nodes, found by scanning this folder, and a table about broken files."""

import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from ir_scatter.core.errors import UsageError
from ir_scatter.core.suggestions import did_you_mean
from ir_scatter.rules.base import Rule
from ir_scatter.rules.file_defects import FILE_DEFECTS


@cache
def all_rules() -> tuple[Rule, ...]:
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    rules = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return tuple(sorted([*FILE_DEFECTS, *rules], key=lambda rule: rule.code))


@cache
def by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    return {rule.name: rule for rule in all_rules()}


def code_prefixes(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Return what codes begin with that are meant by beginnings of codes or names of rules, in any case.

    Args:
        texts: "SCT3", "SCT203", "index-out-of-range"; each text may hold several with commas between.

    Raises:
        UsageError: a text means no rule.
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
    is_defect = re.fullmatch(r"DEV\d*", prefix) is not None  # of a device: known when one is asked about
    if is_defect or (prefix and any(code.startswith(prefix) for code in by_code())):
        return prefix
    guess, span = (
        did_you_mean(word, [*by_name(), *by_code()]),
        f"{all_rules()[0].code} to {all_rules()[-1].code}",
    )
    raise UsageError(
        f"there is no rule {word!r}{guess}, expected the beginning of {span}, or a name; "
        "`ir-scatter rules` lists them"
    )
