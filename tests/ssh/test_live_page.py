"""A run on real nodes, seen in a real browser while it goes on; and a node whose cable is pulled."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.served_page import served
from tests.browser.test_live_page import browser, complaints, go, page
from tests.conftest import NEEDS
from tests.ssh.drill import PATIENCE_S, TEST_S, Drill
from tests.ssh.lab import Lab

__all__ = ["browser", "complaints", "page"]

pytestmark = [pytest.mark.timeout(TEST_S), pytest.mark.slow]

PATIENCE_MS = PATIENCE_S * 1e3
# Whether a node on the map is filled with a colour of the page.
FILLED = """([node, name]) => {
  const place = roveStats.where("node", node);
  if (place === null) return false;
  const canvas = document.querySelector("[data-testid=map]");
  const scale = canvas.width / canvas.clientWidth;
  const box = [place[0] - 8, place[1] - 8, 16, 16].map((each) => Math.round(each * scale));
  const copy = new OffscreenCanvas(box[2], box[3]).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, ...box, 0, 0, box[2], box[3]);
  const drawn = copy.getImageData(0, 0, box[2], box[3]).data;
  const wanted = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const parts = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
  for (let at = 0; at < drawn.length; at += 4) {
    if (parts.every((part, index) => drawn[at + index] === part)) return true;
  }
  return false;
}"""


@pytest.fixture(scope="module", autouse=True)
def chromium() -> None:
    if reason := NEEDS["browser"]():
        pytest.skip(reason)


def age(page: Page, node: str) -> str:
    words = page.get_by_test_id("nodes").locator(f"[data-node={node}]").inner_text()
    found = re.search(r"unreachable for ([\d.]+) s", words)
    assert found, words
    return found[1]


def test_a_lost_connection_makes_a_node_grey_with_its_age_until_it_is_back(lab: Lab, page: Page) -> None:
    lost = lab.nodes[-1]
    others = f"{len(lab.nodes) - 1} of {len(lab.nodes)}"
    with Drill(lab, "page", duration="180s") as drill, served(lab.environment) as address:
        drill.reach("measure")
        go(page, f"{address}?run={drill.run.id}")
        row = page.get_by_test_id("nodes").locator(f"[data-node={lost.name}]")
        well = page.get_by_test_id("health-nodes")
        expect(page.get_by_test_id("sentence")).to_contain_text("Stream goes camera/0 (n01)")
        expect(well).to_contain_text(f"all {len(lab.nodes)} well")
        page.wait_for_function(FILLED, arg=[lost.name, "node"])
        assert not drill.run.verdict.exists(), "it is seen while it goes on"

        lost.pull_cable()
        try:
            expect(row).to_have_class("dead", timeout=PATIENCE_MS)
            expect(well).to_contain_text(f"{others} well; {lost.name} unreachable")
            page.wait_for_function(FILLED, arg=[lost.name, "dead"])
            before = age(page, lost.name)
            expect(row).not_to_contain_text(f"unreachable for {before} s")
            assert float(age(page, lost.name)) > float(before)
        finally:
            lost.plug_cable()
        expect(row).not_to_have_class("dead", timeout=PATIENCE_MS)
        expect(well).to_contain_text(f"all {len(lab.nodes)} well")
        page.wait_for_function(FILLED, arg=[lost.name, "node"])
        assert not drill.run.verdict.exists()
        page.goto("about:blank")  # or it would ask a server that has ended
        drill.process.terminate()
        drill.finish()
