/** JSON pointers (RFC 6901). */

import { isArray, isObject, type Json } from "./exactJson";

/** Returns the pointer to something below another pointer. */
export function below(pointer: string, ...names: readonly (string | number)[]): string {
  const parts = names.map((name) => String(name).replaceAll("~", "~0").replaceAll("/", "~1"));
  return [pointer, ...parts].join("/");
}

export function partsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Returns what a pointer refers to, or undefined if there is nothing. */
export function valueAt(value: Json | undefined, pointer: string): Json | undefined {
  return partsOf(pointer).reduce<Json | undefined>((at, part) => {
    if (isArray(at)) return at[Number(part)];
    return isObject(at) && Object.hasOwn(at, part) ? at[part] : undefined;
  }, value);
}
