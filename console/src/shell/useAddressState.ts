/**
 * A part of a page's state that its address keeps: Back, reload and a shared link restore it.
 *
 * The page holds the value and the address follows. Browsers ignore changes of the address if there
 * are many, and what was typed must not be lost then.
 */

import { useCallback, useState } from "react";
import { navigate, useSearch } from "wouter/use-browser-location";

export type Pair = readonly [name: string, value: string];

/** How a value is written as parameters. Pure functions. */
export interface AddressForm<T> {
  /** The parameters that are removed before the new ones are written. */
  readonly names: readonly string[];
  /** Returns the value. A parameter that cannot be read counts as absent. */
  readonly read: (params: URLSearchParams) => T;
  /** Returns the parameters that differ from the defaults. */
  readonly write: (value: T, before: URLSearchParams) => readonly Pair[];
}

/** `replace` while the user types; `push` for a decision, which Back takes back. */
export type Step = "replace" | "push";

/** Servers and chats cut longer addresses off, so these are not written. */
const MAX_SEARCH_CHARS = 6_000;

interface Bound<T> {
  readonly value: T;
  /** The parameters in the address when the value was set. */
  readonly text: string;
}

/** Returns the value, and a function that changes it together with the address. */
export function useAddressState<T>(
  form: AddressForm<T>,
): readonly [T, (value: T, step: Step) => void] {
  const search = useSearch();
  const [bound, setBound] = useState(() => restored(form, search));
  const current = bound.text === textOf(form, search) ? bound : restored(form, search);
  if (current !== bound) setBound(current);
  const change = useCallback(
    (value: T, step: Step) => {
      show(searchWith(form, value, location.search), step);
      setBound({ value, text: textOf(form, location.search) });
    },
    [form],
  );
  return [current.value, change];
}

function restored<T>(form: AddressForm<T>, search: string): Bound<T> {
  return { value: form.read(new URLSearchParams(search)), text: textOf(form, search) };
}

/** Returns a form's parameters, as a text that is equal for equal ones. */
function textOf<T>({ names }: AddressForm<T>, search: string): string {
  const params = new URLSearchParams(search);
  return JSON.stringify(names.map((name) => params.getAll(name)));
}

function searchWith<T>(form: AddressForm<T>, value: T, search: string): string {
  const params = new URLSearchParams(search);
  const pairs = form.write(value, new URLSearchParams(search));
  for (const name of form.names) params.delete(name);
  for (const [name, text] of pairs) params.append(name, text);
  return params.size === 0 ? "" : `?${params}`;
}

function show(search: string, step: Step): void {
  if (search === location.search || search.length > MAX_SEARCH_CHARS) return;
  try {
    navigate(location.pathname + search, { replace: step === "replace" });
  } catch {
    // Some browsers refuse the hundredth change within seconds. A later one writes the value.
  }
}
