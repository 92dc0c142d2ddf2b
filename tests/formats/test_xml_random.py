"""Both ways to the index of an IR, over files written at random."""

import re
from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.ir_files import net
from tests.formats.test_xml_index import DECLARED, ENCODINGS, FIELDS, demand_equal

ODD_DIMS = [
    "<dim><!-- c -->4</dim>",
    "<dim>4<!-- c -->2</dim>",
    "<dim> <?p q?> 4 </dim>",
    "<dim><![CDATA[4]]></dim>",
    "<dim><![CDATA[]]>4</dim>",
    "<dim>&#52;&#x32;</dim>",
    "<dim><x/>4<x/>2</dim>",
    "<dim>+4</dim>",
    "<dim>&#01;4</dim>",
]


class Writer:
    """Writes IRs at random, the odder the greater `oddity`."""

    def __init__(self, random: Random, oddity: float) -> None:
        self.random = random
        self.oddity = oddity
        self.line_end = random.choice(["\n", "\r\n"]) if oddity else "\n"

    def odd(self) -> bool:
        return self.random.random() < self.oddity

    def choose(self, usual: str, *others: str) -> str:
        return self.random.choice(others) if self.odd() else usual

    def space(self) -> str:
        """Return what may stand between two elements."""
        parts = [self.choose(self.line_end, "", "  ", "\t", " \n\n ")]
        while self.odd():
            parts.append(
                self.random.choice(
                    [
                        "<!-- <layer id='0'> </layers> -->",
                        "<!---->",
                        "<?php <edge/> ?>",
                        "<?layer id='7'?>",
                        "<![CDATA[<layer id='1'></layer>]]>",
                        "<![CDATA[]]>",
                        "text &amp; > more",
                        "é𝄞",
                    ]
                )
            )
        return "".join(parts)

    def referred(self, text: str) -> str:
        """Return a text of references to characters."""
        return "".join(
            self.random.choice([f"&#{ord(one)};", f"&#x{ord(one):x};", f"&#0{ord(one)};", one])
            for one in text
        )

    def value(self, text: str) -> str:
        """Return an attribute's value in quotes."""
        text = self.choose(
            text,
            f"{text}&gt;",
            f"{text}>",
            f"&#x41;{text}",
            f"{text}/>",
            f"é {text}",
            f"{text}\n",
            self.referred(text),
            f"&quot;{text}&apos;&amp;#50;&lt;",
            f"{text}&#01;&#31;&#x8;",
            f"{text}&#xFFFE;",
        )
        quote = self.choose('"', "'")
        return f"{quote}{text}{quote}"

    def id(self, text: str) -> str:
        quote = self.choose('"', "'")
        text = self.choose(
            text,
            f"0{text}",
            f" {text}",
            f"+{text}",
            f"{text}\t",
            "abc",
            "",
            "-1",
            "&#49;",
            self.referred(text),
            "&#01;",
            "٣",
        )
        return f"{quote}{text}{quote}"

    def attributes(self, pairs: Sequence[tuple[str, str]]) -> str:
        """Write attributes whose values are written already."""
        chosen = list(pairs)
        if self.odd():
            self.random.shuffle(chosen)
        if self.odd() and chosen:
            chosen.pop(self.random.randrange(len(chosen)))
        if self.odd():
            chosen.append(("other", self.value("x")))
        if self.odd():
            chosen.append(("p:other", self.value("y")))
        texts = [f"{name}{self.choose('=', ' = ', '= ')}{value}" for name, value in chosen]
        return "".join(self.choose(" ", "\n", "\t  ") + text for text in texts)

    def element(self, tag: str, attributes: str, inside: str) -> str:
        tail = self.choose("", " ", "\n")
        if not inside:
            return self.choose(f"<{tag}{attributes}{tail}/>", f"<{tag}{attributes}{tail}></{tag}{tail}>")
        return f"<{tag}{attributes}{tail}>{inside}</{tag}{tail}>"

    def joined(self, parts: Iterable[str]) -> str:
        return self.space() + "".join(part + self.space() for part in parts)

    def ports(self, tag: str, count: int) -> str:
        found = []
        for place in range(count):
            dims = [
                self.element("dim", "", str(self.random.randrange(9)))
                for _ in range(self.random.randrange(3))
            ]
            if self.odd():
                dims.append(
                    self.random.choice(
                        ["<dim/>", "<dim>-5</dim>", "<dim> 7 </dim>", *ODD_DIMS, "<other/>", "text"]
                    )
                )
            pairs = [("id", self.id(str(place))), ("precision", self.value(self.choose("FP32", "I64", "x")))]
            found.append(self.element("port", self.attributes(pairs), self.joined(dims) if dims else ""))
        if self.odd():
            found.append(self.junk())
        text = self.element(tag, "", self.joined(found)) if found else ""
        return self.choose(text, text + text, f"<wrapper>{text}</wrapper>")

    def junk(self) -> str:
        """Return elements that mean nothing where they stand."""
        return self.random.choice(
            [
                "<rt_info><layer id='0'><data a='b'/></layer><edges><edge/></edges><body/></rt_info>",
                "<rt_info><input><port id='9'/></input><output><port id='8'></port></output></rt_info>",
                '<rt_info><layers><layer id="5" name="x" type="y"></layer></layers></rt_info>',
                '<rt_info><layer id="5" name="x" type="y"></layer><layer id="6" name="x" type="y"></layer></rt_info>',
                "<p:data a='b'/>",
                "<group><layer id='3'/><edge/></group>",
                "<blobs><edges/></blobs>",
                "<output/>",
                "<data x='y'></data>",
                "<port id='1'><dim>4</dim></port>",
            ]
        )

    def layer(self, id: int, depth: int) -> str:
        type = self.random.choice(["Const", "Parameter", "ScatterUpdate", "If", "Const"])
        pairs = [("id", self.id(str(id))), ("name", self.value(f"n/{id}")), ("type", self.value(type))]
        pairs += [("version", self.value("opset1"))] if not self.odd() else []
        parts = []
        if type == "Const":
            texts = (
                "i64",
                "2, 3",
                str(self.random.randrange(99)),
                self.choose("8", "-8", "x", "9" * 19, "9" * 20),
            )
            data = [(name, self.value(text)) for name, text in zip(DECLARED, texts, strict=True)]
            parts.append(self.element("data", self.attributes(data), ""))
        parts += [
            self.ports("input", self.random.randrange(3)),
            self.ports("output", self.random.randrange(3)),
        ]
        parts += [self.junk()] if self.odd() else []
        if type == "If" and depth and self.oddity:
            names = [
                self.random.choice(["body", "then_body", "else_body"])
                for _ in range(self.random.randrange(3))
            ]
            parts += [self.body(name, "", depth - 1) for name in names]
        if self.odd():
            self.random.shuffle(parts)
        parts = [part for part in parts if part]
        return self.element("layer", self.attributes(pairs), self.joined(parts) if parts else "")

    def body(self, tag: str, attributes: str, depth: int) -> str:
        count = self.random.randrange(8)
        ids = [place if not self.odd() else self.random.randrange(3) for place in range(count)]
        layers = [self.layer(id, depth) for id in ids]
        layers += [self.junk()] if self.odd() else []
        edges = []
        for _ in range(self.random.randrange(5)):
            pairs = [(name, self.id(str(self.random.randrange(5)))) for name in FIELDS]
            edges.append(self.element("edge", self.attributes(pairs), self.junk() if self.odd() else ""))
        parts = [
            self.element("layers", "", self.joined(layers)),
            self.element("edges", "", self.joined(edges)),
        ]
        while self.odd():
            parts.append(self.random.choice([*parts, self.junk()]))
        if self.odd():
            self.random.shuffle(parts)
        return self.element(tag, attributes, self.joined(parts))

    def file(self) -> str:
        prolog = self.choose('<?xml version="1.0"?>', "<?xml version='1.0' standalone='yes' ?>", "")
        asides = [part for part in ("<!-- <net> -->", "<?a b?>", "\n\n") if self.odd()]
        attributes = self.choose(' name="m" version="11"', " a='>' version = '10'") + ' xmlns:p="urn:p"'
        return (
            prolog
            + "".join(asides)
            + self.body("net", attributes, 3)
            + self.choose("", "\n", "<!-- -->", "<?e?>")
        )


@given(st.integers(0, 2**63), st.sampled_from([0.0, 0.01, 0.05, 0.2]), st.sampled_from(sorted(ENCODINGS)))
def test_files_written_at_random(seed: int, oddity: float, encoding: str) -> None:
    demand_equal(Writer(Random(seed), oddity).file(), ENCODINGS[encoding])


@pytest.mark.parametrize("seed", range(20))
def test_the_quick_way_answers_for_usual_files(seed: int) -> None:
    writer = Writer(Random(seed), 0.0)
    layers = "".join(f"{writer.layer(id, 0)}\n" for id in range(seed))
    quick = demand_equal(net(re.sub(r"(<layer [^>]*)/>", r"\1></layer>", layers)))
    assert (quick is not None) == (seed > 0)
