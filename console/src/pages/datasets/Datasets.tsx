/** The datasets of the tenant. */

import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useChange } from "../../api/list";
import { useTenant } from "../../api/tenant";
import { ListPage } from "../../shell/ListPage";
import { validationErrorsOf } from "../../ui/Declaration";
import { FormDialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { JsonEditor, type ValidationError } from "../../ui/JsonEditor";
import { isName, NameField } from "../../ui/NameField";
import { Time } from "../../ui/Time";
import { size } from "../../ui/units";
import type { Dataset } from "./types";

const ABOUT =
  "For events, measurements and crawls: rows that arrive at high rates and are queried in bulk. " +
  "Uploads are visible immediately and sorted in the background; a query specifies how fresh its result must be.";

const EXAMPLE = {
  posts: {
    columns: { id: "int64", author: "string", at: "timestamp", text: "string" },
    key: ["id"],
    views: { by_author: { key: ["author", "id"], columns: ["author", "id", "at"] } },
  },
};

export default function Datasets() {
  const { slug } = useTenant();
  return (
    <ListPage<Dataset>
      title="Datasets"
      path="datasets"
      action="New dataset"
      none={{ icon: "layers", title: "No datasets yet", about: ABOUT }}
      heads={["Name", "Tables", "Uploads", "Stored", "Made"]}
      numbers={["Uploads", "Stored"]}
      cells={(dataset) => (
        <>
          <td>
            <Link className="mono" href={`/t/${slug}/datasets/${dataset.name}`}>
              {dataset.name}
            </Link>
          </td>
          <td className="mono soft">{Object.keys(dataset.tables).join(", ")}</td>
          <td className="number">{dataset.state.toLocaleString("en")}</td>
          <td className="number">{size(dataset.stored_bytes)}</td>
          <td className="soft">
            <Time at={dataset.created_at} />
          </td>
        </>
      )}
      dialog={(onClose) => <NewDataset onClose={onClose} />}
    />
  );
}

function NewDataset({ onClose }: { readonly onClose: () => void }) {
  const { slug } = useTenant();
  const change = useChange("datasets");
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [text, setText] = useState(() => JSON.stringify(EXAMPLE, null, 2));
  const [validationErrors, setValidationErrors] = useState<readonly ValidationError[]>([]);
  async function create() {
    try {
      const body = { name, tables: JSON.parse(text) };
      await change<Dataset>("datasets", { method: "POST", body });
    } catch (error) {
      setValidationErrors(validationErrorsOf(error, "tables"));
      throw error;
    }
    go(`/t/${slug}/datasets/${name}`);
  }
  return (
    <FormDialog
      title="New dataset"
      lead="Uploads to its tables become visible together. Tables and columns can be added later."
      action="Create dataset"
      wide
      canSubmit={isName(name)}
      onSubmit={create}
      onClose={onClose}
    >
      <NameField value={name} onChange={setName} />
      <Field
        label="Tables"
        hint={
          <>
            Types are <code>bool</code>, <code>int32</code>, <code>int64</code>, <code>double</code>
            , <code>string</code>, <code>date</code> and <code>timestamp</code>. The key tells rows
            apart; a view keeps some columns in another order.
          </>
        }
      >
        <JsonEditor
          label="Tables"
          value={text}
          validationErrors={validationErrors}
          onChange={setText}
          height="260px"
        />
      </Field>
    </FormDialog>
  );
}
