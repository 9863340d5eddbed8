/** What the forms of definitions share. */

import { TEXT } from "./codecs";
import { type JsonObject, withMember } from "./exactJson";
import { PartInput } from "./parts";

export interface DefinitionFormProps {
  readonly definition: JsonObject;
  readonly onChange: (definition: JsonObject) => void;
}

/** The name, which only a new definition has. */
export function DefinitionName({ definition, onChange }: DefinitionFormProps) {
  return (
    <PartInput
      label="Name"
      container=""
      what="name"
      pointer="/name"
      codec={TEXT}
      value={typeof definition.name === "string" ? definition.name : ""}
      hint="A lower-case letter, then letters, digits, _ and -. It cannot be changed."
      apply={(name) => onChange(withMember(definition, "name", name))}
    />
  );
}
