"""The page as a browser reads it: parsed, and every claim about it checked on what was parsed."""

import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from airchoir.report.findings import Cell, Curve, Figure, Findings, Panel, Table
from airchoir.report.page import gather, html, write_page
from airchoir.report.writing import record

HERE = Path("results")
VOID = {"meta", "link", "br"}


@dataclass
class Parsed(HTMLParser):
    """Elements with their attributes, and the words that a reader sees."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    words: dict[str, list[str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)

    def named(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def parsed(*found: Findings, folder: Path = HERE) -> tuple[Parsed, str]:
    text = html([(folder / f"{findings.name}.json", findings) for findings in found], folder)
    parser = Parsed()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser, text


@pytest.fixture
def page(make_findings: Any) -> tuple[Parsed, str]:
    return parsed(make_findings("table1"), make_findings("figure2"))


def test_the_page_asks_the_network_for_nothing(page: tuple[Parsed, str]) -> None:
    parser, text = page
    tags = {tag for tag, _ in parser.elements}
    assert not tags & {"script", "img", "iframe", "object", "embed", "image", "base", "form", "audio", "video"}
    for _, attributes in parser.elements:
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"):
            assert attributes.get(name, "#").startswith(("#", "data:"))
        assert not [name for name in attributes if name.startswith("on")]
    style = "".join(parser.words["style"])
    assert "@import" not in style
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "http" not in text.replace('http-equiv="Content', "")
    (policy,) = (each["content"] for each in parser.named("meta") if "http-equiv" in each)
    assert "default-src 'none'" in policy


def test_ids_are_unique_and_every_reference_finds_its_own(page: tuple[Parsed, str]) -> None:
    parser, text = page
    ids = [attributes["id"] for _, attributes in parser.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    wanted = {attributes["href"][1:] for _, attributes in parser.elements if attributes.get("href", "").startswith("#")}
    wanted |= set(re.findall(r"url\(#([^)]*)\)", text))
    wanted |= {attributes["aria-labelledby"] for _, attributes in parser.elements if "aria-labelledby" in attributes}
    assert wanted
    assert wanted <= set(ids)


def test_headings_descend_one_step_at_a_time_from_a_single_first(page: tuple[Parsed, str]) -> None:
    levels = [int(tag[1]) for tag, _ in page[0].elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_every_picture_is_told_in_words_and_samples_are_decoration(page: tuple[Parsed, str]) -> None:
    pictures = page[0].named("svg")
    told = [picture["aria-label"] for picture in pictures if picture.get("role") == "img"]
    assert len(told) == 4
    assert all("macro-F1 (%) against SNR (dB)" in words and "votes" in words for words in told)
    assert all("aria-hidden" in picture for picture in pictures if picture.get("role") != "img")
    assert all("viewbox" in picture and "width" not in picture for picture in pictures)


def test_tables_have_captions_and_headings_and_scroll_alone(page: tuple[Parsed, str]) -> None:
    parser, _ = page
    assert {each["scope"] for each in parser.named("th")} == {"col", "row"}
    assert all("aria-labelledby" in table for table in parser.named("table"))
    boxes = [box for box in parser.named("div") if box.get("class") == "scroll"]
    assert len(boxes) == len(parser.named("table"))
    assert all(box["tabindex"] == "0" and box["role"] == "region" for box in boxes)
    assert "81.27 ± 0.10" in parser.words["strong"]


def test_the_legend_is_in_words_beside_the_drawing(page: tuple[Parsed, str]) -> None:
    for label in ("votes", "beliefs", "best client", "votes, published"):
        assert label in page[0].words["span"]


def test_curves_take_the_pages_colours_in_light_and_dark(page: tuple[Parsed, str]) -> None:
    text = page[1]
    drawings = text[text.index("<main>") :]
    assert "currentColor" in drawings
    assert "#1a1a1a" not in drawings
    assert "var(--curve-0, #0072b2)" in drawings
    assert "opacity: var(--faint)" in drawings
    assert "0.35" not in drawings
    for media in ("prefers-color-scheme: dark", "@media print", "max-width: 36rem"):
        assert media in text


def test_the_page_says_where_the_numbers_come_from(page: tuple[Parsed, str]) -> None:
    said = dict(zip(page[0].words["dt"], page[0].words["dd"], strict=True))
    assert said == {
        "commit": "0123456789ab",
        "versions": "python 3.11.2",
        "machine": "x86_64 Linux",
        "accountant": "paper, tight",
        "banks, digits": "seed 0, checksum abcdef0123456789",
    }


def test_the_same_findings_give_the_same_bytes(make_findings: Any, tmp_path: Path) -> None:
    found = [(tmp_path / f"{name}.json", make_findings(name)) for name in ("table1", "snr")]
    first = write_page(found, tmp_path).read_bytes()
    assert write_page(found, tmp_path).read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_legend_of_many_panels_is_one(make_findings: Any, make_figure: Any) -> None:
    parser, _ = parsed(make_findings(figures=(make_figure(5),)))
    assert len([each for each in parser.named("ul") if each.get("class") == "legend"]) == 1
    assert len([each for each in parser.named("svg") if each.get("role") == "img"]) == 5


# --- arbitrary words

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def normal(text: str) -> str:
    return " ".join(text.split())


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=9, max_size=9))
def test_arbitrary_words_survive(texts: list[str]) -> None:
    title, sentence, caption, head, cell, note, drawing, label, origin = texts
    table = Table("t", caption, (head,), ((Cell(cell, bold=True),),), notes=(note,))
    figure = Figure("f", drawing, (Panel(label, label, label, (Curve(label, (1.0,), (1.0,)),)),))
    parser, text = parsed(
        Findings("a", title, (sentence,), (table,), (figure,), notes=(note,), source={"commit": origin})
    )
    for tag, words in (
        ("h2", title),
        ("li", sentence),
        ("figcaption", caption),
        ("th", head),
        ("strong", cell),
        ("p", note),
        ("figcaption", drawing),
        ("span", label),
        ("dd", origin),
    ):
        assert normal(words) in [normal(word) for word in parser.words[tag]] or not normal(words)
    assert len(parser.named("section")) == 1
    assert "<script" not in text


def test_words_cannot_leave_their_place() -> None:
    attack = '--></svg></style><script>alert(1)</script>"><img src=x onerror=y id="z" href="#q" url(#u)'
    panel = Panel(attack, attack, attack, (Curve(attack, (1.0,), (1.0,)),))
    table = Table("t", attack, (attack,), ((Cell(attack),),), notes=(attack,))
    parser, text = parsed(
        Findings("a", attack, (attack,), (table,), (Figure("f", attack, (panel,)),), source={attack: attack})
    )
    assert not {"script", "img"} & {tag for tag, _ in parser.elements}
    assert "<script" not in text


# --- gathering


def put(folder: Path, name: str, findings: Findings) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record(findings))
    return path


def test_the_papers_experiments_come_first_then_the_others_by_name(tmp_path: Path, make_findings: Any) -> None:
    names = ["budget", "noise", "clients", "snr", "table1", "participation", "figure2", "another"]
    for name in names:
        put(tmp_path, f"{name}.json", make_findings(name, figures=(), tables=()))
    gathered = gather(tmp_path)
    assert [findings.name for _, findings in gathered.found] == [
        *("table1", "figure2", "snr", "participation", "noise"),
        *("another", "budget", "clients"),
    ]
    assert gathered.complaints == ()


def test_findings_deep_below_are_told_apart_by_their_folder(tmp_path: Path, make_findings: Any) -> None:
    for place in ("cifar10/table1.json", "imdb/deeper/table1.json"):
        put(tmp_path, place, make_findings(figures=(), tables=()))
    parser = Parsed()
    parser.feed(html(gather(tmp_path).found, tmp_path))
    assert {"(cifar10)", "(imdb/deeper)"} <= set(parser.words["span"])


@pytest.mark.parametrize(
    "foreign",
    [
        b"{}",
        b"[1, 2]",
        b'"text"',
        b"not json at all",
        b"",
        b"\xff\xfe\x00",
        b'{"format": "1"}',
        b'{"mine": "airchoir findings 1"}',
    ],
)
def test_what_others_wrote_is_passed_over(foreign: bytes, tmp_path: Path, make_findings: Any) -> None:
    put(tmp_path, "table1.json", make_findings())
    (tmp_path / "other.json").write_bytes(foreign)
    (tmp_path / "folder.json").mkdir()
    gathered = gather(tmp_path)
    assert [findings.name for _, findings in gathered.found] == ["table1"]
    assert gathered.complaints == ()


def test_damaged_findings_are_named_one_line_each(tmp_path: Path, make_findings: Any) -> None:
    whole = put(tmp_path, "table1.json", make_findings()).read_text()
    (tmp_path / "cut.json").write_text(whole[: len(whole) // 2])
    (tmp_path / "newer.json").write_text(whole.replace("airchoir findings 1", "airchoir findings 9"))
    (tmp_path / "odd.json").write_text(whole.replace('"title"', '"titel"'))
    (tmp_path / "bytes.json").write_bytes(whole.encode().replace(b"First", b"\xff"))
    gathered = gather(tmp_path)
    assert [findings.name for _, findings in gathered.found] == ["table1"]
    assert len(gathered.complaints) == 4
    for complaint, name in zip(gathered.complaints, ("bytes", "cut", "newer", "odd"), strict=True):
        assert complaint.startswith(str(tmp_path / f"{name}.json"))
        assert "\n" not in complaint
        assert "; " in complaint


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is no folder; "):
        gather(tmp_path / "missing")
