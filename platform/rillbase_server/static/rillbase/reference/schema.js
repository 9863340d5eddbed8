/** A schema as a tree of members; nested ones are rendered when they are opened. */

import { element, inline } from "./dom.js";
import { resolve, typeOf } from "./model.js";

/** Returns a list of a schema's members, or one line for a schema without members. */
export function schemaView(spec, schema) {
  const plain = merged(spec, schema);
  const choices = plain.oneOf ?? plain.anyOf;
  if (choices !== undefined) return choicesView(spec, choices);
  if (typeOf(plain) === "array") {
    return element("div", {}, element("p", { class: "soft" }, "A list of:"), schemaView(spec, plain.items));
  }
  const members = Object.entries(plain.properties ?? {});
  if (members.length === 0) return element("p", {}, typeView(plain), " ", ...inline(plain.description ?? ""));
  const required = new Set(plain.required ?? []);
  const rows = members.map(([name, member]) => memberView(spec, name, member, required.has(name)));
  return element("ul", { class: "members" }, ...rows);
}

function choicesView(spec, choices) {
  const views = choices.map((choice) => element("li", {}, schemaView(spec, choice)));
  return element("div", {}, element("p", { class: "soft" }, "One of:"), element("ul", { class: "choices" }, ...views));
}

/** Joins the parts of `allOf` into one schema. */
function merged(spec, schema) {
  const plain = resolve(spec, schema);
  if (plain.allOf === undefined) return plain;
  const parts = plain.allOf.map((part) => merged(spec, part));
  return {
    ...Object.assign({}, ...parts, plain),
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)),
    required: parts.flatMap(({ required = [] }) => required),
  };
}

function memberView(spec, name, schema, isRequired) {
  const plain = merged(spec, schema);
  const head = [
    element("code", { class: "name" }, name),
    typeView(plain),
    isRequired ? element("span", { class: "required" }, "required") : null,
  ];
  const note = element("p", {}, ...inline(plain.description ?? ""), ...bounds(plain));
  if (!hasMembers(spec, plain)) {
    return element("li", {}, element("div", { class: "head" }, ...head.filter(Boolean)), note.textContent ? note : null);
  }
  const details = lazyDetails(head.filter(Boolean), () => [note.textContent ? note : "", schemaView(spec, plain)]);
  return element("li", {}, details);
}

/** Returns details whose content is made when they are opened for the first time. */
export function lazyDetails(summary, content) {
  const details = element("details", {}, element("summary", {}, ...summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(...content().filter((part) => part !== ""));
    }
  });
  return details;
}

function hasMembers(spec, plain) {
  if (plain.oneOf !== undefined || plain.anyOf !== undefined) return true;
  if (typeOf(plain) === "array") return hasMembers(spec, merged(spec, plain.items));
  return Object.keys(plain.properties ?? {}).length > 0;
}

function typeView(schema) {
  const types = Array.isArray(schema.type) ? schema.type.join(" or ") : typeOf(schema);
  return element("span", { class: "type" }, schema.format === undefined ? types : `${types}, ${schema.format}`);
}

/** Returns the bounds of a value as text. */
export function bounds(schema) {
  const parts = [];
  if (schema.enum !== undefined) parts.push(`One of ${schema.enum.map((one) => JSON.stringify(one)).join(", ")}.`);
  if (schema.default !== undefined) parts.push(`Default: ${JSON.stringify(schema.default)}.`);
  if (schema.minimum !== undefined) parts.push(`At least ${schema.minimum}.`);
  if (schema.maximum !== undefined) parts.push(`At most ${schema.maximum}.`);
  if (schema.maxLength !== undefined) parts.push(`At most ${schema.maxLength} characters.`);
  return parts.map((part) => ` ${part}`);
}
