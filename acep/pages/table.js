// The table of matches: its rows are sorted by a click on a head, and filtered by texts and comparisons.

const data = JSON.parse(document.getElementById("page-data").textContent);
const colours = JSON.parse(document.getElementById("colours").textContent);
const matches = data.matches;
const byId = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Numbers stand on the right; times and durations are texts to read.
const alignment = (column) => (column.kind === "number" ? "number" : "");

// The match that is chosen, the order and the part of the rows that are shown. Listeners are called after each change.
const state = { chosen: null, step: -1, order: matches.numbers.map((_, row) => row), listeners: [] };

// Scroll a row into view within its table, and leave the page where it is.
function reveal(line) {
  const frame = line.closest(".scroll");
  const top = line.offsetTop - line.closest("table").tHead.offsetHeight;
  if (top < frame.scrollTop) frame.scrollTop = top;
  else if (line.offsetTop + line.offsetHeight > frame.scrollTop + frame.clientHeight) {
    frame.scrollTop = line.offsetTop + line.offsetHeight - frame.clientHeight;
  }
}

function choose(row) {
  if (state.chosen === row) return;
  state.chosen = row;
  state.step = -1;
  for (const listener of state.listeners) listener("chosen");
}

function fillTable() {
  const heads = element("tr");
  for (const column of matches.table) {
    const head = element("th", undefined, alignment(column));
    const button = element("button", column.name);
    button.type = "button";
    button.title = `sort by ${column.name}`;
    button.addEventListener("click", () => sortBy(column, head));
    head.append(button);
    heads.append(head);
  }
  byId("table").tHead.append(heads);
  const body = byId("table").tBodies[0];
  const sides = matches.table.map(alignment);
  matches.numbers.forEach((_, row) => {
    const line = element("tr");
    line.dataset.row = row;
    for (const [place, column] of matches.table.entries()) {
      const cell = element("td", column.texts[row], sides[place]);
      cell.title = column.texts[row];
      line.append(cell);
    }
    body.append(line);
  });
  body.addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line) choose(Number(line.dataset.row));
  });
}

const lines = () => [...byId("table").tBodies[0].rows];

function sortBy(column, head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const other of byId("table").tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  for (const button of byId("table").tHead.querySelectorAll("button")) {
    const sort = button.parentElement.getAttribute("aria-sort");
    const name = matches.table[button.parentElement.cellIndex].name;
    button.textContent = sort ? `${name} ${sort === "ascending" ? "▲" : "▼"}` : name;
  }
  const compare = (a, b) => {
    if (!column.ranks) return compareTexts(column.texts[a], column.texts[b]);
    const [x, y] = [column.ranks[a], column.ranks[b]];
    return (x === null) - (y === null) || x - y;
  };
  const sign = descending ? -1 : 1;
  const sorted = lines().sort((a, b) => sign * compare(+a.dataset.row, +b.dataset.row) || a.dataset.row - b.dataset.row);
  byId("table").tBodies[0].append(...sorted);
  readOrder();
}

const COMPARISON = /^(.+?)(<=|>=|!=|<>|==|=|<|>)(.*)$/;
const HOLDS = {
  "=": (order) => order === 0, "==": (order) => order === 0, "!=": (order) => order !== 0, "<>": (order) => order !== 0,
  "<": (order) => order < 0, "<=": (order) => order <= 0, ">": (order) => order > 0, ">=": (order) => order >= 0,
};

// Return a function that says whether a row passes one word of the filter, or a text that says what is wrong.
function testOf(word) {
  const parts = word.match(COMPARISON);
  const column = parts && matches.table.find((one) => one.name === parts[1]);
  if (parts && !column) return `there is no column ${parts[1]}`;
  if (!column) {
    const wanted = word.toLowerCase();
    return (row) => matches.table.some((one) => one.texts[row].toLowerCase().includes(wanted));
  }
  const compare = comparisonWith(column, parts[3].trim(), matches.unit || "s");
  if (typeof compare === "string") return compare;
  return (row) => {
    const order = compare(row);
    return order !== null && HOLDS[parts[2]](order);
  };
}

// Words are parted by blanks, other than those around a comparison; a part in double quotes may have some.
function wordsOf(text) {
  const joined = text.replace(/"[^"]*"?|\s*(<=|>=|!=|<>|==|=|<|>)\s*/g, (part, sign) => sign || part);
  return (joined.match(/(?:[^\s"]|"[^"]*"?)+/g) || []).map((word) => word.replaceAll('"', ""));
}

function filter() {
  const tests = wordsOf(byId("filter").value).map(testOf);
  const wrong = tests.find((test) => typeof test === "string");
  if (!wrong) for (const line of lines()) line.hidden = !tests.every((test) => test(+line.dataset.row));
  readOrder();
  if (wrong) byId("count").textContent = wrong;
}

function readOrder() {
  state.order = lines().filter((line) => !line.hidden).map((line) => +line.dataset.row);
  const shown = state.order.length.toLocaleString("en");
  byId("count").textContent = `${shown} of ${matches.numbers.length.toLocaleString("en")}`;
  for (const listener of state.listeners) listener("order");
}

function chooseNext(by) {
  if (!state.order.length) return;
  const place = state.order.indexOf(state.chosen);
  const next = place < 0 ? (by > 0 ? 0 : state.order.length - 1) : place + by;
  if (next >= 0 && next < state.order.length) choose(state.order[next]);
}

function markChosen(change) {
  if (change !== "chosen") return;
  for (const line of lines()) {
    const isChosen = +line.dataset.row === state.chosen;
    if (isChosen) line.setAttribute("aria-selected", "true");
    else line.removeAttribute("aria-selected");
    if (isChosen) reveal(line);
  }
}
