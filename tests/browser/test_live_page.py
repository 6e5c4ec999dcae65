"""The live page in a real browser, over a made-up run: what it shows, moving in time, what it survives."""

import base64
import gzip
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from orchestrator.live.inlining import standalone
from orchestrator.live.server.assets import page_files
from orchestrator.runs.timeline import Change
from tests.browser.mock_server import MockServer, picture
from tests.browser.own_network import apart
from tests.browser.timeline_world import World, make_world

CHROMIUM = "/usr/bin/chromium"
WORLD = World()
QUERY = "face_recognition"
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'

IDLE = {"in": 0, "out": 0, "done": 0, "dropped": 0, "bytes": 0}

PATIENCE_MS = 60_000  # of a busy machine

pytestmark = pytest.mark.timeout(180)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with ExitStack() as stack:
        with apart():
            playwright = stack.enter_context(sync_playwright())
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def world() -> tuple[dict[str, Any], list[Change]]:
    return make_world(WORLD)


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What the browser complained about: nothing, at the end of every test."""
    found: list[str] = []
    yield found
    assert found == []


@pytest.fixture
def page(browser: Browser, complaints: list[str]) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield opened(context.new_page(), complaints)
    context.close()


@pytest.fixture
def finished(world: tuple[dict[str, Any], list[Change]]) -> Iterator[MockServer]:
    with MockServer(*world) as server:
        yield server


def opened(page: Page, complaints: list[str]) -> Page:
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    return page


def go(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready=yes]")


def text_of(page: Page, name: str) -> str:
    return page.get_by_test_id(name).inner_text()


def canvas(page: Page) -> bytes:
    return page.get_by_test_id("map").screenshot()


def where(page: Page, kind: str, name: str | None = None) -> tuple[float, float]:
    """The place of something on the map, on the screen."""
    page.wait_for_function("([kind, name]) => roveStats.where(kind, name) !== null", arg=[kind, name])
    x, y = page.evaluate("([kind, name]) => roveStats.where(kind, name)", [kind, name])
    box = page.get_by_test_id("map").bounding_box()
    assert box is not None
    return box["x"] + x, box["y"] + y


def last_switch(changes: list[Change], until: float, by: str) -> Change:
    found = [c for c in changes if c.channel == "route" and c.t <= until and c.value["switch"]]
    return [c for c in found if c.key.startswith(f"{by}>")][-1]


def shown_time(page: Page) -> float:
    return float(page.get_by_test_id("slider").input_value())


def test_a_run_that_goes_on_is_seen_moving_and_its_switch_is_explained(
    page: Page, world: tuple[dict[str, Any], list[Change]]
) -> None:
    head, changes = world
    switch = next(c for c in changes if c.channel == "route" and c.t >= WORLD.crash_at and c.value["switch"])
    with MockServer(head, changes) as server:
        server.go(WORLD.crash_at - 3)
        go(page, server.url("?run=x"))
        before = canvas(page)
        expect(page.get_by_test_id("live")).to_have_text("● Live")
        expect(page.get_by_test_id("sentence")).to_contain_text("Stream goes camera/0 (")
        sentence = page.get_by_test_id("sentence")
        expect(sentence).to_contain_text(f"{switch.value['old']} → {switch.value['to']}")
        expect(sentence).to_contain_text("did not answer any more")
        assert canvas(page) != before
        frame = page.get_by_test_id("picture").get_attribute("data-frame")
        page.wait_for_function(
            "frame => document.querySelector('[data-testid=picture]').dataset.frame !== frame", arg=frame
        )


def test_a_crashed_node_is_grey_with_reason_and_age_and_comes_back(
    page: Page, finished: MockServer, world: tuple[dict[str, Any], list[Change]]
) -> None:
    crash = next(c for c in world[1] if c.channel == "node" and c.value["state"] == "crashed")
    go(page, finished.url(f"?run=x#t={WORLD.crash_at + 5}"))
    row = page.get_by_test_id("nodes").locator(f"[data-node={crash.key}]")
    expect(row).to_contain_text("crashed for 5.0 s: the fault crash killed its agent")
    expect(page.get_by_test_id("health-nodes")).to_contain_text(f"24 of 25 well; {crash.key} crashed")
    row.click()
    expect(page.get_by_test_id("details")).to_contain_text("crashed since 40.0 s")
    page.get_by_test_id("slider").focus()
    for _ in range(2):
        page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_test_id("health-nodes")).to_contain_text("all 25 well")
    expect(page.get_by_test_id("events")).to_contain_text("is started again")


@pytest.mark.parametrize(
    ("limits", "channel", "values", "level", "words"),
    [
        (None, "host", {"": (0.1, 45)}, "warn", "busy: timers 45 ms late (limit 20 ms)"),
        (None, "host", {"": (0.6, 1)}, "warn", "busy: waited 60 % (limit 50 %)"),
        (None, "delay", {"": (1.6, 1)}, "warn", "busy: waits of 1.6 ms (limit 1 ms)"),
        (None, "delay", {"": (0.4, 1)}, "good", "keeps up, waits of 0.4 ms"),
        (None, "host", {"a": (0.1, 1), "b": (0.2, 19)}, "good", "keeps up (b)"),
        ({"waited": 0.05, "late_ms": 60}, "host", {"": (0.1, 45)}, "warn", "waited 10 % (limit 5.0 %)"),
        ({"waited": 0.7, "late_ms": 60}, "host", {"": (0.6, 45)}, "good", "keeps up"),
        (None, "clock", {"n01": (2, 0.3), "n02": (1, 500)}, "warn", "n02 known to within 500 ms only"),
        (None, "clock", {"n01": (2, 12), "n02": (1, 0.3)}, "good", "2.0 ms off at most (n01)"),
        ({"uncertainty_ms": 5}, "clock", {"n01": (2, 12)}, "warn", "n01 known to within 12 ms only (limit 5"),
        (None, "radio", {"": (0.02, 900)}, "warn", "2.0 % late (limit 1.0 %)"),
        ({"late_ratio": 0.03}, "radio", {"": (0.02, 900)}, "good", "2.0 % late"),
    ],
)
def test_health_is_judged_by_the_limits_of_the_verdict(
    page: Page,
    world: tuple[dict[str, Any], list[Change]],
    limits: dict[str, float] | None,
    channel: str,
    values: dict[str, tuple[float, float]],
    level: str,
    words: str,
) -> None:
    names = {
        "host": ("waited", "late_ms"),
        "delay": ("delay_ms", "late_ms"),
        "clock": ("offset_ms", "uncertainty_ms"),
        "radio": ("late_ratio", "p99_us"),
    }
    fields, channel = names[channel], "host" if channel == "delay" else channel
    head = {**world[0], "limits": limits} if limits else world[0]
    others = [c for c in world[1] if c.channel != channel]
    told = [
        Change(5.0, "", channel, key, dict(zip(fields, pair, strict=True))) for key, pair in values.items()
    ]
    with MockServer(head, sorted([*others, *told], key=lambda change: change.t)) as server:
        go(page, server.url("?run=x#t=20"))
        item = page.get_by_test_id("health-clocks" if channel == "clock" else f"health-{channel}")
        expect(item).to_have_attribute("data-level", level)
        expect(item).to_contain_text(words)


def test_links_by_snr_can_be_chosen_only_where_it_is_known(
    page: Page, world: tuple[dict[str, Any], list[Change]]
) -> None:
    head, changes = world
    seeds = {**head, "factors": {"seed": head["seed"], "replicas": 3}}
    with MockServer(seeds, changes) as server:
        go(page, server.url("?run=x#t=20"))
        page.get_by_test_id("measure-snr").click()
        expect(page.get_by_test_id("measure-snr")).to_have_attribute("aria-pressed", "true")
        expect(page.locator("header .facts").get_by_text(f"seed {head['seed']}")).to_have_count(1)
    with MockServer(head, [c for c in changes if c.channel != "signal"]) as server:
        go(page, server.url("?run=x#t=20"))
        expect(page.get_by_test_id("measure-etx")).to_be_visible()
        expect(page.get_by_test_id("measure-snr")).to_be_hidden()
        page.keyboard.press("e")
        expect(page.get_by_test_id("measure-etx")).to_have_attribute("aria-pressed", "true")


def test_pointing_at_a_stream_tells_why_it_goes_there_and_what_else_it_could_cost(
    page: Page, finished: MockServer, world: tuple[dict[str, Any], list[Change]]
) -> None:
    at = WORLD.crash_at + 2.5
    switch = last_switch(world[1], at, "camera/0")
    go(page, finished.url(f"?run=x#t={at}"))
    page.mouse.move(*where(page, "hop", switch.key))
    details = page.get_by_test_id("details")
    expect(details).to_contain_text(switch.value["why"])
    for cost in switch.value["costs"]:
        expect(details).to_contain_text(cost["to"])
    page.mouse.move(5, 5)
    expect(details).to_be_hidden()
    page.mouse.move(*where(page, "link"))
    expect(details).to_contain_text("ETX")


def test_what_the_pointer_rests_on_stays_chosen_while_it_moves_on(page: Page, finished: MockServer) -> None:
    go(page, finished.url("?run=x#t=20"))
    place = where(page, "node", "n07")
    page.mouse.move(*place)
    details = page.get_by_test_id("details").locator("h3")
    expect(details).to_have_text("n07")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.get_by_test_id("time")).to_contain_text("30.0 s")
    assert where(page, "node", "n07") != pytest.approx(place, abs=20)
    expect(details).to_have_text("n07")
    page.mouse.move(5, 5)
    expect(details).to_be_hidden()


def test_the_slider_goes_back_while_the_run_goes_on_and_returns_to_live(
    page: Page, world: tuple[dict[str, Any], list[Change]]
) -> None:
    with MockServer(*world) as server:
        server.go(30)
        go(page, server.url("?run=x"))
        page.wait_for_function("() => Number(document.querySelector('[data-testid=slider]').max) > 30.5")
        page.get_by_test_id("slider").fill("12")
        expect(page.get_by_test_id("live")).to_have_text("Back to live")
        expect(page.get_by_test_id("health-phase")).to_contain_text("warm-up, 8.0 s of 10 s")
        expect(page.get_by_test_id("time")).to_contain_text("12.0 s of")
        page.get_by_test_id("live").click()
        expect(page.get_by_test_id("live")).to_have_text("● Live")
        assert shown_time(page) > 30


def test_keys_move_time_change_speed_and_open_help(page: Page, finished: MockServer) -> None:
    go(page, finished.url("?run=x#t=40"))
    expect(page.get_by_test_id("time")).to_contain_text("40.0 s")
    for key, then in (
        ("ArrowRight", 41),
        ("Shift+ArrowRight", 51),
        ("ArrowLeft", 50),
        ("Shift+ArrowLeft", 40),
    ):
        page.keyboard.press(key)
        expect(page.get_by_test_id("slider")).to_have_value(str(then))
    page.keyboard.press("Home")
    expect(page.get_by_test_id("slider")).to_have_value("0")
    page.keyboard.press("+")
    page.keyboard.press("+")
    expect(page.get_by_test_id("speed")).to_have_value("4")
    page.keyboard.press("-")
    expect(page.get_by_test_id("speed")).to_have_value("2")
    page.keyboard.press("Space")
    page.wait_for_function("() => Number(document.querySelector('[data-testid=slider]').value) > 1")
    page.keyboard.press("Space")
    expect(page.get_by_test_id("play")).to_have_attribute("data-filled", "play")
    held = shown_time(page)
    page.wait_for_timeout(300)
    assert shown_time(page) == held
    page.keyboard.press("]")
    page.wait_for_function(
        "t => Number(document.querySelector('[data-testid=slider]').value) > t + 1", arg=held
    )
    page.keyboard.press("?")
    expect(page.get_by_test_id("help")).to_be_visible()
    expect(page.get_by_test_id("help")).to_contain_text("play or pause")
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("help")).to_be_hidden()
    page.keyboard.press("End")
    expect(page.get_by_test_id("health-verdict")).to_contain_text("valid")


def test_everything_can_be_reached_by_tab_and_has_a_name(page: Page, finished: MockServer) -> None:
    go(page, finished.url("?run=x#t=40"))
    expect(page.get_by_test_id("nodes").locator("button")).to_have_count(25)
    nameless = page.evaluate(
        """[...document.querySelectorAll('button, input, select, a')].filter(
             each => !(each.getAttribute('aria-label') || each.textContent.trim())).length"""
    )
    assert nameless == 0
    reached = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.getAttribute('data-testid')"))
    assert {"control-stop", "help-button", "theme", "measure-etx", "measure-snr"} <= reached


def test_names_and_reasons_of_others_are_text(page: Page) -> None:
    head, changes = make_world(WORLD)
    head = json.loads(
        json.dumps(head).replace("camera", "cam<b>era").replace("n19", HOSTILE.replace('"', '\\"'))
    )
    spoilt = [
        change._replace(
            key=change.key.replace("camera", "cam<b>era").replace("n19", HOSTILE),
            value={**change.value, "why": HOSTILE, "text": HOSTILE, "so_far": [HOSTILE]}
            if isinstance(change.value, dict) and change.channel in ("route", "node", "event", "verdict")
            else change.value,
        )
        for change in changes
    ]
    broken: list[Any] = [
        Change(20.0, QUERY, "route", "cam<b>era/0>detect", {"to": 7, "shares": [1], "costs": "none"}),
        Change(20.5, "", "position", "n02", ["x", None]),
        Change(20.5, "", "link", "n02>n03", "strong"),
        Change(20.5, "", "verdict", "", 3),
        ["soon", "", "event", "", {}],
    ]
    with MockServer({**head, "experiment": HOSTILE}, sorted(spoilt, key=lambda c: c.t)) as server:
        go(page, server.url("?run=x#t=60"))
        expect(page.get_by_test_id("sentence")).to_contain_text("cam<b>era/0 (<img src=x")
        page.get_by_test_id("nodes").locator("button").first.click()
        expect(page.get_by_test_id("events")).to_contain_text("<img src=x onerror")
        assert page.locator("img:not([data-testid=picture])").count() == 0
        assert page.title().endswith("– Rove")
        server.changes = sorted([*spoilt, *broken[:4]], key=lambda c: c.t)
        go(page, server.url("?run=y#t=21"))
        expect(page.get_by_test_id("time")).to_contain_text("21.0 s")


def test_without_positions_nodes_are_laid_out_once_and_stay(page: Page) -> None:
    with MockServer(*make_world(World(positions=False, flows=True))) as server:
        go(page, server.url("?run=x#t=30"))
        first = where(page, "node", "n05")
        page.keyboard.press("Shift+ArrowRight")
        expect(page.get_by_test_id("time")).to_contain_text("40.0 s")
        assert where(page, "node", "n05") == pytest.approx(first, abs=0.01)
        expect(page.get_by_test_id("flows")).to_contain_text("background")
        expect(page.get_by_test_id("flows")).to_contain_text("Mb/s")


def test_a_detection_of_events_is_shown_with_delays_links_and_departures(page: Page) -> None:
    head, changes = make_world(World())
    pattern = {"name": "fire", "pattern": "and(smoke, heat; 10s)", "sink": "n01", "promised": 60.0}
    carrier = {"name": "n02 > n01", "from": "n02", "to": "n01", "pushed": ["smoke"], "pulled": ["heat"]}
    view = {"patterns": [pattern], "carriers": [carrier]}
    link = {"up": True, "since": 15.0, "instances": 7, "requests": 2, "bytes": 7000, "waiting": 3}
    text = f"n02 emits {HOSTILE} at 9 /min, planned 1 /min"
    told = [
        ("detection", "fire", {"count": 4, "late": 1, "delay": 31.0, "worst": 75.0, "last": ["smoke#1"]}),
        ("carried", "n02>n01", {**link, "waiting_bytes": 3000}),
        ("kept", "n01", {"instances": 12, "matches": 3, "undecided": 1, "dropped": 0}),
        ("assumption", "smoke", {"text": text, "planned": 1.0, "measured": 9.0}),
    ]
    changes = sorted([*changes, *(Change(20.0, "watch", *each) for each in told)], key=lambda each: each.t)
    head = {**head, "apps": [{"name": "watch", "kind": "detect", "view": view}]}
    with MockServer(head, changes) as server:
        go(page, server.url("?run=x#t=25"))
        expect(page.get_by_test_id("detect-sentence")).to_contain_text("fire was detected 4 times")
        expect(page.get_by_test_id("detect-sentence")).to_contain_text("1 detection came later than promised")
        expect(page.get_by_test_id("detections")).to_contain_text("1 min 15 s")
        expect(page.get_by_test_id("carriers")).to_contain_text("push smoke pull heat")
        expect(page.get_by_test_id("carriers")).to_contain_text("3.0 kB")
        expect(page.get_by_test_id("kept")).to_contain_text("12")
        expect(page.get_by_test_id("departures")).to_contain_text("planned 1 /min")
        page.keyboard.press("Shift+ArrowLeft")
        expect(page.get_by_test_id("detect-sentence")).to_contain_text("was not detected yet")


def test_moving_interests_are_shown_with_situations_regions_and_brokers(page: Page) -> None:
    head, changes = make_world(World())
    view = {"situations": [{"name": "near", "focal": "n01", "text": HOSTILE}], "brokers": ["n02", 7]}
    told = [
        ("situation", "near", {"count": 4, "delay": 1.5, "worst": 75.0, "last": ["n01#1"]}),
        ("region", "near", {"epoch": 3, "start": 9.0, "x": 100.4, "y": 250.0, "radius": 400.0}),
        ("served", "n02", {"arrived": 17.0, "stored": 12, "waiting": 0, "streamed": 345}),
    ]
    changes = sorted([*changes, *(Change(20.0, "watch", *each) for each in told)], key=lambda each: each.t)
    head = {**head, "apps": [{"name": "watch", "kind": "interest", "view": view}]}
    with MockServer(head, changes) as server:
        go(page, server.url("?run=x#t=25"))
        expect(page.get_by_test_id("situations")).to_contain_text("near around n01")
        expect(page.get_by_test_id("situations")).to_contain_text("1 min 15 s")
        expect(page.get_by_test_id("situations")).to_contain_text("(100, 250) ± 400 m")
        expect(page.get_by_test_id("brokers")).to_contain_text("345")


def test_the_map_draws_interests_where_they_were_and_areas_of_brokers(page: Page) -> None:
    """At their places, on the scale of the map, in their forms; none before they begin or after they end."""
    head, changes = make_world(World())
    corners = [[0, 0], [600, 0], [600, 1200], [0, 1200]]
    view = {
        "situations": [
            {"name": "near", "focal": "n01", "shape": "circle"},
            {"name": "box", "focal": "nobody", "shape": "square"},
            {"name": "bad", "focal": 7, "shape": HOSTILE},
        ],
        "brokers": ["n02"],
        "areas": [{"broker": "n02", "corners": corners}, {"broker": "n03", "corners": [[0, "x"]] * 3}, 7],
    }
    told = [
        Change(20.0, "watch", "region", "near", {"epoch": 1, "x": 400.0, "y": 250.0, "radius": 200.0}),
        Change(20.0, "watch", "region", "box", {"epoch": 1, "x": 900.0, "y": 900.0, "radius": 150.0}),
        Change(20.0, "watch", "region", "bad", {"epoch": 1, "x": "1", "y": [], "radius": -3}),
        Change(30.0, "watch", "region", "near", {"epoch": 2, "x": 700.0, "y": 250.0, "radius": 200.0}),
        Change(40.0, "watch", "region", "near", {"epoch": 3, "x": None, "y": None, "radius": None}),
    ]
    changes = sorted([*changes, *told], key=lambda each: each.t)
    head = {**head, "apps": [{"name": "watch", "kind": "interest", "view": view}]}
    with MockServer(head, changes) as server:
        go(page, server.url("?run=x#t=25"))
        expect(page.locator(".legend")).to_contain_text("interest")
        expect(page.locator(".legend")).to_contain_text("area of a broker")
        first, square = interest(page, "near"), interest(page, "box")
        assert first is not None and square is not None and interest(page, "bad") is None
        show(page, 35)
        page.wait_for_function("x => roveStats.where('interest', 'near')?.[0] > x + 20", arg=first[0])
        moved = interest(page, "near")
        assert moved is not None and moved[1] == pytest.approx(first[1], abs=0.01)
        scale = (moved[0] - first[0]) / 300  # pixels for a metre
        assert square[0] - first[0] == pytest.approx((1050 - 600) * scale, abs=0.01)
        assert first[1] - square[1] == pytest.approx((900 - 250) * scale, abs=0.01)
        corner = square[0] - 300 * scale, square[1] + 150 * scale
        outside = square[0] + 12, square[1]
        circle, square_corner, plain = colours_at(page, [(moved[0], moved[1]), corner, outside])
        assert circle != plain and square_corner != plain
        show(page, 45)
        page.wait_for_function("() => roveStats.where('interest', 'near') === null")
        assert interest(page, "box") == pytest.approx(square, abs=0.01)
        show(page, 10)
        page.wait_for_function("() => roveStats.where('interest', 'box') === null")


def interest(page: Page, name: str) -> list[float] | None:
    """The right edge of an interest on the map's canvas."""
    found: list[float] | None = page.evaluate("name => roveStats.where('interest', name)", name)
    return found


