/** The OpenAPI document as the page shows it: groups of operations, and schemas as examples. */

const METHODS = ["get", "post", "put", "patch", "delete"];
const MAX_DEPTH = 6;

/** Returns what a reference points to, or the value itself. */
export function resolve(spec, value) {
  if (typeof value?.$ref !== "string") return value ?? {};
  return value.$ref
    .slice(2)
    .split("/")
    .reduce((part, name) => part?.[name] ?? {}, spec);
}

/** Returns the groups of operations: tags in the document's order, then the others by name. */
export function groupsOf(spec) {
  const groups = new Map((spec.tags ?? []).map(({ name }) => [name, []]));
  for (const operation of operationsOf(spec)) {
    if (!groups.has(operation.tag)) groups.set(operation.tag, []);
    groups.get(operation.tag).push(operation);
  }
  return [...groups]
    .filter(([, operations]) => operations.length > 0)
    .map(([name, operations]) => ({ name, operations }));
}

function* operationsOf(spec) {
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const method of METHODS.filter((name) => name in item)) {
      yield operationOf(spec, path, method, item);
    }
  }
}

function operationOf(spec, path, method, item) {
  const source = item[method];
  const parameters = [...(item.parameters ?? []), ...(source.parameters ?? [])];
  const body = resolve(spec, source.requestBody).content;
  return {
    id: source.operationId,
    tag: source.tags?.[0] ?? "Other",
    summary: source.summary ?? source.operationId,
    description: source.description ?? "",
    method: method.toUpperCase(),
    path,
    parameters: parameters.map((parameter) => resolve(spec, parameter)),
    body: contentOf(body),
    responses: Object.entries(source.responses ?? {}).map(([status, response]) => {
      const { description = "", content } = resolve(spec, response);
      return { status, description, content: contentOf(content) };
    }),
    credentials: (source.security ?? []).flatMap((scheme) => Object.keys(scheme)),
  };
}

/** Returns the preferred type of a content: JSON where there is a choice. */
function contentOf(content = {}) {
  const types = Object.keys(content);
  const type = types.find((name) => name.endsWith("json")) ?? types[0];
  return type === undefined ? null : { type, ...content[type] };
}

/** Whether all words of a search occur in an operation's summary, path, tag, method or id. */
export function matches(operation, search) {
  const { summary, path, tag, method, id } = operation;
  const text = `${summary} ${path} ${tag} ${method} ${id}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Returns an example of a schema: its own, or one built from its parts. */
export function exampleOf(spec, schema, depth = 0) {
  const plain = resolve(spec, schema);
  const given = plain.example ?? plain.examples?.[0] ?? plain.default ?? plain.const;
  if (given !== undefined && given !== null) return given;
  if (plain.enum !== undefined) return plain.enum[0];
  const choice = plain.oneOf?.[0] ?? plain.anyOf?.[0];
  if (choice !== undefined) return exampleOf(spec, choice, depth + 1);
  if (plain.allOf !== undefined) return exampleOfAll(spec, plain.allOf, depth);
  return exampleOfType(spec, plain, depth);
}

function exampleOfAll(spec, parts, depth) {
  const examples = parts.map((part) => exampleOf(spec, part, depth + 1));
  return examples.length === 1 ? examples[0] : Object.assign({}, ...examples);
}

function exampleOfType(spec, schema, depth) {
  switch (typeOf(schema)) {
    case "object": {
      const members = depth > MAX_DEPTH ? [] : Object.entries(schema.properties ?? {});
      const written = members.filter(([, member]) => !resolve(spec, member).readOnly);
      return Object.fromEntries(
        written.map(([name, member]) => [name, exampleOf(spec, member, depth + 1)]),
      );
    }
    case "array":
      return depth > MAX_DEPTH ? [] : [exampleOf(spec, schema.items, depth + 1)];
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "boolean":
      return false;
    case "null":
      return null;
    default:
      return schema.format === "date-time" ? "2026-11-21T08:00:00Z" : "text";
  }
}

/** Returns a schema's type; of several, the first. */
export function typeOf(schema) {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  return type ?? (schema.properties === undefined ? "any" : "object");
}
