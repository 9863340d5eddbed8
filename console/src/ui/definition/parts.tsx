/** What the fields of a definition's form share: their errors, and what is not valid yet. */

import { createContext, type ReactNode, useContext, useId, useState } from "react";
import { Icon } from "../Icon";
import type { Codec } from "./codecs";
import { isSame, type Json } from "./exactJson";
import { type Definition, partOf } from "./useDefinition";

interface FormContext {
  readonly definition: Definition;
  readonly mayChange: boolean;
}

const Context = createContext<FormContext | null>(null);

export function FormProvider({
  children,
  ...context
}: FormContext & { readonly children: ReactNode }) {
  return <Context value={context}>{children}</Context>;
}

export function useForm(): FormContext {
  const context = useContext(Context);
  if (context === null) throw new Error("A field stands in the form of a definition.");
  return context;
}

/** Returns the server's message about what a pointer refers to, or about something below it. */
export function useFieldError(pointer: string, isDeep = false): string | undefined {
  const { definition } = useForm();
  const messages = definition.validationErrors
    .filter((error) => error.pointer === pointer || (isDeep && isBelow(error.pointer, pointer)))
    .map(({ message }) => message);
  return messages.length === 0 ? undefined : messages.join(" ");
}

function isBelow(pointer: string, ancestor: string): boolean {
  return pointer.startsWith(`${ancestor}/`);
}

interface TypedText {
  readonly text: string;
  readonly wrong: string | undefined;
  readonly type: (text: string) => void;
}

interface PartProps<T> {
  /** The pointer to what the field belongs to. */
  readonly container: string;
  /** What of it the field is about. */
  readonly what: string;
  /** The pointer by which the server refers to it. */
  readonly pointer: string;
  readonly codec: Codec<T>;
  readonly value: T;
  /** Whether errors below the pointer are about the field too. */
  readonly isDeep?: boolean;
  /** Changes the definition. */
  readonly apply: (value: T) => void;
}

/** The text of a field: what was typed, as long as it means the value or nothing yet. */
export function usePart<T extends Json | undefined>(props: PartProps<T>): TypedText {
  const { container, what, pointer, isDeep = true, codec, value, apply } = props;
  const { definition } = useForm();
  const [typed, setTyped] = useState<string | null>(null);
  const rejected = useFieldError(pointer, isDeep);
  const part = partOf(container, what);
  const unfinished = definition.unfinished[part];
  const reading = unfinished === undefined ? null : codec.read(unfinished);
  return {
    text: unfinished ?? (typed !== null && means(codec, typed, value) ? typed : codec.show(value)),
    wrong: reading !== null && "wrong" in reading ? reading.wrong : rejected,
    type(text) {
      setTyped(text);
      const read = codec.read(text);
      if ("wrong" in read) {
        definition.setPart(part, text);
        return;
      }
      definition.setPart(part, null);
      apply(read.value);
    },
  };
}

function means<T extends Json | undefined>(codec: Codec<T>, text: string, value: T): boolean {
  const read = codec.read(text);
  return "value" in read && isSame(read.value, value);
}

interface InputProps<T> extends PartProps<T> {
  readonly label: string;
  /** Hides the label, where a column's head or a sentence says the same. */
  readonly isCompact?: boolean;
  readonly hint?: ReactNode;
  readonly placeholder?: string;
  readonly rows?: number;
  readonly suggestions?: readonly string[];
  readonly isDisabled?: boolean;
}

/** A labelled input for a part of a definition. */
export function PartInput<T extends Json | undefined>(props: InputProps<T>) {
  const { label, isCompact = false, hint, rows = 1, suggestions, placeholder } = props;
  const { mayChange } = useForm();
  const { text, wrong, type } = usePart(props);
  const id = useId();
  const shared = {
    id,
    className: rows > 1 ? "area mono" : "input mono",
    value: text,
    placeholder,
    disabled: !mayChange || props.isDisabled === true,
    autoComplete: "off",
    spellCheck: false,
    "aria-invalid": wrong !== undefined,
    "aria-describedby": wrong === undefined ? undefined : `${id}-wrong`,
    onChange: ({ target }: { readonly target: { readonly value: string } }) => type(target.value),
  };
  return (
    <div className="field">
      <label htmlFor={id} className={isCompact ? "hidden" : "label"}>
        {label}
      </label>
      {rows > 1 ? (
        <textarea rows={rows} {...shared} />
      ) : (
        <input list={suggestions && `${id}-list`} {...shared} />
      )}
      {suggestions && (
        <datalist id={`${id}-list`}>
          {suggestions.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
      {hint !== undefined && <span className="hint">{hint}</span>}
      <Wrong id={`${id}-wrong`} text={wrong} />
    </div>
  );
}

export function Wrong({ id, text }: { readonly id?: string; readonly text: string | undefined }) {
  return (
    text !== undefined && (
      <span className="wrong" id={id}>
        {text}
      </span>
    )
  );
}

interface InJsonProps {
  /** What the form does not show, with pointers to it. */
  readonly parts: readonly (readonly [name: string, pointer: string])[];
}

/** Names what the form cannot express. It stays as it is, and can be edited as JSON. */
export function EditedInJson({ parts }: InJsonProps) {
  const { definition } = useForm();
  const errors = definition.validationErrors.filter(({ pointer }) =>
    parts.some(([, part]) => pointer === part || isBelow(pointer, part)),
  );
  if (parts.length === 0) return null;
  return (
    <div className="in-json">
      <Icon name="code" size={13} />
      <span>Edited in JSON:</span>
      {parts.map(([name, pointer]) => (
        <button
          key={pointer}
          type="button"
          className="button small mono"
          title="Show in JSON"
          onClick={() => definition.showPart(pointer)}
        >
          {name}
        </button>
      ))}
      {errors.map(({ pointer, message }) => (
        <Wrong key={pointer + message} text={message} />
      ))}
    </div>
  );
}