def show(page: Page, t: float) -> None:
    page.get_by_test_id("slider").fill(str(t))


def colours_at(page: Page, places: list[tuple[float, float]]) -> list[list[int]]:
    """Of pixels on the map's canvas; reads it once."""
    found: list[list[int]] = page.get_by_test_id("map").evaluate(
        """(map, places) => {
          const ratio = map.width / map.clientWidth;
          const { data } = map.getContext('2d').getImageData(0, 0, map.width, map.height);
          const begin = (x, y) => 4 * (Math.floor(y * ratio) * map.width + Math.floor(x * ratio));
          return places.map(([x, y]) => [...data.slice(begin(x, y), begin(x, y) + 4)]);
        }""",
        places,
    )
    return found


def test_a_copied_address_leads_to_the_moment(page: Page, finished: MockServer) -> None:
    go(page, finished.url("?run=x"))
    page.get_by_test_id("slider").fill("33.3")
    page.wait_for_function("() => location.hash === '#t=33.3'")
    page.reload()
    expect(page.get_by_test_id("time")).to_contain_text("33.3 s")


def test_the_history_knows_what_was_the_case_at_every_moment(page: Page, finished: MockServer) -> None:
    """Against a plain search, with changes that come late and questions that jump."""
    go(page, finished.url("?run=x"))
    wrong = page.evaluate(
        """async () => {
          const { Series } = await import('/model/history.js');
          let seed = 7;
          const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
          let wrong = 0;
          for (let round = 0; round < 200; round += 1) {
            const series = new Series();
            const all = [];
            for (let step = 0; step < 60; step += 1) {
              if (random() < 0.5) {
                const t = Math.floor(random() < 0.7 ? step : random() * 60);
                series.add(t, step);
                all.push([t, step]);
              }
              const t = random() < 0.5 ? step : random() * 70 - 5;
              const past = all.filter((each) => each[0] <= t).sort((a, b) => a[0] - b[0]);
              if (series.at(t) !== past.at(-1)?.[1]) wrong += 1;
            }
          }
          return wrong;
        }"""
    )
    assert wrong == 0


