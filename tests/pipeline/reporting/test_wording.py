"""Texts of a person's file are text in Markdown, and numbers are as short as they may be."""

import re

import pytest
from markdown_it import MarkdownIt

from utility_calibration.pipeline.reporting.wording import (
    TextTable,
    escape_markdown,
    with_half,
)

NAUGHTY = ("a|b", "_x_", "u_losses", "*y*", "<b>z</b>", "`q`", "$1$", "[l](m)", "~~s~~", "a\\_b",
           "&lt;", "p < .05", "&amp; more", "![i](j)", "**", "1 * 2 * 3", "a_b_c")  # fmt: skip


def shown(markdown: str) -> list[str]:
    """The text of each part of Markdown as a reader sees it; no part may have markup in it."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parts = []
    for token in reader.parse(markdown):
        if token.type == "inline":
            kinds = {child.type for child in token.children or ()}
            assert kinds <= {"text", "text_special", "html_inline"} - {"html_inline"}, kinds
            parts.append("".join(child.content for child in token.children or ()))
        assert token.type != "html_block"
    return parts


@pytest.mark.parametrize("text", NAUGHTY)
def test_markdown_shows_the_text_as_it_is(text):
    assert shown(escape_markdown(text)) == [text]
    assert shown(f"- {escape_markdown(text)}") == [text]
    table = TextTable("Title", ("Method", text), [(text, "1")], "note").markdown()
    assert shown(table)[1:5] == ["Method", text, text, "1"]


@pytest.mark.parametrize("text", ["# h", "> q", "- l", "+ l"])
def test_what_begins_a_line_begins_no_heading_or_list(text):
    assert shown(escape_markdown(text)) == [text]


def test_a_reader_of_the_bare_file_meets_few_signs_of_escaping():
    assert escape_markdown("They differ (p < .0001), u_losses, 5 % & more") == (
        "They differ (p < .0001), u_losses, 5 % & more"
    )


def test_a_difference_may_be_told_with_the_other_sign():
    gap = {"difference": -0.25, "difference_half_width": 0.01}
    assert re.findall(r"[-.\d]+", with_half(gap, "difference", sign=-1)) == ["0.250", "0.010"]
