// The parts of the page that are no charts: states, matches, what was shed, recall, figures. All texts by textContent.

function fillStates(partials) {
  byId("partials-value").textContent = numberText(partials.total);
  const place = byId("states");
  place.replaceChildren();
  for (const [name, states, note] of partials.queries) {
    if (name) place.append(element("p", name, "of"));
    if (note) place.append(element("p", note, "quiet"));
    if (!states.length) continue;
    const most = Math.max(1, ...states.map(([, count]) => count));
    const bars = element("div", "", "states");
    for (const [state, count] of states) {
      const track = element("div", "", "track"), fill = element("div", "", "fill");
      fill.style.width = `${(100 * count) / most}%`;
      track.append(fill);
      bars.append(element("span", state, "name"), track, element("span", numberText(count), "count"));
    }
    place.append(bars);
  }
}

const shownRows = { columns: "" };

function fillMatches(matches) {
  const columns = JSON.stringify(matches.columns);
  if (columns !== shownRows.columns) {
    shownRows.columns = columns;
    document.querySelector("#table tbody").replaceChildren();
    const head = element("tr");
    for (const name of matches.columns) head.append(element("th", name));
    for (const cell of head.cells) cell.scope = "col";
    document.querySelector("#table thead").replaceChildren(head);
  }
  const hidden = matches.total - Math.min(matches.total, matches.most_rows);
  let note = matches.note;
  if (!note && !matches.total) note = "none yet";
  else if (!note) {
    note = `${numberText(matches.total)} since the page began, the last one first`;
    if (hidden) note += `; ${numberText(hidden)} earlier ones are not shown`;
  }
  byId("matches-note").textContent = note;
  byId("matches-scroll").hidden = !matches.total;
  for (const row of document.querySelectorAll("#table tr.new")) row.classList.remove("new");
  const body = document.querySelector("#table tbody");
  const marksNew = body.rows.length && matches.rows.length < matches.most_rows / 2;
  for (const [, cells] of matches.rows) {
    const row = element("tr", "", marksNew ? "new" : "");
    for (const text of cells) {
      const cell = element("td", text);
      cell.title = text;
      if (/^-?\d[\d.]*$/.test(text)) cell.className = "number";
      row.append(cell);
    }
    body.prepend(row);
  }
  while (body.rows.length > matches.most_rows) body.lastElementChild.remove();
  // The head of a column of numbers stands above them.
  const heads = document.querySelectorAll("#table th");
  [...(body.rows[0]?.cells ?? [])].forEach((cell, place) => { heads[place].className = cell.className; });
}

function listOf(lines) {
  const list = element("ul", "", "lines");
  for (const line of lines) list.append(element("li", line));
  return list;
}

function fillShed(shed) {
  const place = byId("shed");
  place.replaceChildren(listOf(shed.lines));
  for (const [name, figures] of shed.queries) {
    if (name) place.append(element("p", name, "of"));
    const pairs = [["policy", figures.policy || "none: whole sampling units are skipped"]];
    if (figures.policy) {
      const threshold = figures.threshold ? numberText(figures.threshold) : "0: all partial matches are kept now";
      pairs.push(["utility threshold", threshold]);
    }
    for (const [label, count] of [
      ["refused before they were made", figures.refused], ["dropped", figures.dropped],
      ["events skipped", figures.skipped], ["match points not given in full", figures.withheld],
    ]) if (count) pairs.push([label, numberText(count)]);
    if (figures.share_sampled) pairs.push(["followed as a sample", percentText(figures.share_sampled)]);
    place.append(definitions(pairs));
  }
}

function definitions(pairs) {
  const list = element("dl");
  for (const [label, text] of pairs) list.append(element("dt", label), element("dd", text));
  return list;
}

function fillRecall(recall, number) {
  const place = byId("recall");
  place.replaceChildren();
  for (const query of recall) {
    if (query.name) place.append(element("p", query.name, "of"));
    for (const [label, estimate] of [["match points", query.points], ["match bundles", query.bundles]]) {
      if (query.exact || !estimate) continue;
      const likely = estimate.likely === null ? "" : `, likely ${percentText(estimate.likely)}`;
      // Rounded outwards, so that the interval is never shown narrower than it is.
      const low = percentText(Math.floor(1000 * estimate.low) / 1000), high = percentText(Math.ceil(1000 * estimate.high) / 1000);
      const text = `${low} to ${high} of the ${label}${likely}`;
      place.append(element("p", text, "value-small"), scaleOf(estimate, text));
    }
    place.append(element("p", query.why, "quiet"), listOf(query.lines));
  }
  if (number > recall.length) place.append(element("p", `and ${number - recall.length} more queries`, "quiet"));
}

function scaleOf(estimate, text) {
  const scale = element("div", "", "scale");
  scale.setAttribute("role", "img");
  scale.setAttribute("aria-label", text);
  const span = element("div", "", "span");
  span.style.left = `${100 * estimate.low}%`;
  span.style.right = `${100 - 100 * estimate.high}%`;
  scale.append(span);
  if (estimate.likely !== null) {
    const mark = element("div", "", "likely");
    mark.style.left = `${100 * estimate.likely}%`;
    scale.append(mark);
  }
  return scale;
}

const shownHistory = { number: 0 };

// What a policy has learned: a row for each state, a column for each bin of the window that remains.
function historyTable(states) {
  const table = element("table", "", "heat"), head = element("tr"), bins = states[0][1].length;
  const most = Math.max(...states.flatMap(([, cells]) => cells.map(([visits, targets]) => (visits ? targets / visits : 0))), 0);
  head.append(element("th", "state"));
  for (let bin = bins; bin > 0; bin -= 1) {
    head.append(element("th", `${Math.round((100 * (bin - 1)) / bins)}–${Math.round((100 * bin) / bins)} % left`, "number"));
  }
  for (const cell of head.cells) cell.scope = "col";
  table.append(head);
  for (const [name, cells] of states) {
    const row = element("tr");
    row.append(element("th", name));
    row.cells[0].scope = "row";
    for (const [visits, targets] of cells) {
      const share = visits && most ? targets / visits / most : 0;
      const cell = element("td", visits ? numberText(Number(visits.toPrecision(3))) : "", "number");
      if (visits) cell.title = `${numberText(targets / visits)} match points for each visit`;
      cell.style.background = `color-mix(in srgb, var(--line) ${Math.round(65 * share)}%, transparent)`;
      row.append(cell);
    }
    table.append(row);
  }
  return table;
}

function fillHistory(history, shed, address) {
  const learned = shed.queries.filter(([, figures]) => figures.history.length);
  const notes = [];
  if (learned.length) notes.push("learned so far: visits (number), and match points for each visit (colour), by state and by what is left of the window");
  else if (shed.queries.length) notes.push("the policy has learned nothing yet, or keeps no history");
  if (history.note && (history.number || !learned.length)) notes.push(history.note);
  byId("history-note").textContent = notes.join("; ");
  const tables = [];
  for (const [name, figures] of learned) {
    if (name) tables.push(element("p", name, "of"));
    tables.push(historyTable(figures.history));
  }
  byId("learned").replaceChildren(...tables);
  byId("learned").hidden = !tables.length;
  byId("history-scroll").hidden = !history.number;
  if (history.number !== shownHistory.number) {
    shownHistory.number = history.number;
    byId("history-picture").src = address("history.svg", { number: history.number });
  }
}
