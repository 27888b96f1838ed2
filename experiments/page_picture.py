"""Make the picture of docs/howto/pages.md: ``python -m experiments.page_picture`` opens its page in Chromium.

It runs the code of the page of the documentation, opens the first file that this writes, chooses a match, takes a step,
and writes what is seen to docs/howto/pages/page.png. It needs Chromium and its driver.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from experiments.plots import PYTHON, ROOT

__all__ = ["main", "take_picture"]

PAGE = ROOT / "docs/howto/pages.md"
PICTURE = ROOT / "docs/howto/pages/page.png"
FILE = re.compile(r'\.page\("([\w.]+)"')
COLOURS = 200  # of the picture, which is a third as large then
WIDTH, HEIGHT = 1200, 1560


def take_picture(page: Path, picture: Path) -> None:
    """Open a page of a result in Chromium, choose a match, take a step, and write what is seen as PNG."""
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.wait import WebDriverWait

    options = webdriver.ChromeOptions()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if browser_path is None or driver_path is None:
        raise SystemExit("the picture of a page needs Chromium and its driver")
    options.binary_location = browser_path
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=Service(driver_path))
    try:
        browser.get(page.as_uri())
        WebDriverWait(browser, 60).until(
            lambda opened: opened.execute_script("return document.documentElement.dataset.ready")
        )
        browser.find_element("css selector", "#table tbody tr:nth-child(4)").click()
        for _ in range(2):
            browser.find_element("css selector", "#next-step").click()
        browser.execute_script("window.scrollTo(0, 0); document.querySelector('.scroll').scrollLeft = 0")
        screen = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    finally:
        browser.quit()
    screen.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> None:
    """Run the code of the page, and keep the picture."""
    code = PYTHON.findall(PAGE.read_text(encoding="utf-8"))[0]
    name = FILE.findall(code)[0]
    with tempfile.TemporaryDirectory(prefix="acep-page-") as folder, contextlib.chdir(folder):
        Path("examples").symlink_to(ROOT / "examples")
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - the page is ours
        take_picture(Path(folder) / name, PICTURE)


if __name__ == "__main__":
    main()
