"""Those who watch a run: a real browser, plain readers of its stream, and somebody who scrapes its nodes."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = "/usr/bin/chromium"
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WIDTH, HEIGHT = 1440, 900
READY_MS = 60_000
ANSWER_S = 10.0
MOST_READ = 64 * 1024


@contextmanager
def chromium_page() -> Iterator["Page"]:
    """Opens an empty page in Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        try:
            yield browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        finally:
            browser.close()


@contextmanager
def browser_page(address: str, run: str) -> Iterator["Page"]:
    """Opens the page of a run in Chromium."""
    with chromium_page() as page:
        page.goto(f"{address}?run={run}")
        page.wait_for_selector("html[data-ready=yes]", timeout=READY_MS)
        yield page


class StreamReader(threading.Thread):
    """Reads a run's changes as a browser does, and counts them. Ends with the stream, or at ``stop``."""

    def __init__(self, address: str, run: str) -> None:
        super().__init__(daemon=True)
        self._url = f"{address}api/runs/{run}/changes"
        self._wanted = True
        self.bytes = 0

    def run(self) -> None:
        with suppress(OSError), urllib.request.urlopen(self._url, timeout=ANSWER_S * 6) as stream:
            while self._wanted and (part := stream.read1(MOST_READ)):
                self.bytes += len(part)

    def stop(self) -> None:
        self._wanted = False


@contextmanager
def stream_readers(address: str, run: str, count: int) -> Iterator[list[StreamReader]]:
    readers = [StreamReader(address, run) for _ in range(count)]
    for reader in readers:
        reader.start()
    try:
        yield readers
    finally:
        for reader in readers:
            reader.stop()


class Scraper(threading.Thread):
    """Asks for the metrics of every target that the server names, as Prometheus does."""

    def __init__(self, address: str, period_s: float) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._period_s = period_s
        self._wanted = threading.Event()
        self.scrapes = 0
        self.failures = 0

    def run(self) -> None:
        while not self._wanted.wait(self._period_s):
            for path in self._targets():
                try:
                    with urllib.request.urlopen(self._address.rstrip("/") + path, timeout=ANSWER_S) as answer:
                        answer.read()
                    self.scrapes += 1
                except OSError:
                    self.failures += 1

    def stop(self) -> None:
        self._wanted.set()

    def _targets(self) -> list[str]:
        with suppress(OSError, ValueError):
            with urllib.request.urlopen(f"{self._address}sd", timeout=ANSWER_S) as answer:
                groups = json.loads(answer.read())
            return [group["labels"]["__metrics_path__"] for group in groups]
        return []


@contextmanager
def everybody(address: str, run: str, readers: int, scrape_s: float) -> Iterator["tuple[Page, Scraper]"]:
    """Opens one browser, ``readers`` more streams, and scrapes all nodes every ``scrape_s`` seconds."""
    with ExitStack() as held:
        page = held.enter_context(browser_page(address, run))
        held.enter_context(stream_readers(address, run, readers))
        scraper = Scraper(address, scrape_s)
        scraper.start()
        held.callback(scraper.stop)
        yield page, scraper