def test_a_stream_that_is_divided_or_waits_is_told_so(page: Page) -> None:
    head, changes = make_world(World(seconds=40, crash_at=1000))
    divided = {"to": "detect/0", "old": None, "why": "detect/0 was the cheapest way.", "switch": False}
    shares = {"shares": {"detect/0": 0.6, "detect/1": 0.4}, "costs": []}
    waits: dict[str, Any] = {"to": None, "old": "detect/0", "switch": False, "shares": {}, "costs": []}
    node = next(each["node"] for each in head["apps"][0]["view"]["replicas"] if each["id"] == "detect/1")
    why = "No replica of detect had a way to the sinks: the stream waits for one."
    kept = [c for c in changes if c.key != "camera/0>detect" and not (c.t > 24 and c.channel == "latency")]
    more = [
        Change(5.0, QUERY, "route", "camera/0>detect", divided | shares),
        Change(24.0, QUERY, "route", "camera/0>detect", {**waits, "why": why}),
        Change(26.0, "", "node", node, {"state": "silent", "why": "its radio is off by a fault"}),
    ]
    with MockServer(head, sorted([*kept, *more], key=lambda change: change.t)) as server:
        go(page, server.url("?run=x#t=20"))
        sentence = page.get_by_test_id("sentence")
        expect(sentence).to_contain_text("camera/0 divides its output: detect/0 60 %, detect/1 40 %.")
        page.get_by_test_id("slider").fill("32")
        expect(sentence).to_contain_text("and waits there: no replica of detect had a way to the sinks")
        expect(sentence).to_contain_text(re.compile(r"Nothing was delivered for [78]\.\d s"))
        expect(sentence).to_contain_text(re.compile(rf"{node}, where detect/1 runs, is silent for 6\.\d s"))
        expect(page.get_by_test_id("switches")).not_to_contain_text("no route")
        expect(page.get_by_test_id("paths")).to_contain_text("detect: no route")


