"""The rules: one file per check of scatter nodes, found by scanning this folder, one for broken files."""

import pkgutil
from functools import cache
from importlib import import_module

from ir_scatter.rules.base import Rule
from ir_scatter.rules.file_defects import FILE_DEFECTS


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by code."""
    rules = [*FILE_DEFECTS]
    for found in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{found.name}")
        rules += [value for value in vars(module).values() if isinstance(value, Rule)]
    return tuple(sorted(rules, key=lambda rule: rule.code))


@cache
def by_code() -> dict[str, Rule]:
    """Return the rules by code."""
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    """Return the rules by name."""
    return {rule.name: rule for rule in all_rules()}
