// A match that is chosen: its rows and those in between, a series, and its steps through the automaton.

const rows = data.rows;
const sidesOfRows = rows.table.map(alignment);
const series = { model: null };

async function drawSeries(figures) {
  const views = await Bokeh.embed.embed_item(figures.series, "series");
  series.model = (views.roots ? [...views.roots] : [...views])[0].model;
}

const colourOf = (variable) => colours[variable % colours.length];

// The rows of the chosen match, as {row: its place in the table of rows, variable, step}.
function rowsOfMatch() {
  if (state.chosen === null || !rows.counts.length) return [];
  const shown = [];
  for (let i = rows.offsets[state.chosen]; i < rows.offsets[state.chosen + 1]; i++) {
    shown.push({ row: rows.rows[i], variable: rows.variables[i], step: rows.steps[i], gap: rows.gaps[i] });
  }
  return shown;
}

function fillRows() {
  const shown = rowsOfMatch().filter((one) => one.variable >= 0 || byId("between").checked);
  const heads = element("tr");
  heads.append(element("th", "variable"));
  for (const [place, column] of rows.table.entries()) heads.append(element("th", column.name, sidesOfRows[place]));
  byId("rows").tHead.replaceChildren(...(shown.length ? [heads] : []));
  byId("rows").tBodies[0].replaceChildren(...shown.map((one) => {
    const line = element("tr", undefined, one.variable < 0 ? "between" : "");
    line.dataset.step = one.step;
    const cell = element("td");
    if (one.variable >= 0) {
      const chip = element("span", rows.names[one.variable], "chip");
      chip.style.background = colourOf(one.variable);
      chip.title = rows.names[one.variable];
      cell.append(chip);
    }
    line.append(cell);
    for (const [place, column] of rows.table.entries()) {
      const value = element("td", column.texts[one.row], sidesOfRows[place]);
      value.title = column.texts[one.row];
      line.append(value);
    }
    return line;
  }));
}

function factsOfMatch() {
  const shown = rowsOfMatch();
  const parts = matches.table.map((column) => `${column.name} ${column.texts[state.chosen]}`);
  if (rows.counts.length) {
    const between = rows.counts[state.chosen] - rows.n_bound[state.chosen];
    parts.push(`${rows.n_bound[state.chosen]} rows bound, ${between} in between`);
    if (shown.length < rows.counts[state.chosen]) parts.push(`${shown.length} of these rows shown`);
  }
  byId("facts").textContent = parts.join(" · ");
}

function fillValues() {
  for (const [place, column] of rows.table.entries()) {
    if (!column.numbers || column.name === "row") continue;
    const option = element("option", column.name);
    option.value = place;
    byId("value").append(option);
  }
  const options = [...byId("value").options];
  const liked = options.find((one) => data.value === one.textContent) || options[0];
  if (liked) liked.selected = true;
  byId("value").disabled = !options.length;
  byId("series").hidden = !options.length;
}

// Break a line where rows are left out that lie between two of its own.
function breakLine(line, all, withBetween) {
  const shown = all.filter((one) => withBetween || one.variable >= 0);
  const [numberOf, breaks] = [new Map(), []];
  let number = 0;
  shown.forEach((one, place) => {
    const previous = shown[place - 1];
    if (previous && (withBetween ? one.gap : one.step - previous.step > 1)) number += 1;
    numberOf.set(rows.table[0].texts[one.row], number);
  });
  for (let place = 1; place < line.row.length; place++) {
    if (numberOf.get(line.row[place]) !== numberOf.get(line.row[place - 1])) breaks.push(place);
  }
  for (const place of breaks.reverse()) {
    for (const name of Object.keys(line)) line[name].splice(place, 0, name === "x" || name === "y" ? NaN : "");
  }
}