def test_figures_are_those_that_were_counted_and_of_all_sinks(page: Page) -> None:
    head, changes = make_world(World(seconds=40, crash_at=1000))
    view = head["apps"][0]["view"]
    view["operators"].append({"name": "wall", "role": "sink"})
    view["edges"].append(["recognise", "wall"])
    view["replicas"].append({"id": "wall/0", "operator": "wall", "node": view["replicas"][0]["node"]})
    total = {"offered": 400, "delivered": 300, "lost": 100, "waiting": 50, "loss": 0.25, "dropped": {}}
    latency = {"n": 8, "p50": 0.1, "p99": 0.9}
    stop = ("total", "rate")
    kept = [c for c in changes if c.channel != "latency" and not (c.channel in stop and c.t > 20)]
    more = [Change(20.5, QUERY, "total", "", {**total, "switches": 0})]
    more += [Change(21.0, QUERY, "rate", each["id"], dict(IDLE)) for each in view["replicas"]]
    for key, p95 in [("screen/0", 0.2), ("wall/0", 0.8), ("", 0.5)]:
        more += [Change(t + 0.5, QUERY, "latency", key, {**latency, "p95": p95}) for t in range(40)]
    with MockServer(head, sorted([*kept, *more], key=lambda change: change.t)) as server:
        go(page, server.url("?run=x#t=28"))
        lost, late = page.get_by_test_id("tile-lost"), page.get_by_test_id("tile-latency")
        expect(lost).to_contain_text("25 %")
        expect(lost).to_contain_text("100 lost, 50 waiting")
        expect(late).to_contain_text("500 ms")
        expect(late).to_contain_text("worst wall/0: 800 ms")
        expect(page.get_by_test_id("tile-goodput")).to_contain_text("0/s")  # nothing came for 7 s


