"""A node in a model gives what `evaluate` gives for the same operator."""

from pathlib import Path

import numpy as np
import pytest

from ir_scatter import evaluate, evaluate_model
from ir_scatter.ops.lookup import SPECS
from ir_scatter.ops.spec import Role
from tests.models.cases import random_case, write

CASES = 25
ROWS = {str(spec.key): spec for spec in SPECS.values() if not spec.is_removed}


@pytest.mark.parametrize("name", ROWS)
def test_a_node_gives_what_its_operator_gives(name: str, tmp_path: Path) -> None:
    random, spec = np.random.default_rng(5), ROWS[name]
    indices = spec.port(Role.INDICES)
    assert indices is not None
    for number in range(CASES):
        index_type = "i32" if number % 2 and "i32" in indices.element_types else "i64"
        element_type = ("f32", "i8")[number % 3 == 0]
        case = random_case(spec, random, element_type=element_type, index_type=index_type)
        (found,) = evaluate_model(write(case, tmp_path, is_constant=True), {}).values()
        expected = evaluate(case.operator, **case.arguments())
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
