"""The report in a real browser: it needs no network, shows every figure, and fits a phone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pyspark.sql import SparkSession

from orchestrator.analytics.pipeline import write_report
from tests.synthetic_runs import small_sweep

CHROMIUM = "/usr/bin/chromium"
FIGURES = ["goodput-time", "latency", "factor", "fates", "routes", "map", "connectivity", "degree"]

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    return write_report(small_sweep(tmp_path_factory.mktemp("runs"), seeds=(1, 2)), spark=spark)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the page asked for beyond itself, and what the browser said about it."""
    return []


@pytest.fixture
def page(browser: Browser, complaints: list[str]) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("request", lambda request: complaints.append(f"request: {request.url}"))
    yield page
    context.close()


def test_it_opens_from_a_file_and_asks_for_nothing_else(
    page: Page, report: Path, complaints: list[str]
) -> None:
    page.goto(report.as_uri())
    assert complaints == [f"request: {report.as_uri()}"]
    assert page.title() == "sweep · Rove report"
    assert "Valid" in page.locator(".verdict").inner_text()


def test_every_figure_is_there_with_a_size_and_a_text_for_those_who_cannot_see_it(
    page: Page, report: Path
) -> None:
    page.goto(report.as_uri())
    figures = page.locator("figure")
    assert [figure.get_attribute("id") for figure in figures.all()] == FIGURES
    for drawing in page.locator("figure svg").all():
        box = drawing.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 60
        assert len(drawing.get_attribute("aria-label") or "") > 20
    names = page.evaluate("[...document.querySelectorAll('[id]')].map(element => element.id)")
    assert len(names) == len(set(names))


def test_the_result_table_has_a_row_for_each_cell(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    rows = page.locator("table").first.locator("tbody tr").all()
    assert [row.locator("td").first.inner_text() for row in rows] == ["k = 1", "k = 2", "k = 3"]
    assert "1.81×" in rows[2].inner_text()  # of goodput


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_only_wide_things_scroll_not_the_page(browser: Browser, report: Path, scheme: str) -> None:
    dark = scheme == "dark"
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    background, ink = page.evaluate(
        "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
    )
    brightness = [sum(int(part) for part in colour[4:-1].split(",")) for colour in (background, ink)]
    assert (brightness[0] < brightness[1]) == dark
    context.close()
