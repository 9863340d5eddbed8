/** The tables of a dataset, and an editor that adds to them. */

import { usePageDraft } from "../../api/drafts";
import type { Resource } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import { DefinitionEditor, DefinitionFoot, objectOf } from "../../ui/definition/DefinitionEditor";
import { formatJson, type JsonObject, parseJson } from "../../ui/definition/exactJson";
import { useDefinition } from "../../ui/definition/useDefinition";
import { useSaving } from "../../ui/definition/useSaving";
import { Table as Listed } from "../../ui/Listing";
import { duration } from "../../ui/Time";
import { DatasetForm } from "./DatasetForm";
import { DatasetPreview } from "./DatasetPreview";
import type { Dataset, Table } from "./types";

interface TabProps {
  readonly resource: Resource<Dataset>;
}

export function TablesTab({ resource }: TabProps) {
  const { may } = useTenant();
  const dataset = resource.body;
  return (
    <div className="column">
      {Object.entries(dataset.tables).map(([name, table]) => (
        <TableCard key={name} name={name} table={table} />
      ))}
      <p className="soft">
        A state can be queried {duration(dataset.retention_s)} after a later one has replaced it.
      </p>
      {may("developer") && <Additions resource={resource} />}
    </div>
  );
}

/** Adds tables, and columns to tables. */
function Additions({ resource: { body: dataset, text, change } }: TabProps) {
  const { slug } = useTenant();
  const base = formatJson(changeable(text));
  const definition = useDefinition({
    base,
    member: "",
    held: usePageDraft(`${slug}/datasets/${dataset.name}`),
  });
  const save = useSaving(definition, "Tables", (value) => change(objectOf(value)));
  return (
    <section className="life" aria-label="Add tables or columns">
      <div>
        <h2>Add tables or columns</h2>
        <p className="soft">
          New columns are added at the end of a table's columns; existing ones do not change.
        </p>
      </div>
      <DefinitionEditor
        definition={definition}
        label="Tables"
        mayChange
        onSubmit={save}
        preview={<DatasetPreview name={dataset.name} value={definition.value} />}
      >
        {(value) => (
          <DatasetForm
            saved={changeable(text)}
            definition={objectOf(value)}
            onChange={definition.setValue}
          />
        )}
      </DefinitionEditor>
      <DefinitionFoot definition={definition} onSave={save} />
    </section>
  );
}

/** Returns the members that a change may have. */
function changeable(text: string): JsonObject {
  const { tables, id_keys, retention_s } = objectOf(parseJson(text));
  return { tables, id_keys, retention_s } as JsonObject;
}

function TableCard({ name, table }: { readonly name: string; readonly table: Table }) {
  return (
    <section className="life" aria-label={`Table ${name}`}>
      <h2 className="mono">{name}</h2>
      <Listed heads={["Column", "Type", "Key", "Views"]}>
        {Object.entries(table.columns).map(([column, type]) => (
          <tr key={column}>
            <td className="mono">{column}</td>
            <td className="mono soft">{type}</td>
            <td>{table.key.includes(column) && <KeyBadge place={table.key.indexOf(column)} />}</td>
            <td>
              <span className="badges">
                {Object.entries(table.views)
                  .filter(([, view]) => view.columns.includes(column))
                  .map(([view, { key }]) => (
                    <span key={view} className={`badge ${key.includes(column) ? "accent" : ""}`}>
                      {view}
                      {key.includes(column) && ` ${key.indexOf(column) + 1}`}
                    </span>
                  ))}
              </span>
            </td>
          </tr>
        ))}
      </Listed>
    </section>
  );
}

function KeyBadge({ place }: { readonly place: number }) {
  return <span className="badge accent">key {place + 1}</span>;
}
