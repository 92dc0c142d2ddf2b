"""Rules about the file itself: what readers find broken in it."""

from ir_scatter.core.diagnostics import Severity
from ir_scatter.rules.base import Rule


def _defect(code: str, name: str, text: str, severity: Severity = Severity.ERROR) -> Rule:
    return Rule(code, name, severity, text=text, is_legality=False)


# fmt: off
FILE_DEFECTS = (
    _defect("SCT505", "stored-contradiction", """
Two places of the file store different shapes or types for one value.
Why: one of the two is stale. Behind such a place nothing that is stored counts: shapes and types are
propagated from the inputs of the model, as OpenVINO does.
Applies to: Parameters and Constants against their output ports, inputs of bodies against what flows into
them, the two ports of an edge, and outputs of operators against what these make of their inputs, constants
and attributes, near scatter nodes at least; in an ONNX model value_info and outputs against what is inferred,
initializers against inputs of the same name. An error where onnxruntime refuses the file: another element
type of what a node makes, initializers that an input does not take. Of one kind in an IR the first ten are
told, the last of which says how many more there are.
Runtimes: OpenVINO computes shapes and types anew and ignores the stored ones. onnxruntime: "does not match
expected type", "Shape of initializer x does not match"; it ignores other shapes, or folds constants that are
wrong from them.
Example: a Parameter of shape="16,3" whose port has the dimensions 8 and 3.
Fix: save the model again with the runtime that reads it.
""", Severity.WARNING),
    _defect("SCT901", "unreadable-file", """
The file cannot be opened.
Why: nothing can be said of it.
Example: a path that does not exist, a folder named as a file, a file without permission.
Fix: check the path and its permissions.
"""),
    _defect("SCT902", "empty-file", """
The file is empty.
Why: an export or a download that was cut off leaves such files.
Runtimes: OpenVINO: "Unable to read the model".
Fix: export or download the model again.
"""),
    _defect("SCT903", "malformed-xml", """
The file is not well-formed XML.
Why: nothing behind the place can be read; an export or a download was cut off, or an editor broke
it.
Runtimes: OpenVINO: "Unable to read the model" or a byte offset.
Example: <dim>3</dmi>.
Fix: mend the place that is named, or export the model again.
"""),
    _defect("SCT904", "malformed-protobuf", """
The file is no ONNX model: its bytes are not the protobuf message that a model is.
Why: nothing in it can be read; a download was cut off, or it is a Git LFS pointer.
Runtimes: onnx: "Error parsing message with type 'onnx.ModelProto'".
Fix: fetch the file again (git lfs pull).
"""),
    _defect("SCT905", "not-a-model", """
The file is XML, but no OpenVINO IR.
Why: its root element is not <net>.
Fix: name the right file; files like this are passed over when a folder is searched.
"""),
    _defect("SCT906", "doctype", """
The XML file has a DOCTYPE.
Why: an IR has none; entities can make a small file expand without end or read other files.
Example: <!DOCTYPE net [<!ENTITY a "...">]>.
Fix: remove the DOCTYPE.
"""),
    _defect("SCT907", "nested-too-deep", """
Elements are nested deeper than 256.
Why: no exporter writes that; readers run out of stack.
Fix: export the model again.
"""),
    _defect("SCT908", "unsupported-ir-version", """
The version of the IR is not 10 or 11.
Why: the layout of older files differs, and OpenVINO reads them no longer.
Runtimes: OpenVINO: "Unable to read the model", or "stoll" where the version is no number.
Example: <net name="m" version="7">.
Fix: convert the original model again with a recent OpenVINO.
"""),
    _defect("SCT909", "no-graph", """
The file holds no graph.
Why: there is nothing to check, and nothing to run.
Example: <net version="11"/> without <layers>; a ModelProto without a graph.
Fix: export the model again.
"""),
    _defect("SCT920", "duplicate-id", """
An id or a name that must be unique is used twice.
Why: edges and inputs name ids, so it is not known which one is meant.
Applies to: layer ids and port ids of an IR; names of values in an ONNX graph and in the bodies that see them
from inside, of nodes in an ONNX graph, and of attributes of an ONNX node.
Runtimes: OpenVINO takes the last of layers with one id and drops the others, and so does ir-scatter; ports
with one id it refuses ("node index is out of range").
onnx.checker: "Graph must be in single static assignment (SSA) form".
Fix: give the second one an id of its own.
"""),
    _defect("SCT921", "unknown-value", """
An input is fed by something that does not exist.
Why: the node cannot be computed.
Applies to: edges of an IR that come from a missing layer or port; inputs of ONNX nodes that
nothing produces.
Runtimes: OpenVINO: "Can not find output port with id 7 in layer". onnxruntime: INVALID_GRAPH.
Fix: name an existing producer.
"""),
    _defect("SCT922", "unconnected-input", """
No edge goes to an input port.
Why: the node lacks an operand.
Runtimes: OpenVINO: "index '3' out of range", or "layer is inconsistent".
Fix: add the edge.
"""),
    _defect("SCT923", "unknown-port", """
An edge goes to an input port that the layer does not have.
Why: the value is lost, or the reader stops.
Runtimes: OpenVINO: "Can not find input port with id 9 in layer".
Fix: let the edge name a port of the layer.
"""),
    _defect("SCT924", "duplicate-edge", """
Two edges go to the same input port.
Why: it is not known which value is meant.
Runtimes: OpenVINO: "has incorrect input with index".
Fix: remove one of the two.
"""),
    _defect("SCT925", "dangling-edge", """
An edge goes to a layer that does not exist.
Why: the file contradicts itself; what the edge was for is lost.
Applies to: edges, back edges, and outputs of a port map that name a port which the layer does not have.
Runtimes: OpenVINO ignores the edge; it takes the outputs of a port map in the order of their ports.
Fix: remove the edge, or restore the layer.
""", Severity.WARNING),
    _defect("SCT926", "cycle", """
Nodes depend on each other in a cycle.
Why: none of them can be computed first.
Applies to: the graphs of both formats, and ONNX functions that call themselves.
Runtimes: OpenVINO: "Attempt to access node 4 that not in graph."
Fix: remove the edge that leads back; a recurrence belongs in a Loop or a TensorIterator.
"""),
    _defect("SCT927", "not-sorted", """
A node stands before a node that produces one of its inputs.
Why: ONNX demands that nodes are sorted; some readers take the first pass as the only one.
Applies to: ONNX graphs; an error in bodies.
Runtimes: onnx.checker refuses it; onnxruntime and OpenVINO sort, but onnxruntime refuses it in bodies.
Fix: sort the nodes.
""", Severity.WARNING),
    _defect("SCT928", "bad-number", """
A number is none, or is outside of what it may be.
Why: readers stop with words that tell nothing ("stoll"), or read something else.
Applies to: ids, dimensions, shapes, offsets, sizes and types that the file declares; the shape of a
constant, which must be static; the IR version of an ONNX model.
Runtimes: OpenVINO reads the precision of an output port, but not of an input port, and each in two
spellings: FP32 and f32, but not fp32.
Example: <dim>abc</dim>, shape="-5,4", shape="5..3", offset="x", <port id="4" precision="abc">.
Fix: write the number that was meant.
"""),
    _defect("SCT929", "unknown-type", """
A layer has a type that no operator has, or a Parameter, Const or Result a version that is no opset.
Why: "Constant" is an easy slip for "Const" and ends OpenVINO's process when it is read.
Runtimes: OpenVINO reads other types in any case, but "const" is unknown to it. It knows opset1 to 17.
Example: <layer type="Constant">, version="opset99".
Fix: write "Const", or the opset that was meant.
"""),
    _defect("SCT930", "weights-missing", """
A file with the values of constants cannot be read.
Why: scatter operators are still checked, but constant indices and axes are unknown.
Applies to: the .bin beside an IR's .xml, and external data of ONNX models.
Runtimes: OpenVINO: "Empty weights data in bin file or bin file cannot be found!". onnxruntime
refuses the model.
Fix: put the file where the model expects it; git lfs pull.
""", Severity.WARNING),
    _defect("SCT931", "weights-truncated", """
A constant ends behind the end of the file that holds its values.
Why: the file was cut off, or belongs to another model.
Runtimes: OpenVINO: "Incorrect weights in bin file!".
Fix: fetch the file again; take .xml and .bin from the same export.
"""),
    _defect("SCT932", "constant-size", """
A constant has other bytes than its type and shape need.
Why: the values are not those that were saved.
Runtimes: OpenVINO: "Attribute and shape size are inconsistent for Const op!".
Example: element_type="i64" shape="2" size="8": 16 bytes are needed.
Fix: mend type, shape or size, or export the model again.
"""),
    _defect("SCT933", "external-data-path", """
External data of an ONNX model lies outside of the model's folder.
Why: a model must not read other files of the machine it runs on.
Runtimes: onnx: "Data of TensorProto should be file inside".
Example: location "../../etc/passwd", an absolute path, or a symbolic link that leads outside.
Fix: put the data beside the model and name it relatively.
"""),
    _defect("SCT934", "half-replaced", """
A conversion was killed while it replaced the files of a model.
Why: some of the files are those of the new model and some those of the old one: they do not belong
together.
Applies to: models beside which the conversion left a list of what it had not replaced yet.
Runtimes: none can tell; weights of another model are read as they are.
Fix: convert from or to the same path again: that first replaces the files that are left, and says so.
"""),
    _defect("SCT935", "missing-attribute", """
A layer has no name or no version, an attribute or an input of an ONNX model no type, or an output, a body or
an initializer no name.
Why: readers look for it: a layer's operator is looked up by its version, an attribute's value by its type.
Runtimes: OpenVINO: "node <layer> is missing mandatory attribute", wherever the layer stands. onnxruntime:
"type field and data field mismatch in attribute", "is marked single but has an empty string".
Fix: write what is missing; an empty name of a layer will do.
"""),
    _defect("SCT936", "body-mismatch", """
A body does not fit the If, Loop or TensorIterator that holds it.
Why: values flow in and out of a body by the entries of a port map; what they name must exist.
Applies to: missing bodies; entries of port maps and back edges that name no port of the layer, or no
Parameter or Result of the body; inputs and outputs of the layer that no entry names.
Runtimes: OpenVINO: "unordered_map::at", "node index is out of range", "TensorIterator has no body.",
"Number of inputs must be the same as number of input descriptions".
Example: <input external_port_id="2" internal_layer_id="99"/> where the body has no layer 99.
Fix: name the Parameter, Result or port that was meant, or export the model again.
"""),
    _defect("SCT937", "misused-operator", """
An operator that a scatter node depends on is used in a way that its document forbids.
Why: a runtime refuses the model, whatever the scatter node itself is like.
Applies to: operators other than scatter operators, of those in front of scatter nodes and of those that hold
them: types that no opset has or only another one, the number of inputs and outputs, attributes, element types
and shapes that do not fit each other. Operators of custom domains are not looked at.
Runtimes: onnxruntime: "No Op registered for", "has input size 3 not in range", "Unrecognized attribute",
"Incompatible dimensions". OpenVINO: "Opset opset1 doesn't contain the operation", "Argument shapes are
inconsistent".
Example: an Add of [6, 5] and [3, 4].
Fix: export the model again, or use the operator as it is documented.
"""),
    _defect("SCT938", "custom-version", """
An operator of OpenVINO that a scatter node depends on has a version that is no opset.
Why: OpenVINO looks for an extension that has such an operator, and refuses the model if none is loaded.
Applies to: layers of an IR whose type is in an opset. Types that are in none are not looked at, as extensions
bring their own.
Runtimes: OpenVINO: "Cannot create Add layer add id:4 from unsupported opset: extension".
Example: <layer type="Add" version="extension">.
Fix: write the opset that was meant, unless an extension replaces the operator.
""", Severity.WARNING),
    _defect("SCT940", "shapes-not-propagated", """
The shapes given with --input-shape could not be propagated.
Why: the rules saw the shapes that the file stores.
Runtimes: the message is that of the runtime that was asked: OpenVINO for an IR, onnx for ONNX.
Fix: mend the errors that are reported beside it, or give other shapes.
""", Severity.WARNING),
    _defect("SCT941", "not-looked-at", """
Something in the model was not looked at, because that would take too long.
Why: what was not looked at may break rules; silence would look like success.
Applies to: calls of an ONNX function beyond 1024 kinds of inputs and attributes, ONNX graphs whose shapes
take too long to infer for the size of the file, and indices or axes that would take more than 10,000
operators, or 8 million elements, to compute from constants.
Fix: inline the functions, store the shapes, or fold the constants.
""", Severity.NOTE),
    _defect("SCT942", "untested-device", """
Nobody has probed a device or a release that --for names, or not for every known defect.
Why: silence would look like success.
Applies to: devices without a record, releases outside of those that were recorded, formats that a runtime
does not read.
Fix: run `ir-scatter doctor` on a machine that has the device.
""", Severity.NOTE),
    _defect("SCT999", "internal-error", """
The file could not be checked because of a bug in ir-scatter.
Why: nothing can be said of the file; the other files are reported.
Fix: report it, with the file if you may; IR_SCATTER_DEBUG=1 shows where it happened.
"""),
)
