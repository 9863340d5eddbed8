/** The API reference: reads the OpenAPI document and shows its operations. */

import { Caller } from "./caller.js";
import { element, prose } from "./dom.js";
import { groupsOf, matches } from "./model.js";
import { operationView } from "./operation.js";

const main = document.querySelector("main");
const search = document.querySelector("#search");
const tenant = document.querySelector("#tenant");
const key = document.querySelector("#key");
const newKey = document.querySelector("#new-key");
const caller = new Caller();

function show(spec) {
  const groups = groupsOf(spec).map(({ name, operations }) => {
    const views = operations.map((operation) => ({ operation, view: operationView(spec, operation, caller) }));
    const heading = element("h2", { id: anchorOf(name) }, name);
    const link = element("a", { href: `#${anchorOf(name)}` }, name, element("span", {}, String(operations.length)));
    const view = element("section", { class: "group", "aria-labelledby": heading.id }, heading, ...views.map((one) => one.view));
    return { view, link: element("li", {}, link), views };
  });
  const nothing = element("p", { class: "wait", hidden: true, role: "status" }, "No operation matches.");
  document.querySelector("#tags").replaceChildren(...groups.map(({ link }) => link));
  const intro = element("div", { class: "intro" }, element("h1", {}, "API reference"), ...prose(spec.info.description));
  main.replaceChildren(intro, ...groups.map(({ view }) => view), nothing);
  search.addEventListener("input", () => {
    intro.hidden = search.value.trim() !== "";
    nothing.hidden = narrow(groups, search.value.trim()) > 0;
  });
  for (const { views } of groups) {
    for (const { operation, view } of views) {
      view.firstElementChild.addEventListener("click", () => {
        if (!view.open) history.replaceState(null, "", `#${operation.id}`);
      });
    }
  }
  openAddressed();
}

/** Hides what does not match, and returns how many operations do. */
function narrow(groups, text) {
  let total = 0;
  for (const { view, link, views } of groups) {
    const found = views.filter(({ operation }) => matches(operation, text));
    for (const one of views) one.view.hidden = !found.includes(one);
    view.hidden = link.hidden = found.length === 0;
    total += found.length;
  }
  return total;
}

function anchorOf(name) {
  return `tag-${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")}`;
}

/** Opens the operation that the address names. */
function openAddressed() {
  const addressed = document.getElementById(location.hash.slice(1));
  if (addressed === null) return;
  if (addressed.classList.contains("operation")) addressed.open = true;
  addressed.scrollIntoView();
}

function showCaller() {
  tenant.replaceChildren(
    ...(caller.isSignedIn
      ? caller.tenants.map(({ slug }) => element("option", { value: slug, selected: slug === caller.tenant }, slug))
      : [element("option", {}, "not signed in")]),
  );
  tenant.disabled = !caller.isSignedIn;
  newKey.href = caller.isSignedIn ? `/t/${caller.tenant}/keys` : "/sign-in";
  newKey.textContent = caller.isSignedIn ? "New key" : "Sign in";
}

function applyTheme() {
  const theme = localStorage.getItem("rillbase:theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    search.focus();
  }
});
search.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  search.value = "";
  search.dispatchEvent(new Event("input"));
});
addEventListener("hashchange", openAddressed);
tenant.addEventListener("change", () => caller.set({ tenant: tenant.value }));
key.addEventListener("input", () => caller.set({ key: key.value.trim() }));
caller.onChange(showCaller);

applyTheme();
showCaller();
const [document_] = await Promise.all([fetch("/api/openapi.json"), caller.load()]);
if (document_.ok) show(await document_.json());
else main.replaceChildren(element("p", { class: "wait", role: "alert" }, "The API description could not be loaded. Reload the page."));
