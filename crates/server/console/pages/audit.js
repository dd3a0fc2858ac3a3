// What operators did, and whether the record of it is whole.

import { get } from "../api.js";
import { badge, fill, h, table } from "../dom.js";
import { count, when } from "../format.js";
import { keepFresh } from "../live.js";

export function audit({ main, signal, failed, query }) {
  const after = query.get("after") ?? "";
  const refresh = async (signal) => {
    const [page, chain] = await Promise.all([get("/v1/audit", { after }, signal), get("/v1/audit/verify", {}, signal)]);
    fill(main, draw(page, chain));
  };
  return keepFresh({ signal, refresh, failed, prefix: "" });
}

function draw({ entries, nextAfter }, chain) {
  const verdict = chain.intact
    ? badge(`intact: ${count(chain.entries)} ${chain.entries === 1 ? "entry" : "entries"}`, "good")
    : badge(`broken at entry ${chain.firstBad}`, "bad");
  const columns = [
    { label: "#", number: true, cell: ({ seq }) => String(seq) },
    { label: "When", tight: true, head: true, cell: ({ createdAt }) => when(createdAt) },
    { label: "Action", cell: ({ action }) => badge(action.toLowerCase().replaceAll("_", " ")) },
    { label: "Resource", cell: ({ resource }) => (resource ? h("a", { href: `#/resource/${encodeURIComponent(resource)}` }, h("code", {}, resource)) : "") },
    { label: "Token", number: true, cell: ({ fencingToken }) => (fencingToken ? String(fencingToken) : "") },
    { label: "Who", cell: ({ actorId, identity }) => (identity && identity !== actorId ? `${actorId} (as ${identity})` : actorId) },
    { label: "Reason", cell: ({ reason }) => reason },
  ];
  return [
    h("h1", {}, "Audit log"),
    h("p", {}, "Hash chain ", verdict),
    table("Audit log", columns, [...entries].reverse(), "No operator has acted yet."),
    nextAfter === null ? null : h("p", {}, h("a", { id: "next-page", href: `#/audit?after=${nextAfter}` }, "Later entries")),
  ];
}
