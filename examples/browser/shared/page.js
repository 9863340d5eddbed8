/** Shared code of the pages: the client, finding elements, showing the state of a query. */

import { createClient } from "/sdk/index.js";

export const settings = await (await fetch("/settings.json")).json();
export const element = (id) => document.getElementById(id);
export const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function connect(options = {}) {
  return createClient({ url: settings.url, key: settings.key, ...options });
}

/** Shows whether silence means that nothing changes. */
export function showState({ state, error }) {
  element("state").textContent = error ? error.code : state;
  element("state").dataset.state = state;
}

/** Reports why a write was rejected; the page no longer shows it. */
export async function attempt(writing) {
  element("refused").hidden = true;
  try {
    await writing;
  } catch (error) {
    element("refused").textContent = error.message;
    element("refused").hidden = false;
  }
}

/** Fills a copy of a template: a text for each class. Texts are never interpreted as HTML. */
export function filled(template, texts) {
  const copy = element(template).content.firstElementChild.cloneNode(true);
  fill(copy, texts);
  return copy;
}

export function fill(node, texts) {
  for (const [name, text] of Object.entries(texts)) {
    node.querySelector(`.${name}`).textContent = text;
  }
}

/** Makes these nodes the children of a list, moving as few as possible. */
export function arrange(list, nodes) {
  const wanted = new Set(nodes);
  for (const node of [...list.children]) if (!wanted.has(node)) node.remove();
  nodes.forEach((node, place) => {
    const there = list.children[place];
    if (there !== node) list.insertBefore(node, there ?? null);
  });
}
