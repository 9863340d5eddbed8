/** Shows what an aggregate's definition means: an event, a row, and a query. */

import { Code } from "../../ui/Code";
import { objectOf } from "../../ui/definition/DefinitionEditor";
import { formatExample, isObject, type Json } from "../../ui/definition/exactJson";
import { exampleEvent, exampleQuery, exampleRow } from "./rowShape";

interface PreviewProps {
  readonly name: string;
  readonly value: Json | undefined;
}

export function AggregatePreview({ name, value }: PreviewProps) {
  if (value === undefined) return <p className="soft">The preview appears once this is JSON.</p>;
  const definition = objectOf(value);
  const { source } = definition;
  const path = `/v1/aggregates/${name === "" ? "…" : name}`;
  return (
    <>
      {isObject(source) ? (
        <p className="soft">
          Rows follow the documents of <code>{String(source.collection)}</code>.
        </p>
      ) : (
        <>
          <h2>An event</h2>
          <Code
            label="the event"
            text={`POST ${path}/events\n\n${formatExample(exampleEvent(definition))}`}
          />
        </>
      )}
      <h2>A row</h2>
      <Code label="the row" text={formatExample(exampleRow(definition))} />
      <h2>A query</h2>
      <Code
        label="the query"
        text={`POST ${path}/query\n\n${formatExample(exampleQuery(definition))}`}
      />
    </>
  );
}
