"""The rules: one file each, found by scanning this folder."""

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from ir_scatter.rules.rule import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule, ordered by code, with its module's docstring as its documentation."""
    rules = []
    for module_info in pkgutil.iter_modules(__path__):
        module = import_module(f"{__name__}.{module_info.name}")
        rule = getattr(module, "RULE", None)
        if isinstance(rule, Rule):
            rules.append(replace(rule, documentation=(module.__doc__ or "").strip()))
    return tuple(sorted(rules, key=lambda rule: rule.code))


@cache
def by_code() -> dict[str, Rule]:
    """Return the rules by code."""
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    """Return the rules by name."""
    return {rule.name: rule for rule in all_rules()}
