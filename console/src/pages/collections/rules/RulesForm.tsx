/** The form of a collection's access rules: for each action, whom it is allowed. */

import { useState } from "react";
import { OBJECT, TEXT } from "../../../ui/definition/codecs";
import { isObject, type Json, type JsonObject, withMember } from "../../../ui/definition/exactJson";
import {
  EditedInJson,
  PartInput,
  useFieldError,
  useForm,
  Wrong,
} from "../../../ui/definition/parts";
import { below } from "../../../ui/definition/pointers";
import { partOf } from "../../../ui/definition/useDefinition";
import { Select } from "../../../ui/Field";
import {
  ACTIONS,
  type Action,
  AUDIENCES,
  type Audience,
  audienceOf,
  ownershipOf,
  ownershipRule,
  ruleFor,
  rulesInJson,
} from "./rulesModel";
import "./rules.css";

export function RulesForm({ rules }: { readonly rules: JsonObject }) {
  const inJson = rulesInJson(rules);
  return (
    <>
      <div className="rules">
        {ACTIONS.filter(([action]) => !inJson.includes(action)).map(([action, title, about]) => (
          <RuleRow key={action} rules={rules} action={action} title={title} about={about} />
        ))}
      </div>
      <EditedInJson parts={inJson.map((name) => [name, below("", name)])} />
    </>
  );
}

interface RowProps {
  readonly rules: JsonObject;
  readonly action: Action;
  readonly title: string;
  readonly about: string;
}

function RuleRow({ rules, action, title, about }: RowProps) {
  const { definition, mayChange } = useForm();
  const [isCustom, setCustom] = useState(false);
  const rule = rules[action];
  const audience = isCustom && isObject(rule) ? "filter" : (audienceOf(rule) ?? "filter");
  const wrong = useFieldError(below("", action));
  function choose(to: Audience) {
    setCustom(to === "filter");
    definition.setPart(partOf("", action), null, withMember(rules, action, ruleFor(to, rule)));
  }
  const change = (to: Json) => definition.setValue(withMember(rules, action, to));
  return (
    <section className="rule" aria-label={title}>
      <div>
        <h2>{title}</h2>
        <p className="soft">{about}</p>
      </div>
      <div className="rule-fields">
        <Select
          label={`Who may ${action}`}
          options={AUDIENCES}
          value={audience}
          onChange={choose}
          isDisabled={!mayChange}
        />
        {audience === "owner" && isObject(rule) && (
          <OwnerFields action={action} rule={rule} onChange={change} />
        )}
        {audience === "filter" && isObject(rule) && (
          <FilterField action={action} rule={rule} onChange={change} />
        )}
        {audience !== "filter" && <Wrong text={wrong} />}
      </div>
    </section>
  );
}

interface RuleProps {
  readonly action: Action;
  readonly rule: JsonObject;
  readonly onChange: (rule: JsonObject) => void;
}

function OwnerFields({ action, rule, onChange }: RuleProps) {
  const owner = ownershipOf(rule);
  if (owner === null) return null;
  const shared = { container: below("", action), pointer: below("", action) };
  return (
    <div className="rule-owner">
      <PartInput
        {...shared}
        label="Field"
        what="field"
        isDeep={false}
        codec={FIELD}
        value={owner.field}
        apply={(field) => onChange(ownershipRule({ ...owner, field }))}
      />
      <PartInput
        {...shared}
        label="Equals claim"
        what="claim"
        pointer={below("", action, owner.field)}
        codec={TEXT}
        value={owner.claim}
        apply={(claim) => onChange(ownershipRule({ ...owner, claim }))}
      />
    </div>
  );
}

const FIELD = {
  show: (field: string) => field,
  read: (field: string) =>
    field === "" || field.startsWith("$")
      ? { wrong: "A path such as owner or team.id." }
      : { value: field },
};

function FilterField({ action, rule, onChange }: RuleProps) {
  return (
    <PartInput
      label={`Filter to ${action}`}
      isCompact
      container=""
      what={action}
      pointer={below("", action)}
      codec={OBJECT}
      value={rule}
      rows={5}
      hint={
        <>
          <code>{'{"$auth": "sub"}'}</code> stands for a claim of the user's token.
        </>
      }
      apply={onChange}
    />
  );
}
