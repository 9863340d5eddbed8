/** The length of a stretch of the map, and where its data comes from. */

import { METRES_PER_DEGREE, type Projection } from "./projection";
import { roundStep } from "./steps";
import type { MapView } from "./view";

const LONGEST_PX = 110;

interface ScaleProps {
  readonly projection: Projection;
  readonly view: MapView;
}

export function MapScale({ projection, view }: ScaleProps) {
  const { length, pixels } = scaleOf(projection, view);
  return (
    <div className="map-foot">
      {projection.isGeo && (
        <span>
          Natural Earth, <a href="https://www.geonames.org/">GeoNames</a> (CC BY 4.0)
        </span>
      )}
      <span className="map-scale" style={{ width: pixels }}>
        {projection.isGeo ? lengthText(length) : length}
      </span>
    </div>
  );
}

/** The longest round length that fits, on the middle of the map. */
function scaleOf({ isGeo, placeOf }: Projection, { x, y, scale }: MapView) {
  const latitude = placeOf(x, y)[1];
  const unit = isGeo ? METRES_PER_DEGREE * Math.cos((latitude * Math.PI) / 180) : 1;
  const length = roundStep((LONGEST_PX / scale) * unit, "down");
  return { length, pixels: (length / unit) * scale };
}

function lengthText(metres: number): string {
  return metres < 1_000 ? `${metres} m` : `${(metres / 1_000).toLocaleString("en")} km`;
}
