/** Shows which of the existing documents a schema would reject. */

import { failureOf } from "../../../api/failure";
import { isObject, type Json, type JsonObject } from "../../../ui/definition/exactJson";
import { explain } from "./explain";
import { SAMPLE, type SchemaCheck, useSchemaCheck } from "./useSchemaCheck";

interface PreviewProps {
  readonly collection: string;
  readonly schema: Json | undefined;
}

export function SchemaPreview({ collection, schema }: PreviewProps) {
  return (
    <>
      <h2>Existing documents</h2>
      {isObject(schema) ? (
        <Checked collection={collection} schema={schema} />
      ) : (
        <p className="soft">
          With a schema, this shows how many of the first {SAMPLE.toLocaleString("en")} documents
          would violate it.
        </p>
      )}
    </>
  );
}

function Checked({
  collection,
  schema,
}: {
  readonly collection: string;
  readonly schema: JsonObject;
}) {
  const { check, error } = useSchemaCheck(collection, schema);
  if (error !== null) {
    return (
      <p className="soft" role="status">
        The documents cannot be checked with this schema. {failureOf(error).summary}
      </p>
    );
  }
  if (check === undefined) return <p className="soft">Checking…</p>;
  return (
    <>
      <Verdict check={check} />
      <ul className="violations">
        {check.examples.map(({ id, document }) => (
          <li key={JSON.stringify(id)}>
            <code className="cut">{typeof id === "string" ? id : JSON.stringify(id)}</code>
            <span>{reasonOf(schema, document)}</span>
          </li>
        ))}
      </ul>
      {check.rejected > check.examples.length && (
        <p className="soft">
          and {(check.rejected - check.examples.length).toLocaleString("en")} more
        </p>
      )}
    </>
  );
}

function Verdict({ check: { checked, rejected } }: { readonly check: SchemaCheck }) {
  const sample = checked === SAMPLE ? `the first ${SAMPLE.toLocaleString("en")}` : `${checked}`;
  if (checked === 0) return <p role="status">The collection is empty.</p>;
  if (rejected === 0) {
    return (
      <p role="status">
        <span className="badge good">valid</span> All of {sample} documents satisfy the schema.
      </p>
    );
  }
  return (
    <p role="status">
      <span className="badge warn number">{rejected.toLocaleString("en")}</span> of {sample}{" "}
      documents
      {rejected === 1 ? " violates" : " violate"} the schema. They stay as they are until they are
      written again.
    </p>
  );
}

function reasonOf(schema: JsonObject, document: JsonObject): string {
  const [first, ...others] = explain(schema, document);
  if (first === undefined) return "violates a part that is edited in JSON";
  return others.length === 0 ? first : `${first}, and ${others.length} more`;
}
