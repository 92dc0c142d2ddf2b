"""All rules: the checks in the modules of this folder, and the table of file defects."""

import pkgutil
from functools import cache
from importlib import import_module

from ir_scatter.rules.base import Rule
from ir_scatter.rules.file_defects import FILE_DEFECTS


@cache
def all_rules() -> tuple[Rule, ...]:
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    rules = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return tuple(sorted([*FILE_DEFECTS, *rules], key=lambda rule: rule.code))


@cache
def by_code() -> dict[str, Rule]:
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    return {rule.name: rule for rule in all_rules()}
