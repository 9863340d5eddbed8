/** The operation that the GraphQL page opens with. */

import type { GraphQLSchema } from "graphql";
import type { Collection } from "../../api/types";
import { operationFor, prettified } from "./operations";

const HEAD = "# Ctrl+Space completes, Ctrl+Enter runs, Ctrl+click shows a type.\n";
const FIRST = 5;

/** A query of a collection with a schema, of any collection, or of the caller if there is none. */
export function firstOperation(
  schema: GraphQLSchema | undefined,
  collections: readonly Collection[],
): string {
  return HEAD + exampleOf(schema, collections);
}

function exampleOf(schema: GraphQLSchema | undefined, collections: readonly Collection[]): string {
  const fields = schema?.getQueryType()?.getFields() ?? {};
  const [any] = collections;
  if (any === undefined) {
    const { viewer } = fields;
    if (schema === undefined || viewer === undefined) return "query { __typename }";
    return operationFor(schema, "query", viewer);
  }
  // A field that has no such argument is not the field of a collection.
  const field = collections
    .map(({ name }) => fields[name])
    .find((candidate) => candidate?.args.some(({ name }) => name === "first"));
  if (schema !== undefined && field !== undefined)
    return operationFor(schema, "query", field, [`first: ${FIRST}`]);
  return prettified(
    `query Documents { documents(collection: ${JSON.stringify(any.name)}, first: ${FIRST}) {
      totalCount nodes { key version document }
    } }`,
  );
}
