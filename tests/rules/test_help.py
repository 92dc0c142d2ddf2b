"""What findings say beside the message: where exactly, and how to mend it."""

import re
from pathlib import Path

import onnx
import pytest

from ir_scatter import Diagnostic, Severity, read, validate
from ir_scatter.rules import all_rules
from tests.rules.expectations import FOLDER, write_case, write_weights


def findings(name: str, folder: Path) -> list[Diagnostic]:
    return validate(read(write_case(FOLDER / name, folder)))


def test_every_rule_says_how_to_mend_what_it_finds() -> None:
    assert [rule.code for rule in all_rules() if not rule.fix] == []


@pytest.mark.parametrize(
    ("name", "helps"),
    [
        ("SCT101_missing_axis.xml", ["connect axis as input 3"]),
        ("SCT103_axis_attribute.xml", ["remove it; axis is input 3 of ScatterUpdate"]),
        ("SCT103_axis_of_nd.onnxtxt", ["remove axis"]),
        (
            "SCT104_dropped_reduction.xml",
            [
                'write version="opset12", or remove reduction',
                'remove reduction, or write version="opset12"',
                'write version="opset15", or remove reduction',
            ],
        ),
        ("SCT105_max_at_17.onnxtxt", ["raise the opset of the model to 18", "choose another reduction"]),
        ("SCT105_mode.onnxtxt", ["choose another mode"]),
        ("SCT105_other_case.xml", ['did you mean reduction="sum"?']),
        (
            "SCT105_word_of_another_operator.xml",
            [
                "choose another reduction, or ScatterNDUpdate, which has sub",
                "choose another reduction, or ScatterElementsUpdate, which has mean",
            ],
        ),
        ("SCT105_word_of_onnx.xml", ['did you mean reduction="sum"?']),
        ("SCT105_word_of_openvino.onnxtxt", ['did you mean reduction="add"?'] * 2),
        ("SCT106_off.xml", ['write use_init_val="false" if that is meant']),
        ("SCT107_float_axis.onnxtxt", ["write axis as the int 1"]),
        ("SCT201_bfloat16_before_13.onnxtxt", ["raise the opset of the model to 13, which allows bfloat16"]),
        ("SCT202_half_updates.xml", ["convert updates to f32"]),
        (
            "SCT203_of_every_family.xml",
            [
                "transpose or reshape updates to [2, 3]",
                "slice updates to [2, 3]",
                "give updates the shape [2, 3, 7]",
                "slice updates to [2, 3]",
                "give updates the shape []",
            ],
        ),
        ("SCT203_one_element_for_0d.onnxtxt", ["reshape updates to []"]),
        ("SCT204_int32_tuples.onnxtxt", ["convert indices to int64"]),
        ("SCT208_one_start.onnxtxt", ["broadcast write_indices to [2]"]),
        ("SCT209_flat_list.xml", ["reshape indices to [5, 1]: each index a tuple of one coordinate"]),
        (
            "SCT303_from_the_end.xml",
            [
                "write 4, which is -1 from the end",
                "ScatterElementsUpdate-12 counts from the end",
                "write 3, which is -2 from the end",
            ],
        ),
        ("SCT303_negative_start.onnxtxt", ["start at 0 to 3"]),
        (
            "SCT402_before_opset4.xml",
            ['write version="opset4"', 'write version="opset3"', 'write version="opset16"'],
        ),
        ("SCT403_extension.xml", ['write version="opset3"', 'write version="opset16"']),
        ("SCT403_no_opset.onnxtxt", ["import opset 11 or above of the default domain"]),
        ("SCT920_layer_id_twice.xml", ['write id="6", which no layer of this graph has']),
        ("SCT921_missing_port.xml", ['did you mean from-port="0"?']),
        ("SCT922_no_edge.xml", ['add <edge from-layer="..." from-port="..." to-layer="4" to-port="3"/>']),
        ("SCT929_constant.xml", ['write type="Const"']),
    ],
)
def test_what_is_said(name: str, helps: list[str], tmp_path: Path) -> None:
    assert [found.help for found in findings(name, tmp_path)] == helps


def test_a_word_that_is_written_wrongly(tmp_path: Path) -> None:
    text = (FOLDER / "SCT105_word_of_onnx.xml").read_text()

    def help(word: str) -> str:
        copy = tmp_path / "m.xml"
        copy.write_text(text.replace('reduction="add"', f'reduction="{word}"'))
        write_weights(text, copy.with_suffix(".bin"))
        (found,) = validate(read(copy))
        return found.help

    assert help("summ") == help("SUM ") == 'did you mean reduction="sum"?'
    assert help("mul") == help("product") == 'did you mean reduction="prod"?'
    assert help("average") == "choose another reduction"


def test_indices_that_count_from_one(tmp_path: Path) -> None:
    text = (FOLDER / "SCT302_behind_the_end.xml").read_text()
    copy = tmp_path / "m.xml"

    def help(numbers: str) -> str:
        changed = re.sub("weights: i64 [^;]*;", f"weights: i64 {numbers};", text, count=1)
        copy.write_text(changed)
        write_weights(changed, copy.with_suffix(".bin"))
        return validate(read(copy))[0].help

    drops = '; if 5 means that nothing is written, convert it with guard="drop"'
    assert help("5 1") == f"subtract 1 from the indices if they count from 1{drops}"
    assert help("5 0").startswith("write 4 for the last position")
    assert help("5 0").endswith(drops)
    assert help("6 0").startswith("write an index from 0 to 4, or look")
    assert drops not in help("6 0")
    assert help("8 0").startswith("write an index from 0 to 4, or look")


def test_scatter_is_legal_at_opset_10_and_deprecated_at_11(tmp_path: Path) -> None:
    (at_10,) = findings("SCT401_scatter_at_10.onnxtxt", tmp_path)
    assert at_10.severity is Severity.WARNING
    assert at_10.message.startswith("legal here, deprecated at opset 11")
    (at_11,) = findings("SCT401_scatter_at_11.onnxtxt", tmp_path)
    assert at_11.severity is Severity.ERROR


def test_indices_for_a_batch_of_one(tmp_path: Path) -> None:
    """Updates of a batch are not to be sliced where constant indices are those of one sample."""
    path, help = tmp_path / "m.onnx", set[str]()
    for start in ("<int64[1, 1] i = {3}>", "<int64[2, 1] i = {3, 4}>"):
        text = f"""<ir_version: 8, opset_import: ["" : 18]>
        m (float[32, 16] x, float[32, 1] u) => (float[32, 16] y) {start} {{ y = ScatterElements <axis = 1> (x, i, u) }}"""
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        help.update(one.help for one in validate(read(path)))
    assert help == {
        "export indices with dimension 0 open: they were exported for size 1, and a slice of updates "
        "would drop 31 of 32 updates",
        "slice updates to [2, 1]",
    }
