"""Draw the picture of docs/howto/spark.md: ``python -m experiments.spark.route_picture``.

Rows of three keys come in any order, are spread over buckets, are matched there in the order of time, and go to one of
three places.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

__all__ = ["PICTURE", "draw_picture", "main"]

PICTURE = Path(__file__).resolve().parents[2] / "docs/howto/spark/routes.svg"

WIDTH, HEIGHT = 800, 362
KEYS = ("ann", "bob", "eve")
COLOURS = {"ann": "#0072b2", "bob": "#d55e00", "eve": "#1a7f37"}
ARRIVALS = (("ann", 1), ("bob", 2), ("ann", 5), ("eve", 4), ("ann", 3), ("bob", 7), ("eve", 6), ("bob", 8))
"""The key and the time of each row, as they come."""
MATCHES = {"ann": (1, 5), "bob": (7, 8)}
"""The times of the first and the last event of a match, by key."""
SINKS = (
    ("a job", "a DataFrame", "match(df, query)"),
    ("a stream", "any sink of Spark", "match(stream, query, watermark=...)"),
    ("a sink of your own", "your function", "for_each_batch(query, sink, ...)"),
)
CAPTION = (
    "The colour of an event is its key, its number is its time, and a frame is a match.",
    "A job needs all rows and keeps no state. A stream keeps the state of each bucket in files of its checkpoint.",
)
ROWS_X, BUCKET_X, BUCKET_WIDTH, STATE_X, SINK_X, SINK_WIDTH = 40, 160, 216, 392, 532, 252
TOP, BUCKET_HEIGHT, BUCKET_GAP, RADIUS = 56, 66, 20, 12
STYLE = (
    ".paper{fill:#ffffff} text{font-family:'DejaVu Sans',system-ui,sans-serif;font-size:13px;fill:#1f2328}"
    " .small{font-size:11px} .event{fill:#ffffff;font-weight:bold} .box{fill:#f6f8fa;stroke:#59636e}"
    " .line{fill:none;stroke:#59636e;stroke-width:1.5} .match{fill:none;stroke:#1f2328;stroke-width:2}"
)


def draw_picture() -> str:
    """Return the picture as an SVG document.

    >>> picture = draw_picture()
    >>> picture.count("<circle") == 2 * len(ARRIVALS), picture.count(">bucket ")
    (True, 3)
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{STYLE}</style>",
        (
            '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#59636e"/></marker></defs>'
        ),
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
        _text(ROWS_X - 28, 26, "rows, as they come"),
        _text(BUCKET_X + 10, 26, "spread by key, matched in order of time"),
        _text(SINK_X, 26, "where the matches go"),
    ]
    for number, (key, time) in enumerate(ARRIVALS):
        parts.append(_event(ROWS_X, TOP + 14 + 31 * number, key, time))
    for number, key in enumerate(KEYS):
        parts += _bucket(number, key)
    parts.append(_line(f"M{SINK_X - 44} {_top(0) + BUCKET_HEIGHT / 2}V{_top(2) + BUCKET_HEIGHT / 2}"))
    for number in range(len(SINKS)):
        parts += _sink(number)
    parts += [_text(ROWS_X - 28, HEIGHT - 34 + 20 * number, line, "small") for number, line in enumerate(CAPTION)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bucket(number: int, key: str) -> list[str]:
    """Draw a bucket with the events of its key in order, the match among them, and its state."""
    top = _top(number)
    middle = top + BUCKET_HEIGHT / 2
    parts = [
        _arrow(ROWS_X + RADIUS + 14, middle, BUCKET_X - 4),
        f'<rect class="box" x="{BUCKET_X}" y="{top}" width="{BUCKET_WIDTH}" height="{BUCKET_HEIGHT}" rx="6"/>',
        _text(BUCKET_X + 10, top + 18, f"bucket {number + 1}: {key}", "small"),
    ]
    times = sorted(time for arrived_key, time in ARRIVALS if arrived_key == key)
    places = {time: BUCKET_X + 34 + 44 * position for position, time in enumerate(times)}
    parts += [_event(x, top + 44, key, time) for time, x in places.items()]
    if key in MATCHES:
        first, last = (places[time] for time in MATCHES[key])
        size = f'width="{last - first + 2 * RADIUS + 10}" height="{2 * RADIUS + 8}"'
        parts.append(f'<rect class="match" x="{first - RADIUS - 5}" y="{top + 44 - RADIUS - 4}" {size} rx="9"/>')
        parts.append(_line(f"M{STATE_X + 40} {middle}H{SINK_X - 44}"))
    left, right, high, low = STATE_X, STATE_X + 40, top + 22, top + 52
    parts.append(_line(f"M{BUCKET_X + BUCKET_WIDTH} {middle}H{left}"))
    parts.append(
        f'<path class="box" d="M{left} {high}a20 6 0 0 1 40 0V{low}a20 6 0 0 1 -40 0zM{left} {high}a20 6 0 0 0 40 0"/>'
    )
    parts.append(_text((left + right) / 2 - 14, high + 21, "state", "small"))
    return parts


def _sink(number: int) -> list[str]:
    """Draw one of the places to which matches go, with the call that sends them there."""
    top = _top(number)
    name, target, call = SINKS[number]
    middle = top + BUCKET_HEIGHT / 2
    return [
        _arrow(SINK_X - 44, middle, SINK_X - 4),
        f'<rect class="box" x="{SINK_X}" y="{top}" width="{SINK_WIDTH}" height="{BUCKET_HEIGHT}" rx="6"/>',
        _text(SINK_X + 12, top + 26, f"{name}: {target}"),
        _text(SINK_X + 12, top + 48, call, "small"),
    ]


def _top(number: int) -> int:
    return TOP + number * (BUCKET_HEIGHT + BUCKET_GAP)


def _event(x: float, y: float, key: str, time: int) -> str:
    circle = f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{COLOURS[key]}"/>'
    return circle + f'<text class="event" x="{x}" y="{y + 5}" text-anchor="middle">{time}</text>'


def _line(path: str) -> str:
    return f'<path class="line" d="{path}"/>'


def _arrow(x: float, y: float, to_x: float) -> str:
    return f'<path class="line" d="M{x} {y}H{to_x}" marker-end="url(#head)"/>'


def _text(x: float, y: float, text: str, style: str = "") -> str:
    attribute = f' class="{style}"' if style else ""
    return f'<text{attribute} x="{x}" y="{y}">{escape(text)}</text>'


def main() -> None:
    """Write the picture."""
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw_picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
