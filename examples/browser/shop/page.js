/** A dashboard: three live queries, drawn again whenever one changes. */

import { arrange, attempt, connect, element, fill, filled, isCalm, showState } from "/shared/page.js";

const SPAN_MS = 60_000;
const STEP_MS = 5_000;
const STEPS = SPAN_MS / STEP_MS;
const CHART = { width: 600, height: 120, gap: 6 };
const EUROS = new Intl.NumberFormat([], { style: "currency", currency: "EUR", maximumFractionDigits: 0 });

const orders = connect().collection("orders");
const rows = new Map();
const products = new Map();
let latest = [];

orders.where("state", "!=", "shipped").sort("total", "desc").limit(8).onSnapshot(drawQueue);
orders.where("state", "==", "new").onSnapshot(({ items }) => {
  element("open").textContent = items.length;
});
orders.sort("at", "desc").limit(200).onSnapshot((snapshot) => {
  showState(snapshot);
  latest = snapshot.documents;
  drawMinute();
});
// Orders leave the last minute without anything happening to them.
setInterval(drawMinute, 1_000);

function drawMinute() {
  const now = Date.now();
  const recent = latest.filter(({ at }) => now - at.getTime() < SPAN_MS);
  const totals = recent.map(({ total }) => total);
  element("orders").textContent = recent.length;
  element("revenue").textContent = EUROS.format(totals.reduce((sum, total) => sum + total, 0));
  element("largest").textContent = totals.length > 0 ? EUROS.format(Math.max(...totals)) : "–";
  drawChart(recent, now);
  drawProducts(recent);
}

function drawChart(recent, now) {
  const newest = Math.floor(now / STEP_MS);
  const sums = new Array(STEPS).fill(0);
  for (const { at, total } of recent) {
    const place = STEPS - 1 - (newest - Math.floor(at.getTime() / STEP_MS));
    if (place in sums) sums[place] += total;
  }
  const most = Math.max(1, ...sums);
  const width = CHART.width / STEPS;
  element("chart").replaceChildren(
    ...sums.map((sum, place) => {
      const height = (sum / most) * (CHART.height - 12);
      const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      const box = { x: place * width + CHART.gap / 2, y: CHART.height - height, rx: 3 };
      const size = { width: width - CHART.gap, height };
      for (const [name, value] of Object.entries({ ...box, ...size })) bar.setAttribute(name, value);
      return bar;
    }),
  );
}

function drawProducts(recent) {
  const counts = new Map();
  for (const { product } of recent) counts.set(product, (counts.get(product) ?? 0) + 1);
  const best = [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).slice(0, 6);
  arrange(
    element("products"),
    best.map(([name, count]) => {
      const line = products.get(name) ?? filled("product", { name });
      products.set(name, line);
      fill(line, { count });
      line.querySelector("i").style.setProperty("--part", count / best[0][1]);
      return line;
    }),
  );
}

function drawQueue({ items, changes }) {
  const shown = new Set(items.map(({ id }) => String(id)));
  for (const id of rows.keys()) if (!shown.has(id)) rows.delete(id);
  arrange(element("queue"), items.map(rowOf));
  for (const { item } of changes) glow(rows.get(String(item.id)));
}

function rowOf({ id, document: order }) {
  const row = rows.get(String(id)) ?? newRow(id);
  fill(row, { what: order.product, city: order.city, step: order.state, total: EUROS.format(order.total) });
  row.querySelector(".ship").setAttribute("aria-label", `Ship ${order.product} to ${order.city}`);
  return row;
}

function newRow(id) {
  const row = filled("order", {});
  row.querySelector(".ship").addEventListener("click", () => {
    attempt(orders.update(id, { $set: { state: "shipped" } }));
  });
  rows.set(String(id), row);
  return row;
}

function glow(row) {
  if (row !== undefined && !isCalm()) row.animate([{ background: "var(--glow)" }, {}], { duration: 900 });
}
