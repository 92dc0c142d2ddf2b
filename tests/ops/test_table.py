"""The table against the operator schemas of onnx and the opsets of OpenVINO."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import onnx
import pytest
from onnx import defs

from ir_scatter.core.element_types import ELEMENT_TYPES
from ir_scatter.ops.lookup import SPECS, Lookup, find, scatter_types
from ir_scatter.ops.spec import Kind, OpSpec, Role
from tests.models.ir_text import IrText

ONNX_ROWS = [spec for spec in SPECS.values() if spec.key.domain == ""]
IR_ROWS = [spec for spec in SPECS.values() if spec.key.domain == "openvino"]
LATEST = 28


def by_key(spec: OpSpec) -> str:
    return str(spec.key)


def allowed_types(schema: defs.OpSchema, type: str) -> set[str]:
    """Return the types of a formal parameter: those of a variable, or the one that it names."""
    for constraint in schema.type_constraints:
        if constraint.type_param_str == type:
            return {text.removeprefix("tensor(").rstrip(")") for text in constraint.allowed_type_strs}
    return {type.removeprefix("tensor(").rstrip(")")}


@pytest.mark.parametrize("spec", ONNX_ROWS, ids=by_key)
def test_a_row_is_what_the_schema_says(spec: OpSpec) -> None:
    schema = defs.get_schema(spec.key.type, spec.key.version)
    assert [port.name for port in spec.ports] == [input.name for input in schema.inputs]
    optional = defs.OpSchema.FormalParameterOption.Optional
    assert [port.is_optional for port in spec.ports] == [input.option == optional for input in schema.inputs]
    for port, input in zip(spec.ports, schema.inputs, strict=True):
        assert {ELEMENT_TYPES[name].onnx_name for name in port.element_types} == allowed_types(
            schema, input.type_str
        )
    assert [spec.output] == [output.name for output in schema.outputs]
    roles = {port.role: input.type_str for port, input in zip(spec.ports, schema.inputs, strict=True)}
    assert roles[Role.DATA] == roles[Role.UPDATES] == schema.outputs[0].type_str
    assert set(roles) == {Role.DATA, Role.INDICES, Role.UPDATES}
    assert schema.since_version == spec.key.version == spec.opsets[0]
    assert schema.deprecated == spec.is_removed


@pytest.mark.parametrize("spec", ONNX_ROWS, ids=by_key)
def test_attributes(spec: OpSpec) -> None:
    """The words of a version are told in its text, those that came later are not."""
    schema = defs.get_schema(spec.key.type, spec.key.version)
    kinds = {"INT": Kind.INT, "STRING": Kind.WORD}
    expected = {}
    for name, attribute in schema.attributes.items():
        value = onnx.helper.get_attribute_value(attribute.default_value)
        default = value.decode() if isinstance(value, bytes) else value
        expected[name] = (kinds[str(attribute.type).rpartition(".")[2]], default)
        assert not attribute.required
    assert {row.name: (row.kind, row.default) for row in spec.attributes} == expected
    for row in spec.attributes:
        assert (row.default in row.choices) == (row.kind is Kind.WORD)
        text = f"{schema.doc} {schema.attributes[row.name].description}"
        assert all(word in text for word in row.choices)
        assert not any(f"{mark}{word}{mark}" in text for word in row.undocumented for mark in "'\"`")


def test_every_version_has_a_row() -> None:
    types = {spec.key.type for spec in ONNX_ROWS}
    versions = {
        (schema.name, schema.since_version)
        for schema in defs.get_all_schemas_with_history()
        if schema.name in types and schema.domain == ""
    }
    assert versions == {(spec.key.type, spec.key.version) for spec in ONNX_ROWS}


def test_onnx_has_no_scatter_operator_without_a_row() -> None:
    names = {s.name for s in defs.get_all_schemas_with_history() if "Scatter" in s.name and s.domain == ""}
    assert names == scatter_types("")


@pytest.mark.parametrize("opset", range(1, LATEST + 1))
@pytest.mark.parametrize("type", sorted({spec.key.type for spec in ONNX_ROWS}))
def test_which_row_an_opset_gets(type: str, opset: int) -> None:
    lookup = find("", type, opset)
    assert lookup is not None
    assert lookup.is_known_opset
    if opset > defs.onnx_opset_version():
        pytest.skip("this onnx is older")
    try:
        expected: int | None = defs.get_schema(type, opset).since_version
    except defs.SchemaError:
        expected = None
    assert (lookup.spec.key.version if lookup.spec else None) == expected


@pytest.mark.parametrize("opset", [LATEST + 1, 100, 2**31 - 1])
def test_an_opset_newer_than_the_table_gets_the_newest_row(opset: int) -> None:
    for spec in ONNX_ROWS:
        newest = find("", spec.key.type, LATEST)
        assert newest is not None
        assert newest.checked_up_to is None
        assert find("", spec.key.type, opset) == replace(newest, checked_up_to=LATEST)


@pytest.mark.parametrize("opset", [0, -1, 2**31, None, "opset13", ""])
def test_no_opset_at_all(opset: int | str | None) -> None:
    lookup = find("", "ScatterND", opset)
    assert isinstance(lookup, Lookup)
    assert lookup.spec is None
    assert not lookup.is_known_opset


@pytest.mark.parametrize("type", ["scatternd", "SCATTERND", "ScatterNd", "Gather", "", "ScatterUpdate"])
def test_onnx_spells_a_type_in_one_way(type: str) -> None:
    assert find("", type, 18) is None


def test_a_custom_domain_has_no_scatter_operator() -> None:
    assert find("com.microsoft", "ScatterND", 18) is None


_CREATE = """
import json, sys
from openvino import Core
core, found = Core(), {}
for type, text in json.loads(sys.argv[1]).items():
    for number in range(0, 20):
        word = f"opset{number}"
        try:
            model = core.read_model(text.replace("OPSET", word).encode())
        except Exception:
            continue
        node = next(op for op in model.get_ops() if op.get_friendly_name() == "s")
        found.setdefault(type, {})[word] = str(node.get_type_info().version_id)
