/** A call as curl, JavaScript and Python. */

import { exampleOf } from "./model.js";

export const LANGUAGES = ["curl", "JavaScript", "Python"];
const KEY = "rbk_…";

/** Returns the request that an operation makes with values for its parameters. */
export function requestOf(spec, operation, { origin, key, values }) {
  const valueOf = ({ name, required, ...rest }) =>
    values[name] || (required ? String(rest.example ?? exampleOf(spec, rest.schema)) : "");
  const given = operation.parameters.map((parameter) => ({ ...parameter, value: valueOf(parameter) }));
  const query = new URLSearchParams(
    given.filter((one) => one.in === "query" && one.value !== "").map(({ name, value }) => [name, value]),
  ).toString();
  const path = given
    .filter((one) => one.in === "path")
    .reduce((text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(value)), operation.path);
  const headers = { ...credentialOf(operation, key) };
  for (const { in: place, name, value } of given) {
    if (place === "header" && value !== "") headers[name] = value;
  }
  const body = operation.body === null ? undefined : bodyOf(spec, operation.body);
  if (body !== undefined) headers["Content-Type"] = operation.body.type;
  return { method: operation.method, url: `${origin}${path}${query && `?${query}`}`, headers, body };
}

function bodyOf(spec, body) {
  const example = body.example ?? exampleOf(spec, body.schema);
  return body.type.endsWith("json") && typeof example !== "string" ? example : String(example);
}

function credentialOf({ credentials }, key) {
  if (key.startsWith("rbp_") && credentials.includes("publishableKey")) return { "Rillbase-Key": key };
  if (credentials.includes("secretKey")) return { Authorization: `Bearer ${key || KEY}` };
  return credentials.includes("session") ? { Cookie: "rillbase_session=…", "X-CSRF-Token": "…" } : {};
}

/** Returns a request in a language. */
export function snippet(language, request) {
  return { curl, JavaScript: javascript, Python: python }[language](request);
}

function textOf(body) {
  return typeof body === "string" ? body : JSON.stringify(body, null, 2);
}

/** Quotes for a POSIX shell, in which only the single quote itself is special. */
function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function curl({ method, url, headers, body }) {
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) lines.push(`-d ${quoted(textOf(body))}`);
  return lines.join(" \\\n  ");
}

function javascript({ method, url, headers, body }) {
  const value = typeof body === "string" ? JSON.stringify(body) : `JSON.stringify(${textOf(body)})`;
  const options = [
    `method: ${JSON.stringify(method)}`,
    `headers: ${JSON.stringify(headers, null, 2)}`,
    ...(body === undefined ? [] : [`body: ${value}`]),
  ];
  const inside = options.map((option) => `  ${option.replaceAll("\n", "\n  ")},`).join("\n");
  return `const response = await fetch(${JSON.stringify(url)}, {\n${inside}\n});\nconsole.log(response.status, await response.text());`;
}

function python({ method, url, headers, body }) {
  const lines = [JSON.stringify(method), JSON.stringify(url), `headers=${literal(headers, 1)}`];
  if (body !== undefined) {
    lines.push(typeof body === "string" ? `data=${JSON.stringify(body)}` : `json=${literal(body, 1)}`);
  }
  const inside = lines.map((line) => `    ${line},`).join("\n");
  return `import requests\n\nresponse = requests.request(\n${inside}\n)\nprint(response.status_code, response.text)`;
}

/** Returns a value of JSON as Python writes it. */
function literal(value, depth) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const members = isList
    ? value.map((item) => literal(item, depth + 1))
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${literal(item, depth + 1)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (members.length === 0) return open + close;
  const indent = "    ".repeat(depth + 1);
  return `${open}\n${members.map((member) => `${indent}${member},\n`).join("")}${"    ".repeat(depth)}${close}`;
}
