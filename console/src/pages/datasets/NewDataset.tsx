/** Creates a dataset. */

import { NewDefinition } from "../../ui/definition/NewDefinition";
import { DatasetForm } from "./DatasetForm";
import { DatasetPreview } from "./DatasetPreview";
import "./datasets.css";

const EXAMPLE = {
  name: "",
  tables: {
    posts: {
      columns: { id: "int64", author: "string", at: "timestamp", text: "string" },
      key: ["id"],
      views: { by_author: { key: ["author", "id"], columns: ["author", "id", "at"] } },
    },
  },
};

export function NewDataset({ onClose }: { readonly onClose: () => void }) {
  return (
    <NewDefinition
      kind="dataset"
      lead="Uploads to its tables become visible together. Tables and columns can be added later."
      start={EXAMPLE}
      preview={(name, value) => <DatasetPreview name={name} value={value} />}
      form={(form) => <DatasetForm saved={null} {...form} />}
      onClose={onClose}
    />
  );
}
