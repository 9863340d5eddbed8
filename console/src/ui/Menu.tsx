/** Menus attached to a button. The browser's popover keeps them on top and closes them. */

import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";

interface MenuProps {
  readonly label: string;
  readonly className?: string;
  readonly button: ReactNode;
  readonly children: (close: () => void) => ReactNode;
}

const GAP_PX = 4;

export function Menu({ label, className = "button", button, children }: MenuProps) {
  const id = useId();
  const trigger = useRef<HTMLButtonElement>(null);
  const popover = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const close = () => popover.current?.hidePopover();
  function toggled(open: boolean) {
    setOpen(open);
    if (!open) return;
    // The content is rendered with the state; it is placed once it has a size.
    requestAnimationFrame(() => {
      if (trigger.current === null || popover.current === null) return;
      place(popover.current, trigger.current);
      itemsOf(popover.current)[0]?.focus();
    });
  }
  return (
    <>
      <button
        ref={trigger}
        type="button"
        className={className}
        {...(className.includes("icon") ? { "aria-label": label } : { title: label })}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popoverTarget={id}
      >
        {button}
      </button>
      <div
        ref={popover}
        id={id}
        className="menu"
        popover="auto"
        role="menu"
        aria-label={label}
        tabIndex={-1}
        onToggle={(event) => toggled(event.newState === "open")}
        onKeyDown={(event) => walk(event, popover.current)}
      >
        {isOpen && children(close)}
      </div>
    </>
  );
}

interface ItemProps {
  readonly onSelect: () => void;
  readonly children: ReactNode;
  readonly danger?: boolean;
}

export function MenuItem({ onSelect, children, danger = false }: ItemProps) {
  return (
    <button type="button" role="menuitem" className={danger ? "danger" : ""} onClick={onSelect}>
      {children}
    </button>
  );
}

function itemsOf(menu: HTMLElement): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>("[role=menuitem], [role=menuitemradio], input")];
}

function walk(event: KeyboardEvent, menu: HTMLElement | null): void {
  if (menu === null) return;
  const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const items = itemsOf(menu);
  const at = items.indexOf(document.activeElement as HTMLElement);
  items[(at + step + items.length) % items.length]?.focus();
}

/** Positions the menu below its button, or above it if there is no space, within the window. */
function place(menu: HTMLElement, trigger: HTMLElement): void {
  const from = trigger.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const left = from.left + width > innerWidth - 8 ? from.right - width : from.left;
  const fitsBelow = from.bottom + GAP_PX + height < innerHeight - 8;
  const top = fitsBelow ? from.bottom + GAP_PX : from.top - GAP_PX - height;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${Math.max(8, top)}px`;
}
