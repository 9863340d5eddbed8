/** A definition that is edited in a form or as JSON. Its text is the truth for both. */

import { useMemo, useState } from "react";
import type { Draft, HeldDraft } from "../../api/drafts";
import { failureOf } from "../../api/failure";
import type { ValidationError } from "../JsonEditor";
import { formatJson, type Json, parseJson, survivesForm } from "./exactJson";
import { valueAt } from "./pointers";
import { stillValid, validationErrorsOf } from "./validationErrors";

export type View = "form" | "json";

interface Viewing {
  readonly view: View;
  readonly show: (view: View) => void;
  /** Shows a part in the JSON editor. */
  readonly showPart: (pointer: string) => void;
  readonly shownPart: string | null;
}

interface Editing {
  readonly text: string;
  readonly setText: (text: string) => void;
  /** Undefined as long as the text is not JSON. */
  readonly value: Json | undefined;
  readonly setValue: (value: Json) => void;
  /** Why the form cannot show the text; null if it can. */
  readonly obstacle: string | null;
  /** What was typed into parts of the form and is not valid yet, by part. */
  readonly unfinished: Readonly<Record<string, string>>;
  /** Keeps what was typed into a part, or sets the value now that it is valid. */
  readonly setPart: (part: string, typed: string | null, value?: Json) => void;
  readonly isChanged: boolean;
  /** Whether someone else has changed the definition since the first edit. */
  readonly isOutdated: boolean;
}

export interface Definition extends Viewing, Editing {
  readonly validationErrors: readonly ValidationError[];
  readonly discard: () => void;
  /** Saves it. An error is thrown, and its messages are kept to be shown where they belong. */
  readonly submit: (save: (value: Json) => Promise<unknown>) => Promise<void>;
}

interface Options {
  /** The definition as it is saved, or from which a new one starts. */
  readonly base: string;
  /** What the server calls it, with which its pointers begin; "" if it is the whole body. */
  readonly member: string;
  readonly held: HeldDraft;
}

interface Rejection {
  readonly rejected: Json;
  readonly errors: readonly ValidationError[];
}

/** What is not declared has no text. */
const NOTHING = formatJson(null);
const UNFINISHED = "Correct the marked fields first.";

export function useDefinition({ base, member, held }: Options): Definition {
  const [rejection, setRejection] = useState<Rejection | null>(null);
  const viewing = useViewing();
  const editing = useEditing(base === NOTHING ? "" : base, held);
  const { value, text, unfinished } = editing;
  const [, change] = held;
  return {
    ...viewing,
    ...editing,
    validationErrors:
      rejection === null ? [] : stillValid(rejection.errors, rejection.rejected, value),
    discard() {
      change(() => null);
      setRejection(null);
    },
    async submit(save) {
      try {
        if (Object.keys(unfinished).length > 0) throw new Error(UNFINISHED);
        await save(text.trim() === "" ? null : parseJson(text));
      } catch (error) {
        setRejection({ rejected: value ?? null, errors: validationErrorsOf(error, member) });
        throw error;
      }
      setRejection(null);
      change(() => null);
    },
  };
}

function useViewing(): Viewing {
  const [view, setView] = useState<View>("form");
  const [shownPart, setShownPart] = useState<string | null>(null);
  return {
    view,
    shownPart,
    show(to) {
      setShownPart(null);
      setView(to);
    },
    showPart(pointer) {
      setShownPart(pointer);
      setView("json");
    },
  };
}

function useEditing(base: string, [draft, change]: HeldDraft): Editing {
  const text = draft?.text ?? base;
  const { value, obstacle } = useMemo(() => readText(text), [text]);
  const edit = (to: (draft: Draft) => Partial<Draft>) =>
    change((before) => {
      const changed = before ?? { text: base, base, unfinished: {} };
      return settled({ ...changed, ...to(changed) });
    });
  return {
    text,
    value,
    obstacle,
    unfinished: draft?.unfinished ?? {},
    isChanged: draft !== null,
    isOutdated: draft !== null && draft.base !== base,
    setText: (to) => edit(() => ({ text: to })),
    setValue: (to) => edit(() => ({ text: textOf(to) })),
    setPart: (part, typed, to) =>
      edit(({ unfinished }) => ({
        unfinished: withPart(unfinished, part, typed),
        ...(to === undefined ? {} : { text: textOf(to) }),
      })),
  };
}

function textOf(value: Json): string {
  return value === null ? "" : formatJson(value);
}

/** Drops parts that are no longer there. A draft that is like what it was made from is none. */
function settled(draft: Draft): Draft | null {
  const { value } = readText(draft.text);
  const unfinished = Object.fromEntries(
    Object.entries(draft.unfinished).filter(
      ([part]) => value === undefined || valueAt(value, containerOf(part)) !== undefined,
    ),
  );
  const isSame = draft.text === draft.base && Object.keys(unfinished).length === 0;
  return isSame ? null : { ...draft, unfinished };
}

/** Names a part of a form: something of the value that a pointer refers to. */
export function partOf(container: string, what: string): string {
  return `${container}#${what}`;
}

function containerOf(part: string): string {
  return part.slice(0, part.lastIndexOf("#"));
}

function withPart(
  texts: Readonly<Record<string, string>>,
  part: string,
  typed: string | null,
): Record<string, string> {
  const others = Object.entries(texts).filter(([other]) => other !== part);
  return Object.fromEntries(typed === null ? others : [...others, [part, typed]]);
}

interface Reading {
  readonly value: Json | undefined;
  readonly obstacle: string | null;
}

function readText(text: string): Reading {
  if (text.trim() === "") return { value: null, obstacle: null };
  try {
    const value = parseJson(text);
    const obstacle = survivesForm(text)
      ? null
      : "The form would reorder or round parts of this definition, so it can only be edited as JSON.";
    return { value, obstacle };
  } catch (error) {
    const reason = failureOf(error).summary;
    return { value: undefined, obstacle: `The JSON has a syntax error. ${reason}` };
  }
}
