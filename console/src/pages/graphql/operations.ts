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
    // The text is often incomplete while it is being typed; the editor marks where.
    return undefined;
  }
}

/** Returns the names of a text's operations, where it has several to choose from. */
export function namesOf(text: string): readonly string[] {
  const definitions = definitionsOf(text);
  return definitions.length < 2
    ? []
    : definitions.flatMap(({ name }) => (name ? [name.value] : []));
}

/** Returns what kind of operation would run. */
export function kindOf(text: string, name: string): `${OperationTypeNode}` {
  const definitions = definitionsOf(text);
  return (
    (definitions.find((each) => each.name?.value === name) ?? definitions[0])?.operation ?? "query"
  );
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

/** The most leaves of a new operation: enough to see something. */
const MAX_LEAVES = 6;
/** Fields that lead to what the operation is about. */
const NESTED = ["nodes", "node", "document"];

/** Returns an operation that asks for a field, its required arguments as variables, with others. */
export function operationFor(
  schema: GraphQLSchema,
  kind: `${OperationTypeNode}`,
  field: GraphQLField<unknown, unknown>,
  others: readonly string[] = [],
): string {
  const required = field.args.filter(isRequiredArgument);
  const declared = required.map(({ name, type }) => `$${name}: ${type}`).join(", ");
  const given = [...required.map(({ name }) => `${name}: $${name}`), ...others].join(", ");
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
  const selectable = fields.filter(({ args }) => !args.some(isRequiredArgument));
  const leaves = selectable
    .filter((each) => isLeafType(getNamedType(each.type)))
    .slice(0, MAX_LEAVES);
  const nested = depth > 0 ? selectable.find(({ name }) => NESTED.includes(name)) : undefined;
  // A document's own fields say more than what every document has.
  const shown = nested?.name === "document" ? leaves.filter(({ name }) => name === "key") : leaves;
  const parts = [
    ...shown.map(({ name }) => name),
    ...(nested ? [`${nested.name}${selectionOf(schema, nested, depth - 1)}`] : []),
  ];
  return ` { ${parts.length === 0 ? "__typename" : parts.join(" ")} }`;
}
