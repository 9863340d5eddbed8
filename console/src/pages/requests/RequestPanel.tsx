/** The details of one entry, beside the list. Escape closes it. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef } from "react";
import { Link } from "wouter";
import { call, type Page } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { ErrorEntry, RequestEntry } from "../../api/types";
import { CopyButton } from "../../ui/Code";
import { Icon } from "../../ui/Icon";
import { Remedy } from "../../ui/Remedy";
import { momentText } from "../../ui/Time";
import { size } from "../../ui/units";
import type { RequestFilters } from "./requestFilters";
import { durationText, kindText, toneOf } from "./requestTexts";

interface RequestPanelProps {
  readonly entry: RequestEntry;
  readonly onFilter: (changed: RequestFilters) => void;
  readonly onClose: () => void;
}

export function RequestPanel({ entry, onFilter, onClose }: RequestPanelProps) {
  const panel = useFocus(entry.id, onClose);
  return (
    <section ref={panel} className="panel request-panel" aria-label="Details of the request">
      <header>
        <div className="what">
          <strong className="mono" tabIndex={-1}>
            {entry.method} {entry.route}
          </strong>
          <button
            type="button"
            className="button small icon plain"
            aria-label="Close the details"
            onClick={onClose}
          >
            <Icon name="close" size={14} />
          </button>
        </div>
        <p className="badges">
          <span className={`badge ${toneOf(entry.status)}`}>{entry.status}</span>
          <span className="badge">{kindText(entry)}</span>
        </p>
      </header>
      <div className="panel-body">
        {entry.code !== null && <Failure code={entry.code} requestId={entry.request_id} />}
        <Facts entry={entry} />
        <Narrow entry={entry} onFilter={onFilter} />
      </div>
    </section>
  );
}

/** Moves the focus to the details when they open, and back to their row when they close. */
function useFocus(id: string, onClose: () => void) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    panel.current?.querySelector<HTMLElement>("strong[tabindex]")?.focus();
    return () => document.querySelector<HTMLElement>(`[data-entry="${id}"]`)?.focus();
  }, [id]);
  useEffect(() => {
    function closeOnEscape(event: KeyboardEvent) {
      if (event.key === "Escape" && !event.defaultPrevented) onClose();
    }
    addEventListener("keydown", closeOnEscape);
    return () => removeEventListener("keydown", closeOnEscape);
  }, [onClose]);
  return panel;
}

interface FailureProps {
  readonly code: string;
  readonly requestId: string;
}

/** Why it failed, with the error's entry in the error log. */
function Failure({ code, requestId }: FailureProps) {
  const { slug, api } = useTenant();
  const id = new URLSearchParams({ request_id: requestId });
  const { data } = useQuery({
    queryKey: [slug, "errors", "of-request", requestId],
    queryFn: () => call<Page<ErrorEntry>>(`${api}/errors?${id}`),
  });
  // Equal errors of a minute are one entry, which has the request id of the last one.
  const own = data?.items.find((error) => error.code === code);
  const search = own === undefined ? new URLSearchParams({ code }) : id;
  return (
    <div className="failure">
      <h2 className="mono">{code}</h2>
      {own !== undefined && own.detail !== "" && <p className="said">{own.detail}</p>}
      <Remedy code={code} />
      <Link className="button small" href={`/t/${slug}/errors?${search}`}>
        <Icon name="alert" size={12} />
        {own === undefined ? `Errors with the code ${code}` : "Show in the error log"}
      </Link>
    </div>
  );
}

function Facts({ entry }: { readonly entry: RequestEntry }) {
  return (
    <dl className="facts">
      <Fact name="Completed">{momentText(entry.at)}</Fact>
      <Fact name="Duration">{durationText(entry.duration_ms)}</Fact>
      <Fact name="Received">{size(entry.bytes_in)}</Fact>
      <Fact name="Sent">{size(entry.bytes_out)}</Fact>
      <Fact name="Caller">
        <span className="mono">{entry.actor}</span>
      </Fact>
      <Fact name="Request id">
        <span className="mono">{entry.request_id}</span>{" "}
        <CopyButton text={entry.request_id} label="Copy the request id" />
      </Fact>
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

type NarrowProps = Pick<RequestPanelProps, "entry" | "onFilter">;

function Narrow({ entry, onFilter }: NarrowProps) {
  const offers: readonly (readonly [string, RequestFilters])[] = [
    ["This route", { method: entry.method, route: entry.route }],
    ["This caller", { actor: entry.actor }],
    ["This request id", { request_id: entry.request_id }],
    ...(entry.code === null ? [] : [["This error", { code: entry.code }] as const]),
  ];
  return (
    <p className="badges">
      <span className="soft">Show only:</span>
      {offers.map(([title, filters]) => (
        <button
          key={title}
          type="button"
          className="button small"
          onClick={() => onFilter(filters)}
        >
          {title}
        </button>
      ))}
    </p>
  );
}