def steady(stops: float, total: dict[str, Any]) -> tuple[dict[str, Any], list[Change]]:
    """A run of 10 tuples a second until ``stops``, each second said half a second after its end."""
    head, changes = make_world(World(seconds=60, crash_at=1000))
    ids = [each["id"] for each in head["apps"][0]["view"]["replicas"]]
    kept = [c for c in changes if c.channel not in ("latency", "rate", "total")]
    busy = {**IDLE, "in": 10, "out": 10, "done": 10}
    for second in range(5, 58):
        if second <= stops + 1:
            value = busy if second <= stops else IDLE
            kept += [Change(second + 0.5, QUERY, "rate", each, value) for each in ids]
        kept.append(Change(second + 0.5, QUERY, "total", "", total))
    return head, sorted(kept, key=lambda change: change.t)


TOTAL = {"offered": 139, "delivered": 138, "lost": 1, "waiting": 0, "loss": 1 / 139, "dropped": {}}


def test_at_the_live_edge_rates_are_those_of_the_last_seconds(page: Page) -> None:
    with MockServer(*steady(30, TOTAL)) as server:
        server.go(20)
        go(page, server.url("?run=x"))
        goodput, offered = page.get_by_test_id("tile-goodput"), page.get_by_test_id("tile-offered")
        expect(page.get_by_test_id("live")).to_have_text("● Live")
        for _ in range(2):
            expect(goodput).to_contain_text(re.compile(r"^goodput\s*10/s"))
            expect(offered).to_contain_text(re.compile(r"^offered\s*10/s"))
            page.keyboard.press("ArrowLeft")
            page.keyboard.press("l")
        expect(goodput).to_contain_text(re.compile(r"^goodput\s*0/s"), timeout=25_000)


