/** Who changed what, when, from where. */

import { useInfiniteQuery } from "@tanstack/react-query";
import { Fragment, useState } from "react";
import { call, type Page } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { AuditEntry } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Empty } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { Time } from "../../ui/Time";

const PAGE = 50;

export default function Audit() {
  const { slug, api } = useTenant();
  const [opened, setOpened] = useState<string | null>(null);
  const log = useInfiniteQuery({
    queryKey: [slug, "audit-log"],
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({
        limit: String(PAGE),
        ...(pageParam === "" ? {} : { cursor: pageParam }),
      });
      return call<Page<AuditEntry>>(`${api}/audit-log?${query}`);
    },
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const entries = log.data?.pages.flatMap((page) => page.items);
  return (
    <>
      <PageHead title="Audit log" />
      <div className="page-body">
        <div className="column">
          <Listing
            read={{ data: entries, error: log.error, refetch: log.refetch }}
            empty={
              <Empty icon="log" title="Nothing has happened yet">
                Every change of keys, members, collections and settings is written down here, in the
                transaction that makes it.
              </Empty>
            }
          >
            {(items) => (
              <Table heads={["When", "Action", "Who", "What", ""]}>
                {items.map((entry) => (
                  <Entry
                    key={entry.id}
                    entry={entry}
                    isOpen={opened === entry.id}
                    onToggle={() => setOpened(opened === entry.id ? null : entry.id)}
                  />
                ))}
              </Table>
            )}
          </Listing>
          {log.hasNextPage && (
            <div>
              <button type="button" className="button" onClick={() => log.fetchNextPage()}>
                Earlier entries
              </button>
            </div>
          )}
        </div>
      </div>
    </>
  );
}

interface EntryProps {
  readonly entry: AuditEntry;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
}

function Entry({ entry, isOpen, onToggle }: EntryProps) {
  return (
    <Fragment>
      <tr>
        <td className="soft">
          <Time at={entry.at} />
        </td>
        <td className="mono">{entry.action}</td>
        <td>{entry.actor_label || entry.actor}</td>
        <td className="mono soft cut" title={entry.target_id}>
          {entry.target_type} {nameOf(entry)}
        </td>
        <td className="end">
          <button
            type="button"
            className="button small icon plain"
            aria-expanded={isOpen}
            aria-label={`Details of ${entry.action}`}
            onClick={onToggle}
          >
            <Icon name={isOpen ? "down" : "chevron"} size={13} />
          </button>
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={5}>
            <Details entry={entry} />
          </td>
        </tr>
      )}
    </Fragment>
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
