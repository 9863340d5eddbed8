/** The publications of a map: areas, points, and clusters with the number of their points. */

import type { MouseEvent } from "react";
import { printTyped } from "rillbase";
import type { TopicPublication } from "../publications";
import { type AreaMark, type Cluster, type Marks, namesOf } from "./clusters";
import type { Box } from "./projection";

interface MarksProps extends Marks {
  readonly chosen: string | null;
  readonly onChoose: (id: string) => void;
  /** Called with the areas of a cluster that was clicked, in map units. */
  readonly onOpen: (boxes: readonly Box[]) => void;
}

export function PublicationMarks({ areas, clusters, chosen, onChoose, onOpen }: MarksProps) {
  return (
    <>
      {areas.map(({ publication, box }) => (
        <Area
          key={publication.publicationId}
          {...{ publication, box, onChoose }}
          isChosen={publication.publicationId === chosen}
        />
      ))}
      {clusters.map((cluster) => (
        <Point
          key={cluster.members[0]?.publicationId}
          {...{ cluster, onChoose, onOpen }}
          isChosen={cluster.members.some(({ publicationId: id }) => id === chosen)}
        />
      ))}
    </>
  );
}

interface AreaProps extends AreaMark {
  readonly isChosen: boolean;
  readonly onChoose: (id: string) => void;
}

function Area({ publication, box, isChosen, onChoose }: AreaProps) {
  const [width, height] = [box.right - box.left, box.bottom - box.top];
  const mark = { className: classOf(isChosen), onClick: alone(() => onChoose(idOf(publication))) };
  const title = <title>{titleOf(publication)}</title>;
  if (publication.geo !== undefined && "box" in publication.geo) {
    return (
      <rect {...mark} x={box.left} y={box.top} width={width} height={height}>
        {title}
      </rect>
    );
  }
  const [x, y] = [box.left + width / 2, box.top + height / 2];
  return (
    <ellipse {...mark} cx={x} cy={y} rx={width / 2} ry={height / 2}>
      {title}
    </ellipse>
  );
}

const POINT_PX = 6;
const CLUSTER_PX = 10;

export function radiusOf({ members }: Cluster): number {
  return members.length === 1 ? POINT_PX : CLUSTER_PX + Math.min(4, Math.log10(members.length) * 3);
}

interface PointProps {
  readonly cluster: Cluster;
  readonly isChosen: boolean;
  readonly onChoose: (id: string) => void;
  readonly onOpen: (boxes: readonly Box[]) => void;
}

/** A click zooms into a cluster, unless all members have the same name and would form a cluster again. */
function Point({ cluster, isChosen, onChoose, onOpen }: PointProps) {
  const { members, boxes, x, y } = cluster;
  const [newest] = members;
  if (newest === undefined) return null;
  const isHeap = new Set(members.map((member) => namesOf([member]))).size === 1;
  const mark = {
    className: `${classOf(isChosen)} point`,
    onClick: alone(() => (isHeap ? onChoose(idOf(newest)) : onOpen(boxes))),
  };
  return (
    <>
      <circle {...mark} cx={x} cy={y} r={radiusOf(cluster)}>
        <title>{members.length === 1 ? titleOf(newest) : `${members.length} publications`}</title>
      </circle>
      {members.length > 1 && (
        <text x={x} y={y} className="cluster-count">
          {members.length}
        </text>
      )}
    </>
  );
}

function classOf(isChosen: boolean): string {
  return isChosen ? "place chosen" : "place";
}

function idOf({ publicationId }: TopicPublication): string {
  return publicationId;
}

function titleOf({ data, publicationId }: TopicPublication): string {
  return data === null ? publicationId : printTyped(data);
}

/** A click on a mark is not a click on the map. */
function alone(act: () => void) {
  return (event: MouseEvent) => {
    event.stopPropagation();
    act();
  };
}
