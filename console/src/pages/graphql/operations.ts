/** Operations as text: their names and variables, and a first example. */

import {
  type DocumentNode,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isLeafType,
  isRequiredArgument,
  type OperationDefinitionNode,
  type OperationTypeNode,
  parse,
  print,
} from "graphql";

export interface Variable {
  readonly name: string;
  readonly type: string;
}

/** Returns the operations of a text; none while it cannot be read. */
function definitionsOf(text: string): readonly OperationDefinitionNode[] {
  const document = parsed(text);
  return document?.definitions.filter((each) => each.kind === "OperationDefinition") ?? [];
}

function parsed(text: string): DocumentNode | undefined {
  try {
    return parse(text, { noLocation: true });
  } catch {
    // What is being typed is often not finished; the editor shows where.
    return undefined;
  }
}

/** Returns the names of a text's operations, where it has several to choose from. */
export function namesOf(text: string): readonly string[] {
  const found = definitionsOf(text);
  return found.length < 2 ? [] : found.flatMap(({ name }) => (name ? [name.value] : []));
}

/** Returns what kind of operation would run. */
export function kindOf(text: string, name: string): `${OperationTypeNode}` {
  const found = definitionsOf(text);
  return (found.find((each) => each.name?.value === name) ?? found[0])?.operation ?? "query";
}

export function variablesOf(text: string): readonly Variable[] {
  return definitionsOf(text).flatMap(({ variableDefinitions = [] }) =>
    variableDefinitions.map(({ variable, type }) => ({
      name: variable.name.value,
      type: print(type),
    })),
  );
}

export function prettified(text: string): string {
  const document = parsed(text);
  return document === undefined ? text : print(document);
}

/** What leaves are asked for in an operation that begins: enough to see something. */
const MAX_LEAVES = 6;

/** Returns an operation that asks for a field, its required arguments as variables. */
export function operationFor(
  schema: GraphQLSchema,
  kind: `${OperationTypeNode}`,
  field: GraphQLField<unknown, unknown>,
): string {
  const required = field.args.filter(isRequiredArgument);
  const declared = required.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  const given = required.map(({ name }) => `${name}: $${name}`).join(", ");
  const title = field.name.charAt(0).toUpperCase() + field.name.slice(1);
  const head = `${kind} ${title}${declared === "" ? "" : `(${declared})`}`;
  const call = `${field.name}${given === "" ? "" : `(${given})`}`;
  return prettified(`${head} { ${call}${selectionOf(schema, field, 2)} }`);
}

function selectionOf(
  schema: GraphQLSchema,
  field: GraphQLField<unknown, unknown>,
  depth: number,
): string {
  const type = getNamedType(field.type);
  if (isLeafType(type) || !("getFields" in type)) return "";
  const fields = Object.values(type.getFields()) as GraphQLField<unknown, unknown>[];
  const asked = fields.filter(({ args }) => !args.some(isRequiredArgument));
  const leaves = asked.filter((each) => isLeafType(getNamedType(each.type))).slice(0, MAX_LEAVES);
  const nodes =
    depth > 0 ? asked.find(({ name }) => name === "nodes" || name === "node") : undefined;
  const parts = [
    ...leaves.map(({ name }) => name),
    ...(nodes ? [`${nodes.name}${selectionOf(schema, nodes, depth - 1)}`] : []),
  ];
  return ` { ${parts.length === 0 ? "__typename" : parts.join(" ")} }`;
}
