/**
 * The console's build. What it makes is served by Django below `/static/console/`, under a policy
 * that allows no inline script and nothing from elsewhere.
 */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";
import { citiesOfTheMap } from "./cities.ts";

const sdk = (file: string) => fileURLToPath(new URL(`../sdk/js/dist/${file}`, import.meta.url));

const MIN_COMPRESSED_BYTES = 1_000;

/** Where `npm run dev` finds a running Rillbase. */
const server = process.env.RILLBASE_URL ?? "http://127.0.0.1:8080";
const behind = {
  target: server,
  ws: true,
  changeOrigin: true,
  // Calls with a session are accepted from the server's own origin only.
  headers: { origin: server },
};

/** Puts a compressed copy beside each text, for the server to send. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async writeBundle({ dir = "dist" }, bundle) {
      const texts = Object.keys(bundle).filter((name) => /\.(js|css|svg)$/.test(name));
      await Promise.all(
        texts.map(async (name) => {
          const text = await readFile(join(dir, name));
          if (text.length < MIN_COMPRESSED_BYTES) return;
          await writeFile(join(dir, `${name}.gz`), gzipSync(text, { level: 9 }));
        }),
      );
    },
  };
}

/** Makes the page load its font together with its script, not only when the styles name it. */
function preloadedFont(): Plugin {
  return {
    name: "preloaded-font",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (_, { bundle = {} }) =>
        Object.keys(bundle)
          .filter((name) => name.endsWith(".woff2"))
          .map((name) => ({
            tag: "link",
            attrs: {
              rel: "preload",
              as: "font",
              type: "font/woff2",
              href: `/static/console/${name}`,
              crossorigin: "",
            },
            injectTo: "head",
          })),
    },
  };
}

export default defineConfig(({ command }) => ({
  base: command === "build" ? "/static/console/" : "/",
  plugins: [react(), citiesOfTheMap(), compressed(), preloadedFont()],
  resolve: {
    alias: [
      { find: /^rillbase\/react$/, replacement: sdk("react/index.js") },
      { find: /^rillbase$/, replacement: sdk("index.js") },
    ],
    dedupe: ["react", "react-dom"],
  },
  build: {
    target: "es2022",
    // Inlined images would be `data:` addresses, which the policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: "manifest.json",
    // The server's other pages find the theme in the manifest (rillbase_server/console.py).
    rolldownOptions: { input: { index: "index.html", theme: "src/styles/theme.css" } },
    chunkSizeWarningLimit: 800,
  },
  server: {
    proxy: {
      "/api": behind,
      "/v1": behind,
      "/graphql": behind,
      "/docs": behind,
      "/readyz": behind,
      "/static": behind,
    },
  },
}));
