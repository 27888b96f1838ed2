"""The live page of a stream: who is answered, with how much, and what of the stream is shown."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import acep
from acep.errors import DataError
from acep.native.compiled import why_not
from acep.serving import live_page, page_server
from acep.serving.live_document import live_document
from acep.serving.live_page import LivePage
from acep.serving.live_state import LiveState
from acep.serving.page_server import MOST_BYTES, MOST_CONNECTIONS
from acep.serving.shown_rows import LONGEST, MOST_ROWS, ShownRows
from acep.streaming.progress import Progress

ONE = Progress(0, 5, 1, 2, held=3, state=40, watermark="", reference=0, rows=6, seconds=1, live=4)
QUERY = "PATTERN SEQ(a p, b q, c r) WHERE skip_till_any_match(p, q, r) { [user] AND q.x > p.x } WITHIN 800"


def some_rows(n: int = 1_800) -> dict[str, Any]:
    draw = random.Random(1)
    users, values = draw.choices(range(20), k=n), [draw.random() for _ in range(n)]
    return {"ts": list(range(n)), "type": draw.choices("abc", k=n), "user": users, "x": values}


def ask(
    page: LivePage, path: str, *, method: str = "GET", host: str | None = None, token: bool = True, body: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the content of an answer. ``path`` gets the token unless it is to go without."""
    parts = urlsplit(page.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    target = path + ("&" if "?" in path else "?") + parts.query if token else path
    connection.request(method, target, body or None, {} if host is None else {"Host": host})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content


def state_of(page: LivePage, since: int = 0) -> dict[str, Any]:
    status, _, content = ask(page, f"/state?since={since}")
    assert status == 200
    state: dict[str, Any] = json.loads(content)
    return state


def send_raw(page: LivePage, sent: bytes) -> bytes:
    """The answer to bytes that need not be a request."""
    parts = urlsplit(page.url)
    with socket.create_connection((str(parts.hostname), parts.port or 0), timeout=20) as connection:
        connection.sendall(sent)
        received = b""
        try:
            while chunk := connection.recv(65_536):
                received += chunk
        except ConnectionResetError:
            pass
    return received


PARTING = live_page.PARTING


@pytest.fixture(autouse=True)
def _short_parting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the end wait only a moment for a browser: most tests look, and do not look again."""
    monkeypatch.setattr(live_page, "PARTING", 0.05)


@pytest.fixture(scope="module")
def open_page() -> Iterator[LivePage]:
    """A page that several tests ask, and that shows no stream."""
    with LivePage() as page:
        yield page


# Requests that are answered -------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/state", "/command?do=stop", "/history.svg", "/nothing", "/../../etc/passwd"])
@pytest.mark.parametrize("token", ["", "?token=", "?token=x", "?token=%00", "?token=%F0%9F%98%80&token=a"])
def test_without_the_token_nothing_is_answered(path: str, token: str, open_page: LivePage) -> None:
    for method in ("GET", "POST", "HEAD", "PUT", "OPTIONS"):
        joined = path + (token.replace("?", "&") if "?" in path else token)
        status, headers, content = ask(open_page, joined, method=method, token=False)
        assert (status, content) == (403, b"")
        assert headers["Content-Length"] == "0"
    assert open_page.take_key(0) == ""


def test_tokens_differ_and_are_long() -> None:
    tokens = {urlsplit(LivePage(9_000).url).query for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= len("token=") + 32 for token in tokens)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200), ("localhost", 200), ("[::1]:99", 200), (socket.gethostname(), 200),
        ("evil.example", 403), ("127.0.0.1.evil.example:80", 403), ("", 403), ("[", 403), ("localhost.", 403),
    ],
)  # fmt: skip
def test_a_request_to_the_name_of_another_site_is_refused(host: str, status: int, open_page: LivePage) -> None:
    assert ask(open_page, "/state", host=host)[0] == status


def test_a_request_needs_one_host() -> None:
    with LivePage() as page:
        target = page.url.split("/", 3)[3].encode()
        assert send_raw(page, b"GET /" + target + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.0 403")
        hosts = b"Host: localhost\r\nHost: evil.example\r\n"
        assert send_raw(page, b"GET /" + target + b" HTTP/1.1\r\n" + hosts + b"\r\n").startswith(b"HTTP/1.0 403")


def test_only_some_methods_and_paths_are_there() -> None:
    with LivePage() as page:
        for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "POST"):
            assert ask(page, "/state", method=method)[0] == 405
        for path in ("/nothing", "/state/", "/..%2f..%2fetc/passwd", "/live.js", "/%00", "/page_server.py"):
            assert ask(page, path)[0] == 404
        assert ask(page, "/command?do=stop")[0] == 405
        assert ask(page, "/command?do=eval", method="POST")[0] == 404
        assert ask(page, "/history.svg")[0] == 404  # there is none


def test_an_answer_may_not_be_kept_framed_or_read_by_other_sites() -> None:
    with LivePage() as page:
        for path in ("/", "/state"):
            status, headers, _ = ask(page, path)
            assert status == 200
            assert headers["Cache-Control"] == "no-store"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert not [name for name in headers if name.startswith("Access-Control")]
            assert "Server" not in headers


def test_the_page_lets_only_its_own_scripts_run() -> None:
    document, policy = live_document()
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert document.count(b"<script") == 1
    assert b"innerHTML" not in document
    assert b"http://" not in document.replace(b"http://www.w3.org/2000/svg", b"")


# Harmless requests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n", b"\0\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /?" + b"a=1&" * 40 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    ],
)  # fmt: skip
def test_rubbish_gets_no_content(sent: bytes, open_page: LivePage, capfd: pytest.CaptureFixture[str]) -> None:
    received = send_raw(open_page, sent)
    assert received.startswith((b"HTTP/1.0 400", b"HTTP/1.0 403", b"HTTP/1.0 505")) or received == b""
    assert received.partition(b"\r\n\r\n")[2] == b""
    assert state_of(open_page)["status"]["name"] == "waiting"
    assert capfd.readouterr().err == ""


def test_a_long_head_is_not_read_to_its_end() -> None:
    with LivePage() as page:
        assert send_raw(page, b"GET /" + b"a" * (4 * MOST_BYTES)) == b""
        assert send_raw(page, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * MOST_BYTES) == b""
        assert state_of(page)


def test_what_comes_after_the_head_is_not_read() -> None:
    with LivePage() as page:
        assert ask(page, "/command?do=pause", method="POST", body=b"x" * 1_000)[0] == 200


@pytest.mark.long
def test_clients_that_say_nothing_are_closed_and_stop_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_server, "PATIENCE", 0.5)
    with LivePage() as page:
        parts = urlsplit(page.url)
        address = (str(parts.hostname), parts.port or 0)
        silent = [socket.create_connection(address, timeout=10) for _ in range(4 * MOST_CONNECTIONS)]
        page.tell(ONE)  # the stream does not wait
        for connection in silent:
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
            connection.close()
        assert in_time(lambda: state_of(page)["facts"] != [])


def test_a_client_that_dribbles_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_server, "PATIENCE", 0.5)
    with LivePage() as page:
        parts = urlsplit(page.url)
        began = time.monotonic()
        connection = socket.create_connection((str(parts.hostname), parts.port or 0), timeout=10)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            while time.monotonic() - began < 10:
                connection.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 5


def test_many_browsers_are_answered_while_the_stream_goes_on() -> None:
    with LivePage() as page:
        page.begin(QUERY)

        def poll(_: int) -> int:
            try:
                return len(state_of(page)["points"])
            except (OSError, http.client.HTTPException):  # more than the most connections at a time
                return -1

        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(poll, range(200))
            for number in range(200):
                page.tell(Progress(number, 5, 0, 0, 0, 0, "", 0, rows=5, seconds=0.01))
            counts = list(answers)
        assert max(counts) >= 1
        assert counts.count(-1) < len(counts)


@pytest.mark.long
def test_a_browser_that_leaves_in_the_middle_is_no_matter(capfd: pytest.CaptureFixture[str]) -> None:
    with LivePage() as page:
        parts = urlsplit(page.url)
        for _ in range(20):
            connection = socket.create_connection((str(parts.hostname), parts.port or 0), timeout=10)
            connection.sendall(f"GET /?{parts.query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connection.close()
        assert state_of(page)
    assert capfd.readouterr().err == ""


def in_time(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if holds():
                return True
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.02)
    return False


# The port ------------------------------------------------------------------------------------------


def test_a_port_in_use_is_explained_in_one_line() -> None:
    with LivePage() as page, pytest.raises(DataError, match=r"cannot be served on 127\.0\.0\.1:\d+: Address") as raised:
        LivePage(urlsplit(page.url).port or 0).open()
    assert "\n" not in raised.value.message


@pytest.mark.parametrize("port", [-1, 65536, "x", True, 1.5])
def test_what_is_no_port_is_refused(port: object) -> None:
    with pytest.raises(DataError, match="is no port"):
        LivePage(port)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "a" * 400, "x\0y"])
def test_an_address_that_is_not_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(DataError, match="cannot be served"), LivePage(0, host):
        pass


def test_all_addresses_of_the_machine_may_be_served() -> None:
    with LivePage(0, "0.0.0.0") as page:  # noqa: S104
        assert urlsplit(page.url).hostname == socket.gethostname().lower()
        port = urlsplit(page.url).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/state?" + urlsplit(page.url).query)
        assert connection.getresponse().status == 200


def test_nothing_is_answered_after_the_end() -> None:
    with LivePage() as page:
        assert state_of(page)
    with pytest.raises(OSError):  # noqa: PT011
        ask(page, "/state")


# Content --------------------------------------------------------------------------------------------


def test_a_stream_by_its_progress_alone() -> None:
    with LivePage() as page:
        first = state_of(page)
        assert (first["status"]["name"], first["points"], first["facts"]) == ("waiting", [], [])
        page.tell(ONE)
        state = state_of(page)
        assert state["status"]["name"] == "running"
        assert dict(state["facts"])["events"] == "5, 3 held"
        assert state["partials"] == {
            "total": 4,
            "queries": [["", [], "partial matches are counted together here, not by state"]],
        }
        assert "not shown here" in state["matches"]["note"]
        assert state["status"]["can_pause"] is False
        assert state_of(page, state["now"])["points"] == []
        assert len(state_of(page, 10**15)["matches"]["rows"]) == 0


@pytest.mark.parametrize("since", ["", "x", "-1", "1" * 100, "²", "%00"])
def test_a_number_that_is_none_asks_for_everything(since: str) -> None:
    with LivePage() as page:
        page.tell(ONE)
        assert len(json.loads(ask(page, f"/state?since={since}".encode().decode("ascii", "ignore"))[2])["points"]) == 1


def watched_replay(query: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[dict[str, Any]]:
    """The states of a page that asks after each micro-batch of a replay."""
    monkeypatch.setattr(live_page, "EVERY", 0.0)
    states: list[dict[str, Any]] = []
    with LivePage() as page:
        state_of(page)

        def tell(_: Progress) -> None:
            states.append(state_of(page, states[-1]["now"] if states else 0))

        acep.replay(query, some_rows(), chunk=300, page=page, tell=tell, **options)
        states.append(state_of(page, states[-1]["now"]))
    return states


@pytest.mark.long
@pytest.mark.parametrize("engine", ["reference"] if why_not() else ["auto", "reference"])
def test_a_replay_shows_its_matches_and_partial_matches_by_state(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states = watched_replay(QUERY, monkeypatch, engine=engine)
    assert states[0]["query"] == QUERY
    for state in states[:-2]:
        ((name, by_state, note),) = state["partials"]["queries"]
        assert (name, note) == ("", "")
        assert [label for label, _ in by_state] == ["1 (p)", "2 (q)", "3 (r)"]
        assert sum(count for _, count in by_state) == state["partials"]["total"] > 0
    expected = acep.match(some_rows(), QUERY)
    assert states[-1]["matches"]["total"] == len(expected)
    columns = states[-1]["matches"]["columns"]
    last = dict(zip(columns, states[-2]["matches"]["rows"][-1][1], strict=True))
    assert last["end"] == str(max(match.end for match in expected))
    assert last["key"].startswith("user=")
    assert all(len(state["matches"]["rows"]) <= MOST_ROWS for state in states)
    assert states[-1]["status"]["name"] == "ended"
    assert "1,800 events" in states[-1]["status"]["note"]


@pytest.mark.skipif(bool(why_not()), reason="only the native core keeps to a budget")
def test_a_budget_shows_what_is_shed_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    states = watched_replay(QUERY, monkeypatch, budget=acep.Budget(work=3))
    ((name, figures),) = states[-3]["shed"]["queries"]
    assert (name, figures["policy"]) == ("", "history")
    assert figures["refused"] + figures["dropped"] + figures["skipped"] > 0
    assert "of the allowance was spent" in states[-1]["shed"]["lines"][0]
    (recall,) = states[-1]["recall"]
    assert recall["exact"] is False
    assert recall["why"].startswith(("not estimated", "estimated"))
    assert recall["points"] is not None or recall["why"].startswith("not estimated")


@pytest.mark.skipif(bool(why_not()), reason="only the native core keeps to a budget")
def test_a_history_is_shown_with_its_graph_and_what_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = acep.learn(some_rows(), QUERY)
    monkeypatch.setattr(live_page, "EVERY", 0.0)
    with LivePage() as page:
        state_of(page)
        histories: list[Any] = []

        def tell(_: Progress) -> None:
            histories.extend(figures["history"] for _, figures in state_of(page)["shed"]["queries"])

        acep.replay(QUERY, some_rows(), chunk=300, page=page, tell=tell, history=learned, budget=acep.Budget(work=3))
        number = state_of(page)["history"]["number"]
        status, headers, svg = ask(page, f"/history.svg?number={number}")
    assert (status, headers["Content-Type"]) == (200, "image/svg+xml")
    assert svg.startswith(b"<svg")
    assert "sandbox" in headers["Content-Security-Policy"]
    assert histories[-1][0][0] == "1 (p)"
    assert all(visits >= 0 for _, cells in histories[-1] for visits, _ in cells)


@pytest.mark.parametrize(
    ("query", "options", "note"),
    [
        ("PATTERN SEQ(a p, b q) WITHIN 50 OUTPUT NON OVERLAP", {}, "its engine finds matches in their order"),
        (
            "FROM (PATTERN SEQ(a p, b q) WITHIN 3) AS T PATTERN SEQ(T t, T u) WITHIN 9", {},
            "its matches are events of another one",
        ),
    ],
)  # fmt: skip
def test_an_engine_that_tells_no_states_apart_says_so(
    query: str, options: dict[str, Any], note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = watched_replay(query, monkeypatch, **options)
    notes = {text for state in states[:-2] for _, _, text in state["partials"]["queries"]}
    assert any(note in text for text in notes) or (why_not() and "NON OVERLAP" in query)


@pytest.mark.parametrize(
    ("page", "complaint"), [("x", "takes an acep.LivePage, not str"), (LivePage(), "is not served")]
)
def test_what_is_no_page_that_is_served_is_refused(page: Any, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=complaint):
        acep.replay(QUERY, some_rows(10), page=page)
    with pytest.raises(DataError, match=complaint):
        acep.follow(tmp_path, QUERY, state=tmp_path / "_s", into=tmp_path / "_o", once=True, page=page)


def test_a_page_has_no_address_before_it_is_served() -> None:
    with pytest.raises(DataError, match="is not served"):
        _ = LivePage().url
    assert LivePage(9_000).url.startswith("http://127.0.0.1:9000/?token=")


def test_a_page_may_be_served_over_ipv6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with LivePage(0, "::1") as page:
        assert urlsplit(page.url).hostname == "::1"
        assert state_of(page)["status"]["name"] == "waiting"


@pytest.mark.parametrize("output", ["matches", "points", "bundles", "count"])
@pytest.mark.parametrize(
    "options", [{}, {"budget": acep.Budget(work=2)}, {"speculation": 20}], ids=["", "work", "late"]
)
@pytest.mark.parametrize("condition", ["[user]", "[user] AND q.x > p.x", "[user] AND q.x = p.x"])
def test_each_engine_gives_states_or_says_why_not(
    condition: str, options: dict[str, Any], output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if options and (why_not() or (output == "bundles" and "speculation" in options)):
        pytest.skip("the engine has no such bound, or matches that may be taken back have no bundles")
    monkeypatch.setattr(live_page, "EVERY", 0.0)
    table, states = pa.table(some_rows(900)), list[dict[str, Any]]()
    (tmp_path / "in").mkdir()
    for number in range(3):
        pq.write_table(table.slice(300 * number, 300), tmp_path / "in" / f"{number}.parquet")
    query = f"PATTERN SEQ(a p, b q) WHERE {condition} WITHIN 200"
    folders: dict[str, Any] = {"state": tmp_path / "s", "into": tmp_path / "o"}
    with LivePage() as page:
        state_of(page)
        acep.follow(
            tmp_path / "in", query, max_files=1, once=True, output=output, page=page,
            tell=lambda _: states.append(state_of(page)), **folders, **options,
        )  # fmt: skip
        states.append(state_of(page))
    for state in states:
        ((_, by_state, note),) = state["partials"]["queries"]
        assert bool(by_state) != bool(note)
        assert not by_state or sum(count for _, count in by_state) == state["partials"]["total"]
    assert states[-1]["matches"]["columns"] or not states[-1]["matches"]["total"]


def test_a_stream_that_goes_on_later_is_stopped_and_then_ends(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.csv").write_text("ts,type\n1,a\n2,b\n")
    folders: dict[str, Any] = {"state": tmp_path / "s", "into": tmp_path / "o"}
    with LivePage() as page:
        acep.follow(tmp_path / "in", acep.regex("ab", within=5), once=True, page=page, **folders)
        stopped = state_of(page)["status"]
        acep.follow(tmp_path / "in", acep.regex("ab", within=5), end=True, page=page, **folders)
        ended = state_of(page)["status"]
    assert (stopped["name"], ended["name"]) == ("stopped", "ended")
    assert "the stream goes on" in stopped["note"]
    assert "the stream has ended" in ended["note"]


def test_nobody_looks_so_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "bucket_figures", lambda bucket: pytest.fail("counted"))
    with LivePage() as page:
        acep.replay(QUERY, some_rows(600), chunk=100, page=page)


def test_rows_and_their_texts_are_bounded() -> None:
    state = LiveState()
    key = pa.array([{"user": "<script>alert(1)</script>" * 1_000}] * 1_000)
    bindings = pa.array([[("a", list(range(1_000)))]] * 1_000, pa.map_(pa.string(), pa.list_(pa.int64())))
    table = pa.table({"key": key, "bindings": bindings})
    for number in range(20):
        state.add_rows([table])
        state.add_progress(Progress(number, 0, 0, 0, 0, 0, "", 0, rows=1, seconds=0.1))
    answer = state.answer(0)
    assert len(answer["matches"]["rows"]) == MOST_ROWS
    assert answer["matches"]["total"] == 20_000
    assert max(len(cell) for _, cells in answer["matches"]["rows"] for cell in cells) <= LONGEST
    assert len(json.dumps(answer)) < 40_000


def test_columns_may_change_and_be_many() -> None:
    shown = ShownRows()
    shown.add([pa.table({f"c{number}": [number] for number in range(500)})], 1)
    assert len(shown.columns) == len(shown.rows[0][1]) == 24
    shown.add([pa.table({"a": pa.array([None], pa.null())})], 2)
    assert (shown.columns, list(shown.rows), shown.total) == (("a",), [(2, ("",))], 2)


def test_a_stream_of_a_million_micro_batches_is_shown_by_600_points() -> None:
    now = 0.0
    state = LiveState(lambda: now)
    for number in range(5_000):
        now += 0.7
        state.add_progress(Progress(number, 0, 0, 0, 0, 0, "", 0, rows=10, seconds=0.1))
    answer = state.answer(0)
    assert len(answer["points"]) == 600
    assert len(json.dumps(answer)) < 60_000


def test_errors_and_ends_are_shown_to_a_browser_that_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "PARTING", PARTING)
    page, seen = LivePage(), list[str]()

    def poll() -> None:
        while True:
            try:
                status = state_of(page)["status"]
                seen.append(f"{status['name']}: {status['note']}")
            except (OSError, http.client.HTTPException):
                return
            time.sleep(0.05)

    def replay() -> None:
        with page:
            looking.start()
            assert in_time(lambda: len(seen) > 0)
            acep.replay("PATTERN SEQ(a p, b q) WITHIN 5", {"ts": [1, None], "type": ["a", "b"]}, page=page)

    looking = threading.Thread(target=poll)
    with pytest.raises(DataError):
        replay()
    looking.join()
    assert seen[-1].startswith("failed: column `ts` is null")


def test_the_end_waits_for_nobody_who_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "PARTING", PARTING)
    began = time.monotonic()
    with LivePage() as page:
        page.tell(ONE)
    assert time.monotonic() - began < 1.5


@pytest.mark.long
def test_the_end_waits_a_little_for_a_browser_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_page, "PARTING", PARTING)
    began = time.monotonic()
    with LivePage() as page:
        state_of(page)
        page.tell(ONE)
    assert time.monotonic() - began < 5


# Pause, step, stop ---------------------------------------------------------------------------------


def command(page: LivePage, text: str) -> None:
    assert ask(page, f"/command?do={text}", method="POST")[0] == 200


def test_the_page_pauses_steps_and_stops_a_replay() -> None:
    batches: list[int] = []
    failures: list[str] = []

    def press() -> None:
        try:
            assert in_time(lambda: state_of(page)["status"]["can_pause"])
            command(page, "pause")
            assert in_time(lambda: state_of(page)["status"]["name"] == "paused")
            n_batches = len(batches)
            time.sleep(0.4)
            assert len(batches) == n_batches
            command(page, "step")
            assert in_time(lambda: len(batches) == n_batches + 1)
            time.sleep(0.2)
            assert len(batches) == n_batches + 1
            command(page, "pause")
            assert in_time(lambda: len(batches) > n_batches + 1)
            command(page, "stop")
        except BaseException as failure:
            failures.append(repr(failure))
            command(page, "stop")
            raise

    page, pressing = LivePage(), threading.Thread(target=press)

    def replay() -> None:
        rows = {"ts": list(range(2_000)), "type": ["a", "b"] * 1_000}
        with page:
            pressing.start()
            acep.replay(
                acep.regex("ab", within=5), rows, unit="ms", speed=0.1, chunk=1, page=page,
                tell=lambda progress: batches.append(progress.batch),
            )  # fmt: skip

    with pytest.raises(KeyboardInterrupt):
        replay()
    pressing.join()
    assert failures == []


def test_more_keys_than_a_replay_takes_are_refused() -> None:
    with LivePage() as page:
        statuses = [ask(page, "/command?do=pause", method="POST")[0] for _ in range(40)]
    assert statuses.count(200) == 16
    assert statuses[-1] == 404


# The command line ----------------------------------------------------------------------------------


def test_the_page_is_among_the_names_of_acep(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("ts,type\n1,a\n2,b\n")
    with acep.LivePage() as page:
        acep.follow(
            folder, {"up": acep.regex("ab", within=5), "other": "PATTERN b q"}, state=tmp_path / "s",
            into=tmp_path / "o", end=True, page=page,
        )  # fmt: skip
        state = state_of(page)
    assert state["query"].startswith("up:\n")
    assert {row[1][0] for row in state["matches"]["rows"]} == {"up", "other"}
    assert (state["status"]["name"], state["queries"]) == ("ended", 2)
