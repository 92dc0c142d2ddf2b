"""`ir-scatter routes`: the table of rewrites."""

import json
from typing import Any

from ir_scatter.ops.lookup import SPECS
from ir_scatter.rewrites import all_rewrites, route
from tests.cli.conftest import Cli


def _routes(cli: Cli) -> list[dict[str, Any]]:
    document = json.loads(cli("routes", "--format", "json").out)
    assert list(document) == ["schema", "versions", "routes"]
    found: list[dict[str, Any]] = document["routes"]
    return found


def test_the_table(cli: Cli) -> None:
    result = cli("routes")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].split() == ["from", "to"]
    assert max(map(len, lines)) <= 80
    at = lines.index("ScatterUpdate-3                    ScatterNDUpdate-3, -15")
    assert lines[at + 1] == "    any axis, indices of any rank, any shape"
    named = [line for line in lines[1:] if not line.startswith(" ")]
    assert len(named) == len(set(named))


def test_the_document_lists_every_rewrite(cli: Cli) -> None:
    found = _routes(cli)
    assert len(found) == len(all_rewrites())
    assert {(one["from"], one["to"]) for one in found} == {
        (str(rewrite.source.key), str(rewrite.target.key)) for rewrite in all_rewrites()
    }
    for one in found:
        assert list(one) == ["from", "to", "dialect", "conditions", "rewrite"]
        assert one["conditions"]
        assert one["dialect"] == ("openvino" if "Update" in one["from"] else "onnx")


def test_every_pair_of_a_dialect_has_a_way(cli: Cli) -> None:
    targets = {rewrite.target.key for rewrite in all_rewrites()}
    for source in SPECS:
        for target in targets:
            if source.domain == target.domain and source != target:
                assert route(source, target, None) or source.type == target.type, (source, target)
