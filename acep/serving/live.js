// Ask for the state once a second, show it, and send what the buttons and keys ask for.

const EVERY = 1000, LATER = 3000, PATIENCE = 5000;
const token = new URLSearchParams(location.search).get("token") ?? "";
const seen = { now: 0, points: [], status: "waiting" };

function address(path, parameters) {
  return `${path}?${new URLSearchParams({ token, ...parameters })}`;
}

function fillStatus(status) {
  seen.status = status.name;
  const place = byId("status");
  if (place.textContent !== status.name) place.textContent = status.name;
  place.dataset.status = status.name;
  let note = status.note;
  if (!note && status.name === "waiting") note = "no micro-batch yet";
  if (!note && status.name === "running" && status.age > 2) note = `the last micro-batch was ${lengthText(status.age)} ago`;
  byId("note").textContent = note;
  byId("controls").hidden = !status.can_pause;
  byId("pause").textContent = status.name === "paused" ? "go on" : "pause";
  document.title = `acep: ${status.name}`;
}

function fillCharts(state) {
  const numbers = new Set(state.points.map(([number]) => number));
  seen.points = [...seen.points.filter(([number]) => !numbers.has(number)), ...state.points].slice(-state.most_points);
  const column = (place) => seen.points.map((point) => [point[1], point[place]]);
  const newest = seen.points.at(-1);
  byId("rate-value").textContent = newest ? `${numberText(newest[2])} events/s` : "–";
  byId("lag-value").textContent = newest && newest[3] !== null ? lengthText(newest[3]) : "not known";
  drawChart(byId("rate"), column(2), (value) => `${numberText(value)} events/s`, { label: "rate" });
  drawChart(byId("lag"), column(3), lengthText, { label: "lag" });
  drawChart(byId("live"), column(4), numberText, { label: "partial matches" });
  const share = { label: "spent of the allowance" };
  drawChart(byId("share"), column(5), percentText, share);
  const sheds = seen.points.some((point) => point[7] !== null && point[7] < 1);
  const interval = sheds ? seen.points.map((point) => [point[1], point[6], point[7], point[8]]) : [];
  drawChart(byId("interval"), interval, percentText, { top: 1, label: "recall of match points" });
}

function show(state) {
  byId("query").textContent = state.query;
  fillStatus(state.status);
  fillCharts(state);
  fillStates(state.partials);
  fillMatches(state.matches);
  fillShed(state.shed);
  fillRecall(state.recall, state.queries);
  byId("facts").replaceChildren(...definitions(state.facts).childNodes);
  fillHistory(state.history, state.shed, address);
  seen.now = state.now;
  document.documentElement.dataset.ready = "yes";
}

function showGone(reason) {
  const hasEnded = ["ended", "stopped", "failed"].includes(seen.status);
  const place = byId("gone");
  place.hidden = hasEnded && !reason;
  place.textContent = reason || "The server is gone: the command has ended, or cannot be reached. This is what it last said.";
  if (!hasEnded) {
    byId("status").textContent = "gone";
    byId("status").dataset.status = "gone";
    document.title = "acep: gone";
  }
  byId("controls").hidden = true;
}

async function ask() {
  let wait = EVERY;
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(address("state", { since: seen.now }), { cache: "no-store", signal });
    if (answer.ok) {
      byId("gone").hidden = true;
      show(await answer.json());
    } else {
      showGone("The server does not know this address: another command serves there now.");
      wait = LATER;
    }
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException || error instanceof SyntaxError)) throw error;
    showGone("");
    wait = LATER;
  } finally {
    setTimeout(ask, wait);
  }
}

async function send(command) {
  try {
    await fetch(address("command", { do: command }), { method: "POST", signal: AbortSignal.timeout(PATIENCE) });
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof DOMException)) throw error;
    showGone("");
  }
}

const keys = { " ": "pause", n: "step", q: "stop" };
for (const id of Object.values(keys)) byId(id).addEventListener("click", () => send(id));
document.addEventListener("keydown", (event) => {
  const id = keys[event.key];
  if (!id || event.repeat || byId("controls").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.closest("button, [tabindex]")) return;  // it presses the button, or scrolls
  event.preventDefault();
  byId(id).click();
});
ask();
