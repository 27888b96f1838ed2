// The matches over time: bars in lanes, by clock or from the start of each match, with zoom and pan.

const timeLine = { model: null, source: null, aligned: false };

async function drawTimeLine(figures) {
  const views = await Bokeh.embed.embed_item(figures.time_line, "time-line");
  const view = (views.roots ? [...views.roots] : [...views])[0];
  timeLine.model = view.model;
  timeLine.source = timeLine.model.document.get_model_by_name("matches");
  timeLine.source.selected.properties.indices.change.connect(() => {
    const [row] = timeLine.source.selected.indices;
    if (row !== undefined) choose(row);
  });
  for (const axis of ["start", "end"]) timeLine.model.y_range.properties[axis].change.connect(sayLanes);
  drawLegend();
  sayLanes();
}

function drawLegend() {
  const colourOf = new Map();
  matches.errors.forEach((error, row) => colourOf.set(error, timeLine.source.data.colour[row]));
  const errors = [...colourOf.keys()].sort((a, b) => a - b);
  for (const colour of new Set(errors.map((error) => colourOf.get(error)))) {
    const own = errors.filter((error) => colourOf.get(error) === colour);
    const entry = element("span");
    const mark = element("i");
    mark.style.background = colour;
    entry.append(mark, `error ${own[0]}${own.length > 1 ? " and more" : ""}`);
    byId("legend").append(entry);
  }
}

function align(byStart) {
  timeLine.aligned = byStart;
  const source = timeLine.source;
  const left = byStart ? matches.start.map(() => 0) : matches.start;
  const right = byStart ? matches.lengths : matches.end;
  source.data = { ...source.data, left: Float64Array.from(left), right: Float64Array.from(right) };
  const [clock, durations] = timeLine.model.below.filter((part) => "axis_label" in part);
  clock.visible = !byStart;
  durations.visible = byStart;
  byId("by-clock").setAttribute("aria-pressed", String(!byStart));
  byId("by-start").setAttribute("aria-pressed", String(byStart));
  showAll();
}

function showAll() {
  const { left, right } = timeLine.source.data;
  let [low, high] = [Infinity, -Infinity];
  for (const x of left) low = Math.min(low, x);
  for (const x of right) high = Math.max(high, x);
  if (low > high) [low, high] = [0, 1];
  const free = 0.02 * (high - low) || 1;
  timeLine.model.x_range.setv({ start: low - free, end: high + free });
  const span = timeLine.model.y_range.start - timeLine.model.y_range.end;
  timeLine.model.y_range.setv({ start: span, end: 0 });
}

function zoom(range, factor, at) {
  const centre = at === undefined ? (range.start + range.end) / 2 : at;
  range.setv({ start: centre + (range.start - centre) * factor, end: centre + (range.end - centre) * factor });
}

function pan(range, share) {
  const by = (range.end - range.start) * share;
  range.setv({ start: range.start + by, end: range.end + by });
}

function moveLanes(by) {
  const range = timeLine.model.y_range;
  const span = range.start - range.end;
  const top = Math.max(0, Math.min(matches.lanes.length - span, Math.round(range.end) + by * span));
  range.setv({ start: top + span, end: top });
}

function sayLanes() {
  const range = timeLine.model.y_range;
  const first = Math.max(1, Math.floor(range.end + 0.5) + 1);
  const last = Math.min(matches.lanes.length, Math.ceil(range.start - 0.5));
  const all = matches.lanes.length.toLocaleString("en");
  byId("lanes").textContent = matches.lanes.length > last - first + 1 ? `keys ${first} to ${last} of ${all}` : "";
}

function showInTimeLine(change) {
  if (!timeLine.model) return;
  if (change === "order") {
    timeLine.model.document.get_model_by_name("shown").indices = [...state.order].sort((a, b) => a - b);
  }
  if (change === "chosen" && state.chosen !== null) {
    const { selected } = timeLine.source;
    if (selected.indices.length !== 1 || selected.indices[0] !== state.chosen) selected.indices = [state.chosen];
    const range = timeLine.model.y_range;
    const lane = matches.lane[state.chosen];
    const span = range.start - range.end;
    if (lane < range.end || lane + 1 > range.start) {
      const top = Math.max(0, Math.min(matches.lanes.length - span, lane - Math.floor(span / 2)));
      range.setv({ start: top + span, end: top });
    }
    const x = timeLine.model.x_range;
    const [left, right] = [timeLine.source.data.left[state.chosen], timeLine.source.data.right[state.chosen]];
    if (right < x.start || left > x.end) {
      const width = x.end - x.start;
      x.setv({ start: (left + right - width) / 2, end: (left + right + width) / 2 });
    }
  }
}