def test_at_the_end_of_a_run_rates_are_those_of_its_last_measured_seconds(page: Page) -> None:
    with MockServer(*steady(56, TOTAL)) as server:
        go(page, server.url("?run=x"))
        for t in (55.9, 60):
            page.evaluate("t => (location.hash = `t=${t}`)", t)
            page.reload()
            page.wait_for_selector("html[data-ready=yes]")
            expect(page.get_by_test_id("tile-goodput")).to_contain_text(re.compile(r"^goodput\s*10/s"))
            expect(page.get_by_test_id("health-verdict")).to_contain_text("valid (final)")
            expect(page.locator("tr[data-replica='screen/0'] td.number").first).to_have_text("10")


def test_no_loss_is_said_before_something_is_known(page: Page) -> None:
    early = {**TOTAL, "offered": 3, "delivered": 0, "lost": 1, "waiting": 2, "loss": 1.0}
    with MockServer(*steady(56, early)) as server:
        go(page, server.url("?run=x#t=20"))
        expect(page.get_by_test_id("tile-lost")).to_contain_text(re.compile(r"^lost\s*–"))
        go(page, server.url("?run=y#t=30"))
        expect(page.get_by_test_id("tile-lost")).to_contain_text(re.compile(r"^lost\s*100 %"))


def test_a_run_that_died_is_told_so(page: Page) -> None:
    head, changes = steady(56, TOTAL)
    died = [c for c in changes if c.t <= 30 and not (c.channel == "verdict" and c.t > 2)]
    died.append(Change(30.0, "", "verdict", "", {"so_far": [], "died": True}))
    words = "This run died: its process is gone. rove down takes away what it left."
    with MockServer(head, died) as server:
        go(page, server.url("?run=x"))
        expect(page.get_by_test_id("banner")).to_have_text(words)
        sentence = page.get_by_test_id("sentence")
        expect(sentence).to_contain_text(f"{words} At its end the stream went camera/0")
        expect(page.get_by_test_id("health-verdict")).to_contain_text("none: this run died")
        expect(page.get_by_test_id("health-phase")).to_contain_text("measure, and died")
        expect(page.get_by_test_id("health-nodes")).to_contain_text("not known")
        expect(page.get_by_test_id("tile-goodput")).to_contain_text("10/s")
        page.keyboard.press("Shift+ArrowLeft")
        expect(page.get_by_test_id("sentence")).to_contain_text("Stream goes camera/0")
        expect(page.get_by_test_id("banner")).to_have_text(words)


