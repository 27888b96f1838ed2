"""Draw the time line and the series of a page with bokeh; scripts of the page fill and change them."""

from __future__ import annotations

from typing import Any

from acep.pages.page_data import PageData
from acep.pages.shown_columns import PARTS

__all__ = ["BAR_COLOURS", "VISIBLE_LANES", "series_figure", "time_line_figure"]

VISIBLE_LANES = 12
"""The lanes that are seen at first."""
LANE, LEAST, EDGE = 26, 150, 74  # pixels of a lane, of all together, and of the axis
LONGEST_LABEL = 36  # characters
TIPS = ("start", "end", "duration", "error")
BAR_COLOURS = ("#0072b2", "#56b4e9", "#e69f00", "#d55e00", "#7a3b00")
"""The colours of errors, from the least to the greatest."""
AXIS: dict[str, Any] = {"axis_line_color": "#8c959f", "major_tick_line_color": "#8c959f", "minor_tick_line_color": None}


def time_line_figure(data: PageData) -> Any:
    """Return the figure of matches over time: a bar for each, in the lane of its key; and a second axis, of durations.

    The glyphs have the data source ``matches`` with the columns left, right, top, bottom, colour and number, and a
    filter ``shown``."""
    from bokeh.models import BasicTickFormatter, CDSView, HoverTool, IndexFilter, LinearAxis, Range1d, TapTool

    columns = data.matches
    n_lanes = max(1, min(len(columns.lanes), VISIBLE_LANES))
    figure = _figure(columns.calendar, max(LANE * n_lanes, LEAST) + EDGE, name="time-line")
    low, high = min(columns.start, default=0.0), max(columns.end, default=1.0)
    free = 0.02 * (high - low) or 1.0
    figure.x_range = Range1d(start=low - free, end=high + free, name="x")
    figure.y_range = Range1d(start=n_lanes, end=0, name="y")
    figure.xaxis[0].axis_label = " ".join(filter(None, ("clock", columns.axis.note)))
    durations = LinearAxis(
        name="durations", visible=False, formatter=BasicTickFormatter(use_scientific=False),
        axis_label=f"from the start of each match ({columns.unit or 'ticks'})", axis_label_text_font_style="normal",
        **AXIS,
    )  # fmt: skip
    figure.add_layout(durations, "below")
    _label_lanes(figure, data)
    view = CDSView(filter=IndexFilter(indices=[*range(len(columns.start))], name="shown"))
    bars = figure.quad(
        left="left", right="right", top="top", bottom="bottom", source=_bars(data), view=view,
        fill_color="colour", line_color="colour", line_width=1.5, fill_alpha=0.75,
        nonselection_fill_alpha=0.75, nonselection_line_color="colour", nonselection_line_alpha=1.0,
        selection_line_color="#1f2328", selection_line_width=3, selection_fill_alpha=1.0,
    )  # fmt: skip
    tips = [("match", "@number"), ("key", "@key"), *((name, f"@{name}") for name in TIPS)]
    figure.add_tools(HoverTool(renderers=[bars], tooltips=tips), TapTool(renderers=[bars]))
    return figure


def _bars(data: PageData) -> Any:
    """Return the data source of the bars."""
    from bokeh.models import ColumnDataSource

    columns = data.matches
    errors = sorted({*columns.errors})
    colour_of = {error: BAR_COLOURS[min(n, len(BAR_COLOURS) - 1)] for n, error in enumerate(errors)}
    heights = [0.8 / columns.depths[lane] for lane in columns.lane]
    places = zip(columns.lane, columns.sub_lane, heights, strict=True)
    tops = [lane + 0.1 + sub_lane * height for lane, sub_lane, height in places]
    first = 1 + min(len(data.keys), PARTS)  # behind the number and the key; a value of RETURN may have such a name, too
    tips = data.matches.table[first : first + len(TIPS)]
    return ColumnDataSource(
        {
            "left": [*columns.start],
            "right": [*columns.end],
            "top": tops,
            "bottom": [top + 0.9 * height for top, height in zip(tops, heights, strict=True)],
            "colour": [colour_of[error] for error in columns.errors],
            "number": [*columns.numbers],
            "key": [columns.lanes[lane] for lane in columns.lane],
            **{column.name: [*column.texts] for column in tips},
        },
        name="matches",
    )


def _label_lanes(figure: Any, data: PageData) -> None:
    """Name the lanes, without markup: in a bare text dollars would be read as a formula."""
    from bokeh.models import FixedTicker, PlainText

    lanes = [_shorten(lane) for lane in data.matches.lanes]
    axis = figure.yaxis[0]
    axis.ticker = FixedTicker(ticks=[number + 0.5 for number in range(len(lanes))])
    axis.major_label_overrides = {number + 0.5: PlainText(text=lane) for number, lane in enumerate(lanes)}
    axis.axis_label = PlainText(text=_shorten(", ".join(data.keys)))
    figure.ygrid.grid_line_color = None


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"


def series_figure(data: PageData) -> Any:
    """Return the figure of a series of one match: a line, and marks of the bound rows, both without data.

    The data sources are ``line`` (x, y) and ``marks`` (x, y, colour, variable, row, time, value)."""
    from bokeh.models import ColumnDataSource, HoverTool, Range1d

    figure = _figure(data.matches.calendar, 240, name="series")
    figure.xaxis[0].axis_label = " ".join(filter(None, ("clock", data.matches.axis.note)))
    figure.x_range, figure.y_range = (Range1d(start=0, end=1, name=f"series-{side}") for side in "xy")
    names = ("x", "y", "variable", "row", "time", "value")
    line = ColumnDataSource({name: [] for name in names}, name="line")
    marks = ColumnDataSource({name: [] for name in (*names, "colour")}, name="marks")
    figure.line("x", "y", source=line, color="#57606a", line_width=1.2)
    dots = figure.scatter("x", "y", source=line, color="#57606a", size=4)
    bound = figure.scatter("x", "y", source=marks, color="colour", size=10, line_color="#ffffff")
    tips = [(name, f"@{name}") for name in ("variable", "row", "time", "value")]
    figure.add_tools(HoverTool(renderers=[dots, bound], tooltips=tips))
    return figure


def _figure(calendar: bool, height: int, name: str) -> Any:
    from bokeh.models import BasicTickFormatter, PanTool
    from bokeh.plotting import figure

    drawing = figure(
        height=height, sizing_mode="stretch_width", toolbar_location=None, tools="", name=name,
        x_axis_type="datetime" if calendar else "linear", min_border_right=16,
    )  # fmt: skip
    pan = PanTool()
    drawing.add_tools(pan)
    drawing.toolbar.active_drag = pan
    drawing.outline_line_color = "#d0d7de"
    for axis in drawing.axis:
        axis.update(**AXIS, axis_label_text_font_style="normal")
    drawing.output_backend = "canvas"
    drawing.yaxis[0].formatter = BasicTickFormatter(use_scientific=False)
    if not calendar:
        drawing.xaxis[0].formatter = BasicTickFormatter(use_scientific=False)
    return drawing
