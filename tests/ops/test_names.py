"""The names that type checkers know are those of the table. UPDATE_README=1 writes them anew."""

import os
from pathlib import Path
from typing import get_args

from ir_scatter.ops import names
from ir_scatter.ops.lookup import SPECS, by_text, newest


def known() -> list[str]:
    types = dict.fromkeys(key.type for key in SPECS)
    return [name for type in types for name in (type, *(str(key) for key in SPECS if key.type == type))]


def test_the_names_are_those_of_the_table() -> None:
    path = Path(names.__file__)
    head, _, rest = path.read_text().partition("Literal[\n")
    lines = "".join(f'    "{name}",\n' for name in known())
    if os.environ.get("UPDATE_README"):
        path.write_text(f"{head}Literal[\n{lines}]{rest.partition(']')[2]}")
    assert rest.partition("]")[0] == lines


def test_each_name_leads_to_a_row() -> None:
    for name in get_args(names.OperatorName):
        spec = by_text(name) or newest(name)
        assert spec is not None
        assert name in {spec.key.type, str(spec.key)}


def test_a_type_stands_for_its_newest_version_in_any_case() -> None:
    for type in {key.type for key in SPECS}:
        found = newest(type.lower())
        assert found is not None
        assert found.key.version == max(key.version for key in SPECS if key.type == type)
    assert newest("Gather") is None
