/** One operation: parameters, schemas, snippets and, where reading is safe, a way to try it. */

import { element, inline, prose } from "./dom.js";
import { typeOf } from "./model.js";
import { bounds, lazyDetails, schemaView } from "./schema.js";
import { LANGUAGES, requestOf, snippet } from "./snippets.js";

/** Returns an operation's entry; its content is made when it is opened. */
export function operationView(spec, operation, caller) {
  const method = element("span", { class: `method ${operation.method.toLowerCase()}` }, operation.method);
  const path = element("code", { class: "path" }, ...breakable(operation.path));
  const title = element("span", { class: "summary" }, ...inline(operation.summary));
  const details = lazyDetails([method, path, title], () => [content(spec, operation, caller)]);
  details.id = operation.id;
  details.className = "operation";
  return details;
}

/** Lets a long path break before its slashes. */
function breakable(path) {
  return path.split(/(?=\/)/).flatMap((part) => [element("wbr"), part]);
}

function content(spec, operation, caller) {
  const values = {};
  const code = snippetView(spec, operation, caller, values);
  const table = parametersView(operation, caller, (name, value) => {
    values[name] = value;
    code.update();
  });
  caller.onChange(() => code.update());
  return element(
    "div",
    { class: "content" },
    element(
      "div",
      { class: "text" },
      ...prose(operation.description),
      table,
      operation.body === null ? null : section("Request body", operation.body.type, schemaView(spec, operation.body.schema)),
      section("Responses", "", ...operation.responses.map((response) => responseView(spec, response))),
    ),
    element("div", { class: "code" }, code.view, tryView(spec, operation, caller, values)),
  );
}

function section(title, note, ...parts) {
  const head = element("h3", {}, title, note === "" ? "" : element("small", {}, note));
  return element("section", {}, head, ...parts);
}

function parametersView({ id, parameters }, caller, onInput) {
  if (parameters.length === 0) return null;
  const rows = parameters.map(({ name, in: place, required, description = "", schema = {}, example }) => {
    const field = element("input", {
      id: `${id}-${name}`,
      placeholder: name === "tenant" ? caller.tenant : String(example ?? schema.default ?? ""),
      autocomplete: "off",
      spellcheck: "false",
      oninput: (event) => onInput(name, event.target.value),
    });
    const label = element("label", { for: field.id }, element("code", { class: "name" }, name));
    const kind = element("span", { class: "type" }, `${typeOf(schema)} in the ${place}`);
    const mark = required ? element("span", { class: "required" }, "required") : null;
    const note = element("p", {}, ...inline(description), ...bounds(schema));
    return element("li", {}, element("div", { class: "head" }, label, kind, mark), field, note.textContent ? note : null);
  });
  return section("Parameters", "", element("ul", { class: "members" }, ...rows));
}

function responseView(spec, { status, description, content: body }) {
  const name = status === "default" ? "Errors" : status;
  const kind = element("span", { class: `status ${status === "default" ? "bad" : "good"}` }, name);
  if (body?.schema === undefined) return element("p", { class: "head" }, kind, description);
  const codes = element("p", {}, "The member ", element("code", {}, "code"), " is one of the ");
  codes.append(element("a", { href: "/docs/errors/" }, "documented error codes"), ".");
  return lazyDetails([kind, element("span", {}, description || body.type)], () => [
    status === "default" ? codes : "",
    schemaView(spec, body.schema),
  ]);
}

function snippetView(spec, operation, caller, values) {
  const text = element("code");
  const buttons = LANGUAGES.map((language) =>
    element("button", { type: "button", onclick: () => caller.choose(language) }, language),
  );
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text.textContent);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  const head = element("div", { class: "languages", role: "group", "aria-label": "Language" }, ...buttons, copy);
  const block = element("pre", { tabindex: "0", "aria-label": `${operation.summary}, example` }, text);
  function update() {
    text.textContent = snippet(caller.language, requestOf(spec, operation, caller.with(values)));
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.textContent === caller.language));
    }
  }
  update();
  return { view: element("div", {}, head, block), update };
}

/** Reads can be tried: with the key, or as the signed-in member. */
function tryView(spec, operation, caller, values) {
  if (operation.method !== "GET" || operation.responses.some(isEndless)) return null;
  const answer = element("pre", { tabindex: "0", "aria-live": "polite", "aria-label": "Response", hidden: true });
  const button = element("button", { type: "button", class: "try" }, "Try it");
  button.addEventListener("click", async () => {
    button.disabled = true;
    answer.hidden = false;
    answer.textContent = await caller.send(requestOf(spec, operation, caller.with(values)));
    button.disabled = false;
  });
  return element("div", {}, button, answer);
}

function isEndless({ content: body }) {
  return body?.type === "text/event-stream";
}
