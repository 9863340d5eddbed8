/** One dataset: where its rows are, what they say, and what its tables are. */

import { useState } from "react";
import { Link } from "wouter";
import { type HeldBody, useHeld } from "../../api/held";
import { useTenant } from "../../api/tenant";
import { DropButton } from "../../shell/DropButton";
import { PageHead } from "../../shell/Shell";
import { Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Icon } from "../../ui/Icon";
import { PipelineTab } from "./PipelineTab";
import { QueryTab } from "./QueryTab";
import { TablesTab } from "./TablesTab";
import type { Dataset } from "./types";
import { UploadDialog } from "./UploadDialog";
import "./datasets.css";

const TABS = [
  ["pipeline", "Pipeline"],
  ["query", "Query"],
  ["tables", "Tables"],
] as const;

interface PageProps {
  readonly name: string;
  readonly tab: string;
}

export default function DatasetPage({ name, tab }: PageProps) {
  const { slug } = useTenant();
  const { held, error } = useHeld<Dataset>("datasets", name);
  const path = `/t/${slug}/datasets/${name}`;
  return (
    <>
      <PageHead
        name={name}
        title={
          <>
            <Icon name="layers" />
            <h1 className="mono cut">{name}</h1>
          </>
        }
      >
        <nav className="tabs" aria-label="Parts of the dataset">
          {TABS.map(([id, title]) => (
            <Link
              key={id}
              href={id === "pipeline" ? path : `${path}/${id}`}
              aria-current={tab === id ? "page" : undefined}
            >
              {title}
            </Link>
          ))}
        </nav>
        {held !== null && <Actions dataset={held.body} />}
      </PageHead>
      {error !== null && (
        <div className="column">
          <ErrorNotice error={error} />
        </div>
      )}
      {held === null && error === null && <Skeleton rows={10} />}
      {held !== null && <Tab held={held} tab={tab} />}
    </>
  );
}

function Actions({ dataset }: { readonly dataset: Dataset }) {
  const { may } = useTenant();
  const [isUploading, setUploading] = useState(false);
  if (!may("developer")) return null;
  return (
    <>
      <button type="button" className="button small main" onClick={() => setUploading(true)}>
        <Icon name="upload" size={13} /> Upload
      </button>
      <DropButton list="datasets" name={dataset.name} label="Drop the dataset">
        All that was uploaded goes with it.
      </DropButton>
      {isUploading && <UploadDialog dataset={dataset} onClose={() => setUploading(false)} />}
    </>
  );
}

function Tab({ held, tab }: { readonly held: HeldBody<Dataset>; readonly tab: string }) {
  if (tab === "query") {
    return (
      <div className="page-body fill">
        <QueryTab dataset={held.body} />
      </div>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard.
    <div className="page-body" tabIndex={0}>
      {tab === "pipeline" && <PipelineTab dataset={held.body} />}
      {tab === "tables" && <TablesTab held={held} />}
    </div>
  );
}
