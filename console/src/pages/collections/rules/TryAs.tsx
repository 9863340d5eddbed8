/** Tests the rules of the editor for a user with certain claims. */

import { useState } from "react";
import { printTyped } from "rillbase";
import { useTenant } from "../../../api/tenant";
import { isObject, type Json } from "../../../ui/definition/exactJson";
import { ErrorNotice } from "../../../ui/ErrorNotice";
import { Icon } from "../../../ui/Icon";
import { JsonEditor } from "../../../ui/JsonEditor";
import { Table } from "../../../ui/Listing";
import { counted } from "../../../ui/units";
import { useSubmit } from "../../../ui/useSubmit";
import { ACTIONS } from "./rulesModel";
import { type Trial, tryRules } from "./trial";

interface TryProps {
  readonly collection: string;
  /** Undefined as long as they are not JSON. */
  readonly rules: Json | undefined;
  readonly isChanged: boolean;
}

export function TryAs({ collection, rules, isChanged }: TryProps) {
  const { slug, may } = useTenant();
  const [claims, setClaims] = useState('{"sub": "ada"}');
  const [result, setResult] = useState<{ readonly of: string; readonly trial: Trial } | null>(null);
  const canActAs = may("admin") && !isChanged;
  const question = JSON.stringify([rules, claims]);
  const { error, submit } = useSubmit(async () => {
    const tried = isObject(rules) ? rules : {};
    const trial = await tryRules({ slug, collection, rules: tried, canActAs }, claims);
    setResult({ of: question, trial });
  });
  return (
    <form className="try-as" onSubmit={submit}>
      <div className="section-head">
        <h2>Test the rules</h2>
        <button type="submit" className="button" disabled={rules === undefined}>
          <Icon name="play" size={13} /> Run test
        </button>
      </div>
      <p className="soft">
        The claims in a user's token. An empty object stands for an anonymous user.{" "}
        {isChanged
          ? "The test uses the rules in the editor, which are not saved yet."
          : canActAs && "Each test is recorded in the audit log."}
      </p>
      <JsonEditor
        label="Claims"
        value={claims}
        onChange={setClaims}
        onSubmit={submit}
        height="74px"
      />
      {error !== null && <ErrorNotice error={error} />}
      {result?.of === question && <TrialResult trial={result.trial} />}
    </form>
  );
}

function TrialResult({ trial: { documents, visible, all } }: { readonly trial: Trial }) {
  return (
    <>
      <p role="status">
        This user sees <strong className="number">{visible.toLocaleString("en")}</strong> of{" "}
        <span className="number">{counted(all, "document")}</span>.
      </p>
      {documents.length > 0 && (
        <Table heads={["Document", ...ACTIONS.map(([, title]) => title)]}>
          {documents.map(({ id, document, allowed }) => (
            <tr key={JSON.stringify(id)}>
              <td className="mono cut" title={printTyped(document)}>
                {typeof id === "string" ? id : printTyped(id)}
              </td>
              {ACTIONS.map(([action]) => (
                <Verdict key={action} isAllowed={allowed.includes(action)} />
              ))}
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function Verdict({ isAllowed }: { readonly isAllowed: boolean }) {
  return (
    <td className={isAllowed ? "allowed" : "denied"}>
      <Icon name={isAllowed ? "check" : "minus"} size={13} />
      <span className="hidden">{isAllowed ? "yes" : "no"}</span>
    </td>
  );
}
