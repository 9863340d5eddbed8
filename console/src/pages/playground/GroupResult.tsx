/** The live rows of a query with groups. */

import { useState } from "react";
import type { Group } from "rillbase";
import { RowBars } from "../../ui/charts/RowBars";
import type { LiveDocuments } from "../collections/documents/useLiveDocuments";
import { keyOf, textOf, valueAt } from "../collections/documents/values";

interface GroupResultProps {
  readonly live: LiveDocuments;
  readonly group: Group;
}

export function GroupResult({ live, group }: GroupResultProps) {
  const measures = Object.keys(group.measures);
  const [chosen, setChosen] = useState("");
  const drawn = measures.includes(chosen) ? chosen : (measures[0] ?? "");
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolling elements need the keyboard.
    <div className="groups" tabIndex={0}>
      {measures.length > 1 && (
        <label className="row-of-choice">
          <span className="soft">Bars of</span>
          <select
            className="select"
            value={drawn}
            onChange={(event) => setChosen(event.target.value)}
          >
            {measures.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      )}
      <RowBars
        heads={group.by}
        measures={measures}
        drawn={drawn}
        textOf={textOf}
        rows={live.items.map(({ id, document }) => ({
          key: keyOf(id),
          labels: group.by.map((field) => textOf(valueAt(document, field))),
          measures: document,
        }))}
      />
    </div>
  );
}
