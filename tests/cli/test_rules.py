"""`ir-scatter rules`, and rules by their names wherever a code is taken."""

import json
from pathlib import Path

import pytest

from ir_scatter.explain import explain
from ir_scatter.rewrites.refusals import Reason
from ir_scatter.rules import all_rules
from tests.cli.conftest import Cli, codes


def test_everything_that_has_a_code_is_listed(cli: Cli) -> None:
    text = cli("rules")
    document = json.loads(cli("rules", "--format", "json").out)
    known = [*((rule.code, rule.name) for rule in all_rules()), *((one.value, one.rule) for one in Reason)]
    assert [(one["code"], one["name"]) for one in document["rules"]] == known
    assert (text.code, text.err, document["schema"]) == (0, "", 1)
    for one in document["rules"]:
        assert f"{one['code']}  {one['name']} (" in text.out
        assert one["summary"].endswith(".")
        assert explain(one["name"]) == explain(one["code"])
    severities = {one["code"]: (one["severity"], one["warns_for"]) for one in document["rules"]}
    assert severities["SCT203"] == ("error", [])
    assert severities["SCT303"] == ("error", ["ScatterElementsUpdate-3"])
    assert severities["CVT105"] == ("refusal", [])
    assert "SCT303  negative-index (error or warning)\n" in text.out
    assert max(map(len, text.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--select", "index-out-of-range"], ["SCT302"]),
        (["--select", "negative-index,SCT4"], ["SCT303", "SCT402"]),
        (["--ignore", "SCT3,Updates-Shape-Mismatch"], ["SCT402"]),
    ],
)
def test_a_rule_is_selected_by_its_name(cli: Cli, broken: Path, options: list[str], left: list[str]) -> None:
    assert codes(cli("validate", broken, "--format", "concise", *options).out) == left


def test_a_rule_goes_by_its_name_in_settings_and_baselines(cli: Cli, broken: Path) -> None:
    Path("pyproject.toml").write_text(
        '[tool.ir-scatter]\nformat = "concise"\nselect = ["SCT3"]\nignore = ["axis-out-of-range"]\n'
        '[[tool.ir-scatter.node-ignores]]\nnode = "negative"\ncodes = ["negative-index"]\n'
    )
    assert codes(cli("validate", broken).out) == ["SCT302", "SCT304"]
    entry = {"code": "index-out-of-range", "path": str(broken), "scope": "past_end", "node": "past_end"}
    Path("known.json").write_text(json.dumps({"schema": 1, "findings": [entry]}))
    assert codes(cli("validate", broken, "--baseline", "known.json").out) == ["SCT304"]
