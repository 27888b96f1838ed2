"""A page in a real Chromium without a window: it is clicked, sorted, filtered, zoomed and stepped through.

Where no Chromium is installed, these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import acep
from experiments import page_picture
from tests.chromium import BROWSER_MARKS, open_browser
from tests.pages.test_page import HOSTILE, hostile_events, hostile_query
from tests.test_imports import ROOT

pytest.importorskip("bokeh")
pytest.importorskip("selenium")

pytestmark = BROWSER_MARKS
# The colour of a bar on the screen, or a range, of the models of bokeh, by script.
BOKEH = "const of = (name) => Bokeh.documents.map((d) => d.get_model_by_name(name)).find((m) => m);"
# All elements, those of bokeh's own trees among them.
ALL = """const inside = (e) => e.shadowRoot ? all(e.shadowRoot) : [];
    const all = (root) => [...root.querySelectorAll("*")].flatMap((e) => [e, ...inside(e)]);"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from open_browser()


class Shown:
    """A page that is open in the browser."""

    def __init__(self, browser: Any, path: Path) -> None:
        from selenium.webdriver.support.wait import WebDriverWait

        self.browser = browser
        browser.get_log("browser")
        browser.get(path.as_uri())
        WebDriverWait(browser, 60).until(lambda _: self.run("return document.documentElement.dataset.ready"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def find_all(self, selector: str) -> list[Any]:
        return list(self.browser.find_elements("css selector", selector))

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def column(self, name: str) -> list[str]:
        """The texts of a column of the table of matches, of the rows that are shown."""
        script = """const heads = [...document.querySelectorAll("#table th")];
            const place = heads.findIndex((head) => head.textContent.replace(/ [▲▼]$/, "") === arguments[0]);
            const rows = [...document.querySelectorAll("#table tbody tr:not([hidden])")];
            return rows.map((row) => row.cells[place].textContent)"""
        return list(self.run(script, name))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def range(self) -> tuple[float, float]:
        start, end = self.run(BOKEH + "const x = of('x'); return [x.start, x.end]")
        return start, end

    def lit(self) -> list[str]:
        script = """return [...document.getElementById("automaton").shadowRoot.querySelectorAll(".lit")]
            .map((e) => e.dataset.state || e.dataset.arc)"""
        return list(self.run(script))

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] != "INFO"]


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Shown:
    events = {
        "ts": list(range(0, 240, 2)),
        "type": ["a", "x", "b"] * 40,
        "user": [f"u{n // 3 % 4}" for n in range(120)],
        "x": [float(n * n % 23) for n in range(120)],
    }
    query = "PATTERN SEQ(a p, b q) WHERE [user] AND q.x > p.x WITHIN 9 RETURN q.x - p.x AS rise"
    acep.match(events, query).page(tmp_path / "page.html")
    return Shown(browser, tmp_path / "page.html")


def test_a_click_on_a_row_shows_its_rows_and_those_in_between(shown: Shown) -> None:
    shown.find("#table tbody tr:nth-child(3)").click()
    assert shown.find("#table tr[aria-selected]").get_attribute("data-row") == "2"
    cells = [row.text.split()[0] for row in shown.find_all("#rows tbody tr")]
    assert (cells[0], cells[2]) == ("p", "q")
    assert shown.find("#rows tbody tr:nth-child(2)").get_attribute("class") == "between"
    assert "2 rows bound, 1 in between" in shown.text("#facts")
    assert shown.run(BOKEH + "return of('matches').selected.indices") == [2]
    assert len(shown.run(BOKEH + "return Array.from(of('line').data.x)")) == 3
    assert shown.run(BOKEH + "return of('marks').data.variable") == ["p", "q"]
    shown.find("#between").click()
    assert len(shown.find_all("#rows tbody tr")) == 2
    assert shown.complaints() == []


def test_a_click_on_a_bar_chooses_its_match(shown: Shown) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    # The middle of the bar of match 4 on the screen.
    x, y = shown.run(
        BOKEH
        + """const data = of("matches").data, x = of("x"), y = of("y");
        const view = Bokeh.index.roots ? [...Bokeh.index.roots][0] : Object.values(Bokeh.index)[0];
        const box = view.frame.bbox, place = view.el.getBoundingClientRect();
        const at = (data.left[4] + data.right[4]) / 2, high = (data.top[4] + data.bottom[4]) / 2;
        return [place.left + box.left + (at - x.start) / (x.end - x.start) * box.width,
                place.top + box.top + (high - y.end) / (y.start - y.end) * box.height]"""
    )
    shown.run("window.scrollTo(0, 0)")
    action = ActionChains(shown.browser)
    action.w3c_actions.pointer_action.move_to_location(round(x), round(y))
    action.w3c_actions.pointer_action.click()
    action.perform()
    assert shown.find("#table tr[aria-selected]").get_attribute("data-row") == "4"
    assert shown.text("#facts").startswith("match 4 ")
    assert shown.complaints() == []


