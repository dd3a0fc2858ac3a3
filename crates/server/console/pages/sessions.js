// The sessions: one liveness scope each, with what they hold.

import { get } from "../api.js";
import { badge, fill, h, table } from "../dom.js";
import { count, duration } from "../format.js";
import { keepFresh } from "../live.js";

export function sessions({ main, signal, failed, query }) {
  const cursor = query.get("cursor") ?? "";
  const refresh = async (signal) => {
    const answer = await get("/v1/sessions", { pageSize: 100, cursor }, signal);
    fill(main, draw(answer));
  };
  return keepFresh({ signal, refresh, failed });
}

function draw({ sessions, nextCursor }) {
  const columns = [
    { label: "Owner", head: true, cell: (session) => h("a", { href: `#/locks?owner=${encodeURIComponent(session.ownerId)}` }, h("code", {}, session.ownerId)) },
    { label: "Locks", number: true, cell: (session) => count(session.lockCount) },
    { label: "TTL", number: true, cell: (session) => duration(session.ttlMs) },
    { label: "Left", number: true, cell: (session) => duration(session.remainingMs) },
    { label: "Open for", number: true, cell: (session) => duration(session.heldMs ?? Date.now() - Date.parse(session.createdAt)) },
    { label: "", cell: (session) => (session.remainingMs < session.ttlMs / 3 ? badge("renewal is late", "warn") : null) },
  ];
  return [
    h("h1", {}, "Sessions"),
    h("p", { class: "faint" }, "A session keeps all its leases alive with one keep-alive; when it ends they all end."),
    table("Sessions", columns, sessions, "No session is open."),
    nextCursor ? h("p", {}, h("a", { id: "next-page", href: `#/sessions?cursor=${encodeURIComponent(nextCursor)}` }, "Next page")) : null,
  ];
}
