/** A list that people vote on: code for two live queries; the rest is drawing. */

import { arrange, attempt, connect, element, filled, fill, isCalm, showState } from "/shared/page.js";

const ideas = connect().collection("ideas");
const best = ideas.sort("votes", "desc").limit(20);
const rows = new Map();
const MAX_LOG = 40;

best.onSnapshot(({ items, changes, state, hasAnswer, error }) => {
  showState({ state, error });
  element("empty").hidden = !hasAnswer || items.length > 0;
  draw(items, new Set(changes.map(({ item }) => String(item.id))));
});

followChanges();

element("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const title = element("title").value.trim();
  if (title === "") return;
  element("title").value = "";
  attempt(ideas.insert({ title, votes: 0 }));
});

/** Logs the changes from the server, without pending writes. */
async function followChanges() {
  for await (const change of best.changes()) {
    if (change.type === "result") log("answer", `${change.documents.length} ideas`, "");
    else log(change.type, change.document?.title ?? "an idea", `v${change.version}`);
  }
}

function draw(items, changed) {
  const before = new Map([...rows].map(([id, row]) => [id, row.getBoundingClientRect().top]));
  const most = Math.max(1, ...items.map(({ document }) => document.votes));
  const shown = new Set(items.map(({ id }) => String(id)));
  for (const id of rows.keys()) if (!shown.has(id)) rows.delete(id);
  arrange(element("ideas"), items.map((item) => update(rowOf(item), item, most)));
  for (const [id, row] of rows) move(row, before.get(id), changed.has(id));
}

function rowOf({ id }) {
  const key = String(id);
  let row = rows.get(key);
  if (row === undefined) {
    row = filled("idea", {});
    row.querySelector(".vote").addEventListener("click", () => {
      attempt(ideas.update(id, { $inc: { votes: 1 } }));
    });
    row.querySelector(".remove").addEventListener("click", () => attempt(ideas.delete(id)));
    rows.set(key, row);
  }
  return row;
}

function update(row, { document: idea, isPending }, most) {
  fill(row, { title: idea.title, votes: idea.votes });
  row.querySelector(".vote").setAttribute("aria-label", `Vote for ${idea.title}`);
  row.querySelector(".remove").setAttribute("aria-label", `Remove ${idea.title}`);
  row.querySelector(".bar").style.setProperty("--part", Math.max(0, idea.votes) / most);
  row.classList.toggle("pending", isPending);
  return row;
}

/** Lets a row glide from where it was, and glow when it has changed. */
function move(row, from, isChanged) {
  if (isCalm()) return;
  const distance = from === undefined ? 0 : from - row.getBoundingClientRect().top;
  if (distance !== 0) {
    const begin = { transform: `translateY(${distance}px)` };
    row.animate([begin, { transform: "none" }], { duration: 350, easing: "cubic-bezier(.2,.8,.2,1)" });
  }
  if (from === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 350 });
  else if (isChanged) row.animate([{ background: "var(--glow)" }, {}], { duration: 900 });
}

function log(type, what, note) {
  const line = filled("change", { type, what, note });
  line.dataset.type = type;
  element("log").prepend(line);
  while (element("log").children.length > MAX_LOG) element("log").lastElementChild.remove();
}
