/**
 * A chat: a room is a live window of its newest messages. Messages written offline wait in the
 * page's storage and are sent once, when the network is back.
 */

import { localStorageQueue } from "/sdk/index.js";
import { arrange, attempt, connect, element, fill, filled, showState } from "/shared/page.js";

const ROOMS = ["general", "kitchen", "weekend"];
const WINDOW = 50;
const CLOCK = { hour: "2-digit", minute: "2-digit" };

const window_ = sessionStorage.window ?? crypto.randomUUID();
sessionStorage.window = window_;
const db = connect({ queue: localStorageQueue(`chat-${window_}`) });
const messages = db.collection("messages");
const newest = (room, count) => messages.where("room", "==", room).sort("at", "desc").limit(count);

const links = new Map(ROOMS.map((room) => [room, roomLink(room)]));
const seen = new Map();
let shown = new Map();
let leave = () => {};
let room = "";

element("author").value = sessionStorage.author ?? "";
element("rooms").append(...links.values());
for (const name of ROOMS) newest(name, 1).onSnapshot(({ items }) => announce(name, items[0]));
addEventListener("hashchange", enter);
enter();

element("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const author = element("author").value.trim();
  const text = element("text").value.trim();
  if (author === "" || text === "") return;
  sessionStorage.author = author;
  element("text").value = "";
  attempt(messages.insert({ room, author, text, at: new Date() }));
});

function enter() {
  const wanted = location.hash.slice(1);
  room = ROOMS.includes(wanted) ? wanted : ROOMS[0];
  element("room").textContent = `# ${room}`;
  for (const [name, link] of links) link.toggleAttribute("aria-current", name === room);
  links.get(room).classList.remove("news");
  leave();
  shown = new Map();
  leave = newest(room, WINDOW).onSnapshot(draw);
}

function draw({ items, state, error, hasAnswer }) {
  showState({ state, error });
  element("empty").hidden = !hasAnswer || items.length > 0;
  const list = element("messages");
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  const known = shown;
  shown = new Map(items.map((item) => [String(item.id), known.get(String(item.id)) ?? filled("message", {})]));
  for (const item of items) say(shown.get(String(item.id)), item);
  arrange(list, [...shown.values()].reverse());
  if (isAtEnd || known.size === 0) list.scrollTop = list.scrollHeight;
}

function say(line, { document: { author, text, at }, isPending }) {
  fill(line, { author, text, time: at.toLocaleTimeString([], CLOCK) });
  line.classList.toggle("mine", author === element("author").value.trim());
  line.classList.toggle("pending", isPending);
}

/** Marks a room that has received messages since this page last showed it. */
function announce(name, latest) {
  const id = latest && String(latest.id);
  const isNews = seen.has(name) && id !== undefined && seen.get(name) !== id;
  seen.set(name, id);
  if (isNews && name !== room) links.get(name).classList.add("news");
}

function roomLink(name) {
  const link = filled("room-link", { name: `# ${name}` });
  link.href = `#${name}`;
  return link;
}
