"""The table against the operator schemas of onnx and the opsets of OpenVINO."""

import json
import subprocess
import sys
from functools import cache

import onnx
import pytest
from onnx import defs

from ir_scatter.ops.lookup import SPECS, Lookup, find, scatter_types
from ir_scatter.ops.spec import Kind, OpSpec, Role

ONNX_ROWS = [spec for spec in SPECS.values() if spec.key.domain == ""]
IR_ROWS = [spec for spec in SPECS.values() if spec.key.domain == "openvino"]
LATEST = 28

_ONNX_NAMES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "i4": "int4", "u64": "uint64", "u32": "uint32", "u16": "uint16",
    "u8": "uint8", "u4": "uint4", "boolean": "bool", "string": "string", "complex64": "complex64",
    "complex128": "complex128", "f8e4m3": "float8e4m3fn", "f8e4m3fnuz": "float8e4m3fnuz",
    "f8e5m2": "float8e5m2", "f8e5m2fnuz": "float8e5m2fnuz", "f4e2m1": "float4e2m1", "f8e8m0": "float8e8m0",
}  # fmt: skip


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
        assert {_ONNX_NAMES[name] for name in port.element_types} == allowed_types(schema, input.type_str)
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


@pytest.mark.parametrize("opset", [LATEST + 1, 100, 2**31])
def test_an_opset_newer_than_the_table_gets_the_newest_row(opset: int) -> None:
    for spec in ONNX_ROWS:
        newest = find("", spec.key.type, LATEST)
        assert newest is not None
        assert find("", spec.key.type, opset) == newest


@pytest.mark.parametrize("opset", [0, -1, None, "opset13", ""])
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


_ASK = """
import importlib, json, sys
found = {}
for number in range(1, 18):
    module = importlib.import_module(f"openvino.opset{number}")
    for name in dir(module):
        if "scatter" in name.lower():
            function = getattr(module, name)
            home = getattr(function, "__module__", "")
            found.setdefault(str(number), {})[name] = home
print(json.dumps(found))
"""

_CREATE = """
import json
import openvino
from openvino import Core, Model
from openvino import opset1
def text(type, word, axis):
    def port(id, precision, *dims):
        sizes = "".join(f"<dim>{d}</dim>" for d in dims)
        return f'<port id="{id}" precision="{precision}">{sizes}</port>'
    names = {"ScatterUpdate": "2", "ScatterElementsUpdate": "2,3", "ScatterNDUpdate": "2,1"}
    shapes = {"data": "5,3", "indices": names[type], "updates": "2,3", "axis": ""}
    roles = ["data", "indices", "updates"] + (["axis"] if axis else [])
    layers, edges, ports = "", "", ""
    for number, role in enumerate(roles):
        kind, precision = ("f32", "FP32") if role in ("data", "updates") else ("i64", "I64")
        dims = [d for d in shapes[role].split(",") if d]
        out = port(0, precision, *dims)
        layers += f'<layer id="{number}" name="{role}" type="Parameter" version="opset1">'
        layers += f'<data element_type="{kind}" shape="{shapes[role]}"/><output>{out}</output></layer>'
        edges += f'<edge from-layer="{number}" from-port="0" to-layer="9" to-port="{number}"/>'
        ports += port(number, precision, *dims)
    layers += f'<layer id="9" name="s" type="{type}" version="{word}"><input>{ports}</input>'
    layers += f'<output>{port(9, "FP32", 5, 3)}</output></layer>'
    layers += f'<layer id="10" name="r" type="Result" version="opset1"><input>'
    layers += port(0, "FP32", 5, 3) + "</input></layer>"
    edges += '<edge from-layer="9" from-port="9" to-layer="10" to-port="0"/>'
    return f'<net name="m" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
core, found = Core(), {}
for type, axis in (("ScatterUpdate", True), ("ScatterElementsUpdate", True), ("ScatterNDUpdate", False)):
    for number in range(0, 20):
        word = f"opset{number}"
        try:
            model = core.read_model(text(type, word, axis).encode())
        except Exception:
            continue
        node = next(op for op in model.get_ops() if op.get_friendly_name() == "s")
        found.setdefault(type, {})[word] = str(node.get_type_info().version_id)
print(json.dumps(found))
"""


@cache
def asked(code: str) -> dict[str, dict[str, str]]:
    """Return what a process that imports openvino prints."""
    pytest.importorskip("openvino")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    answer: dict[str, dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.mark.openvino
@pytest.mark.parametrize("spec", IR_ROWS, ids=by_key)
def test_the_words_of_a_row_are_those_the_reader_takes(spec: OpSpec) -> None:
    """OpenVINO reads one node of every type in every opset and says which version it made."""
    found = asked(_CREATE)[spec.key.type]
    words = {word for word, version in found.items() if version == spec.opsets[0]}
    assert words == set(spec.opsets)


@pytest.mark.openvino
@pytest.mark.parametrize("type", sorted({spec.key.type for spec in IR_ROWS}))
def test_every_word_that_the_reader_takes_has_a_row(type: str) -> None:
    taken = set(asked(_CREATE)[type])
    rows = {word for spec in IR_ROWS if spec.key.type == type for word in spec.opsets}
    assert rows == taken
    for number in range(0, 20):
        lookup = find("openvino", type, f"opset{number}")
        assert lookup is not None
        assert (lookup.spec is not None) == (f"opset{number}" in taken)
        assert lookup.is_known_opset == (1 <= number <= 17)


@pytest.mark.openvino
def test_the_python_opsets_hold_no_other_scatter_operator() -> None:
    names = {name for names in asked(_ASK).values() for name in names}
    known = {"scatter_update", "scatter_elements_update", "scatter_nd_update"}
    known.add("slice_scatter")  # a Slice that writes: it has no indices
    assert {name for name in names if not name.startswith("_")} <= known


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
    words = {word for row in spec.attributes if row.name == "reduction" for word in row.choices}
    assert words == set(spec.reductions)
    assert spec.url.startswith("https://")
    assert len({port.role for port in spec.ports}) == len(spec.ports)
    assert all(port.element_types for port in spec.ports)
    if spec.axis is not None and spec.axis.attribute is not None:
        assert spec.attribute(spec.axis.attribute) is not None
    elif spec.axis is not None:
        assert spec.port(Role.AXIS) is not None
    for name in (*spec.tolerated,):
        assert name.startswith("SCT")


def test_rows_of_one_type_share_no_opset() -> None:
    seen = [(spec.key.domain, spec.key.type, opset) for spec in SPECS.values() for opset in spec.opsets]
    assert len(seen) == len(set(seen))
