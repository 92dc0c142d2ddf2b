"""Inputs and outputs of IR version 10 as the file has them; in the process of OpenVINO.

`read_model` adapts a file of version 10 to the programs of its time. An input that is f16 becomes f32
and is converted behind it; an output becomes i32 if it is a whole number of 32 or 64 bits, and f32 if
it is anything else, and is converted in front of it: a boolean, an f64, half of an i64 is lost. A node
in front of such a conversion loses its name to it, and the name of a layer becomes one of its tensor.
"""

import re
from collections.abc import Mapping
from typing import Any

_ADAPTED = 10
_CONVERT = "Convert"
_COMMA = re.compile(r"(?<!\\),")
"""Between names; one that belongs to a name is written with a backslash."""


def restore(model: Any, path: str) -> None:
    """Take away what `read_model` put between the nodes of a file of version 10 and its ends.

    Args:
        model: of OpenVINO; it is changed.
        path: the file.
    """
    if not model.has_rt_info("version") or int(model.get_rt_info("version").value) != _ADAPTED:
        return
    layers = _layers(path)
    added = False
    for parameter in model.get_parameters():
        added |= _restore_input(parameter, layers)
    for result in model.get_results():
        if result.input_value(0).get_node().get_type_name() == _CONVERT:
            added |= _restore_output(result, layers)
        _restore_names(result.input_value(0), layers)
    if added:
        model.validate_nodes_and_infer_types()


def _restore_input(parameter: Any, layers: Mapping[str, set[str]]) -> bool:
    output = parameter.output(0)
    readers = [(target, target.get_node()) for target in output.get_target_inputs()]
    if len(readers) != 1:
        return False
    convert = readers[0][1]
    if convert.get_type_name() != _CONVERT or convert.get_friendly_name() in layers:
        return False
    parameter.set_element_type(convert.get_output_element_type(0))
    parameter.validate_and_infer_types()
    for target in convert.output(0).get_target_inputs():
        target.replace_source_output(output)
    return True


def _restore_output(result: Any, layers: Mapping[str, set[str]]) -> bool:
    convert = result.input_value(0).get_node()
    name, source = convert.get_friendly_name(), convert.input_value(0)
    node = source.get_node()
    is_renamed = name in layers and node.get_friendly_name() not in layers
    if name in layers and not is_renamed:
        return False
    names = convert.output(0).get_names()
    result.input(0).replace_source_output(source)
    if is_renamed:
        node.set_friendly_name(name)
    source.set_names(source.get_names() | names)
    return True


def _restore_names(output: Any, layers: Mapping[str, set[str]]) -> None:
    """Take away the name of the layer, which becomes one of a tensor that has names of its own."""
    layer, names = output.get_node().get_friendly_name(), output.get_names()
    kept = names - ({layer, f"{layer}.{output.get_index()}"} - layers.get(layer, set()))
    if kept and kept != names:
        output.set_names(kept)


def _layers(path: str) -> dict[str, set[str]]:
    """Return the names of the tensors that come out of each layer of the main graph."""
    from lxml import etree

    found: dict[str, set[str]] = {}
    parser = etree.XMLParser(resolve_entities=False, huge_tree=True)
    for layer in etree.parse(path, parser).getroot().iterfind("layers/layer"):
        names = found.setdefault(str(layer.get("name")), set())
        for port in layer.iterfind("output/port"):
            names.update(one.replace("\\,", ",") for one in _COMMA.split(port.get("names", "")) if one)
    return found
