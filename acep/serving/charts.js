// Charts: lines over the seconds since the page began, drawn as SVG. Texts are set as texts.

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 400, HEIGHT = 120, LEFT = 4, BOTTOM = 18, TOP = 14;

const byId = (id) => document.getElementById(id);

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

function numberText(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e4 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

function lengthText(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return `${numberText(seconds)} s`;
  if (seconds < 7200) return `${numberText(Math.round(seconds / 6) / 10)} min`;
  if (seconds < 172800) return `${numberText(Math.round(seconds / 360) / 10)} h`;
  return `${numberText(Math.round(seconds / 8640) / 10)} days`;
}

const percentText = (share) => (share === null ? "–" : `${numberText(Math.round(1000 * share) / 10)} %`);

// A step at which grid lines of a scale up to `most` stand: 1, 2 or 5 times a power of ten.
function niceTop(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((factor) => factor * power).find((top) => top >= most * 0.999);
}

// `values`: [second, value or null, low, high]; `top`: the end of the scale, by default that of the greatest value.
function drawChart(place, values, textOf, { top = null, label = "" } = {}) {
  const seen = values.filter(([, value, , high]) => value !== null || high != null);
  place.hidden = seen.length === 0;
  if (!seen.length) return;
  const most = top ?? niceTop(Math.max(...seen.map(([, value, , high]) => Math.max(value ?? 0, high ?? 0))));
  const first = values[0][0], last = Math.max(values.at(-1)[0], first + 1);
  const x = (second) => LEFT + ((second - first) / (last - first)) * (WIDTH - 2 * LEFT);
  const y = (value) => HEIGHT - BOTTOM - (Math.min(value, most) / most) * (HEIGHT - BOTTOM - TOP);
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const newest = [...seen].at(-1);
  picture.append(drawn("title", {}, `${label}: ${textOf(newest[1] ?? newest[3])}`));
  const scale = { "vector-effect": "non-scaling-stroke" };
  for (const value of [0, most / 2, most]) {
    picture.append(drawn("line", { class: "grid", x1: LEFT, x2: WIDTH - LEFT, y1: y(value), y2: y(value), ...scale }));
  }
  const band = values.filter(([, , low, high]) => low != null && high != null);
  if (band.length > 1) {
    const upper = band.map(([second, , , high]) => `${x(second).toFixed(1)},${y(high).toFixed(1)}`);
    const lower = band.map(([second, , low]) => `${x(second).toFixed(1)},${y(low).toFixed(1)}`).reverse();
    picture.append(drawn("polygon", { class: "area", points: [...upper, ...lower].join(" ") }));
  }
  for (const run of runsOf(values)) {
    const points = run.map(([second, value]) => `${x(second).toFixed(1)},${y(value).toFixed(1)}`);
    picture.append(drawn("polyline", { class: "curve", points: points.join(" "), ...scale }));
  }
  const frame = element("div", "", "frame");
  frame.append(picture, axisTexts([textOf(most), lengthText(last - first), "now"], label));
  place.replaceChildren(frame);
}

// The stretches of points whose value is known.
function runsOf(values) {
  const runs = [[]];
  for (const point of values) {
    if (point[1] === null) runs.push([]);
    else runs.at(-1).push(point);
  }
  return runs.filter((run) => run.length);
}

function axisTexts([top, length, now], label) {
  const texts = element("div", "", "axis");
  if (label) texts.append(element("span", label, "label"));
  texts.append(element("span", top, "top"), element("span", `${length} ago`, "from"), element("span", now, "to"));
  return texts;
}
