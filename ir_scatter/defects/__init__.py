"""Known defects of runtimes. Each module in this folder defines one defect or several related ones.

`all_defects` imports these modules and collects their `Defect` objects.
"""

import pkgutil
from functools import cache
from importlib import import_module

from ir_scatter.defects.base import Defect


@cache
def all_defects() -> tuple[Defect, ...]:
    modules = [import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__)]
    defects = [value for module in modules for value in vars(module).values() if isinstance(value, Defect)]
    return tuple(sorted(defects, key=lambda defect: defect.code))


@cache
def by_code() -> dict[str, Defect]:
    return {defect.code: defect for defect in all_defects()}
