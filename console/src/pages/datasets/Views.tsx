/** The views in the form of a table. */

import { type Codec, NAMES, uniqueName } from "../../ui/definition/codecs";
import {
  isObject,
  isTextList,
  type Json,
  type JsonObject,
  setMember,
} from "../../ui/definition/exactJson";
import { EditedInJson, PartInput, useForm } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Icon } from "../../ui/Icon";
import { addView, columnsOf, renameView, setView, viewInJson, viewsOf } from "./datasetModel";
import type { TablePartProps } from "./TableFields";

/** Names separated by commas; an empty text is no value. */
const OPTIONAL_NAMES: Codec<Json | undefined> = {
  show: (value) => (isTextList(value) ? NAMES.show(value) : ""),
  read: (text) => (text.trim() === "" ? { value: undefined } : NAMES.read(text)),
};

export function Views(props: TablePartProps) {
  const { pointer, table, savedTable, onChange } = props;
  const { mayChange } = useForm();
  const isFixed = !mayChange || savedTable !== null;
  return (
    <>
      {Object.keys(viewsOf(table)).map((name, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a view that is renamed remains the same row.
        <ViewRow key={place} {...props} name={name} />
      ))}
      <EditedInJson parts={viewsInJson(pointer, table)} />
      {!isFixed && (
        <button
          type="button"
          className="button small start"
          onClick={() => onChange(addView(table))}
        >
          <Icon name="plus" size={13} /> Add a view
        </button>
      )}
    </>
  );
}

function viewsInJson(pointer: string, table: JsonObject): (readonly [string, string])[] {
  return Object.entries(viewsOf(table)).flatMap(([name, view]): (readonly [string, string])[] => {
    const place = below(pointer, "views", name);
    if (!isObject(view)) return [[`view ${name}`, place]];
    return viewInJson(view).map((member) => [`${name}: ${member}`, below(place, member)]);
  });
}

function ViewRow(props: TablePartProps & { readonly name: string }) {
  const { pointer, table, savedTable, name, onChange } = props;
  const { mayChange } = useForm();
  const view = viewsOf(table)[name];
  if (!isObject(view)) return null;
  const place = below(pointer, "views", name);
  const isDisabled = savedTable !== null;
  const others = Object.keys(viewsOf(table)).filter((other) => other !== name);
  const names = (what: "key" | "columns") => ({
    container: place,
    what,
    pointer: below(place, what),
    codec: OPTIONAL_NAMES,
    value: view[what],
    isDisabled,
    apply: (value: Json | undefined) =>
      onChange(setView(table, name, setMember(view, what, value))),
  });
  return (
    <fieldset className="form-row" aria-label={`View ${name}`}>
      <PartInput
        label="View"
        container={place}
        what="name"
        pointer={place}
        isDeep={false}
        codec={uniqueName(others)}
        value={name}
        isDisabled={isDisabled}
        apply={(to) => onChange(renameView(table, name, to))}
      />
      <PartInput {...names("key")} label="Sorted by" />
      <PartInput
        {...names("columns")}
        label="Columns"
        placeholder={Object.keys(columnsOf(table)).join(", ")}
      />
      {mayChange && !isDisabled && (
        <button
          type="button"
          className="button small icon plain"
          aria-label={`Remove the view ${name}`}
          onClick={() => onChange(setView(table, name, undefined))}
        >
          <Icon name="trash" size={13} />
        </button>
      )}
    </fieldset>
  );
}
