/** Creates a tenant and opens its page. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../api/control";
import { FormDialog } from "../ui/Dialog";
import { Field } from "../ui/Field";

export function NewTenant({ onClose }: { readonly onClose: () => void }) {
  const client = useQueryClient();
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [typedSlug, setSlug] = useState<string | null>(null);
  const slug = typedSlug ?? slugOf(name);
  async function create() {
    await call("/api/v1/tenants", { method: "POST", body: { slug, name } });
    await client.invalidateQueries({ queryKey: ["tenants"] });
    go(`/t/${slug}`);
  }
  return (
    <FormDialog
      title="New tenant"
      lead="A tenant has its own data, keys, members and limits. Nothing is shared between tenants."
      action="Create tenant"
      canSubmit={slug !== ""}
      onSubmit={create}
      onClose={onClose}
    >
      <Field label="Name">
        <input className="input" value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label="URL name" hint="Lower-case letters, digits and hyphens. It cannot be changed.">
        <input
          className="input mono"
          value={slug}
          onChange={(event) => setSlug(event.target.value)}
        />
      </Field>
    </FormDialog>
  );
}

function slugOf(name: string): string {
  return name
    .normalize("NFD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "")
    .slice(0, 40);
}
