/** What becomes of each column: its field, its type, or nothing. */

import { Field, Select } from "../ui/Field";
import { Table } from "../ui/Listing";
import { type ColumnChoice, type TargetField, TEXT_TYPES, type TextType } from "./columns";
import type { Wizard } from "./useWizard";

interface MappingProps {
  readonly wizard: Wizard;
  readonly choices: readonly ColumnChoice[];
  readonly fields: readonly TargetField[] | null;
}

const KEY = "_id";
/** The types of Parquet whose values are texts. */
const TEXTS = ["string", "large_string"];

export function Mapping({ wizard, choices, fields }: MappingProps) {
  return (
    <section aria-label="Columns" className="import-section">
      <div className="section-head">
        <h3>Columns</h3>
        {fields === null && <KeyChoice wizard={wizard} choices={choices} />}
      </div>
      <div className="import-table import-mapping">
        <Table
          heads={["Import", "Column", "First values", fields ? "Table column" : "Field", "Type"]}
        >
          {choices.map((choice) => (
            <MappingRow key={choice.name} wizard={wizard} choice={choice} fields={fields} />
          ))}
        </Table>
      </div>
    </section>
  );
}

interface KeyProps {
  readonly wizard: Wizard;
  readonly choices: readonly ColumnChoice[];
}

function KeyChoice({ wizard, choices }: KeyProps) {
  const key = choices.find(({ to, isSkipped }) => to === KEY && !isSkipped);
  const options = [["", "generated"] as const, ...choices.map(({ name }) => [name, name] as const)];
  return (
    <div className="import-key">
      <Field label="Document _id">
        <Select
          className="small"
          options={options}
          value={key?.name ?? ""}
          onChange={(name) => wizard.chooseKey(KEY, name === "" ? null : name)}
        />
      </Field>
    </div>
  );
}

interface RowProps {
  readonly wizard: Wizard;
  readonly choice: ColumnChoice;
  readonly fields: readonly TargetField[] | null;
}

function MappingRow({ wizard, choice, fields }: RowProps) {
  const { name, values, isSkipped } = choice;
  const { changeColumn } = wizard;
  return (
    <tr className={isSkipped ? "skipped" : undefined}>
      <td>
        <input
          type="checkbox"
          aria-label={`Import ${name}`}
          checked={!isSkipped}
          onChange={({ target }) => changeColumn(name, { isSkipped: !target.checked })}
        />
      </td>
      <td className="mono cut">{name}</td>
      <td className="soft cut import-values" title={values.join("\n")}>
        {values.join(" · ")}
      </td>
      <td>
        {fields === null ? (
          <input
            className="input small mono"
            aria-label={`Field of ${name}`}
            disabled={isSkipped}
            value={choice.to}
            onChange={({ target }) => changeColumn(name, { to: target.value })}
          />
        ) : (
          <FieldSelect {...{ wizard, choice, fields }} />
        )}
      </td>
      <td>{fields === null ? <TypeSelect {...{ wizard, choice }} /> : titleOf(choice, fields)}</td>
    </tr>
  );
}

function FieldSelect({ wizard, choice, fields }: RowProps & { fields: readonly TargetField[] }) {
  const options = fields.map(({ name, isKey }) => [name, isKey ? `${name} (key)` : name] as const);
  return (
    <Select
      className="small mono"
      label={`Table column of ${choice.name}`}
      options={[["", "not imported"], ...options]}
      value={choice.isSkipped ? "" : choice.to}
      onChange={(to) => {
        const type = fields.find(({ name }) => name === to)?.type ?? null;
        wizard.changeColumn(choice.name, { to, type, isSkipped: to === "" });
      }}
    />
  );
}

function TypeSelect({ wizard, choice }: Pick<RowProps, "wizard" | "choice">) {
  // Types are those of texts; all other values keep theirs.
  if (!isText(choice))
    return (
      <span className="mono soft cut import-type" title={choice.fileType}>
        {choice.fileType}
      </span>
    );
  const options: readonly (readonly [TextType | "", string])[] =
    wizard.dialect?.format === "csv" ? TEXT_TYPES : [["", asInFile(choice)], ...TEXT_TYPES];
  return (
    <Select
      className="small"
      label={`Type of ${choice.name}`}
      options={options}
      value={choice.type ?? ""}
      onChange={(type) => wizard.changeColumn(choice.name, { type: type === "" ? null : type })}
    />
  );
}

function titleOf({ to, isSkipped }: ColumnChoice, fields: readonly TargetField[]) {
  const field = fields.find(({ name }) => name === to);
  return isSkipped ? null : <span className="mono soft">{field?.title}</span>;
}

function isText({ fileType }: ColumnChoice): boolean {
  return fileType === undefined || TEXTS.includes(fileType);
}

function asInFile({ fileType }: ColumnChoice): string {
  return fileType === undefined ? "As in the file" : `As in the file: ${fileType}`;
}
