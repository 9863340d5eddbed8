/** The schema of the documents. */

import { useTenant } from "../../api/tenant";
import { Declaration } from "../../ui/Declaration";
import { useToasts } from "../../ui/toasts";
import type { CollectionResource } from "./CollectionPage";

const MAX_SAMPLE = 200;

export function SchemaTab({
  resource: { collection, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { client, may } = useTenant();
  const { say, fail } = useToasts();
  async function suggest(propose: (schema: unknown) => void) {
    try {
      const documents = await client
        .collection<Record<string, unknown>>(collection.name)
        .limit(MAX_SAMPLE)
        .fetch();
      propose(schemaOf(documents));
      say(`Inferred from ${documents.length} documents. Review the schema, then save it.`);
    } catch (error) {
      fail(error);
    }
  }
  return (
    <div className="column">
      <p className="lead">
        A JSON Schema, which each write must satisfy. Existing documents are not checked until they
        are written again. Columns of the grid, types of GraphQL and the form for new documents
        follow it.
      </p>
      <Declaration
        key={collection.version}
        label="Schema"
        member="schema"
        value={collection.schema}
        mayChange={may("developer")}
        height="420px"
        onSave={(schema) => change({ schema })}
      >
        {(propose) =>
          collection.schema === null &&
          may("developer") && (
            <button type="button" className="button" onClick={() => suggest(propose)}>
              Infer from documents
            </button>
          )
        }
      </Declaration>
    </div>
  );
}

/** Returns a schema that all of the documents satisfy. */
function schemaOf(documents: readonly Record<string, unknown>[]): Record<string, unknown> {
  const names = new Set(documents.flatMap((document) => Object.keys(document)));
  names.delete("_id");
  const properties: Record<string, unknown> = {};
  for (const name of names) {
    const types = new Set(
      documents.map((document) => typeOf(document[name])).filter((type) => type !== ""),
    );
    const [only] = types;
    properties[name] =
      types.size === 1 && only !== undefined
        ? { [only === "date" ? "bsonType" : "type"]: only }
        : {};
  }
  const required = [...names].filter((name) => documents.every((document) => name in document));
  return { type: "object", ...(required.length > 0 ? { required } : {}), properties };
}

function typeOf(value: unknown): string {
  if (value === undefined) return "";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (value instanceof Date) return "date";
  return typeof value;
}
