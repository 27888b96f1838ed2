"""A Chromium without a window, for the tests of pages, where one is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

__all__ = ["BROWSER_MARKS", "open_browser"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
BROWSER_MARKS = [
    pytest.mark.long,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="no Chromium with its driver is installed (apt install chromium-driver)"
    ),
]
"""The marks of a module whose tests need it."""


def open_browser() -> Iterator[Any]:
    """Yield its driver, for a fixture, and end it afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1200,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()