def test_the_chart_of_rates_has_no_hole_where_measuring_begins(page: Page, finished: MockServer) -> None:
    """Totals are counted anew there; what replicas say each second goes on."""
    go(page, finished.url("?run=x"))
    columns = page.evaluate(
        """async () => {
        const { History } = await import("./model/history.js");
        const { Throughput } = await import("./model/columns.js");
        const history = new History();
        const rates = new Throughput(history, "q", [{ keys: ["a/0", "b/0"], field: "out" }], 5);
        for (let second = 2; second < 20; second += 1) {
            history.take([[second + 0.5, "q", "total", "", { offered: second < 10 ? second : 0 }]]);
            if (second % 3) history.take([[second + 0.5, "q", "rate", "a/0", { out: 4 }]]); // thinned
            history.take([[second + 0.5, "q", "rate", "b/0", { out: 6 }]]);
            rates.renew();
        }
        return [rates.columns, rates.at(Infinity), rates.at(1), rates.at(12.2)];
        }"""
    )
    (times, rates), edge, before, middle = columns
    assert times == [second + 0.5 for second in range(2, 20)]
    assert rates == [10.0] * 18
    assert (edge, before, middle) == ([10.0], [None], [10.0])


def test_a_lost_connection_is_said_with_its_age_and_taken_up_again(
    browser: Browser, world: tuple[dict[str, Any], list[Change]]
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    with MockServer(*world) as server:
        server.go(30)
        go(page, server.url("?run=x"))
        context.set_offline(True)
        server.answers = False
        expect(page.get_by_test_id("banner")).to_contain_text("Connection lost; the last news is")
        server.answers = True
        context.set_offline(False)
        expect(page.get_by_test_id("banner")).to_be_hidden()
        expect(page.get_by_test_id("live")).to_have_text("● Live")
    context.close()


def test_the_token_leaves_the_address_and_is_asked_for_when_wrong(
    browser: Browser, world: tuple[dict[str, Any], list[Change]]
) -> None:
    context = browser.new_context()
    page = context.new_page()
    with MockServer(*world) as server:
        server.token = "right-token-of-this-test"
        page.goto(server.url("?run=x#token=wrong"))
        form = page.get_by_test_id("token")
        expect(form).to_contain_text("a token is needed")
        form.locator("input").fill(server.token)
        form.locator("button").click()
        page.wait_for_selector("html[data-ready=yes]")
        assert "token" not in page.url
        page.goto(server.url("?run=x#t=30"))
        page.reload()
        page.wait_for_selector("html[data-ready=yes]")
    context.close()


def test_stop_asks_before_it_acts(page: Page, finished: MockServer) -> None:
    go(page, finished.url("?run=x#t=30"))
    page.get_by_test_id("control-stop").click()
    expect(page.get_by_test_id("control-stop")).to_contain_text("Press again")
    assert finished.posted == []
    page.get_by_test_id("control-stop").click()
    expect(page.get_by_test_id("control-stop")).to_contain_text("asked")
    assert finished.posted == [f"/api/runs/{WORLD.run}/stop"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_scrolls_sideways_and_targets_are_large(
    browser: Browser, finished: MockServer, complaints: list[str], scheme: str
) -> None:
    dark = scheme == "dark"
    context = browser.new_context(
        viewport={"width": 360, "height": 740}, color_scheme="dark" if dark else "light", has_touch=True
    )
    page = opened(context.new_page(), complaints)
    go(page, finished.url("?run=x#t=42.5"))
    expect(page.get_by_test_id("nodes").locator("button")).to_have_count(25)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    small = page.evaluate(
        """[...document.querySelectorAll('button, select, a')].filter(each => {
             const box = each.getBoundingClientRect();
             return box.width > 0 && (box.height < 39.5 || box.width < 39.5);
           }).map(each => each.outerHTML)"""
    )
    assert small == []
    page.get_by_test_id("map").evaluate("map => map.scrollIntoView()")
    page.touchscreen.tap(*where(page, "node", "n07"))
    expect(page.get_by_test_id("details")).to_contain_text("n07")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in background[4:-1].split(",")) < 384) == dark
    context.close()


