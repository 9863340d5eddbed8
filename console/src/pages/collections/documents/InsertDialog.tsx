/** Inserts a document written as JSON. */

import { useState } from "react";
import {
  Decimal128,
  type Collection as Documents,
  Double,
  Long,
  ObjectId,
  parseTyped,
  printTyped,
} from "rillbase";
import { FormDialog } from "../../../ui/Dialog";
import { JsonEditor } from "../../../ui/JsonEditor";

type Plain = Record<string, unknown>;

interface InsertProps {
  readonly documents: Documents<Plain>;
  readonly schema: Plain | null;
  readonly onInserted: (id: unknown) => void;
  readonly onClose: () => void;
}

export function InsertDialog({ documents, schema, onInserted, onClose }: InsertProps) {
  const [text, setText] = useState(() => printTyped(templateOf(schema), 2));
  async function insert() {
    const document = parseTyped(text);
    if (typeof document !== "object" || document === null || Array.isArray(document)) {
      throw new SyntaxError("A document must be an object.");
    }
    onInserted((await documents.insert(document as Plain)).id);
  }
  return (
    <FormDialog
      title="New document"
      lead="Extended JSON. Without an _id, it gets an ObjectId."
      action="Insert"
      wide
      onSubmit={insert}
      onClose={onClose}
    >
      <JsonEditor label="The new document" value={text} onChange={setText} height="260px" />
    </FormDialog>
  );
}

const EXAMPLES: Readonly<Record<string, unknown>> = {
  string: "",
  number: 0,
  int: 0,
  long: new Long(0),
  double: new Double(0),
  decimal: new Decimal128("0"),
  boolean: false,
  bool: false,
  array: [],
  object: {},
};

/** Returns a document with what the schema requires. */
function templateOf(schema: Plain | null): Plain {
  const required = Array.isArray(schema?.required) ? (schema.required as string[]) : [];
  const properties = (schema?.properties ?? {}) as Record<string, Plain>;
  return Object.fromEntries(
    required.map((name) => {
      const { type, bsonType, enum: choices } = properties[name] ?? {};
      if (Array.isArray(choices)) return [name, choices[0]];
      if (bsonType === "date") return [name, new Date()];
      if (bsonType === "objectId") return [name, new ObjectId()];
      return [name, EXAMPLES[String(type ?? bsonType)] ?? ""];
    }),
  );
}
