/** One dataset: its pipeline, queries over it, and its tables. */

import { Suspense, useState } from "react";
import { type Resource, useResource } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import { DropButton } from "../../shell/DropButton";
import { lazyPage } from "../../shell/lazyPage";
import { TabbedPage, tabOf } from "../../shell/TabbedPage";
import { Skeleton } from "../../ui/Empty";
import { Icon } from "../../ui/Icon";
import { PipelineTab } from "./PipelineTab";
import { QueryTab } from "./QueryTab";
import { TablesTab } from "./TablesTab";
import type { Dataset } from "./types";
import { UploadDialog } from "./UploadDialog";
import "./datasets.css";

const SqlTab = lazyPage(() => import("./sql/SqlTab"));

const TABS = [
  ["pipeline", "Pipeline"],
  ["query", "Query"],
  ["sql", "SQL"],
  ["tables", "Tables"],
] as const;

type TabId = (typeof TABS)[number][0];

interface PageProps {
  readonly name: string;
  /** The tab in the address. */
  readonly tab: string | undefined;
}

export default function DatasetPage({ name, tab: named }: PageProps) {
  const tab = tabOf(TABS, named);
  const { resource, error } = useResource<Dataset>("datasets", name);
  return (
    <TabbedPage
      list="datasets"
      name={name}
      icon="layers"
      label="Sections of the dataset"
      tabs={TABS}
      tab={tab}
      resource={resource}
      error={error}
      actions={resource !== null && <Actions dataset={resource.body} />}
    >
      {(shown) => <Tab resource={shown} tab={tab} />}
    </TabbedPage>
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
        All uploaded rows are deleted.
      </DropButton>
      {isUploading && <UploadDialog dataset={dataset} onClose={() => setUploading(false)} />}
    </>
  );
}

function Tab({ resource, tab }: { readonly resource: Resource<Dataset>; readonly tab: TabId }) {
  if (tab === "query") {
    return (
      <div className="page-body fill">
        <QueryTab dataset={resource.body} />
      </div>
    );
  }
  if (tab === "sql") {
    return (
      <div className="page-body fill">
        <Suspense fallback={<Skeleton />}>
          <SqlTab dataset={resource.body} />
        </Suspense>
      </div>
    );
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <div className="page-body" tabIndex={0}>
      {tab === "pipeline" && <PipelineTab dataset={resource.body} />}
      {tab === "tables" && <TablesTab resource={resource} />}
    </div>
  );
}
