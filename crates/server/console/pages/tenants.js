// What the tenant has and may have; for administrators also who the callers are.

import { get } from "../api.js";
import { badge, fill, h, table } from "../dom.js";
import { count, when } from "../format.js";
import { keepFresh } from "../live.js";

const WHAT = [
  ["Locks held", "locks"],
  ["Sessions", "sessions"],
  ["Waiting", "waiters"],
  ["Bytes of names, labels, values", "bytes"],
  ["Event streams", "watchers"],
  ["Requests a second", "perSecond"],
];

export function tenants({ main, signal, failed, may, query }) {
  const cursor = query.get("cursor") ?? "";
  const refresh = async (signal) => {
    const identity = await get("/v1/identity", {}, signal);
    const callers = may("admin") ? await get("/v1/credentials", { cursor }, signal) : null;
    fill(main, draw(identity, callers));
  };
  return keepFresh({ signal, refresh, failed });
}

function draw({ tenant, usage, quota }, callers) {
  const columns = [
    { label: "What", head: true, cell: ([label]) => label },
    { label: "Now", number: true, cell: ([, key]) => (usage[key] === undefined ? "–" : count(usage[key])) },
    { label: "Quota", number: true, cell: ([, key]) => (quota[key] === undefined ? "none" : count(quota[key])) },
    { label: "", cell: ([, key]) => (quota[key] !== undefined && usage[key] >= 0.9 * quota[key] ? badge("almost used up", "warn") : null) },
  ];
  return [h("h1", {}, `Tenant ${tenant}`), table("Usage and quotas", columns, WHAT, ""), callers ? credentials(callers) : null];
}

function credentials({ credentials, nextCursor }) {
  const columns = [
    { label: "Principal", head: true, cell: ({ principal }) => principal },
    { label: "Tenant", cell: ({ tenant }) => tenant },
    { label: "Role", cell: ({ role }) => badge(role) },
    { label: "Scopes", cell: ({ scopes }) => (scopes?.length ? scopes.join(", ") : "all names") },
    { label: "Shown by", cell: ({ san }) => (san ? `certificate ${san}` : "secret") },
    { label: "Expires", cell: ({ expiresAt }) => (expiresAt ? when(expiresAt) : "never") },
  ];
  return [
    h("h2", {}, "Credentials of every tenant"),
    table("Credentials", columns, credentials, "None: this server is open to whoever reaches it."),
    nextCursor ? h("p", {}, h("a", { id: "next-page", href: `#/tenants?cursor=${encodeURIComponent(nextCursor)}` }, "Next page")) : null,
  ];
}
