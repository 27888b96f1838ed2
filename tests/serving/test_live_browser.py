"""The live page in a real Chromium without a window: it is watched, paused, stepped and stopped.

Where no Chromium is installed, these tests are skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import acep
from acep.native.compiled import why_not
from acep.serving.live_page import LivePage
from experiments import live_page_picture
from tests.chromium import BROWSER_MARKS, open_browser
from tests.test_imports import ROOT

pytest.importorskip("selenium")

pytestmark = BROWSER_MARKS
HOSTILE = (
    "<script>window.injected = 1</script>",
    '"><img src=x onerror="window.injected = 1">',
    "</script></style><b>x</b>",
    "'; window.injected = 1; //",
    "\u202etxt.exe\u2066",
    "a\u0000b\u2028c",
    "&lt;b&gt;",
    "x" * 3_000,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from open_browser()


class Shown:
    """A live page that is open in the browser."""

    def __init__(self, browser: Any, page: LivePage) -> None:
        self.browser = browser
        browser.get_log("browser")
        browser.get(page.url)
        self.wait(lambda: self.run("return document.documentElement.dataset.ready"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def fact(self, label: str) -> str:
        script = """const heads = [...document.querySelectorAll("#facts dt")];
            const head = heads.find((e) => e.textContent === arguments[0]);
            return head ? head.nextElementSibling.textContent : "" """
        return str(self.run(script, label))

    def wait(self, holds: Callable[[], Any], seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, self.run("return document.querySelector('main').innerText")
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] != "INFO"]


def hostile_rows(n: int = 4_000) -> dict[str, Any]:
    return {
        "ts": list(range(n)),
        "type": ["a", "b"] * (n // 2),
        "user": [HOSTILE[row // 2 % len(HOSTILE)] for row in range(n)],
        "x": [float(row * row % 97) for row in range(n)],
    }


HOSTILE_QUERY = (
    "-- <script>window.injected = 1</script>\n"
    "PATTERN SEQ(a p, b q) WHERE skip_till_any_match(p, q)\n"
    "{ [user] AND q.x > p.x AND p.user <> '<img src=x>' } WITHIN 40"
)


@contextmanager
def replaying(page: LivePage, **options: Any) -> Iterator[threading.Thread]:
    """A replay of hostile texts in a thread of its own, with the page as that of a command has it."""

    def replay() -> None:
        try:
            with page:
                acep.replay(HOSTILE_QUERY, hostile_rows(), page=page, **options)
        except KeyboardInterrupt:
            pass

    stream = threading.Thread(target=replay)
    stream.start()
    try:
        while page._server is None:
            time.sleep(0.01)
        yield stream
    finally:
        page._keys.put("q")
        stream.join()


def test_a_paced_replay_is_watched_paused_stepped_and_stopped(browser: Any) -> None:
    page = LivePage()
    with replaying(page, unit="ms", speed=0.05, chunk=20) as stream:
        shown = Shown(browser, page)
        shown.wait(lambda: "<script>" in shown.text("#query"))
        shown.wait(lambda: shown.text("#status") == "running")
        first = shown.fact("events")
        shown.wait(lambda: shown.fact("events") != first)
        shown.wait(lambda: len(shown.run("return [...document.querySelectorAll('#rate polyline')]")) > 0)
        shown.wait(lambda: len(shown.run("return [...document.querySelectorAll('#table tbody tr')]")) == 50)
        shown.wait(lambda: "1 (p)" in shown.text("#states"))
        assert "earlier ones are not shown" in shown.text("#matches-note")

        shown.find("#pause").click()
        shown.wait(lambda: shown.text("#status") == "paused")
        assert shown.text("#pause") == "go on"
        batch = int(shown.fact("micro-batch"))
        shown.find("#step").click()
        shown.wait(lambda: int(shown.fact("micro-batch")) == batch + 1)
        shown.run("document.activeElement.blur()")
        shown.press("n")
        shown.wait(lambda: int(shown.fact("micro-batch")) == batch + 2)
        time.sleep(1.5)
        assert int(shown.fact("micro-batch")) == batch + 2
        shown.press(" ")
        shown.wait(lambda: int(shown.fact("micro-batch")) > batch + 3)

        texts = shown.run(
            "return [...document.querySelectorAll('#table td')].map((cell) => cell.textContent).join('|')"
        )
        assert "<script>window.injected" in texts
        assert "\u202e" not in texts
        assert shown.run("return window.injected") is None
        assert shown.run("return document.querySelectorAll('img:not(#history-picture), td b, pre *').length") == 0
        assert shown.complaints() == []

        shown.find("#stop").click()
        stream.join(20)
        shown.wait(lambda: shown.text("#status") == "stopped")
        assert shown.run("return document.querySelector('#controls').hidden")
    # The only complaints are of the browser itself, that the server is gone.
    time.sleep(1.5)
    assert all("ERR_CONNECTION_REFUSED" in line for line in shown.complaints())
    assert shown.text("#status") == "stopped"


def test_a_server_that_goes_is_noticed_and_so_is_another_one(browser: Any) -> None:
    page = LivePage()
    page.open()
    page.begin("re:ab")
    shown = Shown(browser, page)
    assert shown.text("#status") == "waiting"
    page._server.stop()  # type: ignore[union-attr]  # as if the process was killed
    shown.wait(lambda: shown.text("#status") == "gone")
    assert "The server is gone" in shown.text("#gone")
    other = LivePage(page._port)
    with other:
        shown.wait(lambda: "does not know this address" in shown.text("#gone"))


@pytest.mark.skipif(bool(why_not()), reason="only the native core keeps to a budget")
def test_a_budget_shows_its_policy_recall_and_history(browser: Any) -> None:
    learned = acep.learn(hostile_rows(), HOSTILE_QUERY, unit="ms")
    page = LivePage()
    with replaying(page, unit="ms", speed=0.5, chunk=200, budget=acep.Budget(work=1.5), history=learned):
        shown = Shown(browser, page)
        shown.wait(lambda: "policy" in shown.text("#shed"))
        assert "history" in shown.text("#shed")
        shown.wait(lambda: "visits" in shown.text("#history-note"))
        assert "1 (p)" in shown.text("#learned")
        assert shown.run("return document.querySelector('#history-picture').naturalWidth") > 100
        shown.wait(lambda: shown.text("#recall") != "")
        assert shown.complaints() == []


@pytest.mark.parametrize("width", [360, 1024, 1920])
def test_the_page_fits_its_window_and_the_keyboard_reaches_all(browser: Any, width: int) -> None:
    page = LivePage()
    with replaying(page, unit="ms", speed=0.2, chunk=50):
        command = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", command)
        try:
            shown = Shown(browser, page)
            shown.wait(lambda: len(shown.run("return [...document.querySelectorAll('#table tbody tr')]")) > 5)
            assert shown.run("return document.documentElement.scrollWidth") <= width
            script = """const all = [...document.querySelectorAll("button, [tabindex]")];
                return all.filter((e) => e.offsetParent).map((e) => e.id)"""
            expected, reached = set(shown.run(script)), set()
            for _ in range(2 * len(expected)):
                shown.press("\ue004")  # Tab
                reached.add(shown.run("return document.activeElement.id"))
            assert expected <= reached
        finally:
            browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_without_the_token_the_browser_gets_nothing(browser: Any) -> None:
    with LivePage() as page:
        browser.get(page.url.partition("?")[0])
        assert browser.find_elements("css selector", "#query, #status, main") == []


def test_the_picture_of_the_documentation_is_made_by_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(live_page_picture, "PICTURE", tmp_path / "live_page.png")
    monkeypatch.setattr(live_page_picture, "SECONDS", 2)
    live_page_picture.main()
    with Image.open(tmp_path / "live_page.png") as made, Image.open(ROOT / "docs/howto/pages/live_page.png") as shown:
        assert made.width == shown.width == live_page_picture.WIDTH
    assert "pages/live_page.png" in live_page_picture.PAGE.read_text()
