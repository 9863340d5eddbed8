/** The form of a topic's definition. */

import type { Topic } from "../../api/types";
import { BYTES, NUMBERS, OPTIONAL_NUMBER, SECONDS } from "../../ui/definition/codecs";
import {
  isArray,
  isNumber,
  isObject,
  type Json,
  type JsonObject,
  setMember,
  withMember,
  withoutMember,
} from "../../ui/definition/exactJson";
import { type DefinitionFormProps, DefinitionName } from "../../ui/definition/forms";
import { EditedInJson, PartInput, useFieldError } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Field, Select } from "../../ui/Field";

export const KINDS: readonly (readonly [Topic["kind"], string])[] = [
  ["hierarchy", "Ids in a hierarchy: 1.4 matches 1.4.2"],
  ["flat", "Ids that are equal: news matches news"],
  ["geo", "Areas of the earth that overlap"],
  ["plane", "Areas of a plane that overlap"],
];

const PLANE: JsonObject = { bounds: [0, 0, 1_000, 1_000] };

const isText = (value: Json) => typeof value === "string";

const SHOWN: Readonly<Record<string, (value: Json) => boolean>> = {
  name: isText,
  kind: (value) => KINDS.some(([kind]) => kind === value),
  retention_s: isNumber,
  max_data_bytes: isNumber,
  grid: (value) => value === null || isObject(value),
};

function membersInJson(definition: JsonObject): readonly string[] {
  return Object.entries(definition)
    .filter(([name, value]) => !(Object.hasOwn(SHOWN, name) && SHOWN[name]?.(value)))
    .map(([name]) => name);
}

/** The kind that the server assumes if there is none. */
export function kindOf({ kind }: JsonObject): Topic["kind"] {
  return KINDS.map(([known]) => known).find((known) => known === kind) ?? "hierarchy";
}

/** A plane needs a grid; other kinds have none. */
function withKind(definition: JsonObject, kind: Topic["kind"]): JsonObject {
  const changed = withMember(definition, "kind", kind);
  if (kind !== "plane") return withoutMember(changed, "grid");
  return isObject(definition.grid) ? changed : withMember(changed, "grid", PLANE);
}

interface FormProps extends DefinitionFormProps {
  /** Name and kind cannot be changed. */
  readonly isNew: boolean;
}

export function TopicForm({ definition, isNew, onChange }: FormProps) {
  const inJson = membersInJson(definition);
  const wrongKind = useFieldError("/kind");
  return (
    <>
      {isNew && !inJson.includes("name") && <DefinitionName {...{ definition, onChange }} />}
      {isNew && !inJson.includes("kind") && (
        <Field label="Matching" wrong={wrongKind}>
          <Select
            options={KINDS}
            value={kindOf(definition)}
            onChange={(kind) => onChange(withKind(definition, kind))}
          />
        </Field>
      )}
      {isObject(definition.grid) && <GridFields definition={definition} onChange={onChange} />}
      <Limits definition={definition} inJson={inJson} onChange={onChange} />
      <EditedInJson parts={inJson.map((name) => [name, below("", name)])} />
    </>
  );
}

interface LimitsProps extends DefinitionFormProps {
  readonly inJson: readonly string[];
}

function Limits({ definition, inJson, onChange }: LimitsProps) {
  return (
    <div className="form-grid">
      {!inJson.includes("retention_s") && (
        <PartInput
          label="Retention"
          container=""
          what="retention_s"
          pointer="/retention_s"
          codec={SECONDS}
          value={definition.retention_s}
          placeholder="1d"
          hint="Maximum lifetime of a publication, such as 90m."
          apply={(value) => onChange(setMember(definition, "retention_s", value))}
        />
      )}
      {!inJson.includes("max_data_bytes") && (
        <PartInput
          label="Maximum data size"
          container=""
          what="max_data_bytes"
          pointer="/max_data_bytes"
          codec={BYTES}
          value={definition.max_data_bytes}
          placeholder="64 KiB"
          hint="Of one publication, as BSON."
          apply={(value) => onChange(setMember(definition, "max_data_bytes", value))}
        />
      )}
    </div>
  );
}

function GridFields({ definition, onChange }: DefinitionFormProps) {
  const grid = isObject(definition.grid) ? definition.grid : {};
  const shared = (what: string) => ({
    container: "/grid",
    what,
    pointer: below("/grid", what),
    value: grid[what],
    apply: (value: Json | undefined) =>
      onChange(withMember(definition, "grid", setMember(grid, what, value))),
  });
  return (
    <fieldset className="form-row topic-grid" aria-label="Plane">
      {(grid.bounds === undefined || isArray(grid.bounds)) && (
        <PartInput
          {...shared("bounds")}
          label="West, south, east, north"
          codec={NUMBERS}
          placeholder="0, 0, 1000, 1000"
        />
      )}
      <PartInput
        {...shared("sides")}
        label="Cells per side"
        codec={OPTIONAL_NUMBER}
        placeholder="2"
      />
      <PartInput {...shared("depth")} label="Levels" codec={OPTIONAL_NUMBER} placeholder="8" />
    </fieldset>
  );
}
