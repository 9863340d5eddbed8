/** The ID-keys in the form of a dataset: long keys that are stored once. */

import { uniqueName } from "../../ui/definition/codecs";
import type { JsonObject } from "../../ui/definition/exactJson";
import { PartInput, useFieldError, useForm } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Field, Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import type { DatasetFormProps } from "./DatasetForm";
import { freeName, idKeysOf, KEY_TYPES, renameIdKey, setIdKey } from "./datasetModel";

export function IdKeys(props: DatasetFormProps) {
  const { definition, onChange } = props;
  const { mayChange } = useForm();
  const idKeys = idKeysOf(definition);
  return (
    <section className="form-part" aria-label="ID-keys">
      <div>
        <h2>ID-keys</h2>
        <p className="soft">
          Long values that repeat, such as addresses, stored once. A column of an ID-key's type
          stores whole numbers in their place.
        </p>
      </div>
      {Object.entries(idKeys).map(
        ([name, type], place) =>
          typeof type === "string" && (
            // biome-ignore lint/suspicious/noArrayIndexKey: an ID-key that is renamed remains the same row.
            <IdKeyRow key={place} {...props} name={name} type={type} />
          ),
      )}
      {mayChange && (
        <button
          type="button"
          className="button small start"
          onClick={() => onChange(setIdKey(definition, freeName(idKeys, "id_key"), "string"))}
        >
          <Icon name="plus" size={13} /> Add an ID-key
        </button>
      )}
    </section>
  );
}

interface RowProps extends DatasetFormProps {
  readonly name: string;
  readonly type: string;
}

function IdKeyRow({ name, type, definition, saved, onChange }: RowProps) {
  const { mayChange } = useForm();
  const pointer = below("", "id_keys", name);
  const wrong = useFieldError(pointer, true);
  const isSaved = saved !== null && Object.hasOwn(idKeysOf(saved), name);
  return (
    <fieldset className="form-row" aria-label={`ID-key ${name}`}>
      <PartInput
        label="ID-key"
        container={pointer}
        what="name"
        pointer={`${pointer}#name`}
        codec={uniqueName(othersOf(definition, name))}
        value={name}
        isDisabled={isSaved}
        apply={(to) => onChange(renameIdKey(definition, name, to))}
      />
      <Field label="Type of its keys" wrong={wrong}>
        <Select
          options={sameText([...new Set([...KEY_TYPES, type])])}
          value={type}
          isDisabled={!mayChange || isSaved}
          onChange={(to) => onChange(setIdKey(definition, name, to))}
        />
      </Field>
      {mayChange && !isSaved && (
        <button
          type="button"
          className="button small icon plain"
          aria-label={`Remove the ID-key ${name}`}
          onClick={() => onChange(setIdKey(definition, name, undefined))}
        >
          <Icon name="trash" size={13} />
        </button>
      )}
    </fieldset>
  );
}

function othersOf(definition: JsonObject, name: string): readonly string[] {
  return Object.keys(idKeysOf(definition)).filter((other) => other !== name);
}
