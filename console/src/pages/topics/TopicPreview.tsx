/** Shows how a topic is used: a publication, and a subscription that receives it. */

import type { Topic } from "../../api/types";
import { Code } from "../../ui/Code";
import {
  formatExample,
  isArray,
  isNumber,
  isObject,
  type JsonObject,
} from "../../ui/definition/exactJson";
import { kindOf } from "./TopicForm";

interface PreviewProps {
  readonly name: string;
  readonly definition: JsonObject;
}

export function TopicPreview({ name, definition }: PreviewProps) {
  const kind = kindOf(definition);
  const { published, subscribed } = placesOf(kind, definition);
  const topic = name === "" ? "…" : name;
  const path = `/v1/topics/${topic}`;
  const subscription = { type: "subscribe", id: "t1", topic, ...subscribed, to: "+10m" };
  return (
    <>
      <h2>A publication</h2>
      <Code
        label="the publication"
        text={`POST ${path}/publications\n\n${formatExample({ ...published, data: { kind: "hello" } })}`}
      />
      <h2>A subscription that receives it</h2>
      <p className="soft">
        As a message to <code>/v1/realtime</code>:
      </p>
      <Code label="the subscription" text={formatExample(subscription)} />
    </>
  );
}

interface Places {
  readonly published: JsonObject;
  readonly subscribed: JsonObject;
}

/** Returns two places that match. */
function placesOf(kind: Topic["kind"], definition: JsonObject): Places {
  switch (kind) {
    case "flat":
      return { published: { id: "news" }, subscribed: { topic_id: "news" } };
    case "hierarchy":
      return { published: { id: "1.4.2" }, subscribed: { topic_id: "1.4" } };
    case "geo":
      return {
        published: { geo: { center: [16.3731, 48.2085], radius_m: 120 } },
        subscribed: { geo: { center: [16.3745, 48.2085], radius_m: 420 } },
      };
    case "plane": {
      const [x, y, extent] = middleOf(definition);
      return {
        published: { geo: { center: [x, y], radius: extent / 50 } },
        subscribed: { geo: { center: [x, y], radius: extent / 10 } },
      };
    }
  }
}

function middleOf({ grid }: JsonObject): readonly [number, number, number] {
  const bounds = isObject(grid) && isArray(grid.bounds) ? grid.bounds : [];
  const [west = 0, south = 0, east = 1_000, north = 1_000] = bounds.map((bound) =>
    isNumber(bound) ? Number(JSON.stringify(bound)) : 0,
  );
  return [(west + east) / 2, (south + north) / 2, Math.min(east - west, north - south)];
}
