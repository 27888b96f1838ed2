"""Serve the live page of a streaming query of Spark, from what its listener gets (``acep.spark.serve``)."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from acep.errors import DataError
from acep.spark.failures import error_in
from acep.spark.listening import progress_of, run_listener, stop_listening
from acep.spark.session import needs_pyspark
from acep.streaming.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery

    from acep.serving.live_page import LivePage

__all__ = ["TOGETHER", "ServedQuery", "serve"]

IN_THE_SINK = "matches go to the sink of the query, and are not shown here: that would take another job of Spark"
TOGETHER = "on Spark partial matches are counted together, not by state"


class ServedQuery:
    """The live page of a streaming query at ``url``, until :meth:`close` or the end of a ``with`` block."""

    def __init__(self, query: StreamingQuery, page: LivePage, session: SparkSession) -> None:
        self._query, self._page, self._session = query, page, session
        self._last = -1
        self._listener: StreamingQueryListener | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Return the address of the page, with its token."""
        return self._page.url

    def open(self) -> None:
        """Begin to serve and to listen."""
        self._page.open()
        self._listener = run_listener(str(self._query.runId), self._tell, self._end)
        self._session.streams.addListener(self._listener)
        for spark_progress in self._query.recentProgress:
            if (progress := progress_of(spark_progress)) is not None:
                self._tell(progress)
        if not self._query.isActive:  # it may have ended before the listener was there
            failure = self._query.exception()
            self._end("" if failure is None else str(failure))

    def close(self) -> None:
        """Serve and listen no more. The query goes on."""
        if self._listener is not None:
            self._session.streams.removeListener(self._listener)
            stop_listening(str(self._query.runId), self._tell)
            self._listener = None
        self._page.close()

    def _tell(self, progress: Progress) -> None:
        if progress.batch > self._last:
            self._last = progress.batch
            self._page.tell(progress)

    def _end(self, failure: str) -> None:
        """Show the end of the query; ``failure`` is what Spark says of it ("": it has not failed)."""
        error = error_in(RuntimeError(failure)) if failure else None
        if error is not None:
            self._page.fail(error.message)
        elif failure:
            self._page.fail(failure.strip().partition("\n")[0])
        else:
            self._page.end()


def serve(query: StreamingQuery, *, port: int = 0, host: str = "127.0.0.1") -> ServedQuery:
    """Serve a live page of a running streaming query of :func:`acep.spark.match`, :func:`acep.spark.match_recognize` or
    :func:`acep.spark.for_each_batch`, and return it with its ``url`` and ``close()``; ``with`` closes it, too.

    The page shows what a listener gets: rate, lag, partial matches, what is shed and the recall. It starts no job of
    Spark, so matches are not shown as they come. ``port`` 0 is any free one; ``host`` is this machine alone unless
    another address is named. Only those who know the token in ``url`` see the page.

    Raises :class:`DataError` for what is no streaming query, and if the port cannot be used.
    """
    needs_pyspark()
    if not hasattr(query, "runId") or not hasattr(query, "recentProgress"):
        raise DataError(
            f"serve() takes a running query, what writeStream...start() returns, not {type(query).__name__}",
            code="option_invalid",
        )
    from acep.serving.live_page import LivePage

    page = LivePage(port, host)
    heading = f"-- the streaming query {query.name or query.id} on Spark"
    page.begin(heading, rows_note=IN_THE_SINK, partials_note=TOGETHER)
    served = ServedQuery(query, page, _session_of(query))
    served.open()
    return served


def _session_of(query: Any) -> SparkSession:
    """Return the session in which a query runs."""
    if hasattr(query, "_session"):  # of Spark Connect
        session: SparkSession = query._session
        return session
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession(SparkContext.getOrCreate(), query._jsq.sparkSession())
