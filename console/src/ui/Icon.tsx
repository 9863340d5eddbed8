/** The console's icons: strokes on a grid of 16. */

const PATHS = {
  activity: "M1.5 8.5h3l2-5.5 3 10 2-4.5h3",
  alert: "M8 2 14.5 13.5h-13zM8 6.5v3M8 11.6v.1",
  bolt: "M9 1.5 3 9h4l-1 5.5L13 7H8.7z",
  bookmark: "M4 2h8v12l-4-3.2L4 14z",
  book: "M2.5 3h4A1.5 1.5 0 0 1 8 4.5V13a2 2 0 0 0-1.5-.7h-4zM13.5 3h-4A1.5 1.5 0 0 0 8 4.5V13a2 2 0 0 1 1.5-.7h4z",
  chart: "M2 14V2M2 14h12M5.5 11V8M8.5 11V5M11.5 11V6.5",
  check: "m3 8.5 3.2 3.2L13 4.8",
  chevron: "m5.5 3.5 4.5 4.5-4.5 4.5",
  close: "m4 4 8 8M12 4l-8 8",
  code: "m5.5 4.5-3.5 3.5 3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  collection:
    "M2.5 4c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2zM2.5 4v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  down: "m3.5 6 4.5 4.5L12.5 6",
  download: "M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11",
  edit: "M10.8 2.7 13.3 5.2 5.5 13H3v-2.5z",
  external: "M6.5 3h-4v10.5H13v-4M9.5 2.5h4v4M13.3 2.7 7.5 8.5",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  filter: "M2 3.5h12M4.5 8h7M6.8 12.5h2.4",
  grid: "M2.5 2.5h4.5V7H2.5zM9 2.5h4.5V7H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z",
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4V9.8h-3v3.7h-4z",
  key: "M10.3 9.2a3.6 3.6 0 1 0-3.5-2.7L2 11.3V14h2.7v-1.8h1.8v-1.8zM11 5v.1",
  layers: "M8 2 14 5.2 8 8.4 2 5.2zM2 8.2l6 3.2 6-3.2M2 11.2l6 3.2 6-3.2",
  link: "M6.8 9.2a2.6 2.6 0 0 0 3.9.3l2-2A2.7 2.7 0 0 0 9 3.7l-1 1M9.2 6.8a2.6 2.6 0 0 0-3.9-.3l-2 2A2.7 2.7 0 0 0 7 12.3l1-1",
  list: "M2.5 4h.1M2.5 8h.1M2.5 12h.1M5.5 4h8M5.5 8h8M5.5 12h8",
  log: "M3.5 2h9v12h-9zM6 5.5h4M6 8h4M6 10.5h2.5",
  menu: "M2 4.5h12M2 8h12M2 11.5h12",
  minus: "M3.5 8h9",
  moon: "M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5 5.8 5.8 0 1 0 13.5 9.6z",
  more: "M3.5 8v.1M8 8v.1M12.5 8v.1",
  pause: "M5.5 3v10M10.5 3v10",
  people:
    "M6 7.5A2.5 2.5 0 1 0 6 2.5a2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 2.8a2.4 2.4 0 0 1 0 4.5M12 9.8c1.5.5 2.5 1.8 2.5 3.7",
  pin: "M8 14.2S3 9.6 3 6.4a5 5 0 0 1 10 0c0 3.2-5 7.8-5 7.8zM8 8.2a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z",
  play: "M4.5 2.8 12.8 8l-8.3 5.2z",
  plus: "M8 3v10M3 8h10",
  redo: "M13.5 3v4h-4M13 6.8A5.5 5.5 0 1 0 13 10",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 14 14",
  settings:
    "M2 4.5h6M12 4.5h2M10 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM14 11.5H8M4 11.5H2M6 13.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  shield: "M8 1.8 13.5 4v4c0 3.3-2.3 5.2-5.5 6.3C4.8 13.2 2.5 11.3 2.5 8V4z",
  signal:
    "M4.2 11.8a5.4 5.4 0 0 1 0-7.6M11.8 4.2a5.4 5.4 0 0 1 0 7.6M6.2 9.8a2.6 2.6 0 0 1 0-3.6M9.8 6.2a2.6 2.6 0 0 1 0 3.6M8 8v.1",
  sort: "M5 3v10M2.5 10.5 5 13l2.5-2.5M11 13V3M8.5 5.5 11 3l2.5 2.5",
  star: "m8 2 1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5z",
  sun: "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  trash: "M2.5 4h11M6 4V2.5h4V4M4 4l.6 9.5h6.8L12 4M6.7 6.8v4M9.3 6.8v4",
  upload: "M8 10.5v-8M4.8 5.7 8 2.5l3.2 3.2M2.5 13.5h11",
  webhook:
    "M8 5.2 5.5 10M8 5.2a1.8 1.8 0 1 0-1.8-1.8A1.8 1.8 0 0 0 8 5.2zM4.3 13a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6zM11.7 13a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6zM6.1 11.2h3.8M8.8 5l2.2 4.6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The logo of Rillbase. */
export function Mark({ size = 24 }: { readonly size?: number }) {
  return <img src="/static/rillbase/mark.svg" width={size} height={size} alt="" />;
}
