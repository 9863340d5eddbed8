/** Creates an aggregate, or changes one. */

import type { Resource } from "../../api/resource";
import { objectOf } from "../../ui/definition/DefinitionEditor";
import { EditDefinition } from "../../ui/definition/EditDefinition";
import { type JsonObject, parseJson } from "../../ui/definition/exactJson";
import { NewDefinition } from "../../ui/definition/NewDefinition";
import { AggregateForm } from "./AggregateForm";
import { AggregatePreview } from "./AggregatePreview";
import type { Aggregate } from "./types";

const EXAMPLE = {
  name: "requests_5m",
  dimensions: ["app", "endpoint"],
  time: { field: "at", bucket: "5m" },
  measures: {
    count: { op: "count" },
    latency: { op: "avg", field: "latency_ms" },
  },
  rollups: [["app"]],
  retention: "90d",
};

export function NewAggregate({ onClose }: { readonly onClose: () => void }) {
  return (
    <NewDefinition
      kind="aggregate"
      lead="Dimensions identify rows, measures are their values. With a collection as its source, the aggregate follows the documents."
      start={EXAMPLE}
      preview={(name, value) => <AggregatePreview name={name} value={value} />}
      form={(form) => <AggregateForm isNew {...form} />}
      onClose={onClose}
    />
  );
}

interface EditProps {
  readonly resource: Resource<Aggregate>;
  readonly onClose: () => void;
}

export function EditAggregate({ resource: { body, text, change }, onClose }: EditProps) {
  return (
    <EditDefinition
      name={body.name}
      lead="The rows are rebuilt from the retained data. Until then, queries read the existing rows."
      saved={changeable(objectOf(parseJson(text)))}
      done={`${body.name} is being rebuilt.`}
      preview={(value) => <AggregatePreview name={body.name} value={value} />}
      form={(form) => <AggregateForm isNew={false} {...form} />}
      onSave={change}
      onClose={onClose}
    />
  );
}

/** Returns the members that a change may have. */
function changeable(aggregate: JsonObject): JsonObject {
  const { dimensions, time, measures, rollups, retention } = aggregate;
  return { dimensions, time, measures, rollups, retention } as JsonObject;
}