def test_the_table_sorts_by_mouse_and_by_keyboard(shown: Shown) -> None:
    numbers = [float(text) for text in shown.column("rise")]
    assert numbers != sorted(numbers)
    head = shown.find_all("#table th button")[-1]
    head.click()
    assert [float(text) for text in shown.column("rise")] == sorted(numbers)
    head.send_keys("\ue007")  # Enter
    assert [float(text) for text in shown.column("rise")] == sorted(numbers, reverse=True)
    assert shown.find_all("#table th")[-1].get_attribute("aria-sort") == "descending"
    assert shown.complaints() == []


def test_the_table_and_the_time_line_are_filtered(shown: Shown) -> None:
    numbers, users = shown.column("rise"), shown.column("user")
    field = shown.find("#filter")
    field.send_keys("rise>=4 u1")
    expected = [n for n, user in zip(numbers, users, strict=True) if float(n) >= 4 and user == "u1"]
    assert 0 < len(expected) < len(numbers)
    assert shown.column("rise") == expected
    assert shown.text("#count") == f"{len(expected)} of {len(numbers)}"
    assert len(shown.run(BOKEH + "return of('shown').indices")) == len(expected)
    field.clear()
    field.send_keys("nothing>1")
    assert shown.text("#count") == "there is no column nothing"
    assert shown.complaints() == []


def test_the_time_line_zooms_pans_and_aligns(shown: Shown) -> None:
    start, end = shown.range()
    shown.find("#zoom-in").click()
    zoomed = shown.range()
    assert zoomed[1] - zoomed[0] == pytest.approx((end - start) / 2)
    shown.find("#pan-right").click()
    assert shown.range()[0] > zoomed[0]
    shown.press("0")
    assert shown.range() == pytest.approx((start, end))
    shown.find("#by-start").click()
    lengths = [float(text) for text in shown.column("duration")]
    assert set(shown.run(BOKEH + "return Array.from(of('matches').data.left)")) == {0}
    assert shown.run(BOKEH + "return Array.from(of('matches').data.right)") == lengths
    assert shown.range()[0] < 0 < max(lengths) < shown.range()[1]
    assert shown.run(BOKEH + "return of('durations').visible") is True
    shown.find("#by-clock").click()
    assert shown.range() == pytest.approx((start, end))
    assert shown.complaints() == []


def test_steps_are_lit_by_keyboard(shown: Shown) -> None:
    assert shown.lit() == ["0"]
    shown.press("\ue014")  # the right arrow
    assert sorted(shown.lit()) == ["0-1", "1"]
    assert shown.text("#step") == "step 1 of 2: p"
    assert shown.find("#rows tr.step").text.startswith("p ")
    shown.press("\ue014", "\ue014")
    assert sorted(shown.lit()) == ["1-2", "2"]
    assert shown.find("#next-step").get_property("disabled") is True
    shown.press("\ue012")  # the left arrow
    assert sorted(shown.lit()) == ["0-1", "1"]
    shown.press("j")
    assert shown.find("#table tr[aria-selected]").get_attribute("data-row") == "1"
    assert shown.lit() == ["0"]
    assert shown.complaints() == []


def test_the_keyboard_reaches_every_control(shown: Shown) -> None:
    script = "return [...document.querySelectorAll('button, input, select, summary')].filter((e) => !e.disabled).length"
    n_controls = shown.run(script)
    shown.run("document.activeElement.blur()")
    reached = set()
    for _ in range(3 * n_controls):
        shown.press("\ue004")  # Tab
        element = shown.run("return document.activeElement")
        if element.tag_name in ("button", "input", "select", "summary"):
            reached.add(element.id or element.text or element)
    assert len(reached) == n_controls


