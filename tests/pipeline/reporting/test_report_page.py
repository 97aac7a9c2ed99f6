"""The page: what it says, and how it behaves in a browser (skipped where there is none)."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from tests.pipeline.reporting.browser import CHROMIUM, seen_in
from tests.pipeline.reporting.conftest import arrays_of, facts_of, scored, write
from utility_calibration.pipeline.reporting.figures import drawings_of, ecdf_figure, svg_files
from utility_calibration.pipeline.reporting.leaderboard import leaderboard_of
from utility_calibration.pipeline.reporting.names import METHODS, method_name
from utility_calibration.pipeline.reporting.page import report_html, report_markdown
from utility_calibration.pipeline.reporting.sections import Curves, section_of
from utility_calibration.pipeline.reporting.style import draw_all
from utility_calibration.pipeline.reporting.tables import TableSpec
from utility_calibration.pipeline.scoring.files import ScoreFiles
from utility_calibration.pipeline.scoring.use_columns import UNSEEN

NAUGHTY = "<script>alert(1)</script> costs $5 & more"
KEYS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")
MADE = {"what": "Suite tests.", "configuration": "splits: 4"}
DRAWN = ("present", "worst_u_cwe")
LEVELS = dict(zip(METHODS, (0.08, 0.02, 0.03, 0.015, 0.018, 0.01, 0.012), strict=False))


def split_of(level, split, seed):
    random = np.random.default_rng([seed, split])
    values = {key: level * (1 + 0.1 * random.normal()) for key in KEYS}
    values["accuracy"] = 0.9 - level / 10
    return scored(split, values, arrays=arrays_of(level / 2, random, KEYS))


def record(level):
    at = np.linspace(0, 1, 21)
    curve = level * np.sin(np.pi * at)
    diagram = {
        "at": at.tolist(), "curve": curve.tolist(), "low": (-0.01 * np.ones(21)).tolist(),
        "high": (0.01 * np.ones(21)).tolist(),
        "bins": [[x, min(1.0, x + level), x - 0.02, x + 0.02] for x in at[::4].tolist()],
        "density": [[0.0, 0.5, 0.7], [0.5, 1.0, 0.3]],
    }  # fmt: skip
    return {"name": "class <cat>", "utility": 3, "low": 0.0, "high": 0.5, "share": 0.62,
            "gap": level, "gain": level / 9, "threshold": 0.4, "act_from": 0.47,
            "fresh_gain": level / 10, "fresh_half_width": 0.004, "diagram": diagram}  # fmt: skip


def section(benchmark, title, seed, folder):
    worst = {m: {"u_cwe": record(v), "u_topk": record(-v)} for m, v in LEVELS.items()}
    facts = facts_of(benchmark, 5, worst)
    parts = {m: [split_of(level, k, seed) for k in range(5)] for m, level in LEVELS.items()}
    scores = write(ScoreFiles.below(folder, benchmark), parts, facts)
    return section_of(scores, list(LEVELS), [TableSpec(benchmark, title, KEYS)])


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nothing")
    return [section("b1", NAUGHTY, 0, folder), section("b2", "Second", 1, folder)]


@pytest.fixture(scope="module")
def figures(sections, tmp_path_factory):
    """The SVG files of the first section."""
    folder, first = tmp_path_factory.mktemp("figures"), sections[0]
    drawings = {kind: draw for kind, draw in drawings_of(first).items() if kind in DRAWN}
    drawings["ecdf"] = partial(ecdf_figure, [curves()], NAUGHTY)
    return {first.spec.name: svg_files(drawings, draw_all(drawings, folder, 1))}


def curves():
    levels = np.linspace(0.01, 1, 50)
    errors = {method: level * levels for method, level in LEVELS.items()}
    return Curves("linear", levels, errors, None, "", 50, "uniform", 5, None)


@pytest.fixture(scope="module")
def html(sections, figures):
    leaderboard = leaderboard_of({one.spec.title: one.decisions for one in sections})
    return report_html("Title " + NAUGHTY, "the tests", sections, MADE, None, leaderboard, figures)


def test_titles_are_text_everywhere_and_nothing_is_fetched(html, sections):
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; costs $5 &amp; more" in html
    assert "<script>" not in report_markdown("T " + NAUGHTY, sections)
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert "default-src 'none'" in html
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/\S+", "", html)


def test_figures_are_in_the_page_and_say_their_names(html):
    """Their parts have no names, because two figures would share some."""
    drawn = re.findall(r"<figure><svg.*?</svg>", html, re.DOTALL)
    assert len(drawn) == 2 and f"<title>{escape(NAUGHTY)}</title>" in drawn[0]
    for method in LEVELS:
        assert f"<g><title>{method_name(method)}</title>" in drawn[0]
    assert "<g id=" not in html and "<metadata" not in html and "<!--" not in html


@pytest.mark.parametrize("count", [1, 2])
def test_a_page_begins_with_what_was_found_and_says_it_once(sections, count):
    """Of one benchmark what its present forecast costs, of several which method wins."""
    few = sections[:count]
    leaderboard = leaderboard_of({one.spec.title: one.decisions for one in few})
    page = report_html("T", "the tests", few, MADE, None, leaderboard)
    first = few[0].verdict.answer.reason if leaderboard is None else leaderboard.headline
    assert page.index(first) < page.index("the tests") and page.count(first) == 1


def test_a_sign_explains_itself_where_a_class_has_too_few_cases(sections):
    """Its words have a place for the name of the class."""
    whole = sections[0]
    uses = [replace(use, signs=dict.fromkeys(use.signs, UNSEEN)) for use in whole.verdict.uses]
    rare = replace(whole, verdict=replace(whole.verdict, uses=uses))
    titles = re.findall(r'<td title="([^"]*)">\?', report_html("", "", [rare], MADE))
    assert titles and not any("{" in title for title in titles)


# ---- In a browser --------------------------------------------------------------------------------

TABLE = "const table = page.querySelector('section table.results');"
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here; Debian has it: apt-get install chromium"
)


@needs_browser
def test_it_opens_without_error_and_asks_for_nothing_else(html, tmp_path):
    script = """
    const asked = view.performance.getEntriesByType("resource").map((one) => one.name);
    return [page.title, view.errors, asked.filter((name) => !name.startsWith("data:"))]"""
    title, *others = seen_in(html, script, tmp_path)
    assert title.startswith("Title <script>") and others == [[], []]


@needs_browser
def test_a_click_on_a_heading_sorts_and_another_turns_the_order(html, tmp_path):
    script = f"""{TABLE}
    const sorted = () => {{
      const button = table.querySelectorAll("thead button")[5], rows = table.tBodies[0].rows;
      button.click();
      return [button.closest("th").getAttribute("aria-sort"),
        [...rows].map((row) => row.dataset.method),
        [...rows].map((row) => +row.cells[5].dataset.value)];
    }};
    return [...sorted(), sorted()[1]]"""
    sign, order, values, turned = seen_in(html, script, tmp_path)
    assert order != list(LEVELS) and order == turned[::-1]
    assert (sign, values) == ("ascending", sorted(values))


@needs_browser
def test_on_a_phone_nothing_is_cut_and_the_method_stays_in_sight(html, tmp_path):
    script = f"""{TABLE}
    const signs = page.querySelector("table.signs").closest(".scroll");
    const scroll = table.closest(".scroll"), left = (e) => e.getBoundingClientRect().left;
    scroll.scrollLeft = 300;
    return [page.documentElement.scrollWidth, signs.scrollWidth - signs.clientWidth,
      left(table.tBodies[0].rows[0].cells[0]) - left(scroll)]"""
    assert seen_in(html, script, tmp_path, 390, 800) == [390, 0, 0]


@needs_browser
def test_every_column_fits_a_window_of_1280_pixels(tmp_path):
    page = (Path(__file__).parents[3] / "results/cifar.html").read_text(encoding="utf-8")
    wide = "[...page.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
    script = f"return {wide}.map((e) => e.getAttribute('aria-label'))"
    assert seen_in(page, script, tmp_path, 1280) == []
