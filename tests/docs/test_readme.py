"""The README can be read to its end: its budget, its links, and what it quotes from results."""

from __future__ import annotations

import json
from statistics import mean

import pytest

from tests.docs.pages import (
    PAGES,
    README,
    ROOT,
    blocks,
    links,
    name_of,
    paragraphs,
    sentences,
    words,
)

VERDICT = ROOT / "results" / "tables" / "cifar100_resnet_verdict.json"
LONGER = {"docs/tutorial.md"}
"""Pages that may have more lines than the others: a tutorial is read with its code."""


def test_the_readme_has_at_most_150_lines_and_1200_words() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert len(text.split()) <= 1200


def test_a_sentence_of_the_readme_has_15_words_on_average() -> None:
    lengths = [len(words(part)) for text in paragraphs(README) for part in sentences(text)]
    assert len(lengths) > 30
    assert mean(lengths) <= 15


def test_no_paragraph_of_the_readme_has_more_than_60_words() -> None:
    for paragraph in paragraphs(README):
        assert len(words(paragraph)) <= 60, paragraph


def test_the_first_ten_lines_say_whose_implementation_this_is() -> None:
    first = " ".join(README.read_text(encoding="utf-8").splitlines()[:10])
    for words_of_it in ("independent implementation", "2510.25458", "authors' repository"):
        assert words_of_it in first


def test_the_verdict_on_the_first_screen_is_the_committed_one() -> None:
    shown = " ".join(blocks(README)[0].text.split())
    printed = " ".join(json.loads(VERDICT.read_text(encoding="utf-8"))["verdict"])
    for sentence in shown.replace("it. With", "it.\nWith").splitlines():
        assert sentence in printed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_readme_links_every_page_once(page) -> None:
    assert links(README).count(name_of(page)) == 1


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_answers_one_question_in_at_most_150_lines(page) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    if name_of(page) not in LONGER:
        assert len(lines) <= 150
        assert lines[0].endswith("?")


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_every_relative_link_leads_to_a_file(page) -> None:
    for link in links(page):
        if not link.startswith(("http://", "https://", "#")):
            assert (page.parent / link.split("#")[0]).is_file(), link
