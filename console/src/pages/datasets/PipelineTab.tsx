/** The live pipeline: the stages and their rows, how much queries read, the latest uploads. */

import { useQuery } from "@tanstack/react-query";
import type { Pipeline, PipelineStage, Stage, Upload } from "rillbase";
import { useTenant } from "../../api/tenant";
import { Empty, Skeleton } from "../../ui/Empty";
import { ErrorNotice } from "../../ui/ErrorNotice";
import { Table } from "../../ui/Listing";
import { Time } from "../../ui/Time";
import { size } from "../../ui/units";
import { type Dataset, REMAPPED, STAGES } from "./types";
import "../../ui/charts/charts.css";

const LOOK_MS = 1_000;

export function PipelineTab({ dataset }: { readonly dataset: Dataset }) {
  const { slug, client } = useTenant();
  const { data, error } = useQuery({
    queryKey: [slug, "pipeline", dataset.name],
    queryFn: ({ signal }) => client.dataset(dataset.name).pipeline({ signal }),
    refetchInterval: LOOK_MS,
  });
  if (data === undefined) {
    return (
      <div className="column">{error === null ? <Skeleton /> : <ErrorNotice error={error} />}</div>
    );
  }
  return (
    <div className="column">
      {error !== null && <ErrorNotice error={error} />}
      {data.error !== null && <Halted why={data.error} />}
      <Stages pipeline={data} />
      {data.state === 0 ? (
        <Empty icon="upload" title="No uploads yet">
          Uploaded rows can be queried immediately. This page shows how the pipeline sorts and
          merges them.
        </Empty>
      ) : (
        <>
          <Reads reads={data.reads} />
          <Uploads uploads={data.uploads} />
        </>
      )}
      <p className="soft">
        Other tools read the authority as Iceberg tables in the namespace{" "}
        <code>{data.iceberg.namespace}</code>
        {data.iceberg.tag !== null && (
          <>
            , at the tag <code>{data.iceberg.tag}</code>
          </>
        )}
        .
      </p>
    </div>
  );
}

function Halted({ why }: { readonly why: string }) {
  return (
    <div className="notice warn" role="status">
      <span className="grow">
        <strong>The pipeline has stopped.</strong> Uploads are still accepted and visible, but
        queries read more unmerged rows. {why}
      </span>
    </div>
  );
}

function Stages({ pipeline }: { readonly pipeline: Pipeline }) {
  const cards = cardsOf(pipeline);
  const rows = cards.reduce((sum, { stage }) => sum + stage.rows, 0);
  return (
    <section className="pipeline" aria-label="Stages">
      <ol className="stages">
        {cards.map(({ id, ...card }) => (
          <li key={id} data-stage={id}>
            <StageCard {...card} part={rows === 0 ? 0 : card.stage.rows / rows} />
          </li>
        ))}
      </ol>
    </section>
  );
}

interface Card {
  readonly title: string;
  readonly is: string;
  readonly stage: PipelineStage;
  /** Null: its rows are read from the files of the stage before. */
  readonly files: number | null;
}

/** The stages in the order in which rows go through them. */
function cardsOf({ stages, reads }: Pipeline): readonly (Card & { readonly id: string })[] {
  const files = reads.find(({ freshness }) => freshness === 0)?.files ?? {};
  const remapped =
    stages.remapped === undefined ? [] : [{ ...REMAPPED, stage: stages.remapped, files: null }];
  return STAGES.flatMap((shown) => {
    const card = { ...shown, stage: stages[shown.id], files: files[shown.id] ?? 0 };
    return shown.id === "unsorted" ? [card, ...remapped] : [card];
  });
}

interface StageCardProps extends Card {
  /** The total number of rows in all stages. */
  readonly part: number;
}

function StageCard({ title, is, stage, files, part }: StageCardProps) {
  const { first, last, bytes, lag_s: lag, rows_per_s: rate } = stage;
  const facts: readonly (readonly [string, string])[] = [
    ["Uploads", first === null || last === null ? "–" : spanOf(first, last)],
    ["Files", files === null ? "shared" : files.toLocaleString("en")],
    ["Size", size(bytes)],
    ["Lag", lag === 0 ? "none" : `${lag.toFixed(1)} s`],
    ["Rows/s", whole(rate)],
  ];
  return (
    <article className="card stage-card" data-moves={rate > 0}>
      <header>
        <h2>{title}</h2>
        <p className="soft">{is}</p>
      </header>
      <p className="stage-rows">
        <strong className="number">{stage.rows.toLocaleString("en")}</strong> rows
      </p>
      <span className="stage-part" aria-hidden="true">
        <i style={{ width: `${100 * part}%` }} />
      </span>
      <dl className="number">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </article>
  );
}

function spanOf(first: number, last: number): string {
  return first === last ? String(first) : `${first} to ${last}`;
}

function whole(rate: number): string {
  return Math.round(rate).toLocaleString("en");
}

function Reads({ reads }: { readonly reads: Pipeline["reads"] }) {
  const most = Math.max(1, ...reads.map(({ rows }) => rows));
  return (
    <section className="life" aria-label="Rows read by queries">
      <h2>Rows read by a query</h2>
      <Table heads={["Freshness", "State", "Rows to read", "Files"]} numbers={["State"]}>
        {reads.map(({ freshness, state, files, rows }) => (
          <tr key={freshness}>
            <td>{freshnessText(freshness)}</td>
            <td className="number">{state}</td>
            <td className="number bar-cell">
              <span className="bar" style={{ width: `${(100 * rows) / most}%` }} />
              <span>{rows.toLocaleString("en")}</span>
            </td>
            <td>
              <FileCounts files={files} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function freshnessText(freshness: number | "any"): string {
  if (freshness === "any") return "merged rows only";
  return freshness === 0 ? "all uploads" : `at most ${freshness} s old`;
}

function FileCounts({ files }: { readonly files: Readonly<Partial<Record<Stage, number>>> }) {
  const stages = STAGES.filter(({ id }) => (files[id] ?? 0) > 0);
  if (stages.length === 0) return <span className="soft">none</span>;
  return (
    <span className="badges">
      {stages.map(({ id, title }) => (
        <span key={id} className="badge stage-badge number" data-stage={id}>
          <i className="swatch" aria-hidden="true" /> {files[id]} {title.toLowerCase()}
        </span>
      ))}
    </span>
  );
}

function Uploads({ uploads }: { readonly uploads: readonly Upload[] }) {
  return (
    <section className="life" aria-label="Newest uploads">
      <h2>Newest uploads</h2>
      <Table
        stacks
        heads={["State", "Upload", "Stage", "Rows", "Size", "Committed"]}
        numbers={["State", "Rows", "Size"]}
      >
        {uploads.map((upload) => (
          <tr key={upload.id}>
            <td className="number">{upload.state}</td>
            <td className="mono cut upload-id" title={upload.id}>
              {upload.id}
            </td>
            <td>
              <span className="badge stage-badge" data-stage={upload.stage}>
                <i className="swatch" aria-hidden="true" /> {upload.stage}
              </span>
            </td>
            <td className="number">{upload.rows.toLocaleString("en")}</td>
            <td className="number">{size(upload.bytes)}</td>
            <td className="soft">
              <Time at={upload.committed_at} />
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
