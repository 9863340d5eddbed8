/** The datasets of the tenant. */

import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import { ListPage } from "../../shell/ListPage";
import { Time } from "../../ui/Time";
import { size } from "../../ui/units";
import { NewDataset } from "./NewDataset";
import type { Dataset } from "./types";

const ABOUT =
  "A dataset is a group of analytics tables, for rows that arrive at high rates and are queried in bulk. " +
  "Uploads are visible immediately and sorted in the background; a query specifies how fresh its result must be.";

export default function Datasets() {
  const { slug } = useTenant();
  return (
    <ListPage<Dataset>
      title="Datasets"
      path="datasets"
      action="New dataset"
      none={{ icon: "layers", title: "No datasets yet", about: ABOUT }}
      heads={["Name", "Tables", "Uploads", "Stored", "Created"]}
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
