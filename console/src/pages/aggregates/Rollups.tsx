/** The rollups in the form of an aggregate. */

import type { DefinitionFormProps } from "../../ui/definition/forms";
import { useFieldError, Wrong } from "../../ui/definition/parts";
import { below } from "../../ui/definition/pointers";
import { Icon } from "../../ui/Icon";
import { dimensionsOf, rollupsOf, setRollups } from "./aggregateModel";
import "./aggregates.css";

export function Rollups({ definition, onChange }: DefinitionFormProps) {
  const rollups = rollupsOf(definition);
  return (
    <section className="form-part" aria-label="Rollups">
      <div>
        <h2>Rollups</h2>
        <p className="soft">
          Rows for some of the dimensions, so that coarse queries read few rows.
        </p>
      </div>
      {rollups.map((rollup, place) => (
        <RollupRow
          // biome-ignore lint/suspicious/noArrayIndexKey: a rollup has no name.
          key={place}
          place={place}
          rollup={rollup}
          dimensions={dimensionsOf(definition)}
          onChange={(to) => onChange(setRollups(definition, rollups.with(place, to)))}
          onRemove={() => onChange(setRollups(definition, rollups.toSpliced(place, 1)))}
        />
      ))}
      <button
        type="button"
        className="button small start"
        onClick={() =>
          onChange(setRollups(definition, [...rollups, dimensionsOf(definition).slice(0, 1)]))
        }
      >
        <Icon name="plus" size={13} /> Add a rollup
      </button>
    </section>
  );
}

interface RowProps {
  readonly place: number;
  readonly rollup: readonly string[];
  readonly dimensions: readonly string[];
  readonly onChange: (rollup: readonly string[]) => void;
  readonly onRemove: () => void;
}

function RollupRow({ place, rollup, dimensions, onChange, onRemove }: RowProps) {
  const wrong = useFieldError(below("", "rollups", place), true);
  const names = [...new Set([...dimensions, ...rollup])];
  const toggle = (name: string, on: boolean) =>
    onChange(on ? [...rollup, name] : rollup.filter((other) => other !== name));
  return (
    <fieldset className="rollup" aria-label={`Rollup ${place + 1}`}>
      {names.map((name) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={rollup.includes(name)}
            onChange={({ target }) => toggle(name, target.checked)}
          />
          <span className="mono">{name}</span>
        </label>
      ))}
      <button
        type="button"
        className="button small icon plain"
        aria-label={`Remove rollup ${place + 1}`}
        onClick={onRemove}
      >
        <Icon name="trash" size={13} />
      </button>
      <Wrong text={wrong} />
    </fieldset>
  );
}
