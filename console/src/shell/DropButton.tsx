/** Drops the page's object after the user has typed its name, and leaves the page. */

import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useChange } from "../api/list";
import { useTenant } from "../api/tenant";
import { Confirm } from "../ui/Confirm";
import { Icon } from "../ui/Icon";

interface DropButtonProps {
  /** The list's path below the tenant's, in the API and in the console. */
  readonly list: string;
  readonly name: string;
  /** The button's accessible name. */
  readonly label: string;
  /** What is deleted with it. */
  readonly children: ReactNode;
}

export function DropButton({ list, name, label, children }: DropButtonProps) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button icon plain"
        aria-label={label}
        title={label}
        onClick={() => setAsking(true)}
      >
        <Icon name="trash" size={14} />
      </button>
      {isAsking && (
        <ConfirmDrop list={list} name={name} next={list} onClose={() => setAsking(false)}>
          {children}
        </ConfirmDrop>
      )}
    </>
  );
}

interface ConfirmDropProps {
  readonly list: string;
  readonly name: string;
  /** The page to open afterwards: its path below the tenant's. */
  readonly next: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function ConfirmDrop({ list, name, next, onClose, children }: ConfirmDropProps) {
  const { slug } = useTenant();
  const change = useChange(list);
  const [, go] = useLocation();
  async function drop() {
    await change(`${list}/${name}`, { method: "DELETE" });
    go(`/t/${slug}/${next}`);
  }
  return (
    <Confirm title={`Drop ${name}?`} action="Drop" typed={name} onConfirm={drop} onClose={onClose}>
      {children}
    </Confirm>
  );
}
