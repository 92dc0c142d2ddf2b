"""IRs changed at random, in one place each, held against OpenVINO's reader.

What OpenVINO refuses to read and we call clean, and what it reads and we call an error, is counted by class, and
every class is one that is explained here.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.campaigns import body_models
from tests.campaigns.children import Child, answer
from tests.formats.ir_files import ROOT, check, real_models, write
from tests.formats.test_ir_mutations import OF_ELEMENTS, OF_TEXTS, changed, weights_of
from tests.models import nested_ir
from tests.scale import cases, generator, in_part_and_whole

CASES = 120
_HERE = "tests.campaigns.test_ir_reader"
_LARGEST = 20_000
_GENERATED = 12
_UNKNOWN = re.compile(rb'version="(extension|custom_ops|7)"')
_KINDS = [*OF_ELEMENTS, *OF_TEXTS, "number", "number", "value", "value"]

CLEAN_BUT_REFUSED = {
    # Operators that lead to no scatter node; and of those that do, what only numbers tell that nobody knows before
    # the model runs, or attributes and ranks of which no row says anything.
    "another operator is used wrongly": (
        r"While validating node 'opset\d+::(?!Scatter|Result|If|Loop|TensorIterator)"
        r"|Check 'i < m_inputs.size\(\)' failed|node.cpp:\d+:\snode index is out of range"
        r"|_shape_inference.hpp|Tensor was not initialized|does not have an attribute"
        r"|is not a member of enum|Cannot parse '|Unsupported element type|data type is not supported"
        r"|Element not supported|Unsupported legacy argument|Accessing out-of-range dimension"
    ),
    # Where all ports agree, what they store counts: it takes the other operators to know better.
    "stored shapes that agree": (
        r"(?s)While validating node 'opset\d+::Scatter.*"
        r"(Updates shape must|Updates rank|Indices element type|Indices rank|Indices and updates|updates_shape)"
    ),
    "a detail of a port map": (
        r"While validating node 'opset\d+::(If|Loop|TensorIterator)|node <(input|output)> has attribute"
        r"|unordered_map::at"
    ),
    # In an IR of version 10 no input may have the name of another operator's tensor.
    "a tensor with the name of an input": r"operation names have collisions with tensor names",
    # OpenVINO looks for ports in the first of two <input>, we in all.
    "ports in another element": r"Can not find (in|out)put port",
    # A version that is no opset may be an extension's: in front of scatter nodes SCT938 warns.
    "another operator is in no such opset": r"doesn't contain the operation with type|from unsupported opset",
    # Broadcast without inputs, and no other operator, ends the process.
    "the process ended": r"^the process ended",
    # OpenVINO reads 2^63 - 1 as a dimension of unknown size, and asks for as many bytes where it is a bit less.
    "a dimension that no memory holds": r"bad_alloc|9223372036854775807|4294967296|is not aligned",
}
"""Classes of what OpenVINO says of a file that we call clean, whose words tell them."""

ERROR_BUT_TAKEN = {
    "SCT101": "OpenVINO passes over ports that stand in another element",
    "SCT102": "a superfluous input is passed over",
    "SCT103": "attributes that no operator has are passed over",
    "SCT104": "attributes that the version does not have are passed over",
    "SCT105": "a word is looked at when the model is compiled",
    "SCT106": "every word that is not true is false",
    "SCT204": "strings are looked at when the model is compiled",
    "SCT209": "a dimension of 2^63 - 1 is one of unknown size to OpenVINO",
    "SCT301": "values of constants are looked at when the model is compiled or run",
    "SCT302": "as above",
    "SCT303": "as above",
    "SCT402": "what leads to no Result is dropped before it is looked at",
    "SCT903": "OpenVINO's parser takes XML that is not well-formed: an attribute twice, an element that does not end",
    "SCT909": "a file without layers is an empty model to OpenVINO",
    "SCT920": "the last of two layers counts; that one is left out is not seen",
    "SCT921": "the layer is dropped, as it leads to no Result; -0 is a number to OpenVINO",
    "SCT922": "as above, or the input is one that the operator may lack",
    "SCT923": "as above",
    "SCT928": "what a port stores is not looked at, and -0 is a number to OpenVINO; a Parameter may lack its type",
    "SCT929": "what Constant does depends on memory that is not set: in some files the process does not end",
    "SCT937": "a superfluous input of Convert is passed over where what flows in is constant",
    "SCT936": "the layer is dropped, as it leads to no Result, or what no entry of a port map names is made up",
}
"""Codes of errors in files that OpenVINO reads, and why they are errors all the same."""


class Seed(NamedTuple):
    """A file and its weights."""

    text: bytes
    weights: bytes | None


def seeds(folder: Path) -> list[Seed]:
    """Return small IRs: bodies, random ones, samples and real ones."""
    paths = [Path(nested_ir.write_branch(folder)), Path(nested_ir.write_loop(folder, 2))]
    paths += [Path(nested_ir.write_iterator(folder, is_backward=False))]
    for number in range(_GENERATED):
        chance = generator("ir reader seeds", number)
        paths.append(body_models.write(chance, folder, is_onnx=False, name=f"body_{number}")[0])
    paths += [path for name in ("operators", "plugins") for path in (ROOT / "samples" / name).glob("*.xml")]
    paths += [path for path in real_models(_LARGEST) if not _UNKNOWN.search(path.read_bytes())]
    return [Seed(path.read_bytes(), weights_of(path)) for path in sorted(paths)]


def mutant(chance: random.Random, seed: Seed) -> bytes:
    kind, first, second = chance.choice(_KINDS), chance.randrange(1 << 16), chance.randrange(1 << 16)
    return changed(seed.text, kind, first, second)


def errors_in(path: Path) -> list[str]:
    """Return the codes of errors."""
    return sorted({one.code for one in check(path).diagnostics if one.severity.name == "ERROR"})


def said_of(path: Path, child: Child) -> str:
    """Return what OpenVINO says of a file that it does not read."""
    known = child.ask(path)
    return "the process ended" if known is None else str(known["said"])


def class_of(said: str) -> str:
    """Return what OpenVINO says without places, names and numbers."""
    lines = [
        line for line in said.splitlines() if line and not line.startswith(("Exception from", "Check '"))
    ]
    node = re.search(r"While validating node '(\w+::\w+)", said)
    text = f"{node[1] if node else ''} {lines[-1] if lines else said}"
    return " ".join(re.sub(r"'[^']*'|\"[^\"]*\"|\[.*\]|-?\d+", "*", text).split())[:160]


def judged(errors: list[str], said: str, figures: Counter[str]) -> Iterator[str]:
    """Yield the classes of disagreement that nothing explains."""
    if said and not errors:
        names = [name for name, pattern in CLEAN_BUT_REFUSED.items() if re.search(pattern, said)]
        figures[f"refused alone: {names[0] if names else 'unexplained'}"] += 1
        if not names:
            yield f"clean, but refused: {class_of(said)}"
    elif errors and not said:
        figures["taken alone"] += 1
        if not {*errors} & ERROR_BUT_TAKEN.keys():
            yield f"{' '.join(errors)}, but taken"


@in_part_and_whole
def test_mutants(tmp_path: Path, figures: Counter[str], is_whole: bool) -> None:
    known, child = seeds(tmp_path), Child(_HERE, "theirs")
    unexplained: dict[str, list[int]] = {}
    try:
        for number in cases(CASES, is_whole):
            chance = generator("ir reader", number)
            seed = chance.choice(known)
            path = write(tmp_path, mutant(chance, seed), seed.weights, "mutant")
            errors, said = errors_in(path), said_of(path, child)
            figures["mutants"] += 1
            figures["with errors"] += bool(errors)
            figures["refused by OpenVINO"] += bool(said)
            for name in judged(errors, said, figures):
                unexplained.setdefault(name, []).append(number)
    finally:
        child.close()
    assert unexplained == {}


def test_seeds_are_clean_and_read(tmp_path: Path) -> None:
    child, known = Child(_HERE, "theirs"), seeds(tmp_path)
    try:
        for seed in known:
            path = write(tmp_path, seed.text, seed.weights, "seed")
            assert (errors_in(path), said_of(path, child)) == ([], ""), seed.text
    finally:
        child.close()


def test_disagreement_is_seen() -> None:
    """The judgement of a file that one side takes and the other does not, of no known class."""
    said = "While validating node 'opset3::ScatterUpdate s (...)':\nSomething new about 'data' and 7"
    found = [*judged([], said, Counter())]
    assert found == ["clean, but refused: opset*::ScatterUpdate Something new about * and *"]
    assert [*judged(["SCT207"], "", Counter())] == ["SCT207, but taken"]
    assert [*judged([], "", Counter()), *judged(["SCT207"], said, Counter())] == []


def theirs(path: str) -> dict[str, Any]:
    """Read a file with OpenVINO."""
    import openvino

    try:
        openvino.Core().read_model(path)
    except Exception as error:
        return {"said": str(error) or "nothing"}
    return {"said": ""}


if __name__ == "__main__":
    answer({"theirs": theirs})
