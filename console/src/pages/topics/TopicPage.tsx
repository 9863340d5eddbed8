/** One topic: its publications, on a map if they have places, and a form to publish. */

import { useState } from "react";
import { type Place, parseTyped, printTyped } from "rillbase";
import { Link } from "wouter";
import { type Resource, useResource } from "../../api/resource";
import { useTenant } from "../../api/tenant";
import type { Topic } from "../../api/types";
import { DropButton } from "../../shell/DropButton";
import { PageHead } from "../../shell/Shell";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Field } from "../../ui/Field";
import { FormFoot } from "../../ui/FormFoot";
import { Icon } from "../../ui/Icon";
import { JsonEditor } from "../../ui/JsonEditor";
import { Time } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";
import { counted } from "../../ui/units";
import { useSubmit } from "../../ui/useSubmit";
import { usePublications } from "./follow";
import { isMatch, type TopicPublication } from "./publications";
import { EditTopic } from "./TopicDialog";
import { TopicMap } from "./TopicMap";
import "./topics.css";

export default function TopicPage({ name }: { readonly name: string }) {
  const { slug, may } = useTenant();
  const { resource, error } = useResource<Topic>("topics", name);
  const topic = resource?.body;
  return (
    <>
      <PageHead
        name={name}
        title={
          <>
            <Link href={`/t/${slug}/topics`}>Topics</Link>
            <Icon name="chevron" size={11} />
            <h1 className="mono cut">{name}</h1>
            {topic !== undefined && <span className="badge">{topic.kind}</span>}
          </>
        }
      >
        {may("developer") && resource !== null && <EditButton resource={resource} />}
        {may("developer") && (
          <DropButton list="topics" name={name} label="Drop the topic">
            This immediately deletes its publications and ends its subscriptions.
          </DropButton>
        )}
      </PageHead>
      {error !== null && (
        <div className="column">
          <ErrorNotice error={error} />
        </div>
      )}
      {topic === undefined && error === null && <Skeleton />}
      {topic !== undefined && <TopicView topic={topic} />}
    </>
  );
}

function EditButton({ resource }: { readonly resource: Resource<Topic> }) {
  const [isEditing, setEditing] = useState(false);
  return (
    <>
      <button
        type="button"
        className="button"
        aria-label="Change the topic"
        onClick={() => setEditing(true)}
      >
        <Icon name="edit" size={13} /> <span className="wide-only">Change</span>
      </button>
      {isEditing && <EditTopic resource={resource} onClose={() => setEditing(false)} />}
    </>
  );
}

function TopicView({ topic }: { readonly topic: Topic }) {
  const { may } = useTenant();
  const [id, setId] = useState("1");
  const [point, setPoint] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const { publications, error, isLive } = usePublications(topic, id);
  return (
    <div className="page-body fill">
      <div className="topic">
        <div className="topic-main">
          {hasPlaces(topic) ? (
            <TopicMap
              topic={topic}
              publications={publications}
              chosen={chosen}
              onChoose={setChosen}
              onPoint={(x, y) => setPoint(`${x}, ${y}`)}
            />
          ) : (
            <div className="topic-id">
              <Field label="Displayed id">
                <input
                  className="input mono"
                  value={id}
                  onChange={(event) => setId(event.target.value)}
                />
              </Field>
            </div>
          )}
          {error !== null && <ErrorNotice error={error} />}
          <Publications items={publications} chosen={chosen} onChoose={setChosen} />
        </div>
        {may("developer") && (
          <Publish key={point} topic={topic} id={id} point={point} isLive={isLive} />
        )}
      </div>
    </div>
  );
}

function hasPlaces({ kind }: Topic): boolean {
  return kind === "geo" || kind === "plane";
}

interface ListProps {
  readonly items: readonly TopicPublication[];
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
}

function Publications({ items, chosen, onChoose }: ListProps) {
  if (items.length === 0) {
    return (
      <Empty icon="signal" title="No publications yet">
        Publications of the last hour that have not expired appear here, then new ones as they
        arrive.
      </Empty>
    );
  }
  return (
    <ol className="publications" aria-label="Publications">
      {items.map((item) => (
        <li key={item.publicationId}>
          <button
            type="button"
            aria-pressed={item.publicationId === chosen}
            onClick={() => onChoose(item.publicationId)}
          >
            <span className="soft">
              <Time at={item.at.toISOString()} />
            </span>
            <span className="mono">{item.id ?? placeText(item)}</span>
            <span className="mono cut">{printTyped(item.data)}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function placeText({ geo }: TopicPublication): string {
  if (geo === undefined) return "";
  return "box" in geo ? geo.box.join(", ") : geo.center.map((value) => value.toFixed(4)).join(", ");
}

interface PublishProps {
  readonly topic: Topic;
  readonly id: string;
  readonly point: string;
  /** Whether the page receives what is published at its place. */
  readonly isLive: boolean;
}

function Publish({ topic, id, point, isLive }: PublishProps) {
  const { client } = useTenant();
  const { showMessage } = useToasts();
  const isSpatial = hasPlaces(topic);
  const [place, setPlace] = useState(isSpatial ? point : id);
  const [radius, setRadius] = useState(topic.kind === "geo" ? "500" : "10");
  const [data, setData] = useState('{"kind": "hello"}');
  const { error, submit } = useSubmit(async () => {
    const publication = {
      ...placeBody(topic, place, Number(radius)),
      data: parseTyped(data) as object,
    };
    const { matchedSubscribers } = await client.topic<object>(topic.name).publish(publication);
    const isIncluded = isLive && (isSpatial || isMatch(topic, place, id));
    showMessage(publishedText(matchedSubscribers, isIncluded));
  });
  return (
    <form className="publish" onSubmit={submit}>
      <h2>Publish</h2>
      <Field
        label={isSpatial ? "Place" : "Id"}
        hint={isSpatial ? "Click on the map, or type: longitude, latitude" : "As in 1.4.2"}
      >
        <input
          className="input mono"
          required
          value={place}
          onChange={(event) => setPlace(event.target.value)}
        />
      </Field>
      {isSpatial && (
        <Field label={topic.kind === "geo" ? "Radius in metres" : "Radius"}>
          <input
            className="input number"
            type="number"
            min="0"
            step="any"
            value={radius}
            onChange={(event) => setRadius(event.target.value)}
          />
        </Field>
      )}
      <JsonEditor label="Data" value={data} onChange={setData} onSubmit={submit} height="130px" />
      <FormFoot error={error} action="Publish" />
    </form>
  );
}

function publishedText(count: number, isIncluded: boolean): string {
  return `Published to ${counted(count, "subscription")}${isIncluded ? ", this page included" : ""}.`;
}

function placeBody(topic: Topic, place: string, radius: number): Place {
  if (topic.kind === "flat" || topic.kind === "hierarchy") return { id: place };
  const [x = Number.NaN, y = Number.NaN, ...others] = place.split(",").map(Number);
  if (others.length > 0 || Number.isNaN(x) || Number.isNaN(y))
    throw new SyntaxError("A place is two numbers, as in 16.37, 48.21.");
  const center = [x, y] as const;
  return { geo: topic.kind === "geo" ? { center, radius_m: radius } : { center, radius } };
}
