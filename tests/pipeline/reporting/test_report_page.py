"""The page: what it says, and how it behaves in a browser (skipped where there is none)."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.reporting.browser import Browser, chromium
from tests.pipeline.reporting.conftest import arrays_of, facts_of, scored, write
from utility_calibration.pipeline.reporting.leaderboard import leaderboard_of
from utility_calibration.pipeline.reporting.names import METHODS
from utility_calibration.pipeline.reporting.page import report_html, report_markdown
from utility_calibration.pipeline.reporting.sections import section_of
from utility_calibration.pipeline.reporting.tables import TableSpec
from utility_calibration.pipeline.scoring.files import ScoreFiles

NAUGHTY = "<script>alert(1)</script> costs $5 & more"
KEYS = ("accuracy", "brier", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_dcg")
MADE = {"what": "Suite tests.", "configuration": "splits: 4"}
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
    }  # fmt: skip
    return {"name": "class <cat>", "utility": 3, "low": 0.0, "high": 0.5, "share": 0.62,
            "gap": level, "gain": level / 9, "threshold": 0.4, "act_from": 0.47,
            "diagram": diagram}  # fmt: skip


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
def html(sections):
    leaderboard = leaderboard_of({one.spec.title: one.decisions for one in sections})
    return report_html("Title " + NAUGHTY, "the tests", sections, MADE, None, leaderboard)


def test_titles_are_text_everywhere_and_nothing_is_fetched(html, sections):
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; costs $5 &amp; more" in html
    assert "<script>" not in report_markdown("T " + NAUGHTY, sections)
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)""", html)
    assert "default-src 'none'" in html
    assert "http" not in re.sub(r"http-equiv|http://www\.w3\.org/\S+", "", html)


@pytest.mark.parametrize("count", [1, 2])
def test_a_page_begins_with_what_was_found_and_says_it_once(sections, count):
    """Of one benchmark what its present forecast costs, of several which method wins."""
    few = sections[:count]
    leaderboard = leaderboard_of({one.spec.title: one.decisions for one in few})
    page = report_html("T", "the tests", few, MADE, None, leaderboard)
    first = few[0].verdict.present[0] if leaderboard is None else leaderboard.headline
    assert page.index(first) < page.index("the tests") and page.count(first) == 1


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if chromium() is None:
        pytest.skip("no Chromium here; Debian has it: apt-get install chromium")
    tab = Browser(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()


@pytest.fixture(scope="module")
def file(html, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html, encoding="utf-8")
    return path


TABLE = "document.querySelector('section table.results')"


def first_column(browser):
    return browser.value(f"[...{TABLE}.tBodies[0].rows].map(r => r.dataset.method)")


def test_it_opens_from_a_file_without_error_and_asks_for_nothing_else(browser, file):
    browser.open(file)
    browser.wait("document.querySelectorAll('svg.chart').length >= 2")
    assert browser.complaints == []
    assert {url for url in browser.requests if not url.startswith("data:")} == {file.as_uri()}
    assert browser.value("document.title").startswith("Title <script>")


def test_a_click_on_a_heading_sorts_and_another_turns_the_order(browser, file):
    browser.open(file)
    heading = f"{TABLE}.querySelectorAll('thead button')[5]"
    browser.value(f"{heading}.click()")
    order = first_column(browser)
    assert order != list(LEVELS)
    values = browser.value(f"[...{TABLE}.tBodies[0].rows].map(r => +r.cells[5].dataset.value)")
    assert values == sorted(values)
    assert browser.value(f"{heading}.closest('th').getAttribute('aria-sort')") == "ascending"
    browser.value(f"{heading}.click()")
    assert first_column(browser) == order[::-1]


def test_a_row_hides_its_curves_and_the_switch_shows_intervals(browser, file):
    browser.open(file)
    drawn = "document.querySelectorAll('[data-section=b1] [data-method=patching].curve').length"
    browser.wait(f"{drawn} === 2")
    pick = f"{TABLE}.querySelector('tr[data-method=patching] .pick')"
    browser.value(f"{pick}.click()")
    assert browser.value(drawn) == 0
    shown = f"getComputedStyle({TABLE}.querySelector('td .%s')).display"
    browser.value("document.querySelector('input[value=interval]').click()")
    assert browser.value(shown % "spread") == "none"
    assert browser.value(shown % "interval") != "none"


def test_on_a_phone_nothing_is_cut_and_the_method_stays_in_sight(browser, file):
    browser.open(file, width=390, height=800)
    browser.value("document.querySelector('[data-chart]').scrollIntoView()")
    browser.wait("document.querySelectorAll('svg.chart').length >= 2")
    assert browser.value("document.documentElement.scrollWidth") <= 390
    signs = "document.querySelector('table.signs').closest('.scroll')"
    assert browser.value(f"{signs}.scrollWidth <= {signs}.clientWidth"), "all uses are in sight"
    scroll = f"{TABLE}.closest('.scroll')"
    browser.value(f"{scroll}.scrollLeft = 300")
    left = f"{TABLE}.tBodies[0].rows[0].cells[0].getBoundingClientRect().left"
    assert browser.value(left) == browser.value(f"{scroll}.getBoundingClientRect().left")


def test_every_column_fits_a_window_of_1280_pixels(browser):
    browser.open(Path(__file__).parents[3] / "results/cifar.html", width=1280)
    wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
    assert browser.value(f"{wide}.map(e => e.getAttribute('aria-label'))") == []
