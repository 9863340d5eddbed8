/** A document as a tree: names, values and types; values are edited in place. */

import { useState } from "react";
import { Icon } from "../../../ui/Icon";
import { CellEditor, CellValue } from "./Cell";
import type { Edit, Unsaved } from "./cellWrite";
import { RefusedEditor, useRefusedEdit } from "./RefusedEdit";
import { kindOf } from "./values";

interface TreeProps {
  readonly value: unknown;
  readonly path: string;
  readonly mayWrite: boolean;
  readonly onSave: (edit: Edit) => Promise<Unsaved | null>;
}

const MAX_CHILDREN = 200;

export function ValueTree({ value, path, mayWrite, onSave }: TreeProps) {
  const entries = Object.entries(value as Record<string, unknown>);
  return (
    <ul className="tree">
      {entries.slice(0, MAX_CHILDREN).map(([name, member]) => (
        <Branch
          key={name}
          name={name}
          value={member}
          path={path === "" ? name : `${path}.${name}`}
          mayWrite={mayWrite}
          onSave={onSave}
        />
      ))}
      {entries.length > MAX_CHILDREN && (
        <li className="soft">and {entries.length - MAX_CHILDREN} more</li>
      )}
    </ul>
  );
}

function Branch({ name, value, path, mayWrite, onSave }: TreeProps & { readonly name: string }) {
  const kind = kindOf(value);
  const hasChildren = kind === "object" || kind === "array";
  const [isOpen, setOpen] = useState(hasChildren && !path.includes("."));
  const [isEditing, setEditing] = useState(false);
  const { refused, save, forget } = useRefusedEdit(onSave);
  const canEdit = mayWrite && path !== "_id" && !name.startsWith("$");
  return (
    <li>
      <div className="branch">
        {hasChildren ? (
          <button
            type="button"
            className={isOpen ? "twist open" : "twist"}
            aria-expanded={isOpen}
            aria-label={`${isOpen ? "Fold" : "Unfold"} ${name}`}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="chevron" size={11} />
          </button>
        ) : (
          <span className="twist" />
        )}
        <span className="name">{name}</span>
        {refused !== null ? (
          <RefusedEditor label={path} refused={refused} onSave={save} onCancel={forget} />
        ) : isEditing ? (
          <CellEditor
            label={path}
            value={value}
            onCancel={() => setEditing(false)}
            onSave={(typed, before) => {
              setEditing(false);
              save({ path, before, value: typed });
            }}
          />
        ) : (
          <Leaf
            value={value}
            hasChildren={hasChildren}
            label={path}
            onEdit={canEdit ? () => setEditing(true) : null}
          />
        )}
        <span className="kind">
          {kind === "array" ? `list of ${(value as unknown[]).length}` : kind}
        </span>
      </div>
      {hasChildren && isOpen && (
        <ValueTree value={value} path={path} mayWrite={mayWrite} onSave={onSave} />
      )}
    </li>
  );
}

interface LeafProps {
  readonly value: unknown;
  readonly hasChildren: boolean;
  readonly label: string;
  readonly onEdit: (() => void) | null;
}

function Leaf({ value, hasChildren, label, onEdit }: LeafProps) {
  if (hasChildren) return <span className="leaf" />;
  if (onEdit === null) {
    return (
      <span className="leaf">
        <CellValue value={value} />
      </span>
    );
  }
  return (
    <button type="button" className="leaf" title={`Edit ${label}`} onClick={onEdit}>
      <CellValue value={value} isPlain />
    </button>
  );
}
