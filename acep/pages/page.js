// Begin: fill the page, draw the figures, and listen to buttons and keys.

function fillTexts() {
  byId("title").textContent = data.title;
  for (const note of data.notes) byId("notes").append(element("li", note));
  byId("query-text").textContent = data.query;
  byId("report").textContent = data.report.join("\n");
  byId("near-note").textContent = data.misses_note;
  for (const [heading, text] of data.misses) {
    const miss = element("details");
    miss.append(element("summary", heading), element("pre", text));
    byId("misses").append(miss);
  }
  const drawing = byId("automaton").attachShadow({ mode: "open" });
  drawing.append(byId("drawing").content.cloneNode(true));
  const style = element("style", ".lit .box{fill:#ffd33d;stroke:#9a6700;stroke-width:2.5}" +
    ".lit .line,.lit .missing{stroke:#9a6700;stroke-width:3}.lit .head,.lit .missing-head{fill:#9a6700}" +
    ".passed:not(.lit) .line,.passed:not(.lit) .missing{stroke:#0969da;stroke-width:2.2}" +
    ".passed:not(.lit) .head,.passed:not(.lit) .missing-head{fill:#0969da}svg{display:block}");
  drawing.append(style);
  const picture = drawing.querySelector("svg");
  if (picture) {
    // As wide as there is room, but not too small to be read.
    const width = picture.viewBox.baseVal.width;
    picture.style.width = `clamp(${0.7 * width}px, 100%, ${width}px)`;
    picture.removeAttribute("height");
  }
}

function listen() {
  const actions = {
    "previous-match": () => chooseNext(-1),
    "next-match": () => chooseNext(1),
    "previous-step": () => takeStep(-1),
    "next-step": () => takeStep(1),
    "by-clock": () => align(false),
    "by-start": () => align(true),
    "zoom-in": () => zoom(timeLine.model.x_range, 0.5),
    "zoom-out": () => zoom(timeLine.model.x_range, 2),
    "pan-left": () => pan(timeLine.model.x_range, -0.25),
    "pan-right": () => pan(timeLine.model.x_range, 0.25),
    "lanes-up": () => moveLanes(-1),
    "lanes-down": () => moveLanes(1),
    reset: showAll,
    "series-zoom-in": () => zoom(series.model.x_range, 0.5),
    "series-zoom-out": () => zoom(series.model.x_range, 2),
  };
  for (const [id, action] of Object.entries(actions)) byId(id).addEventListener("click", action);
  byId("filter").addEventListener("input", filter);
  byId("value").addEventListener("change", fillSeries);
  byId("between").addEventListener("change", () => {
    fillRows();
    fillSeries();
    showStep();
  });
  const keys = {
    j: "next-match", k: "previous-match", ArrowRight: "next-step", ArrowLeft: "previous-step",
    "+": "zoom-in", "=": "zoom-in", "-": "zoom-out", 0: "reset",
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    const id = keys[event.key];
    if (!id) return;
    event.preventDefault();
    byId(id).click();
  });
  byId("time-line").addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;  // a wheel alone scrolls the page
    event.preventDefault();
    zoom(timeLine.model.x_range, event.deltaY > 0 ? 1.25 : 0.8);
  }, { passive: false });
}

async function begin() {
  const figures = JSON.parse(byId("figures").textContent);
  fillTexts();
  fillTable();
  fillValues();
  state.listeners.push(markChosen, showInTimeLine, showDetails);
  await drawTimeLine(figures);
  await drawSeries(figures);
  listen();
  readOrder();
  showStep();
  if (matches.numbers.length) choose(0);
  document.documentElement.dataset.ready = "yes";
}

begin();
