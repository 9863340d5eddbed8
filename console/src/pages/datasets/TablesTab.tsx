/** The tables of a dataset, and an editor that adds to them. */

import type { Resource } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import { Declaration } from "../../ui/Declaration";
import { Table as Listed } from "../../ui/Listing";
import { duration } from "../../ui/Time";
import type { Dataset, Table } from "./types";

export function TablesTab({
  resource: { body: dataset, change },
}: {
  readonly resource: Resource<Dataset>;
}) {
  const { may } = useTenant();
  return (
    <div className="column">
      {Object.entries(dataset.tables).map(([name, table]) => (
        <TableCard key={name} name={name} table={table} />
      ))}
      <p className="soft">
        A state can be queried {duration(dataset.retention_s)} after a later one has taken its
        place.
      </p>
      {may("developer") && (
        <section className="life" aria-label="Add tables or columns">
          <div>
            <h2>Add tables or columns</h2>
            <p className="soft">
              New columns are added at the end of a table's columns; existing ones do not change.
            </p>
          </div>
          <Declaration
            key={dataset.version}
            label="Tables"
            member="tables"
            value={dataset.tables}
            mayChange
            onSave={(tables) => change({ tables })}
          />
        </section>
      )}
    </div>
  );
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
