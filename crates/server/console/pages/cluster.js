// The nodes and the journal under them.

import { get } from "../api.js";
import { badge, facts, fill, h, table } from "../dom.js";
import { count } from "../format.js";
import { keepFresh } from "../live.js";

export function cluster({ main, signal, failed }) {
  const refresh = async (signal) => fill(main, draw(await get("/v1/status", {}, signal)));
  return keepFresh({ signal, refresh, failed, everyMs: 2000 });
}

function draw(status) {
  const columns = [
    { label: "Node", head: true, cell: ({ node }) => node },
    { label: "Role", cell: ({ role }) => badge(role, role === "active" ? "good" : "") },
    { label: "Address", cell: ({ address }) => (address ? h("code", {}, address) : "") },
    { label: "Version", cell: ({ version }) => version ?? "" },
    { label: "Lag, slots", number: true, cell: ({ lag }) => (lag === undefined || lag === null ? "" : count(lag)) },
  ];
  return [
    h("h1", {}, "Cluster"),
    facts([
      ["Cluster", h("code", {}, status.clusterId)],
      ["Asked node", `${status.node}, ${status.role}`],
      ["Epoch, generation", `${status.epoch}, ${status.generation}`],
      ["Journal", `${status.journal}, ${status.durability}`],
      ["Slot", count(status.slot)],
      ["Last token", status.lastToken === null ? "none" : count(status.lastToken)],
      ["Version", status.version],
    ]),
    h("h2", {}, "Nodes seen"),
    table("Nodes", columns, status.nodes, "None."),
    status.generation > 1
      ? h("p", { class: "faint" }, "The generation was raised by a recovery: tokens went up by a large step, and never back.")
      : null,
  ];
}
