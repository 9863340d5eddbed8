/** Drops what a page is about, once its name was typed, and goes to the list of its kind. */

import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useChange } from "../api/list";
import { useTenant } from "../api/tenant";
import { Confirm } from "../ui/Confirm";
import { Icon } from "../ui/Icon";

interface DropButtonProps {
  /** The list's address below the tenant's, in the API as in the console. */
  readonly list: string;
  readonly name: string;
  /** What the button says to those who cannot see it. */
  readonly label: string;
  /** What goes with it. */
  readonly children: ReactNode;
}

export function DropButton({ list, name, label, children }: DropButtonProps) {
  const { slug } = useTenant();
  const change = useChange(list);
  const [, go] = useLocation();
  const [isAsking, setAsking] = useState(false);
  async function drop() {
    await change(`${list}/${name}`, { method: "DELETE" });
    go(`/t/${slug}/${list}`);
  }
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
        <Confirm
          title={`Drop ${name}?`}
          action="Drop"
          typed={name}
          onConfirm={drop}
          onClose={() => setAsking(false)}
        >
          {children}
        </Confirm>
      )}
    </>
  );
}
