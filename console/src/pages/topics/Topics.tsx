/** The topics of the tenant. */

import { Link } from "wouter";
import { useTenant } from "../../api/tenant";
import type { Topic } from "../../api/types";
import { ListPage } from "../../shell/ListPage";
import { duration, Time } from "../../ui/Time";
import { NewTopic } from "./TopicDialog";
import { KINDS } from "./TopicForm";

const ABOUT =
  "A topic delivers publications to matching subscriptions: by id, by " +
  "hierarchy or by area. Subscriptions can also receive publications that were retained before they began.";

export default function Topics() {
  const { slug } = useTenant();
  return (
    <ListPage<Topic>
      title="Topics"
      path="topics"
      action="New topic"
      none={{ icon: "pin", title: "No topics yet", about: ABOUT }}
      heads={["Name", "Matching", "Retention", "Created"]}
      numbers={["Retention"]}
      cells={(topic) => (
        <>
          <td>
            <Link className="mono" href={`/t/${slug}/topics/${topic.name}`}>
              {topic.name}
            </Link>
          </td>
          <td>{new Map(KINDS).get(topic.kind)}</td>
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
