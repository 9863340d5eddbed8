/** The topics of the tenant. */

import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useChange } from "../../api/list";
import { useTenant } from "../../api/tenant";
import type { Topic } from "../../api/types";
import { ListPage } from "../../shell/ListPage";
import { FormDialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { isName, NameField } from "../../ui/NameField";
import { duration, Time } from "../../ui/Time";

const KINDS: Readonly<Record<Topic["kind"], string>> = {
  hierarchy: "Ids in a hierarchy: 1.4 matches 1.4.2",
  flat: "Ids that are equal: news matches news",
  geo: "Areas of the earth that overlap",
  plane: "Areas of a plane that overlap",
};

const ABOUT =
  "A topic matches publications with subscriptions, whichever comes first: by id, by " +
  "hierarchy or by place, in the past and in the future.";

export default function Topics() {
  const { slug } = useTenant();
  return (
    <ListPage<Topic>
      title="Topics"
      path="topics"
      action="New topic"
      none={{ icon: "pin", title: "No topics yet", about: ABOUT }}
      heads={["Name", "Matching", "Retention", "Created"]}
      numbers={["Kept for"]}
      cells={(topic) => (
        <>
          <td>
            <Link className="mono" href={`/t/${slug}/topics/${topic.name}`}>
              {topic.name}
            </Link>
          </td>
          <td>{KINDS[topic.kind]}</td>
          <td className="number">{duration(topic.retention_s)}</td>
          <td className="soft">
            <Time at={topic.created_at} />
          </td>
        </>
      )}
      dialog={(onClose) => <NewTopic onClose={onClose} />}
    />
  );
}

const PLANE = [0, 0, 1_000, 1_000];

function NewTopic({ onClose }: { readonly onClose: () => void }) {
  const { slug } = useTenant();
  const change = useChange("topics");
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [kind, setKind] = useState<Topic["kind"]>("hierarchy");
  const [hours, setHours] = useState("1");
  async function create() {
    const grid = kind === "plane" ? { grid: { bounds: PLANE } } : {};
    const body = { name, kind, retention_s: Math.round(Number(hours) * 3_600), ...grid };
    await change("topics", { method: "POST", body });
    go(`/t/${slug}/topics/${name}`);
  }
  return (
    <FormDialog
      title="New topic"
      action="Create topic"
      canSubmit={isName(name)}
      onSubmit={create}
      onClose={onClose}
    >
      <NameField value={name} onChange={setName} />
      <Field label="Matching">
        <select
          className="select"
          value={kind}
          onChange={(event) => setKind(event.target.value as Topic["kind"])}
        >
          {Object.entries(KINDS).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Maximum publication lifetime in hours">
        <input
          className="input number"
          type="number"
          min="0.01"
          step="any"
          value={hours}
          onChange={(event) => setHours(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}