print(json.dumps(found))
"""


def text_of(type: str, index_shape: tuple[int, ...], folder: Path) -> str:
    """Return an IR with one node of a type, whose opset is left open."""
    ir = IrText()
    inputs = [ir.parameter("data", "f32", (5, 3)), ir.parameter("indices", "i64", index_shape)]
    inputs.append(ir.parameter("updates", "f32", (2, 3)))
    if type != "ScatterNDUpdate":
        inputs.append(ir.parameter("axis", "i64", ()))
    ir.add("r", "Result", "opset1", [ir.add("s", type, "OPSET", inputs, [("f32", (5, 3))])], [])
    return Path(ir.write(folder)).read_text()


@pytest.mark.openvino
def test_rows_are_valid_in_the_opsets_that_the_reader_takes(tmp_path: Path) -> None:
    """OpenVINO reads one node of every type in every opset and says which version it made."""
    pytest.importorskip("openvino")
    shapes = {"ScatterUpdate": (2,), "ScatterElementsUpdate": (2, 3), "ScatterNDUpdate": (2, 1)}
    texts = json.dumps({type: text_of(type, shape, tmp_path) for type, shape in shapes.items()})
    command = [sys.executable, "-c", _CREATE, texts]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    rows = {type: {word: spec.opsets[0] for spec in IR_ROWS if spec.key.type == type for word in spec.opsets}
            for type in shapes}  # fmt: skip
    assert rows == found
    assert set(rows) == {spec.key.type for spec in IR_ROWS}
    for type, number in product(rows, range(20)):
        lookup = find("openvino", type, f"opset{number}")
        assert lookup is not None
        assert (lookup.spec is not None) == (f"opset{number}" in rows[type])
        assert lookup.is_known_opset == (1 <= number <= 17)


@pytest.mark.parametrize("type", ["ScatterUpdate", "scatterupdate", "SCATTERUPDATE"])
def test_an_ir_spells_a_type_in_any_case(type: str) -> None:
    lookup = find("openvino", type, "opset3")
    assert lookup is not None
    assert lookup.type == "ScatterUpdate"


@pytest.mark.parametrize("word", ["Opset3", "opset03", "opset 3", "3", "extension", "", None, 3])
def test_words_that_are_none(word: str | int | None) -> None:
    lookup = find("openvino", "ScatterUpdate", word)
    assert lookup is not None
    assert lookup.spec is None
    assert not lookup.is_known_opset


@pytest.mark.parametrize("spec", SPECS.values(), ids=by_key)
def test_a_row_fits_together(spec: OpSpec) -> None:
    assert spec.url.startswith("https://")
    assert len({port.role for port in spec.ports}) == len(spec.ports)
    assert all(port.element_types for port in spec.ports)
    if spec.axis is not None and spec.axis.attribute is not None:
        assert spec.attribute(spec.axis.attribute) is not None
    elif spec.axis is not None:
        assert spec.port(Role.AXIS) is not None
    assert all(code.startswith("SCT") for code in spec.tolerated)


def test_rows_of_one_type_share_no_opset() -> None:
    seen = [(spec.key.domain, spec.key.type, opset) for spec in SPECS.values() for opset in spec.opsets]
    assert len(seen) == len(set(seen))
