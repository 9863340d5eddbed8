/** Creates a topic, or changes one. */

import type { Resource } from "../../api/resource";
import type { Topic } from "../../api/types";
import { objectOf } from "../../ui/definition/DefinitionEditor";
import { EditDefinition } from "../../ui/definition/EditDefinition";
import { NewDefinition } from "../../ui/definition/NewDefinition";
import { TopicForm } from "./TopicForm";
import { TopicPreview } from "./TopicPreview";

const START = { name: "", kind: "hierarchy", retention_s: 3_600 };

export function NewTopic({ onClose }: { readonly onClose: () => void }) {
  return (
    <NewDefinition
      kind="topic"
      lead="Publications are delivered to subscriptions that match by id or by area."
      start={START}
      preview={(name, value) => <TopicPreview name={name} definition={objectOf(value ?? null)} />}
      form={(form) => <TopicForm isNew {...form} />}
      onClose={onClose}
    />
  );
}

interface EditProps {
  readonly resource: Resource<Topic>;
  readonly onClose: () => void;
}

export function EditTopic({ resource: { body: topic, change }, onClose }: EditProps) {
  const { retention_s, max_data_bytes } = topic;
  const shown = { kind: topic.kind, grid: gridOf(topic) };
  return (
    <EditDefinition
      name={topic.name}
      lead="Existing publications keep their lifetime. The matching cannot be changed."
      saved={{ retention_s, max_data_bytes }}
      done={`${topic.name} saved.`}
      preview={() => <TopicPreview name={topic.name} definition={shown} />}
      form={(form) => <TopicForm isNew={false} {...form} />}
      onSave={change}
      onClose={onClose}
    />
  );
}

function gridOf({ grid }: Topic) {
  return grid === null ? null : { bounds: [...(grid.bounds ?? [])] };
}
