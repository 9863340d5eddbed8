/** What a schema requires of a value besides its type. */

import { OPTIONAL_NUMBER, OPTIONAL_TEXT, VALUE_LINES } from "../../../ui/definition/codecs";
import { isObject, type JsonObject, setMember } from "../../../ui/definition/exactJson";
import { EditedInJson, PartInput, useForm } from "../../../ui/definition/parts";
import { below } from "../../../ui/definition/pointers";
import { Fields } from "./SchemaForm";
import { type Family, familiesOf, isShown, keywordsInJson } from "./schemaModel";
import { TypeBoxes, TypeSelect } from "./TypeSelect";

interface ConstraintsProps {
  /** What has the value, for the labels of its fields. */
  readonly name: string;
  readonly pointer: string;
  readonly schema: JsonObject;
  readonly onChange: (schema: JsonObject) => void;
}

export function Constraints(props: ConstraintsProps) {
  const { pointer, schema } = props;
  const families = familiesOf(schema);
  const inFields = families.includes("object") ? FIELD_KEYWORDS : [];
  const inJson = keywordsInJson(schema).filter((name) => !inFields.includes(name));
  return (
    <>
      {families.map((family) => (
        <FamilyFields key={family} {...props} family={family} />
      ))}
      <div className="schema-grid">
        <Keyword
          {...props}
          keyword="enum"
          label="Allowed values"
          kind="lines"
          hint="One per line; empty: any value"
        />
        <Keyword {...props} keyword="description" label="Description" kind="text" />
      </div>
      <details className="schema-types">
        <summary>Several types</summary>
        <TypeBoxes {...props} />
      </details>
      <EditedInJson parts={inJson.map((name) => [name, below(pointer, name)])} />
    </>
  );
}

/** The form of an object's fields shows these itself. */
const FIELD_KEYWORDS = ["properties", "required", "additionalProperties"];

function FamilyFields({ family, ...props }: ConstraintsProps & { readonly family: Family }) {
  switch (family) {
    case "text":
      return (
        <div className="schema-grid">
          <Keyword {...props} keyword="minLength" label="Minimum length" kind="number" />
          <Keyword {...props} keyword="maxLength" label="Maximum length" kind="number" />
          <Keyword {...props} keyword="pattern" label="Pattern" kind="text" />
        </div>
      );
    case "number":
      return (
        <div className="schema-grid">
          <Keyword {...props} keyword="minimum" label="Minimum" kind="number" />
          <Keyword {...props} keyword="maximum" label="Maximum" kind="number" />
        </div>
      );
    case "array":
      return <ItemFields {...props} />;
    case "object":
      return <Fields {...props} />;
  }
}

interface KeywordProps extends ConstraintsProps {
  readonly keyword: string;
  readonly label: string;
  readonly kind: keyof typeof CODECS;
  readonly hint?: string;
}

const CODECS = { number: OPTIONAL_NUMBER, text: OPTIONAL_TEXT, lines: VALUE_LINES } as const;

/** The field of one keyword; empty, the schema does not have it. */
function Keyword({ pointer, schema, keyword, label, kind, hint, onChange }: KeywordProps) {
  if (!isShown(schema, keyword)) return null;
  return (
    <PartInput
      label={label}
      container={pointer}
      what={keyword}
      pointer={below(pointer, keyword)}
      codec={CODECS[kind]}
      value={schema[keyword]}
      {...(kind === "lines" ? { rows: 3 } : {})}
      {...(hint === undefined ? {} : { hint })}
      apply={(value) => onChange(setMember(schema, keyword, value))}
    />
  );
}

function ItemFields(props: ConstraintsProps) {
  const { name, pointer, schema, onChange } = props;
  const items = isObject(schema.items) ? schema.items : {};
  const place = below(pointer, "items");
  const change = (to: JsonObject) =>
    onChange(setMember(schema, "items", Object.keys(to).length === 0 ? undefined : to));
  return (
    <>
      <div className="schema-grid">
        <Keyword {...props} keyword="minItems" label="Minimum items" kind="number" />
        <Keyword {...props} keyword="maxItems" label="Maximum items" kind="number" />
        {isShown(schema, "items") && (
          <TypeSelect label="Type of items" pointer={place} schema={items} onChange={change} />
        )}
      </div>
      <UniqueBox {...props} />
      {Object.keys(items).length > 0 && (
        <fieldset className="schema-items">
          <legend>Items of {name}</legend>
          <Constraints name={name} pointer={place} schema={items} onChange={change} />
        </fieldset>
      )}
    </>
  );
}

function UniqueBox({ schema, onChange }: ConstraintsProps) {
  const { mayChange } = useForm();
  return (
    isShown(schema, "uniqueItems") && (
      <label className="check">
        <input
          type="checkbox"
          disabled={!mayChange}
          checked={schema.uniqueItems === true}
          onChange={({ target }) =>
            onChange(setMember(schema, "uniqueItems", target.checked || undefined))
          }
        />
        Unique items
      </label>
    )
  );
}
