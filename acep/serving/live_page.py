"""Serve the live page of a stream on a port of this machine, for those who know its token."""

from __future__ import annotations

import json
import queue
import secrets
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from acep.errors import AcepError, DataError
from acep.serving.bucket_figures import bucket_figures
from acep.serving.live_state import LiveState
from acep.serving.pausing import PAUSE, STEP, STOP, Pause
from acep.streaming.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from acep.serving.page_server import Answer, PageServer
    from acep.streaming.buckets import Bucket

__all__ = ["LivePage", "check_live_page"]

COMMANDS = {"pause": PAUSE, "step": STEP, "stop": STOP}
EVERY = 1.0  # seconds between two looks at the partial matches by state
PARTING = 2.5  # the most seconds for which the end waits for a browser that looks, to show it
WILDCARDS = ("0.0.0.0", "::", "")  # noqa: S104 - names of addresses: nothing is bound here


class LivePage:
    """The live page of a stream, at :attr:`url`, as a context manager: ``page=`` of :func:`acep.follow` and of
    :func:`acep.replay` takes it. Its :meth:`tell` alone, as ``tell=``, shows the progress without the matches.

    ``port`` 0 is any free one; ``host`` is this machine alone unless another address is named. Only requests with the
    token of :attr:`url` are answered, so whoever has the address sees the page, texts of events and queries among them.
    The stream never waits for a browser. Only at the end, if someone looks, closing takes up to 2.5 s, so that the end
    is seen.

    Raises :class:`DataError` if the port cannot be used.

    >>> import acep
    >>> from urllib.request import urlopen
    >>> rows = {"ts": [1, 2, 4], "type": ["a", "x", "b"]}
    >>> with acep.LivePage() as page:
    ...     done = acep.replay(acep.regex("ab", within=5), rows, page=page)
    ...     state = json.load(urlopen(page.url.replace("/?", "/state?")))
    >>> state["status"]["name"], state["matches"]["rows"][0][1][:3]
    ('ended', ['1', '4', '0'])
    """

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
            raise DataError(f"port={port!r} is no port", hint="a number up to 65535; 0: any", code="option_invalid")
        self._host, self._port = host, port
        self._token = secrets.token_urlsafe(24)
        self._state = LiveState()
        self._keys = queue.Queue[str](maxsize=16)
        self._pause = Pause(self.take_key, self.set_paused)
        self._looked = float("-inf")
        self._server: PageServer | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, AcepError):
            self._state.set_status("failed", error.message)
        elif isinstance(error, Exception):
            self._state.set_status("failed", f"{type(error).__name__}: {error}")
        elif error is not None:
            self._state.set_status("stopped")
        elif self._state.status in ("waiting", "running", "paused"):
            self._state.set_status("ended")
        self.close()

    def open(self) -> None:
        """Begin to serve. Raises :class:`DataError` if the port cannot be used."""
        from acep.serving.page_server import PageServer

        routes = {
            ("GET", "/"): self._page,
            ("GET", "/state"): self._answer_state,
            ("GET", "/history.svg"): self._answer_drawing,
            ("POST", "/command"): self._take_command,
        }
        names = frozenset({self._host.lower(), socket.gethostname().lower()} - {*WILDCARDS})
        try:
            self._server = PageServer(self._host, self._port, self._token, routes, names)
        except (OSError, UnicodeError, TypeError) as error:
            raise DataError(
                f"the page cannot be served on {self._host}:{self._port}: {getattr(error, 'strerror', '') or error}",
                hint="choose another port; 0 is any free one",
                code="option_invalid",
            ) from None
        self._port = self._server.server_port
        self._server.start()

    def close(self) -> None:
        """Serve no more; wait a moment for a browser that has not seen the end yet."""
        if self._server is None:
            return
        until = time.monotonic() + PARTING
        while self._state.is_watched and not self._state.is_sent and time.monotonic() < until:
            time.sleep(0.02)
        self._server.stop()
        self._server = None

    @property
    def is_open(self) -> bool:
        """Return whether the page is served now."""
        return self._server is not None

    @property
    def url(self) -> str:
        """Return the address of the page, with its token, which is all that a reader needs. Raises :class:`DataError`
        before a page on any free port has one."""
        if not self._port:
            raise _closed_error()
        host = socket.gethostname() if self._host in WILDCARDS else self._host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self._port}/?token={self._token}"

    # Calls of the stream ----------------------------------------------------------------------------

    def begin(
        self,
        query: Any,
        *,
        can_pause: bool = False,
        rows_note: str = "",
        partials_note: str = "",
        history: Any = None,
    ) -> None:
        """Show a query, or several by their names; the functions that take ``page=`` call it. ``can_pause``: the page
        has buttons for :meth:`wait`. ``rows_note`` and ``partials_note``: why matches, and partial matches by state,
        are not shown. ``history``: one whose graph is drawn.
        """
        from acep.serving.query_text import text_of_query

        notes = {"rows_note": rows_note, "partials_note": partials_note}
        self._state.begin(text_of_query(query), can_pause=can_pause, **notes)
        if history is not None:
            from acep.serving.history_drawing import draw_history

            self._state.set_drawing(*draw_history(history))

    def tell(self, progress: Progress) -> None:
        """Show a micro-batch."""
        self._state.add_progress(progress)

    def look(self, bucket: Bucket) -> None:
        """Look at the partial matches of a bucket, at most once a second, and only if someone looks at the page."""
        now = time.monotonic()
        if bucket.ended:
            self._state.end_figures()
        elif self._state.is_watched and now - self._looked >= EVERY:
            self._looked = now
            self._state.set_figures(bucket_figures(bucket))

    def show(self, tables: Sequence[pa.Table]) -> None:
        """Show rows of the result as they come."""
        self._state.add_rows(tables)

    def end(self, note: str = "", *, goes_on: bool = False) -> None:
        """Show that the stream has ended, with a note; or that it is stopped, if a later call ``goes_on`` with it."""
        self._state.set_status("stopped" if goes_on else "ended", note)

    def fail(self, note: str) -> None:
        """Show that the stream has failed, with the error in one line."""
        self._state.set_status("failed", note)

    # Pause and step --------------------------------------------------------------------------------

    def wait(self, seconds: float) -> float:
        """Wait for so many seconds, and while the page has paused the replay: ``wait=`` of :func:`acep.replay`.

        Raises :class:`KeyboardInterrupt` if the page stops the replay."""
        return self._pause.wait(seconds)

    def take_key(self, seconds: float) -> str:
        """Return the key of a button that is pressed within so many seconds, "" if there is none."""
        try:
            return self._keys.get(timeout=seconds) if seconds > 0 else self._keys.get_nowait()
        except queue.Empty:
            return ""

    def press(self, command: str) -> bool:
        """Press a button: ``"pause"`` (or go on), ``"step"`` or ``"stop"``. Return whether the replay will see it; not
        for another command, and not if it has not taken earlier ones."""
        key = COMMANDS.get(command)
        if key is None:
            return False
        try:
            self._keys.put_nowait(key)
        except queue.Full:
            return False
        return True

    def set_paused(self, is_paused: bool) -> None:
        """Show whether the replay is paused."""
        self._state.set_status("paused" if is_paused else "running")

    # Requests of the browser ------------------------------------------------------------------------

    def _page(self, _: dict[str, str]) -> Answer:
        from acep.serving.live_document import live_document
        from acep.serving.page_server import Answer

        body, policy = live_document()
        return Answer("text/html; charset=utf-8", body, policy)

    def _answer_state(self, parameters: dict[str, str]) -> Answer:
        from acep.serving.page_server import Answer

        text = parameters.get("since", "0")
        since = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
        body = json.dumps(self._state.answer(since), separators=(",", ":"))
        return Answer("application/json", body.encode())

    def _answer_drawing(self, _: dict[str, str]) -> Answer | None:
        from acep.serving.page_server import Answer

        svg = self._state.drawing
        policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
        return Answer("image/svg+xml", svg, policy) if svg else None

    def _take_command(self, parameters: dict[str, str]) -> Answer | None:
        from acep.serving.page_server import Answer

        is_taken = self.press(parameters.get("do", ""))
        return Answer("application/json", b"{}") if is_taken else None


def check_live_page(page: object) -> None:
    """Raise :class:`DataError` for what ``page=`` does not take: what is no page, or one that is not served."""
    if page is None:
        return
    if not isinstance(page, LivePage):
        raise DataError(
            f"page= takes an acep.LivePage, not {type(page).__name__}",
            hint="with acep.LivePage() as page: ...",
            code="option_invalid",
        )
    if not page.is_open:
        raise _closed_error()


def _closed_error() -> DataError:
    return DataError("the live page is not served", hint="with acep.LivePage() as page: ...", code="option_invalid")
