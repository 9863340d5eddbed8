/** The tenant's saved queries: open, rename, pin, delete. */

import { useState } from "react";
import { Link } from "wouter";
import { useAttempt } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { SavedQuery, SavedQueryKind } from "../../api/types";
import {
  LAST_PIN,
  pathOf,
  useSavedQueries,
  useSavedQueryChanges,
} from "../../saved/useSavedQueries";
import { PageHead } from "../../shell/Shell";
import { Confirm } from "../../ui/Confirm";
import { FormDialog } from "../../ui/Dialog";
import { Empty } from "../../ui/Empty";
import { Field } from "../../ui/Field";
import { Icon, type IconName } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { Menu, MenuItem } from "../../ui/Menu";
import { Time } from "../../ui/Time";
import "./saved.css";

const HEADS = ["Name", "Source", "Chart", "Pinned", "Changed", ""];

const KIND_ICONS: Readonly<Record<SavedQueryKind, IconName>> = {
  collection: "collection",
  aggregate: "chart",
  dataset: "layers",
};

export default function SavedQueries() {
  const { slug } = useTenant();
  const read = useSavedQueries();
  const none = (
    <Empty
      icon="bookmark"
      title="No saved queries yet"
      actions={
        <Link className="button main" href={`/t/${slug}/playground`}>
          Open the playground
        </Link>
      }
    >
      Save a query in the playground, on a collection, an aggregate or a dataset. All members can
      open it, and its chart can be pinned to the overview.
    </Empty>
  );
  return (
    <>
      <PageHead title="Saved queries" />
      <div className="page-body">
        <div className="column">
          <Listing read={read} empty={none}>
            {(items) => (
              <Table stacks heads={HEADS}>
                {items.map((saved) => (
                  <SavedQueryRow key={saved.id} saved={saved} />
                ))}
              </Table>
            )}
          </Listing>
        </div>
      </div>
    </>
  );
}

function SavedQueryRow({ saved }: { readonly saved: SavedQuery }) {
  const { slug, may } = useTenant();
  return (
    <tr>
      <td>
        <Link href={`/t/${slug}${pathOf(saved)}`}>{saved.name}</Link>
      </td>
      <td>
        <span className="mono source">
          <Icon name={KIND_ICONS[saved.kind]} size={13} /> {saved.source}
        </span>
      </td>
      <td className="soft">{saved.chart?.type ?? "table"}</td>
      <td>{saved.pin === null ? "" : <span className="badge accent">pinned</span>}</td>
      <td>
        <Time at={saved.updated_at} />
      </td>
      <td className="end">{may("developer") && <RowMenu saved={saved} />}</td>
    </tr>
  );
}

function RowMenu({ saved }: { readonly saved: SavedQuery }) {
  const attempt = useAttempt();
  const { update, remove } = useSavedQueryChanges();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const isPinned = saved.pin !== null;
  const then = (close: () => void, act: () => void) => () => {
    close();
    act();
  };
  const close = () => setDialog(null);
  const pin = () => attempt(() => update(saved.id, { pin: isPinned ? null : LAST_PIN }));
  return (
    <>
      <Menu
        label={`Actions for ${saved.name}`}
        className="button small icon plain"
        button={<Icon name="more" />}
      >
        {(hide) => (
          <>
            <MenuItem onSelect={then(hide, pin)}>
              <Icon name="pin" size={14} />{" "}
              {isPinned ? "Remove from the overview" : "Pin to the overview"}
            </MenuItem>
            <MenuItem onSelect={then(hide, () => setDialog("rename"))}>
              <Icon name="edit" size={14} /> Rename
            </MenuItem>
            <MenuItem danger onSelect={then(hide, () => setDialog("delete"))}>
              <Icon name="trash" size={14} /> Delete
            </MenuItem>
          </>
        )}
      </Menu>
      {dialog === "rename" && <Rename saved={saved} onClose={close} />}
      {dialog === "delete" && (
        <Confirm
          title={`Delete ${saved.name}?`}
          action="Delete"
          onConfirm={() => remove(saved.id)}
          onClose={close}
        >
          The query is deleted for all members. The data stays as it is.
        </Confirm>
      )}
    </>
  );
}

interface RenameProps {
  readonly saved: SavedQuery;
  readonly onClose: () => void;
}

function Rename({ saved, onClose }: RenameProps) {
  const { update } = useSavedQueryChanges();
  const [name, setName] = useState(saved.name);
  return (
    <FormDialog
      title="Rename the query"
      action="Rename"
      canSubmit={name.trim() !== ""}
      onSubmit={() => update(saved.id, { name: name.trim() })}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          className="input"
          autoComplete="off"
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
