"""IRs changed at random: every one leads to a result, never to a bug of ours, and always to the same."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from ir_scatter.formats.openvino.xml_text import XmlText
from ir_scatter.lint import Checked, make_report
from ir_scatter.report.registry import render
from tests.formats.ir_files import (
    NESTED,
    SIMPLE,
    WEIGHTS,
    check,
    needs_models,
    real_models,
    render_all,
    write,
)
from tests.formats.test_ir_changes import CHANGES, KINDS, SEEDS, Change, after


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations")


def everything(checked: Checked) -> str:
    """Return all that is known of a result, as text."""
    return render("findings", "json", make_report([checked]))


IN_PLACE = {"port": {"input", "output"}, "dim": {"port"}, "layer": {"layers"}}
MAPS = {"port_map", "then_port_map", "else_port_map"}


def is_counted_rightly(data: bytes) -> bool:
    """Tell whether each port stands in a section of a layer of a graph, where ports may be counted.

    And whether expat, the slow way, takes all characters that libxml2 takes in names.
    """
    text = XmlText("m.xml", data).data
    try:
        expat.ParserCreate("utf-8").Parse(text, True)
    except expat.ExpatError:
        return False
    tree = etree.fromstring(text, etree.XMLParser(recover=True, huge_tree=True, resolve_entities=False))
    for element in tree.iter("port", "input", "output", "layer", "dim"):
        tag, parents = str(element.tag), [str(parent.tag) for parent in element.iterancestors()]
        before = element.getprevious()
        if tag in {"input", "output"} and parents[0] in MAPS:
            continue
        if "rt_info" in parents or parents[0] not in IN_PLACE.get(tag, {"layer"}):
            return False
        if tag in {"input", "output"} and before is not None and before.tag in {tag, "output"}:
            return False
    return True


def demand_sense(folder: Path, data: bytes, weights: bytes | None) -> None:
    """Check a file, demand a result at once, and the same one on the slow way through the file."""
    path = write(folder, data, weights)
    start = time.perf_counter()
    checked = check(path)
    assert time.perf_counter() - start < 5
    render_all(checked)
    result = checked.result
    assert result is not None
    found = everything(checked)
    assert everything(check(path)) == found
    if result.is_readable and is_counted_rightly(data):
        assert everything(check(write(folder, data + b"<!-- -->", weights))) == found


BINARIES: list[Callable[[bytes], bytes | None]] = [
    lambda weights: weights,
    lambda weights: weights[: len(weights) // 2 + 1],
    lambda weights: b"",
    lambda weights: b"\xff" * len(weights),
    lambda weights: weights + b"\x7f" * 64,
    lambda weights: None,
]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("well_formed", [True, False])
@given(changes=CHANGES, binary=st.sampled_from(range(len(BINARIES))))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_files(
    folder: Path, seed: str, well_formed: bool, changes: list[Change], binary: int
) -> None:
    text, weights = SEEDS[seed]
    if well_formed:
        changes = [
            change for change in changes if change[0] not in {"byte", "cut", "token", "end", "shuffle"}
        ]
    demand_sense(folder, after(text, changes), BINARIES[binary](weights))


def rewritten(element: "etree._Element", random: Random) -> str:
    """Write an element in another way that means the same."""
    attributes = []
    for name, value in element.attrib.items():
        quote = single if random.random() < 0.5 else quoteattr
        attributes.append(f" {name!s} = {quote(str(value))}")
    random.shuffle(attributes)
    space = random.choice(["", "\r\n", "<!-- <layer/> -->"])
    inside = "".join(rewritten(child, random) + space for child in element if isinstance(child.tag, str))
    text = escape(element.text or "")
    if not inside and not text and random.random() < 0.5:
        return f"<{element.tag}{''.join(attributes)}/>"
    return f"<{element.tag}{''.join(attributes)} >{text}{inside}</{element.tag}>"


def single(text: str) -> str:
    return "'" + escape(text, {"'": "&apos;", "\n": "&#10;", "a": "&#97;"}) + "'"


def findings(checked: Checked) -> list[str]:
    """Return what was found but for the places, in any order."""
    assert checked.result is not None
    return sorted(
        f"{one.code} {one.severity} {one.message} {one.location.scope} {one.port} {one.node}"
        f"{[(note.message, note.location.scope) for note in one.related]}"
        for one in checked.result.diagnostics
    )


def demand_same_findings(folder: Path, data: bytes, weights: bytes | None, seed: int) -> None:
    """Check a file and the same one in other words."""
    random = Random(seed)
    checked = check(write(folder, data, weights))
    assert checked.result is not None
    if not checked.result.is_readable or not is_counted_rightly(data):
        return
    tree = etree.fromstring(
        data, etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
    )
    other = rewritten(tree, random).encode(random.choice(["utf-8", "utf-16", "utf-8-sig"]))
    assert findings(check(write(folder, other, weights))) == findings(checked)


@pytest.mark.parametrize("seed", SEEDS)
@given(changes=CHANGES, number=st.integers(0, 2**32))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_how_a_file_is_written_does_not_matter(
    folder: Path, seed: str, changes: list[Change], number: int
) -> None:
    text, weights = SEEDS[seed]
    kept = [change for change in changes if change[0] not in {"byte", "cut", "token", "end", "shuffle"}]
    demand_same_findings(folder, after(text, kept), weights, number)


@pytest.mark.models
@needs_models
@pytest.mark.parametrize("path", real_models(200_000), ids=lambda path: path.parent.name)
def test_how_real_models_are_written_does_not_matter(folder: Path, path: Path) -> None:
    weights = path.with_suffix(".bin")
    demand_same_findings(folder, path.read_bytes(), weights.read_bytes() if weights.exists() else None, 1)


@pytest.mark.models
@needs_models
@given(data=st.data(), changes=CHANGES, binary=st.sampled_from(range(len(BINARIES))))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_changed_real_models(folder: Path, data: st.DataObject, changes: list[Change], binary: int) -> None:
    path = data.draw(st.sampled_from(real_models(20_000)))
    weights = path.with_suffix(".bin")
    raw = weights.read_bytes() if weights.exists() else b""
    demand_sense(folder, after(path.read_text(), changes), BINARIES[binary](raw))


SCRIPT = """
import sys
from ir_scatter.lint import Options, check_files, make_report
from ir_scatter.core.files import Source
from ir_scatter.report.registry import formats, render
checked = check_files([Source(path) for path in sys.argv[1:]], Options())
assert not any(one.bug for one in checked)
for name in formats("findings"):
    print(render("findings", name, make_report(checked)))
"""


def test_the_answer_does_not_depend_on_hashes(folder: Path) -> None:
    random = Random(7)
    paths = []
    for number in range(60):
        changes = [(random.choice(KINDS), random.randrange(2**16), random.randrange(2**16)) for _ in range(3)]
        text = random.choice([SIMPLE, NESTED]).replace("\n", random.choice(["", "\n"]))
        paths.append(str(write(folder, after(text, changes), WEIGHTS, f"changed_{number}")))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, *paths],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
    assert json.dumps(outputs.pop())
