/** The page: two live queries' worth of code, the rest is drawing. */

import { createClient } from "/sdk/index.js";

const settings = await (await fetch("/settings.json")).json();
const client = createClient(settings);
const ideas = client.collection(settings.collection);
const best = ideas.sort("votes", "desc").limit(20);

const element = (id) => document.getElementById(id);
const rows = new Map();
const MAX_LOG = 40;

best.onSnapshot(({ items, changes, state, hasAnswer, error }) => {
  element("state").textContent = error ? error.code : state;
  element("state").dataset.state = state;
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

/** Logs what the server tells, which leaves out writes that are still on their way. */
async function followChanges() {
  for await (const change of best.changes()) {
    if (change.type === "result") log("answer", `${change.documents.length} ideas`, "");
    else log(change.type, change.document?.title ?? "an idea", `v${change.version}`);
  }
}

function draw(items, changed) {
  const before = new Map([...rows].map(([id, row]) => [id, row.getBoundingClientRect().top]));
  const most = Math.max(1, ...items.map(({ document }) => document.votes));
  const shown = items.map((item) => fill(rowOf(item), item, most));
  for (const [id, row] of rows) {
    if (!shown.includes(row)) {
      row.remove();
      rows.delete(id);
    }
  }
  shown.forEach((row, place) => {
    const there = element("ideas").children[place];
    if (there !== row) element("ideas").insertBefore(row, there ?? null);
  });
  for (const [id, row] of rows) move(row, before.get(id), changed.has(id));
}

function rowOf({ id }) {
  const key = String(id);
  let row = rows.get(key);
  if (row === undefined) {
    row = element("idea").content.firstElementChild.cloneNode(true);
    row.querySelector(".vote").addEventListener("click", () => {
      attempt(ideas.update(id, { $inc: { votes: 1 } }));
    });
    row.querySelector(".remove").addEventListener("click", () => attempt(ideas.delete(id)));
    rows.set(key, row);
  }
  return row;
}

function fill(row, { document: idea, isPending }, most) {
  row.querySelector(".title").textContent = idea.title;
  row.querySelector(".vote b").textContent = idea.votes;
  row.querySelector(".vote").setAttribute("aria-label", `Vote for ${idea.title}`);
  row.querySelector(".remove").setAttribute("aria-label", `Remove ${idea.title}`);
  row.querySelector(".bar").style.setProperty("--part", Math.max(0, idea.votes) / most);
  row.classList.toggle("pending", isPending);
  return row;
}

/** Lets a row glide from where it was, and glow when it has changed. */
function move(row, from, isChanged) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (calm) return;
  const distance = from === undefined ? 0 : from - row.getBoundingClientRect().top;
  if (distance !== 0) {
    const begin = { transform: `translateY(${distance}px)` };
    row.animate([begin, { transform: "none" }], { duration: 350, easing: "cubic-bezier(.2,.8,.2,1)" });
  }
  if (from === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 350 });
  else if (isChanged) row.animate([{ background: "var(--glow)" }, {}], { duration: 900 });
}

function log(type, what, note) {
  const line = document.createElement("li");
  line.dataset.type = type;
  for (const text of [type, what, note]) {
    const part = document.createElement("span");
    part.textContent = text;
    line.append(part);
  }
  element("log").prepend(line);
  while (element("log").children.length > MAX_LOG) element("log").lastElementChild.remove();
}

/** Says why a write was refused; what was shown of it is gone already. */
async function attempt(writing) {
  element("refused").hidden = true;
  try {
    await writing;
  } catch (error) {
    element("refused").textContent = error.message;
    element("refused").hidden = false;
  }
}
