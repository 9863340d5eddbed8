/** The indexes of a collection, with the progress of backfills. */

import { useState } from "react";
import { useTenant } from "../../api/tenant";
import type { DeclaredIndexRequest, Index } from "../../api/types";
import { Confirm } from "../../ui/Confirm";
import { FormDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Field, Select } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Table } from "../../ui/Listing";
import { useToasts } from "../../ui/toasts";
import { adviceText } from "./advice";
import type { CollectionResource } from "./CollectionPage";

type IndexPart = Index["fields"][number];
type IndexKind = "values" | "2dsphere" | "2d";

const KINDS: readonly (readonly [IndexKind, string])[] = [
  ["values", "Values: equality, ranges and sorts"],
  ["2dsphere", "Geometry on the sphere: 2dsphere"],
  ["2d", "Points on the plane: 2d"],
];

const ORDERS: Readonly<Record<IndexPart[1], string>> = {
  1: "↑",
  "-1": "↓",
  "2dsphere": "2dsphere",
  "2d": "2d",
};

const TECHNIQUES: readonly (readonly [Index["technique"], string])[] = [
  ["auto", "Automatic: chosen from how the index is used"],
  ["composite", "Composite: by value"],
  ["lazy", "Lazy: by value, the latest changes first"],
  ["eager", "Eager: one list per value, the latest changes first"],
  ["embedded", "Embedded: recorded with the documents"],
];

export function IndexesTab({
  resource: { collection, change },
}: {
  readonly resource: CollectionResource;
}) {
  const { may } = useTenant();
  const { showMessage } = useToasts();
  const [isAdding, setAdding] = useState(false);
  const [dropped, setDropped] = useState<Index | null>(null);
  const { indexes } = collection;
  const add = may("developer") && (
    <button type="button" className="button main" onClick={() => setAdding(true)}>
      <Icon name="plus" size={14} /> New index
    </button>
  );
  return (
    <div className="column">
      <div className="section-head">
        <p className="lead">
          Indexes narrow what a query reads. They are built while reads and writes continue.
        </p>
        {indexes.length > 0 && add}
      </div>
      {indexes.length === 0 ? (
        <Empty icon="sort" title="No indexes" actions={add || undefined}>
          Without one, queries by anything but <code>_id</code> look at every document.{" "}
          <code>explain</code> in the playground says when an index would help.
        </Empty>
      ) : (
        <IndexTable
          indexes={indexes}
          isNative={collection.backend === "native"}
          mayChange={may("developer")}
          onDrop={setDropped}
        />
      )}
      {isAdding && (
        <NewIndex
          isNative={collection.backend === "native"}
          taken={indexes.map(({ name }) => name)}
          onCreate={(index) => change({ indexes: [...declared(indexes), index] })}
          onClose={() => setAdding(false)}
        />
      )}
      {dropped !== null && (
        <Confirm
          title={`Drop the index ${dropped.name}?`}
          action="Drop"
          onConfirm={async () => {
            await change({ indexes: declared(indexes.filter((index) => index !== dropped)) });
            showMessage(`Index ${dropped.name} dropped.`);
          }}
          onClose={() => setDropped(null)}
        >
          Queries that use it become slower. It can be built again at any time.
        </Confirm>
      )}
    </div>
  );
}

interface TableProps {
  readonly indexes: readonly Index[];
  readonly isNative: boolean;
  readonly mayChange: boolean;
  readonly onDrop: (index: Index) => void;
}

