// Taking a lock away: what will happen is shown, the name typed, a reason given. Frees the token that was shown, so a
// successor that came meanwhile is never hit. Whoever leaves the page leaves the question, too.

import { post, Problem } from "./api.js";
import { h } from "./dom.js";

export function forceRelease({ resource, waiters }, holder, identity, signal) {
  const name = h("input", { type: "text", id: "typed-name", autocomplete: "off", spellcheck: "false" });
  const reason = h("input", { type: "text", id: "reason", autocomplete: "off", required: true });
  const actor = h("input", { type: "text", id: "actor", autocomplete: "off", required: true, value: identity.name });
  const skip = h("input", { type: "checkbox", id: "skip-delay" });
  const problem = h("p", { class: "problem", role: "alert" });
  const act = h("button", { type: "submit", class: "danger", id: "confirm", disabled: true }, "Take it away");
  const check = () => (act.disabled = name.value !== resource || !reason.value.trim() || !actor.value.trim());
  const submit = async (event) => {
    event.preventDefault();
    act.disabled = true;
    try {
      await post(`/v1/resources/${encodeURIComponent(resource)}/force-release`, {
        actorId: actor.value.trim(),
        reason: reason.value.trim(),
        fencingToken: holder.fencingToken,
        skipLockDelay: skip.checked,
      });
      dialog.close();
    } catch (error) {
      if (!(error instanceof Problem)) check();
      problem.textContent = error.code === "stale_token" ? "That lease has ended meanwhile; nothing was taken away." : error.message;
    }
  };
  const dialog = h(
    "dialog",
    { "aria-labelledby": "dialog-title" },
    h(
      "form",
      { oninput: check, onsubmit: submit },
      h("h2", { id: "dialog-title" }, "Force-release ", h("code", {}, resource)),
      h(
        "p",
        {},
        "The lease of ",
        h("code", {}, holder.ownerId),
        ` with token ${holder.fencingToken} ends at once. Its next renewal fails, and a fence that knows the next token refuses its writes. `,
        waiters.length ? ["Next in the queue is ", h("code", {}, waiters[0].ownerId), ". "] : "",
        holder.lockDelayMs > 0 ? "The lock delay still runs unless it is skipped. " : "",
        "Where no fence guards the resource, the old holder may go on writing until it notices.",
      ),
      h("label", {}, "Type the name of the resource", name),
      h("label", {}, "Reason, for the audit log", reason),
      h("label", {}, "Who you are", actor),
      holder.lockDelayMs > 0 ? h("label", { class: "check" }, skip, "Skip the lock delay") : null,
      problem,
      h("div", { class: "actions" }, h("button", { type: "button", id: "cancel", onclick: () => dialog.close() }, "Cancel"), act),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  signal.addEventListener("abort", () => dialog.close(), { once: true });
  document.body.append(dialog);
  dialog.showModal();
  name.focus();
}
