/** The root fields of the tenant's schema. A click begins an operation with one. */

import { useState } from "react";
import { ErrorNotice } from "../../ui/ErrorNotice";

interface TypeRef {
  readonly name: string | null;
  readonly kind: string;
  readonly ofType: TypeRef | null;
}

interface FieldOf {
  readonly name: string;
  readonly description: string | null;
  readonly args: readonly { readonly name: string; readonly type: TypeRef }[];
  readonly type: TypeRef;
}

type Roots = Readonly<
  Record<"queryType" | "mutationType" | "subscriptionType", { fields: readonly FieldOf[] } | null>
>;

const KINDS = [
  ["queryType", "query"],
  ["mutationType", "mutation"],
  ["subscriptionType", "subscription"],
] as const;

interface SchemaProps {
  readonly read: { readonly data: unknown; readonly error: unknown };
  readonly onChoose: (operation: string) => void;
}

export function Schema({ read: { data, error }, onChoose }: SchemaProps) {
  const [text, setText] = useState("");
  const roots = (data as { data?: { __schema?: Roots } } | undefined)?.data?.__schema;
  return (
    <aside className="graphql-schema" aria-label="Schema">
      <input
        className="input small"
        type="search"
        aria-label="Find a field"
        placeholder="Find a field …"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      {error !== null && <ErrorNotice error={error} />}
      {roots !== undefined &&
        KINDS.map(([root, kind]) => {
          const fields =
            roots[root]?.fields.filter(({ name }) =>
              name.toLowerCase().includes(text.toLowerCase()),
            ) ?? [];
          return (
            fields.length > 0 && (
              <section key={root} aria-label={kind}>
                <h2 className="soft">{kind}</h2>
                {fields.map((field) => (
                  <button
                    key={field.name}
                    type="button"
                    title={field.description ?? ""}
                    onClick={() => onChoose(operationOf(kind, field))}
                  >
                    <span className="mono">{field.name}</span>
                    <span className="mono soft">{typeText(field.type)}</span>
                  </button>
                ))}
              </section>
            )
          );
        })}
    </aside>
  );
}

function typeText(type: TypeRef): string {
  if (type.kind === "NON_NULL") return `${type.ofType ? typeText(type.ofType) : ""}!`;
  if (type.kind === "LIST") return `[${type.ofType ? typeText(type.ofType) : ""}]`;
  return type.name ?? "";
}

/** Returns an operation with the arguments that the field requires. */
function operationOf(kind: string, { name, args, type }: FieldOf): string {
  const required = args.filter((argument) => argument.type.kind === "NON_NULL");
  const given =
    required.length === 0 ? "" : `(${required.map((argument) => `${argument.name}: `).join(", ")})`;
  let inner: TypeRef | null = type;
  while (inner?.ofType) inner = inner.ofType;
  const isLeaf = inner?.kind === "SCALAR" || inner?.kind === "ENUM";
  return `${kind} {\n  ${name}${given}${isLeaf ? "" : " {\n    __typename\n  }"}\n}`;
}
