/** The measures in the form of an aggregate. */

import { NUMBERS, OPTIONAL_NUMBER, TEXT, uniqueName } from "../../ui/definition/codecs";
import { isObject, type Json, type JsonObject, setMember } from "../../ui/definition/exactJson";
import type { DefinitionFormProps } from "../../ui/definition/forms";
import { PartInput, useFieldError, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Field, Select } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import {
  addMeasure,
  measuresOf,
  NUMBER_TYPES,
  OPS,
  opOf,
  removeMeasure,
  renameMeasure,
  setMeasure,
  takes,
  withOp,
} from "./aggregateModel";

export function Measures({ definition, onChange }: DefinitionFormProps) {
  const wrong = useFieldError("/measures");
  return (
    <section className="form-part" aria-label="Measures">
      <h2>Measures</h2>
      {Object.entries(measuresOf(definition)).map(
        ([name, measure], place) =>
          isObject(measure) && (
            <MeasureRow
              // biome-ignore lint/suspicious/noArrayIndexKey: a measure that is renamed remains the same row.
              key={place}
              name={name}
              measure={measure}
              definition={definition}
              onChange={onChange}
            />
          ),
      )}
      <Wrong text={wrong} />
      <button
        type="button"
        className="button small start"
        onClick={() => onChange(addMeasure(definition))}
      >
        <Icon name="plus" size={13} /> Add a measure
      </button>
    </section>
  );
}

interface RowProps extends DefinitionFormProps {
  readonly name: string;
  readonly measure: JsonObject;
}

function MeasureRow({ name, measure, definition, onChange }: RowProps) {
  const pointer = below("", "measures", name);
  const op = opOf(measure);
  const wrongName = useFieldError(pointer);
  const wrongOp = useFieldError(below(pointer, "op"));
  const others = Object.keys(measuresOf(definition)).filter((other) => other !== name);
  const change = (to: JsonObject) => onChange(setMeasure(definition, name, to));
  return (
    <fieldset className="form-row" aria-label={`Measure ${name}`}>
      <PartInput
        label="Name"
        container={pointer}
        what="name"
        pointer={pointer}
        isDeep={false}
        codec={uniqueName(others)}
        value={name}
        apply={(to) => onChange(renameMeasure(definition, name, to))}
      />
      <Field label="Operator" wrong={wrongOp}>
        <Select
          options={op === null ? [["", "in JSON"], ...OPS] : OPS}
          value={op ?? ""}
          onChange={(to) => to !== "" && change(withOp(measure, to))}
        />
      </Field>
      <MeasureMembers pointer={pointer} measure={measure} onChange={change} />
      <button
        type="button"
        className="button small icon plain"
        aria-label={`Remove ${name}`}
        onClick={() => onChange(removeMeasure(definition, name))}
      >
        <Icon name="trash" size={13} />
      </button>
      {op === null && <Wrong text={wrongName} />}
    </fieldset>
  );
}

interface MembersProps {
  readonly pointer: string;
  readonly measure: JsonObject;
  readonly onChange: (measure: JsonObject) => void;
}

function NumberType({ measure, onChange }: Omit<MembersProps, "pointer">) {
  const chosen = NUMBER_TYPES.map(([known]) => known).find((known) => known === measure.type);
  /** Only decimal numbers have a scale. */
  const withType = (type: string) =>
    setMember(type === "decimal" ? measure : setMember(measure, "scale", undefined), "type", type);
  return (
    <Field label="Number type">
      <Select
        options={NUMBER_TYPES}
        value={chosen ?? "double"}
        onChange={(type) => onChange(withType(type))}
      />
    </Field>
  );
}

function MeasureMembers({ pointer, measure, onChange }: MembersProps) {
  const change = (member: string, value: Json | undefined) =>
    onChange(setMember(measure, member, value));
  const shared = (what: string) => ({
    container: pointer,
    what,
    pointer: below(pointer, what),
    apply: (value: Json | undefined) => change(what, value),
  });
  const { field, type } = measure;
  return (
    <>
      {takes(measure, "field") && (
        <PartInput
          {...shared("field")}
          label="Field"
          codec={TEXT}
          value={typeof field === "string" ? field : ""}
        />
      )}
      {takes(measure, "type") && <NumberType measure={measure} onChange={onChange} />}
      {type === "decimal" && (
        <PartInput
          {...shared("scale")}
          label="Decimal places"
          codec={OPTIONAL_NUMBER}
          value={measure.scale}
          placeholder="2"
        />
      )}
      {takes(measure, "quantiles") && (
        <PartInput
          {...shared("quantiles")}
          label="Quantiles"
          codec={NUMBERS}
          value={measure.quantiles}
          placeholder="0.5, 0.95"
        />
      )}
      {takes(measure, "accuracy") && (
        <PartInput
          {...shared("accuracy")}
          label="Accuracy"
          codec={OPTIONAL_NUMBER}
          value={measure.accuracy}
          placeholder="0.01"
        />
      )}
      {takes(measure, "k") && (
        <PartInput
          {...shared("k")}
          label="Number of values"
          codec={OPTIONAL_NUMBER}
          value={measure.k}
          placeholder="10"
        />
      )}
    </>
  );
}
