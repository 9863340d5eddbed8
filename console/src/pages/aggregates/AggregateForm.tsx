/** The form of an aggregate's definition. */

import { useCollections } from "../../api/tenant";
import { NAMES, OPTIONAL_OBJECT, OPTIONAL_TEXT, TEXT } from "../../ui/definition/codecs";
import { isObject, type Json, type JsonObject, withMember } from "../../ui/definition/exactJson";
import { type DefinitionFormProps, DefinitionName } from "../../ui/definition/forms";
import { EditedInJson, PartInput, useFieldError, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Field, Select } from "../../ui/Field";
import {
  dimensionsOf,
  isShown,
  measuresOf,
  membersInJson,
  rollupsOf,
  setWithin,
} from "./aggregateModel";
import { Measures } from "./Measures";
import { Rollups } from "./Rollups";

interface FormProps extends DefinitionFormProps {
  /** Name and source cannot be changed. */
  readonly isNew: boolean;
}

export function AggregateForm({ definition, isNew, onChange }: FormProps) {
  const shared = { definition, onChange };
  return (
    <>
      {isNew && <Naming {...shared} />}
      {isShown(definition, "dimensions") && <Dimensions {...shared} />}
      {isShown(definition, "time") && <Time {...shared} />}
      {isShown(definition, "measures") && <Measures {...shared} />}
      {isShown(definition, "rollups") && hasRollups(definition) && <Rollups {...shared} />}
      {isShown(definition, "retention") && <Retention {...shared} />}
      <EditedInJson
        parts={[
          ...membersInJson(definition).map((name) => [name, below("", name)] as const),
          ...Object.entries(measuresOf(definition))
            .filter(([, measure]) => !isObject(measure))
            .map(([name]) => [`measure ${name}`, below("", "measures", name)] as const),
        ]}
      />
    </>
  );
}

function hasRollups(definition: JsonObject): boolean {
  return dimensionsOf(definition).length > 0 || rollupsOf(definition).length > 0;
}

function Naming({ definition, onChange }: DefinitionFormProps) {
  return (
    <div className="form-grid">
      {isShown(definition, "name") && <DefinitionName {...{ definition, onChange }} />}
      {isShown(definition, "source") && <Source definition={definition} onChange={onChange} />}
    </div>
  );
}

const EVENTS = "";

function Source({ definition, onChange }: DefinitionFormProps) {
  const { data: collections = [] } = useCollections();
  const { source } = definition;
  const wrong = useFieldError("/source/collection");
  const collection = isObject(source) ? String(source.collection) : EVENTS;
  const names = new Set([...collections.map(({ name }) => name), collection]);
  names.delete(EVENTS);
  const choose = (to: string) =>
    onChange(
      to === EVENTS
        ? withMember(definition, "source", null)
        : setWithin(definition, "source", "collection", to),
    );
  return (
    <>
      <Field label="Source" wrong={wrong}>
        <Select
          options={[
            [EVENTS, "events"],
            ...[...names].map((name) => [name, `documents of ${name}`] as const),
          ]}
          value={collection}
          onChange={choose}
        />
      </Field>
      {isObject(source) && (
        <PartInput
          label="Only documents that match"
          container="/source"
          what="filter"
          pointer="/source/filter"
          codec={OPTIONAL_OBJECT}
          value={source.filter ?? undefined}
          rows={3}
          placeholder='{"test": {"$ne": true}}'
          apply={(filter) => onChange(setWithin(definition, "source", "filter", filter))}
        />
      )}
    </>
  );
}

function Dimensions({ definition, onChange }: DefinitionFormProps) {
  return (
    <PartInput
      label="Dimensions"
      container=""
      what="dimensions"
      pointer="/dimensions"
      codec={NAMES}
      value={dimensionsOf(definition)}
      placeholder="customer, app, endpoint"
      hint="The fields that identify a row, separated by commas. Use dots for fields of objects."
      apply={(names) => onChange(withMember(definition, "dimensions", names))}
    />
  );
}

const USUAL_TIME: Json = { field: "at", bucket: "5m" };
const BUCKETS = ["30s", "1m", "5m", "15m", "1h", "1d"];
const RETENTIONS = ["1d", "7d", "30d", "90d", "365d"];

function Time({ definition, onChange }: DefinitionFormProps) {
  const { time } = definition;
  const wrong = useFieldError("/time");
  const change = (member: string, value: Json) =>
    onChange(setWithin(definition, "time", member, value));
  return (
    <section className="form-part" aria-label="Time buckets">
      <label className="check">
        <input
          type="checkbox"
          checked={isObject(time)}
          onChange={({ target }) =>
            onChange(withMember(definition, "time", target.checked ? USUAL_TIME : null))
          }
        />
        Divide rows into buckets of time
      </label>
      <Wrong text={wrong} />
      {isObject(time) && (
        <div className="form-grid">
          <PartInput
            label="Time field"
            container="/time"
            what="field"
            pointer="/time/field"
            codec={TEXT}
            value={typeof time.field === "string" ? time.field : ""}
            apply={(field) => change("field", field)}
          />
          <PartInput
            label="Bucket length"
            container="/time"
            what="bucket"
            pointer="/time/bucket"
            codec={TEXT}
            value={typeof time.bucket === "string" ? time.bucket : ""}
            suggestions={BUCKETS}
            apply={(bucket) => change("bucket", bucket)}
          />
        </div>
      )}
    </section>
  );
}

function Retention({ definition, onChange }: DefinitionFormProps) {
  return (
    <div className="form-grid">
      <PartInput
        label="Retention"
        container=""
        what="retention"
        pointer="/retention"
        codec={OPTIONAL_TEXT}
        value={definition.retention ?? undefined}
        suggestions={RETENTIONS}
        hint="How long buckets are kept, such as 90d. Leave empty to keep them forever."
        apply={(retention) => onChange(withMember(definition, "retention", retention ?? null))}
      />
    </div>
  );
}