function fillSeries() {
  if (!series.model || byId("value").value === "") return;
  const column = rows.table[Number(byId("value").value)];
  const texts = (name) => rows.table.find((one) => one.name === name);
  const all = rowsOfMatch();
  const known = all.filter((one) => column.numbers[one.row] !== null);
  const columnsOf = (part) => ({
    x: part.map((one) => rows.times[one.row]),
    y: part.map((one) => column.numbers[one.row]),
    colour: part.map((one) => colourOf(Math.max(0, one.variable))),
    variable: part.map((one) => (one.variable < 0 ? "(in between)" : rows.names[one.variable])),
    row: part.map((one) => rows.table[0].texts[one.row]),
    time: part.map((one) => (texts(data.ts) || rows.table[0]).texts[one.row]),
    value: part.map((one) => column.texts[one.row]),
  });
  const { document: figure } = series.model;
  const { colour, ...line } = columnsOf(byId("between").checked ? known : known.filter((one) => one.variable >= 0));
  breakLine(line, all, byId("between").checked);
  figure.get_model_by_name("line").data = line;
  figure.get_model_by_name("marks").data = columnsOf(known.filter((one) => one.variable >= 0));
  for (const [name, values] of [["series-x", line.x], ["series-y", line.y]]) {
    if (!values.length) continue;
    const there = values.filter((value) => !Number.isNaN(value));
    const [low, high] = [Math.min(...there), Math.max(...there)];
    const free = 0.06 * (high - low) || Math.abs(low) * 0.06 || 1;
    figure.get_model_by_name(name).setv({ start: low - free, end: high + free });
  }
}

// Steps: the state before the first bound event is the start.
function takeStep(by) {
  if (state.chosen === null) return;
  const last = rows.counts.length ? rows.n_bound[state.chosen] : data.walks[state.chosen].length;
  const next = Math.max(-1, Math.min(last - 1, state.step + by));
  if (next === state.step) return;
  state.step = next;
  for (const listener of state.listeners) listener("step");
}

function showStep() {
  const walk = state.chosen === null ? [] : data.walks[state.chosen];
  const shown = rowsOfMatch().find((one) => one.step === state.step);
  const last = state.chosen === null ? 0 : (rows.counts.length ? rows.n_bound[state.chosen] : walk.length);
  const variable = shown ? rows.names[shown.variable] : "";
  byId("previous-step").disabled = state.chosen === null || state.step < 0;
  byId("next-step").disabled = state.chosen === null || state.step >= last - 1;
  if (state.chosen === null) byId("step").textContent = "choose a match to walk it";
  else if (state.step < 0) byId("step").textContent = `start, of ${last} steps`;
  else {
    const place = variable ? `: ${variable}` : (rows.counts.length ? ": its row is not shown" : "");
    byId("step").textContent = `step ${state.step + 1} of ${last}${place}`;
  }
  const drawing = byId("automaton").shadowRoot;
  for (const lit of drawing.querySelectorAll(".lit, .passed")) lit.classList.remove("lit", "passed");
  const light = (selector, name) => drawing.querySelector(selector)?.classList.add(name);
  if (state.chosen !== null && (walk.length || state.step < 0)) {
    const states = [data.start, ...walk];
    for (let step = 0; step <= state.step; step++) light(`[data-arc="${states[step]}-${states[step + 1]}"]`, "passed");
    const here = states[state.step + 1];
    light(`[data-state="${here}"]`, "lit");
    if (state.step >= 0) light(`[data-arc="${states[state.step]}-${here}"]`, "lit");
    const [frame, shape] = [byId("automaton"), drawing.querySelector("[data-state].lit")];
    if (shape) {
      const [outer, inner] = [frame.getBoundingClientRect(), shape.getBoundingClientRect()];
      if (inner.left < outer.left || inner.right > outer.right) {
        frame.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
      }
    }
  }
  for (const line of byId("rows").tBodies[0].rows) {
    const isHere = state.step >= 0 && Number(line.dataset.step) === state.step;
    line.classList.toggle("step", isHere);
    if (isHere) reveal(line);
  }
}

function showDetails(change) {
  if (change === "order") return;
  if (change === "chosen") {
    factsOfMatch();
    fillRows();
    fillSeries();
  }
  showStep();
}
