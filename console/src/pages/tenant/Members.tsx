/** The members of the tenant, and pending invitations. */

import { useState } from "react";
import { useAttempt, useChange, useList } from "../../api/list";
import { useUser } from "../../api/session";
import { useTenant } from "../../api/tenant";
import type { Invitation, Member, Role } from "../../api/types";
import { PageHead } from "../../shell/Shell";
import { Code, CopyButton } from "../../ui/Code";
import { Confirm } from "../../ui/Confirm";
import { Dialog, FormDialog } from "../../ui/Dialog";
import { Field, Select, sameText } from "../../ui/Field";
import { Icon } from "../../ui/Icon";
import { Listing, Table } from "../../ui/Listing";
import { Time } from "../../ui/Time";
import { useToasts } from "../../ui/toasts";

const ROLES: readonly Role[] = ["viewer", "developer", "admin", "owner"];
const MEANING: Readonly<Record<Role, string>> = {
  viewer: "Reads everything but keys and the audit log.",
  developer: "Also changes data, collections and keys.",
  admin: "Also manages members, webhooks and settings.",
  owner: "Also deletes the tenant and appoints owners.",
};

export default function Members() {
  const { may } = useTenant();
  const members = useList<Member>("members");
  const [isInviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<Invitation | null>(null);
  return (
    <>
      <PageHead title="Members">
        {may("admin") && (
          <button type="button" className="button main" onClick={() => setInviting(true)}>
            <Icon name="plus" size={14} /> Invite
          </button>
        )}
      </PageHead>
      <div className="page-body">
        <div className="column">
          <Listing read={members} empty={null}>
            {(items) => (
              <Table stacks heads={["Name", "Email address", "Role", "Joined", ""]}>
                {items.map((member) => (
                  <MemberRow key={member.user_id} member={member} />
                ))}
              </Table>
            )}
          </Listing>
          {may("admin") && <Invitations />}
        </div>
      </div>
      {isInviting && <Invite onInvited={setInvited} onClose={() => setInviting(false)} />}
      {invited !== null && <LinkDialog invitation={invited} onClose={() => setInvited(null)} />}
    </>
  );
}

function MemberRow({ member }: { readonly member: Member }) {
  const { may } = useTenant();
  const user = useUser();
  const [isRemoving, setRemoving] = useState(false);
  const isSelf = member.user_id === user.id;
  return (
    <tr>
      <td>
        <strong>{member.name || "–"}</strong> {isSelf && <span className="badge">you</span>}
      </td>
      <td>{member.email}</td>
      <td>{may("admin") && !isSelf ? <RoleSelect member={member} /> : member.role}</td>
      <td className="soft">
        <Time at={member.created_at} />
      </td>
      <td className="end">
        {(may("admin") || isSelf) && (
          <button
            type="button"
            className="button small icon plain"
            aria-label={isSelf ? "Leave the tenant" : `Remove ${member.email}`}
            onClick={() => setRemoving(true)}
          >
            <Icon name="trash" size={14} />
          </button>
        )}
        {isRemoving && (
          <RemoveDialog member={member} isSelf={isSelf} onClose={() => setRemoving(false)} />
        )}
      </td>
    </tr>
  );
}

function RoleSelect({ member }: { readonly member: Member }) {
  const { may } = useTenant();
  const change = useChange("members");
  const attempt = useAttempt();
  const { showMessage } = useToasts();
  async function setRole(role: Role) {
    const path = `members/${member.user_id}`;
    await change(path, { method: "PATCH", body: { role } });
    showMessage(`${nameOf(member)} is now ${role}.`, () =>
      change(path, { method: "PATCH", body: { role: member.role } }),
    );
  }
  return (
    <Select
      className="small"
      label={`Role of ${member.email}`}
      options={sameText(ROLES.filter((role) => role !== "owner" || may("owner")))}
      value={member.role}
      onChange={(role) => attempt(() => setRole(role))}
    />
  );
}

interface RemoveDialogProps {
  readonly member: Member;
  readonly isSelf: boolean;
  readonly onClose: () => void;
}

function RemoveDialog({ member, isSelf, onClose }: RemoveDialogProps) {
  const change = useChange("members");
  return (
    <Confirm
      title={isSelf ? "Leave the tenant?" : `Remove ${nameOf(member)}?`}
      action={isSelf ? "Leave" : "Remove"}
      onConfirm={async () => {
        await change(`members/${member.user_id}`, { method: "DELETE" });
        if (isSelf) location.assign("/");
      }}
      onClose={onClose}
    >
      Personal tokens for this tenant stop working. Rejoining requires a new invitation.
    </Confirm>
  );
}

function nameOf({ name, email }: Member): string {
  return name || email;
}

function Invitations() {
  const invitations = useList<Invitation>("invitations");
  const change = useChange("invitations");
  const attempt = useAttempt();
  const { showMessage } = useToasts();
  return (
    <Listing read={invitations} empty={null}>
      {(items) => (
        <>
          <h2>Open invitations</h2>
          <Table stacks heads={["Email address", "Role", "Valid until", ""]}>
            {items.map(({ id, email, role, state, link, expires_at: end }) => (
              <tr key={id}>
                <td>{email}</td>
                <td>{role}</td>
                <td className="soft">
                  {state === "expired" ? (
                    <span className="badge warn">expired</span>
                  ) : (
                    <Time at={end} />
                  )}
                </td>
                <td>
                  <span className="actions">
                    {link !== null && (
                      <CopyButton text={link} label={`Copy the invitation link of ${email}`} />
                    )}
                    <button
                      type="button"
                      className="button small"
                      onClick={() =>
                        attempt(async () => {
                          await change(`invitations/${id}:resend`, { method: "POST" });
                          showMessage(
                            link === null
                              ? `Invitation sent to ${email} again.`
                              : `The link for ${email} is valid for another seven days.`,
                          );
                        })
                      }
                    >
                      {link === null ? "Resend" : "Renew"}
                    </button>
                    <button
                      type="button"
                      className="button small"
                      onClick={() =>
                        attempt(async () => {
                          await change(`invitations/${id}`, { method: "DELETE" });
                          showMessage(`Invitation for ${email} revoked.`, () =>
                            change("invitations", { method: "POST", body: { email, role } }),
                          );
                        })
                      }
                    >
                      Revoke
                    </button>
                  </span>
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </Listing>
  );
}

interface LinkProps {
  readonly invitation: Invitation;
  readonly onClose: () => void;
}

/** The link of an invitation, on an installation that sends no mail. */
function LinkDialog({ invitation: { email, link }, onClose }: LinkProps) {
  return (
    <Dialog
      title={`Send this link to ${email}`}
      lead="This installation sends no email. The link is valid for seven days, and only for that address."
      onClose={onClose}
    >
      <div className="body">
        <Code text={link ?? ""} label="the invitation link" />
      </div>
      <footer>
        <button type="button" className="button main" onClick={onClose}>
          Done
        </button>
      </footer>
    </Dialog>
  );
}

interface InviteProps {
  /** Called with an invitation whose link has to be passed on. */
  readonly onInvited: (invitation: Invitation) => void;
  readonly onClose: () => void;
}

function Invite({ onInvited, onClose }: InviteProps) {
  const { may } = useTenant();
  const change = useChange("invitations");
  const { showMessage } = useToasts();
  const [email, setEmail] = useState("");
  const [role, setRole] = useState<Role>("developer");
  return (
    <FormDialog
      title="Invite a member"
      lead="The invitation is a link, valid for seven days and only for that address."
      action="Invite"
      canSubmit={email.includes("@")}
      onSubmit={async () => {
        const invitation = await change<Invitation>("invitations", {
          method: "POST",
          body: { email, role },
        });
        if (invitation.link !== null) onInvited(invitation);
        else showMessage(`Invitation sent to ${email}.`);
      }}
      onClose={onClose}
    >
      <Field label="Email address">
        <input
          className="input"
          type="email"
          value={email}
          onChange={(event) => setEmail(event.target.value)}
        />
      </Field>
      <Field label="Role" hint={MEANING[role]}>
        <select
          className="select"
          value={role}
          onChange={(event) => setRole(event.target.value as Role)}
        >
          {ROLES.filter((name) => name !== "owner" || may("owner")).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Field>
    </FormDialog>
  );
}
