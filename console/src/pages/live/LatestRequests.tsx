/** The latest requests of the tenant, with a link to the request log. */

import { Link } from "wouter";
import { usePages } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { RequestEntry, RequestEntryPage } from "../../api/types";
import { Table } from "../../ui/Listing";
import { clockText, momentText } from "../../ui/Time";
import { durationText, toneOf } from "../requests/requestTexts";

const SHOWN = 8;
/** Servers flush their request logs every two seconds. */
const REFRESH_MS = 4_000;
const LATEST = { limit: String(SHOWN) };

export function LatestRequests() {
  const { slug } = useTenant();
  const { data, first } = usePages<RequestEntry, RequestEntryPage>("request-log", LATEST, {
    refetchMs: REFRESH_MS,
  });
  if (data === undefined || first?.is_recorded === false) return null;
  return (
    <>
      <div className="section-head">
        <h2>Latest requests</h2>
        <Link href={`/t/${slug}/requests`}>All requests</Link>
      </div>
      {data.length === 0 ? (
        <p className="soft">No requests in the last 24 hours.</p>
      ) : (
        <Table heads={["Time", "Request", "Status", "Duration"]} numbers={["Duration"]}>
          {data.slice(0, SHOWN).map((entry) => (
            <tr key={entry.id}>
              <td>
                <time dateTime={entry.at} title={momentText(entry.at)}>
                  {clockText(new Date(entry.at))}
                </time>
              </td>
              <td className="mono">
                <Link
                  href={`/t/${slug}/requests?request_id=${encodeURIComponent(entry.request_id)}`}
                >
                  <strong>{entry.method}</strong> {entry.route}
                </Link>
              </td>
              <td>
                <span className={`badge ${toneOf(entry.status)}`}>{entry.status}</span>
              </td>
              <td className="number">{durationText(entry.duration_ms)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