def test_hover_shows_values_as_texts_and_nothing_is_injected(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    acep.match(hostile_events(), hostile_query()).page(tmp_path / "page.html")
    shown = Shown(browser, tmp_path / "page.html")
    assert len(shown.find_all("#table tbody tr")) == len(HOSTILE)
    x, y = shown.run(
        BOKEH
        + """document.getElementById("time-line").scrollIntoView();
        const data = of("matches").data, x = of("x"), y = of("y");
        const view = Bokeh.index.roots ? [...Bokeh.index.roots][0] : Object.values(Bokeh.index)[0];
        const box = view.frame.bbox, place = view.el.getBoundingClientRect();
        return [place.left + box.left + ((data.left[1] + data.right[1]) / 2 - x.start) / (x.end - x.start) * box.width,
                place.top + box.top + ((data.top[1] + data.bottom[1]) / 2 - y.end) / (y.start - y.end) * box.height]"""
    )
    action = ActionChains(browser)
    action.w3c_actions.pointer_action.move_to_location(round(x), round(y))
    action.perform()
    tip = shown.run(
        ALL
        + """const tips = all(document).filter((e) => e.classList.contains("bk-Tooltip"));
        return tips.map((e) => e.shadowRoot.textContent).join("")"""
    )
    assert HOSTILE[1] in tip
    for number in range(len(HOSTILE)):
        shown.find(f"#table tr[data-row='{number}']").click()
        shown.press("\ue014")
    for summary in shown.find_all("summary"):
        summary.click()
    assert shown.run("return window.injected") is None
    injected = (
        """return all(document).filter((e) => e.localName === "img" || e.localName === "b" || e.onerror).length"""
    )
    assert shown.run(ALL + injected) == 0
    assert shown.complaints() == []


def test_a_page_of_1000_matches_has_them_all_at_once(browser: Any, tmp_path: Path) -> None:
    n_events = 3_000
    keys = [n // 3 % 300 for n in range(n_events)]
    events = {"ts": list(range(n_events)), "type": ["a", "b", "x"] * (n_events // 3), "k": keys}
    acep.match(events, acep.regex("ab", within=1, by="k")).page(tmp_path / "page.html")
    shown = Shown(browser, tmp_path / "page.html")
    assert len(shown.find_all("#table tbody tr")) == 1_000
    assert shown.text("#lanes") == "keys 1 to 12 of 300"
    shown.press("k")
    shown.find("#previous-match").click()
    shown.find("#lanes-down").click()
    assert shown.text("#lanes") == "keys 13 to 24 of 300"
    assert shown.complaints() == []


def test_a_page_without_matches_opens(browser: Any, tmp_path: Path) -> None:
    acep.match({"ts": [1], "type": ["a"]}, acep.regex("ab", within=5)).page(tmp_path / "page.html")
    shown = Shown(browser, tmp_path / "page.html")
    assert shown.text("#title") == "no matches"
    shown.press("j", "\ue014", "0")
    assert shown.complaints() == []


def test_the_frame_of_a_notebook_runs_the_page(browser: Any, tmp_path: Path) -> None:
    page = acep.match(hostile_events(), hostile_query()).page()
    file = tmp_path / "cell.html"
    file.write_text(
        "<!DOCTYPE html><meta charset=utf-8><script>document.documentElement.dataset.ready = 'yes'</script>"
        + page._repr_html_()
    )
    shown = Shown(browser, file)
    browser.switch_to.frame(0)
    try:
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(browser, 60).until(lambda _: shown.run("return document.documentElement.dataset.ready"))
        assert len(shown.find_all("#table tbody tr")) == len(HOSTILE)
    finally:
        browser.switch_to.default_content()
    assert shown.complaints() == []


def test_the_picture_of_the_documentation_is_made_by_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    monkeypatch.setattr(page_picture, "PICTURE", tmp_path / "page.png")
    page_picture.main()
    with Image.open(tmp_path / "page.png") as made, Image.open(ROOT / "docs/howto/pages/page.png") as shown:
        assert made.width == shown.width == page_picture.WIDTH
    assert "pages/page.png" in page_picture.PAGE.read_text()


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("start>=2024", [1, 2]),
        ("start = 2024-05-01T10", [1]),
        ("start<2024-05", [0]),
        ("n > 9007199254740992", [2]),
        ("n == 9007199254740992", [1]),
        ("n <> 9007199254740992", [0, 2]),
        ("x>5", [1, 2]),
        ("x=inf", [2]),
        ("x<0", [0]),
    ],
)
def test_the_filter_compares_exactly(browser: Any, tmp_path: Path, comparison: str, expected: list[int]) -> None:
    import datetime as dt

    starts = [dt.datetime(2023, 1, 1), dt.datetime(2024, 5, 1, 10), dt.datetime(2025, 1, 1)]
    events = {
        "ts": [start + dt.timedelta(seconds=n) for start in starts for n in (0, 1)],
        "type": list("ababab"),
        "n": [n for n in (5, 2**53, 2**53 + 1) for _ in "ab"],
        "x": [x for x in (float("-inf"), 7.5, float("inf")) for _ in "ab"],
    }
    query = "PATTERN SEQ(a p, b q) WITHIN 1 minute RETURN q.n AS n, q.x AS x"
    acep.match(events, query).page(tmp_path / "page.html")
    shown = Shown(browser, tmp_path / "page.html")
    shown.find("#filter").send_keys(comparison)
    assert shown.column("match") == [str(number) for number in expected]
    assert shown.complaints() == []