function IndexTable({ indexes, isNative, mayChange, onDrop }: TableProps) {
  return (
    <Table stacks heads={["Name", "Fields", "Kind", "State", ""]}>
      {indexes.map((index) => (
        <tr key={index.name}>
          <td className="mono">{index.name}</td>
          <td className="mono">
            {index.fields.map(([path, order]) => `${path} ${ORDERS[order]}`).join(", ")}
          </td>
          <td>
            <div>
              {index.unique ? "unique" : "not unique"}
              {isNative && !index.unique && <Technique index={index} />}
            </div>
          </td>
          <td>
            <State index={index} />
          </td>
          <td className="end">
            {mayChange && (
              <button
                type="button"
                className="button small icon plain"
                aria-label={`Drop ${index.name}`}
                onClick={() => onDrop(index)}
              >
                <Icon name="trash" size={14} />
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Technique({ index }: { readonly index: Index }) {
  const { technique, technique_in_use, advice } = index;
  return (
    <>
      {`, ${technique_in_use}${technique === "auto" ? " (automatic)" : ""}`}
      {advice !== null && <p className="soft">{adviceText(advice, technique_in_use)}</p>}
    </>
  );
}

function State({ index: { state, progress, error } }: { readonly index: Index }) {
  if (state === "ready") return <span className="badge good">ready</span>;
  if (state === "failed")
    return (
      <span className="badge bad" title={error ?? ""}>
        failed: {error}
      </span>
    );
  const part = progress.total === 0 ? 1 : progress.done / progress.total;
  return (
    <>
      <span className="badge warn number">building, {Math.floor(part * 100)} %</span>
      <progress className="progress" max={1} value={part} aria-label="Built" />
    </>
  );
}

function declared(indexes: readonly Index[]): DeclaredIndexRequest[] {
  return indexes.map(({ name, fields, unique, technique }) => ({
    name,
    fields,
    unique,
    technique,
  }));
}

interface NewIndexProps {
  readonly isNative: boolean;
  readonly taken: readonly string[];
  readonly onCreate: (index: DeclaredIndexRequest) => Promise<void>;
  readonly onClose: () => void;
}

function NewIndex({ isNative, taken, onCreate, onClose }: NewIndexProps) {
  const [text, setText] = useState("");
  const [isUnique, setUnique] = useState(false);
  const [technique, setTechnique] = useState<Index["technique"]>("auto");
  const [kind, setKind] = useState<IndexKind>("values");
  const isSpatial = kind !== "values";
  const paths = fieldsOf(text);
  const fields = isSpatial ? paths.map(([path]): IndexPart => [path, kind]) : paths;
  const hasFields = isSpatial ? fields.length === 1 : fields.length > 0;
  const name = `by-${fields.map(([path]) => path.replace(/[^a-z0-9]+/gi, "-")).join("-")}`
    .toLowerCase()
    .slice(0, 60);
  return (
    <FormDialog
      title="New index"
      action="Build"
      canSubmit={hasFields && !taken.includes(name)}
      onSubmit={() =>
        onCreate({
          name,
          fields,
          unique: isUnique && !isSpatial,
          technique: isUnique || isSpatial ? "auto" : technique,
        })
      }
      onClose={onClose}
    >
      <Field label="Kind" hint="What queries search for.">
        <Select options={KINDS} value={kind} onChange={setKind} />
      </Field>
      <Field
        label={isSpatial ? "Field" : "Fields, in order"}
        hint={
          isSpatial
            ? "The field with the geometry: place"
            : "Separated by commas. A - before a field reverses its order: owner, -rank"
        }
      >
        <input
          className="input mono"
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </Field>
      {!isSpatial && (
        <label className="check">
          <input
            type="checkbox"
            checked={isUnique}
            onChange={(event) => setUnique(event.target.checked)}
          />
          Unique: no two documents may have the same values
        </label>
      )}
      {isNative && !isUnique && !isSpatial && (
        <Field label="Technique" hint="How its entries are stored.">
          <Select options={TECHNIQUES} value={technique} onChange={setTechnique} />
        </Field>
      )}
      {fields.length > 0 && (
        <p className="soft">
          It will be called <code>{name}</code>
          {taken.includes(name) && ", which there is already"}.
        </p>
      )}
    </FormDialog>
  );
}

function fieldsOf(text: string): [string, 1 | -1][] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "" && part !== "-")
    .map((part) => (part.startsWith("-") ? [part.slice(1), -1] : [part, 1]));
}
