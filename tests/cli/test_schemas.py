"""What every command writes as JSON is what its schema says, and nothing that it does not describe."""

import re

import jsonschema
import pytest

from ir_scatter.fuzz.replay import ReplayOutcome
from ir_scatter.report.registry import formats, render
from tests.cli.conftest import ROOT, SAMPLES, Cli
from tests.report.json_schemas import NAMES, check, fields, schema_of

RESULTS = {
    "contract": ("contract",),
    "comparison": ("compare", "compare-each"),
    "conversion": ("convert",),
    "devices": ("devices",),
    "doctor": ("doctor",),
    "findings": ("validate",),
    "fuzz": ("fuzz",),
    "inspection": ("inspect",),
    "outputs": ("run",),
    "replay": ("fuzz-replay",),
    "routes": ("routes",),
    "rules": ("rules",),
}
"""The schemas of each result."""

QUICK = {
    "validate": ["validate {samples} missing.onnx", "validate {samples}/nested/branch.xml"],
    "inspect": ["inspect {samples}", "inspect missing.onnx"],
    "contract": ["contract {samples}", "contract {samples}/kv_cache/decoder.xml --strict"],
    "run": ["run {samples}/operators/scatter_nd_13.onnx"],
    "convert": [
        "convert {samples}/documented/scatter_2.onnx -o new.onnx --diff",
        "convert {samples}/operators/scatter_elements_update_12_sum.xml --to ScatterUpdate --dry-run",
        "convert {samples}/operators/scatter_elements_update_3_none.xml --to ScatterUpdate "
        "--assume equal-indices --assume full-indices --dry-run",
    ],
    "routes": ["routes"],
    "rules": ["rules"],
}
SLOW = {
    "devices": ["devices"],
    "doctor": ["doctor --on onnxruntime"],
    "compare": [
        "compare {samples}/plugins/one_behind_the_axis.xml --on CPU --on openvino:fold",
        "compare {samples}/plugins/large_numbers.xml --on CPU --values edge --cases 2 --repeat 2",
        "compare {samples}/plugins/last_position.onnx --on CPU --on onnxruntime --pairwise",
        "compare {samples}/nested/loop.onnx --on onnxruntime --skip-missing",
        "compare {samples}/nested/function.onnx --on CPU --on onnxruntime",
        "compare {samples}/kv_cache/decoder.onnx {samples}/kv_cache/decoder_opset24.onnx --on onnxruntime",
    ],
    "compare-each": ["compare --each {samples}/plugins missing.xml --on CPU"],
    "convert": ["convert {samples}/plugins/scalar_index.xml --to ScatterUpdate -o new.xml --verify-on CPU"],
    "fuzz": ["fuzz --on onnxruntime --operator ScatterND-18 --cases 20"],
}
CASES = [
    pytest.param(name, line, marks=marks, id=re.sub(r"\{samples\}/?", "", line))
    for table, marks in ((QUICK, []), (SLOW, [pytest.mark.long]))
    for name, lines in table.items()
    for line in lines
]


@pytest.mark.parametrize(("name", "line"), CASES)
def test_an_output_is_what_its_schema_says(name: str, line: str, cli: Cli) -> None:
    result = cli(*line.format(samples=SAMPLES).split(), "--format", "json")
    assert check(name, result.out)["schema"] == 1


def test_every_result_has_a_schema() -> None:
    folder = ROOT / "ir_scatter" / "report"
    assert {path.stem.removesuffix("_json") for path in folder.glob("*_json.py")} == set(RESULTS)
    assert sorted(name for names in RESULTS.values() for name in names) == NAMES
    assert all("json" in formats(result) for result in RESULTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_and_describes_every_field(name: str) -> None:
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"{name}.schema.json"
    assert [path for path, _, text in fields(schema) if not text.endswith((".", ";", '"', "*"))] == []


def test_what_a_schema_does_not_describe_is_seen(cli: Cli) -> None:
    text = cli("routes", "--format", "json").out
    with pytest.raises(AssertionError, match=r"\$\.routes\[\]\.more"):
        check("routes", text.replace('"from":', '"more": 1, "from":', 1))
    with pytest.raises(AssertionError, match="'from' is a required property"):
        check("routes", text.replace('"from":', '"other":', 1))


def test_fuzz_findings_that_are_run_again() -> None:
    found = ReplayOutcome("scatternd-18.onnxruntime.refused.always", "gone", "")
    assert check("fuzz-replay", render("replay", "json", [found]))["findings"][0]["outcome"] == "gone"
