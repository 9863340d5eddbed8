/** Creates a collection and opens its page. */

import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { call } from "../../api/control";
import { useTenant } from "../../api/tenant";
import type { AccessRules, Backend } from "../../api/types";
import { FormDialog } from "../../ui/Dialog";
import { Field, Select } from "../../ui/Field";
import { isName, NameField } from "../../ui/NameField";

type Access = "closed" | "read" | "owner";

const BACKENDS: readonly (readonly [Backend, string])[] = [
  ["postgres", "PostgreSQL"],
  ["native", "Storage node (preview)"],
];

const ACCESS: Readonly<Record<Access, { readonly title: string; readonly rules: AccessRules }>> = {
  closed: { title: "Only secret keys", rules: {} },
  read: { title: "Everyone can read, only secret keys can write", rules: { read: true } },
  owner: {
    title: "Signed-in users can access their own documents",
    rules: {
      read: { owner: { $auth: "sub" } },
      create: { owner: { $auth: "sub" } },
      update: { owner: { $auth: "sub" } },
      delete: { owner: { $auth: "sub" } },
    },
  },
};

export function NewCollection({ onClose }: { readonly onClose: () => void }) {
  const { slug, api } = useTenant();
  const client = useQueryClient();
  const [, go] = useLocation();
  const [name, setName] = useState("");
  const [access, setAccess] = useState<Access>("closed");
  const [backend, setBackend] = useState<Backend>("postgres");
  async function create() {
    const body = { name, access_rules: ACCESS[access].rules, backend };
    await call(`${api}/collections`, { method: "POST", body });
    await client.invalidateQueries({ queryKey: [slug, "collections"] });
    go(`/t/${slug}/collections/${name}`);
  }
  return (
    <FormDialog
      title="New collection"
      lead="Documents need no schema. You can declare one later, with indexes and rules."
      action="Create collection"
      canSubmit={isName(name)}
      onSubmit={create}
      onClose={onClose}
    >
      <NameField value={name} onChange={setName} />
      <Field label="Apps with a publishable key" hint="You can refine the rules at any time.">
        <select
          className="select"
          value={access}
          onChange={(event) => setAccess(event.target.value as Access)}
        >
          {Object.entries(ACCESS).map(([value, { title }]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Storage" hint="The collection can be moved later.">
        <Select options={BACKENDS} value={backend} onChange={setBackend} />
      </Field>
    </FormDialog>
  );
}
