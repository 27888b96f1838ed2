"""Make the picture of docs/howto/live_page.md: ``python -m experiments.live_page_picture`` opens a page in Chromium.

It replays generated events under a budget at the pace of their clock, opens the live page, waits until its curves have
a form, and writes what is seen to docs/howto/pages/live_page.png. It needs Chromium and its driver.
"""

from __future__ import annotations

import io
import random
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import acep
from experiments.plots import ROOT

__all__ = ["main", "take_picture"]

PAGE = ROOT / "docs/howto/live_page.md"
PICTURE = ROOT / "docs/howto/pages/live_page.png"
COLOURS = 200
WIDTH, HEIGHT = 1200, 1480
SECONDS = 25  # of the replay that are seen
QUERY = """PATTERN SEQ(order a, pay b, pay c, ship d)
WHERE skip_till_any_match(a, b, c, d) { [shop] AND b.sum < a.sum AND c.sum > b.sum AND d.sum > 0.9 + b.sum }
WITHIN 400"""


def some_orders(seed: int, n_events: int = 200_000) -> dict[str, Any]:
    """Return generated events, which come in waves."""
    draw = random.Random(seed)  # noqa: S311 - events for a picture
    moments, now = [], 0.0
    for number in range(n_events):
        now += 1.0 + 0.9 * ((number // 20_000) % 2)
        moments.append(int(now))
    shops = [f"shop {draw.randrange(12)}" for _ in range(n_events)]
    kinds = draw.choices(("order", "pay", "ship"), weights=(3, 4, 2), k=n_events)
    return {"ts": moments, "type": kinds, "shop": shops, "sum": [draw.random() for _ in range(n_events)]}


def take_picture(
    url: str, picture: Path | None, *, width: int = WIDTH, height: int = HEIGHT, dark: bool = False
) -> None:
    """Open a live page in Chromium, wait until it has been shown for a while, and write what is seen as PNG."""
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.wait import WebDriverWait

    browser_path, driver_path = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if browser_path is None or driver_path is None:
        raise SystemExit("the picture of a page needs Chromium and its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser_path
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        browser.get(url)
        WebDriverWait(browser, 60).until(
            lambda opened: opened.execute_script("return document.documentElement.dataset.ready")
        )
        time.sleep(SECONDS)
        screen = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    finally:
        browser.quit()
    if picture is not None:
        screen.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    """Replay, look, and keep the picture."""
    page = acep.LivePage()
    learned = acep.learn(some_orders(1), QUERY, unit="ms")

    def replay() -> None:
        try:
            with page:
                budget = acep.Budget(work=2.5)
                acep.replay(
                    QUERY, some_orders(2), page=page, unit="ms", speed=4, chunk=4_000, budget=budget, history=learned
                )
        except KeyboardInterrupt:
            pass

    stream = threading.Thread(target=replay)
    stream.start()
    try:
        time.sleep(2)  # until it is served
        take_picture(page.url, PICTURE)
    finally:
        page.press("stop")
        stream.join()


if __name__ == "__main__":
    main()
