"""A real run in namespaces, watched by a real browser while it goes on, and played again from one file.

Screenshots stay in ``build/screenshots``, or where ``ROVE_SCREENSHOTS`` says, to be looked at.
"""

import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.runs.run_directory import RunDirectory
from tests.browser.served_page import served
from tests.browser.test_live_page import browser, canvas, complaints, go, page, shown_time, where
from tests.conftest import NEEDS
from tests.unit.rove_process import (
    RUN_ID,
    environment,
    experiment_file,
    finish,
    rove,
    run_under_test,
    start,
    wait_for_phase,
)

__all__ = ["browser", "complaints", "page"]

pytestmark = [pytest.mark.timeout(580), pytest.mark.slow]

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TOPOLOGY = {
    "name": "live",
    "nodes": 8,
    "area": "600 m x 600 m",
    "mobility": {"model": "random_waypoint", "speed": "10 m/s", "pause": "0 s"},
    "radio": {"model": "80211b", "tx_power": "-10 dBm", "pathloss": {"model": "two_ray"}},
}
QUERY = {
    "name": "face_recognition",
    "width": 160,
    "height": 120,
    "rate": "4 fps",
    "persons": 3,
    "enrolled": 2,
}
# Both replicas crash in turn, until all was seen: whichever the stream passes, it has to switch.
SECONDS = 300
FAULTS = [
    {"at": f"{at}s", "for": "4s", "crash": {"operator": "detect", "replica": number % 2}}
    for number, at in enumerate(range(4, SECONDS - 10, 9))
]


@pytest.fixture(scope="module", autouse=True)
def chromium() -> None:
    if reason := NEEDS["browser"]():
        pytest.skip(reason)


def keep(page: Page, name: str) -> None:
    folder = Path(os.environ.get("ROVE_SCREENSHOTS", SCREENSHOTS))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png")


def test_a_run_in_namespaces_is_seen_live_and_played_again(
    page: Page, browser: Browser, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    file = experiment_file(
        tmp_path,
        without=("placement",),
        name="line",
        topology=TOPOLOGY,
        backend="netns",
        routing="olsr",
        query=QUERY,
        replicas=2,
        placement={"policy": "random"},
        faults=FAULTS,
        warmup="2s",
        duration=f"{SECONDS}s",
    )
    with run_under_test(root) as run:
        process = start(root, file, "--no-analyze", "--json")
        wait_for_phase(run, "measure")
        with served(environment(root)) as address:
            try:
                go(page, f"{address}?run={RUN_ID}")
                watch(page)
                process.send_signal(signal.SIGINT)
                code, _, err = finish(process)
                assert code == 130, err
                expect(page.get_by_test_id("live")).to_have_text("End")
                page.get_by_test_id("live").click()
                expect(page.get_by_test_id("health-verdict")).to_contain_text("interrupted by user")
            finally:
                page.goto("about:blank")  # it would ask a server that has gone
        play_again(browser, root, run, tmp_path)


def watch(page: Page) -> None:
    """What one sees while it goes on."""
    sentence = page.get_by_test_id("sentence")
    expect(sentence).to_contain_text(re.compile(r"Stream goes camera/0 \(n\d+\) → detect/\d"))
    before = canvas(page)
    picture = page.get_by_test_id("picture")
    expect(picture).to_be_visible(timeout=20_000)
    frame = picture.get_attribute("data-frame")
    look_back(page)
    expect(page.get_by_test_id("health-nodes")).to_contain_text("crashed")
    keep(page, "crash")
    lost = re.compile("did not answer any more|could no longer be reached")
    expect(page.get_by_test_id("switches")).to_contain_text(lost)
    expect(sentence).to_contain_text(re.compile("Last switch .*because "))
    assert canvas(page) != before
    expect(picture).not_to_have_attribute("data-frame", frame or "")
    ask_for_the_hop(page)
    keep(page, "switch")
    page.mouse.move(5, 5)
    expect(page.get_by_test_id("nodes").locator(".dead")).to_have_count(0)


def look_back(page: Page) -> None:
    """Shows a past moment and returns to the present."""
    page.get_by_test_id("slider").fill("1")
    expect(page.get_by_test_id("live")).to_have_text("Back to live")
    expect(page.get_by_test_id("time")).to_contain_text("1.0 s of")
    keep(page, "past")
    page.get_by_test_id("live").click()
    expect(page.get_by_test_id("live")).to_have_text("● Live")


def ask_for_the_hop(page: Page) -> None:
    """Points at the camera's hop; once more if nodes moved before the pointer got there."""
    title = page.get_by_test_id("details").locator("h3")
    for _ in range(10):
        page.mouse.move(*where(page, "hop", "camera/0>detect"))
        page.wait_for_function("before => roveStats.drawn > before", arg=page.evaluate("roveStats.drawn"))
        if title.is_visible() and title.inner_text().startswith("camera/0 → detect/"):
            break
    expect(title).to_have_text(re.compile(r"camera/0 → detect/\d"))
    expect(page.get_by_test_id("details")).to_contain_text("to the sinks")


def play_again(browser: Browser, root: Path, run: RunDirectory, tmp_path: Path) -> None:
    """The replay file, from disk, without a network."""
    file = tmp_path / "replay.html"
    written = rove(root, "report", run.id, "--replay", "--output", str(file))
    assert written.returncode == 0, written.stderr
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    go(page, file.as_uri())
    expect(page.get_by_test_id("sentence")).to_contain_text("Last switch")
    expect(page.get_by_test_id("picture")).to_be_visible()
    begin = shown_time(page)
    page.get_by_test_id("speed").select_option("8")
    page.get_by_test_id("play").click()
    page.wait_for_function(
        "t => Math.abs(Number(document.querySelector('[data-testid=slider]').value) - t) > 3", arg=begin
    )
    keep(page, "replay")
    assert said == []
    context.close()
