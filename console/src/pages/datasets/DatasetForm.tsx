/** The form of a dataset's definition. */

import { SECONDS } from "../../ui/definition/codecs";
import { isObject, type JsonObject, setMember } from "../../ui/definition/exactJson";
import { type DefinitionFormProps, DefinitionName } from "../../ui/definition/forms";
import { EditedInJson, PartInput, useFieldError, useForm, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Icon } from "../../ui/Icon";
import { addTable, idKeysOf, membersInJson, tablesOf } from "./datasetModel";
import { IdKeys } from "./IdKeys";
import { TableFields } from "./TableFields";

export interface DatasetFormProps extends DefinitionFormProps {
  /** The definition that exists, to which one can only add; null for a new dataset. */
  readonly saved: JsonObject | null;
}

export function DatasetForm(props: DatasetFormProps) {
  const { definition, saved, onChange } = props;
  const inJson = membersInJson(definition);
  const foreign = Object.entries(tablesOf(definition)).filter(([, table]) => !isObject(table));
  return (
    <>
      {saved === null && !inJson.includes("name") && (
        <DefinitionName {...{ definition, onChange }} />
      )}
      {!inJson.includes("tables") && <Tables {...props} />}
      {!inJson.includes("id_keys") && <IdKeys {...props} />}
      {!inJson.includes("retention_s") && <Retention {...props} />}
      <EditedInJson
        parts={[
          ...inJson.map((name) => [name, below("", name)] as const),
          ...foreign.map(([name]) => [`table ${name}`, below("", "tables", name)] as const),
          ...Object.entries(idKeysOf(definition))
            .filter(([, type]) => typeof type !== "string")
            .map(([name]) => [`ID-key ${name}`, below("", "id_keys", name)] as const),
        ]}
      />
    </>
  );
}

function Tables(props: DatasetFormProps) {
  const { definition, onChange } = props;
  const { mayChange } = useForm();
  const wrong = useFieldError("/tables");
  return (
    <>
      {Object.entries(tablesOf(definition)).map(
        ([name, table], place) =>
          isObject(table) && (
            <TableFields
              // biome-ignore lint/suspicious/noArrayIndexKey: a table that is renamed remains the same card.
              key={place}
              {...props}
              name={name}
              table={table}
            />
          ),
      )}
      <Wrong text={wrong} />
      {mayChange && (
        <button
          type="button"
          className="button small start"
          onClick={() => onChange(addTable(definition))}
        >
          <Icon name="plus" size={13} /> Add a table
        </button>
      )}
    </>
  );
}

function Retention({ definition, onChange }: DatasetFormProps) {
  return (
    <div className="form-grid">
      <PartInput
        label="State retention"
        container=""
        what="retention_s"
        pointer="/retention_s"
        codec={SECONDS}
        value={definition.retention_s}
        placeholder="10m"
        hint="How long a state can be queried after a later one has replaced it."
        apply={(value) => onChange(setMember(definition, "retention_s", value))}
      />
    </div>
  );
}
