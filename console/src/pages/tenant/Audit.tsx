/** Who changed what, when, from where. */

import { usePages } from "../../api/list";
import type { AuditEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Earlier } from "../../ui/Earlier";
import { Empty } from "../../ui/Empty";
import { FoldingRow } from "../../ui/FoldingRow";
import { Listing, Table } from "../../ui/Listing";
import { Time } from "../../ui/Time";

const HEADS = ["When", "Action", "Who", "What", ""];

export default function Audit() {
  const log = usePages<AuditEntry>("audit-log");
  return (
    <>
      <PageHead title="Audit log" />
      <div className="page-body">
        <div className="column">
          <Listing
            read={log}
            empty={
              <Empty icon="log" title="Nothing has happened yet">
                Every change of keys, members, collections and settings is written down here, in the
                transaction that makes it.
              </Empty>
            }
          >
            {(items) => (
              <Table heads={HEADS}>
                {items.map((entry) => (
                  <Entry key={entry.id} entry={entry} />
                ))}
              </Table>
            )}
          </Listing>
          <Earlier read={log} />
        </div>
      </div>
    </>
  );
}

function Entry({ entry }: { readonly entry: AuditEntry }) {
  return (
    <FoldingRow label={entry.action} cells={HEADS.length} details={() => <Details entry={entry} />}>
      <td className="soft">
        <Time at={entry.at} />
      </td>
      <td className="mono">{entry.action}</td>
      <td>{entry.actor_label || entry.actor}</td>
      <td className="mono soft cut" title={entry.target_id}>
        {entry.target_type} {nameOf(entry)}
      </td>
    </FoldingRow>
  );
}

function nameOf({ after, before, target_id: id }: AuditEntry): string {
  const name = after?.name ?? before?.name ?? after?.email ?? before?.email;
  return typeof name === "string" ? name : id.slice(0, 13);
}

function Details({ entry }: { readonly entry: AuditEntry }) {
  return (
    <div className="audit-details">
      {(["before", "after"] as const).map((side) => (
        <div key={side}>
          <h3 className="soft">{side}</h3>
          <pre className="mono">
            {entry[side] === null ? "–" : JSON.stringify(entry[side], null, 2)}
          </pre>
        </div>
      ))}
      <p className="soft">
        From {entry.address ?? "within"}, request <code>{entry.request_id}</code>
      </p>
    </div>
  );
}