def test_a_replay_file_plays_from_disk_without_a_network(
    page: Page, tmp_path: Path, world: tuple[dict[str, Any], list[Change]]
) -> None:
    head, changes = world
    frames = [change.value["frame"] for change in changes if change.channel == "picture"][::20]
    kept = [[frame, "image/jpeg", base64.b64encode(picture(frame)).decode()] for frame in frames]
    embedded = {
        "rove-head": head,
        "rove-changes": {"now": WORLD.seconds, "changes": changes},
        "rove-pictures": {QUERY: {"screen/0": kept}},
    }
    data = {
        name: base64.b64encode(gzip.compress(json.dumps(value).encode())).decode()
        for name, value in embedded.items()
    }
    file = tmp_path / "replay.html"
    file.write_bytes(standalone(page_files(), "a run", data))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    go(page, file.as_uri())
    expect(page.get_by_test_id("sentence")).to_contain_text("Last switch")
    expect(page.get_by_test_id("picture")).to_be_visible()
    assert page.get_by_test_id("control-stop").count() == 0
    start = shown_time(page)
    assert start == pytest.approx(WORLD.seconds - 4.1, abs=0.02)
    page.get_by_test_id("speed").select_option("16")
    page.get_by_test_id("play").click()
    page.wait_for_function(
        "t => Math.abs(Number(document.querySelector('[data-testid=slider]').value) - t) > 5", arg=start
    )
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_runs_sweeps_and_fleets_are_listed(page: Page, finished: MockServer) -> None:
    finished.documents["api/runs"] = {
        "runs": [
            {
                "id": "a-1",
                "experiment": "first",
                "state": "running",
                "verdict": None,
                "started": "2026-11-17T12:00:00Z",
                "sweep": None,
                "members": None,
            },
            {
                "id": "s-1",
                "experiment": HOSTILE,
                "state": "ended",
                "verdict": "valid",
                "started": "2026-11-17T11:00:00Z",
                "sweep": None,
                "members": ["s-1.1"],
            },
            {
                "id": "s-1.1",
                "experiment": "hidden",
                "state": "ended",
                "verdict": "valid",
                "started": "2026-11-17T11:00:00Z",
                "sweep": "s-1",
                "members": None,
            },
        ]
    }
    finished.documents["api/sweeps/s-1"] = {
        "id": "s-1",
        "factors": ["replicas"],
        "counts": {"valid": 1, "waiting": 1},
        "cells": [
            {
                "run": "s-1.1",
                "number": 1,
                "factors": {"replicas": 1},
                "state": "ended",
                "verdict": "valid",
                "reasons": [],
                "phase": None,
                "results": {"goodput_fps": 5.25},
                "analysed": True,
            },
            {
                "run": "s-1.2",
                "number": 2,
                "factors": {"replicas": 3},
                "state": "waiting",
                "verdict": None,
                "reasons": [],
                "phase": None,
                "results": {},
                "analysed": False,
            },
        ],
    }
    finished.documents["api/fleet"] = {
        "topology": "pi-lab",
        "asked_ago_s": 1.5,
        "nodes": [
            {
                "node": "pi1",
                "address": "10.0.0.1",
                "manet": "10.1.0.1",
                "roles": [],
                "state": "ok",
                "why": "",
                "reachable": True,
                "enrolled": True,
                "load": 0.2,
                "cores": 4,
                "clock": {"offset_ms": 1.2, "uncertainty_ms": 0.4},
                "battery": {"percent": 81, "charging": False},
                "radio": {
                    "interface": "wlan0",
                    "there": True,
                    "state": "up",
                    "wireless": True,
                    "signal_dbm": -50.0,
                },
            },
            {
                "node": "pi2",
                "address": "10.0.0.2",
                "manet": "10.1.0.2",
                "roles": [],
                "state": "unreachable",
                "why": HOSTILE,
                "reachable": False,
                "enrolled": False,
            },
        ],
    }
    go(page, finished.url())
    cards = page.get_by_test_id("runs").locator("a")
    expect(cards).to_have_count(2)
    expect(cards.nth(1)).to_contain_text("<img src=x")
    cards.nth(1).click()
    page.wait_for_selector("html[data-ready=yes]")
    expect(page.get_by_test_id("cells")).to_contain_text("5.25")
    expect(page.get_by_test_id("counts")).to_contain_text("1 valid, 1 waiting of 2 cells")
    assert page.get_by_test_id("cells").locator("a").get_attribute("href") == "?run=s-1.1"
    go(page, finished.url("?fleet"))
    expect(page.get_by_test_id("fleet-summary")).to_contain_text("1 of 2 nodes ready")
    expect(page.locator("[data-node=pi1]")).to_contain_text("81 %")
    expect(page.locator("[data-node=pi2]")).to_contain_text("<img src=x")


def test_fifty_nodes_with_ten_updates_a_second_keep_moving(page: Page) -> None:
    with MockServer(*make_world(World(nodes=50, updates=10, area=1697, seconds=40))) as server:
        server.go(20)
        go(page, server.url("?run=x"))
        drawn = page.evaluate("roveStats.drawn")
        page.wait_for_function("before => roveStats.drawn > before + 20", arg=drawn)
        assert page.evaluate("roveStats.shownChanges") > 10_000
        assert len(page.evaluate("roveStats.frameMs")) > 20
