/** The entry point of the console. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ServerError } from "rillbase";
import { App } from "./App";
import { applyTheme } from "./shell/theme";
import { ToastProvider } from "./ui/toasts";
import "./styles/font.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/controls.css";
import "./styles/overlays.css";
import "./styles/parts.css";
import "./styles/layout.css";

const MAX_RETRIES = 2;

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // What the server has refused it will refuse again.
      retry: (count, error) =>
        count < MAX_RETRIES && !(error instanceof ServerError && !error.isTemporary),
    },
  },
});

applyTheme();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <ToastProvider>
          <App />
        </ToastProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
