// Which locks are held: by prefix, with the ones that want a look.

import { get } from "../api.js";
import { badge, fill, h, table } from "../dom.js";
import { count, duration } from "../format.js";
import { keepFresh } from "../live.js";

const PAGE_SIZE = 100;
/// Locks without a fence are looked for in so many pages of so many locks at a time.
const PAGES_READ = 10;
const LARGE_PAGE = 500;
/// A lock that is held for longer than this is worth a look.
const LONG_HELD_MS = 15 * 60 * 1000;

export function locks({ main, signal, failed, query }) {
  const asked = {
    prefix: query.get("prefix") ?? "",
    ownerId: query.get("owner") ?? "",
    heldLongerThanMs: query.has("long") ? LONG_HELD_MS : "",
    missedAtLeast: query.has("failing") ? 1 : "",
    cursor: query.get("cursor") ?? "",
    pageSize: PAGE_SIZE,
  };
  const rows = h("div", {});
  const frame = [h("h1", {}, "Locks"), form(query), rows];
  let drawn = false;
  const refresh = async (signal) => {
    const answer = await (query.has("unfenced") ? unfenced(asked, signal) : get("/v1/locks", asked, signal));
    if (!drawn) fill(main, frame);
    drawn = true;
    fill(rows, list(answer, query));
    if (query.has("search")) document.getElementById("search")?.focus();
    query.delete("search");
  };
  return keepFresh({ signal, refresh, failed, prefix: asked.prefix });
}

/// Correctness locks for which no fence is known. The service has no such filter: pages are read until enough are found.
async function unfenced(asked, signal) {
  const found = [];
  let cursor = asked.cursor;
  for (let read = 0; read < PAGES_READ && found.length < PAGE_SIZE && cursor !== null; read++) {
    const page = await get("/v1/locks", { ...asked, cursor, pageSize: LARGE_PAGE }, signal);
    found.push(...page.locks.filter((lock) => lock.class === "correctness" && lock.guarantee !== "fenced"));
    cursor = page.nextCursor ?? null;
  }
  return { locks: found, nextCursor: cursor };
}

function form(query) {
  const field = (id, label, name) =>
    h("label", {}, label, h("input", { type: "search", id, name, value: query.get(name) ?? "", spellcheck: "false", autocomplete: "off" }));
  const check = (label, name) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", id: `only-${name}`, name, checked: query.has(name), onchange: (event) => go(event.target.form) }), label);
  const go = (form) => {
    const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    location.hash = wanted.size ? `#/locks?${wanted}` : "#/locks";
  };
  const submit = (event) => {
    event.preventDefault();
    go(event.target);
  };
  return h(
    "form",
    { class: "bar", role: "search", onsubmit: submit },
    field("search", "Name begins with", "prefix"),
    field("owner", "Owner", "owner"),
    check("held for over 15 min", "long"),
    check("missed renewals", "failing"),
    check("correctness without a fence", "unfenced"),
    h("button", { type: "submit" }, "Show"),
  );
}

function list({ locks, nextCursor }, query) {
  const columns = [
    { label: "Resource", head: true, cell: (lock) => h("a", { href: `#/resource/${encodeURIComponent(lock.resource)}` }, h("code", {}, lock.resource)) },
    { label: "Owner", cell: (lock) => h("code", {}, lock.ownerId) },
    { label: "Token", number: true, cell: (lock) => String(lock.fencingToken) },
    { label: "Held for", number: true, cell: (lock) => duration(lock.heldMs) },
    { label: "Left", number: true, cell: (lock) => duration(lock.remainingMs) },
    { label: "Waiting", number: true, cell: (lock) => count(lock.waiters) },
    { label: "", cell: marks },
  ];
  const next = new URLSearchParams(query);
  next.set("cursor", nextCursor ?? "");
  return [
    table("Locks", columns, locks, nextCursor ? "None so far: there are more locks to look at." : "No lock is held that fits."),
    h(
      "p",
      { class: "bar" },
      h("span", { class: "faint" }, `${count(locks.length)} shown${nextCursor ? ", and there are more" : ""}`),
      query.get("cursor") ? h("a", { id: "first-page", href: `#/locks?${without(query, "cursor")}` }, "Back to the first") : null,
      nextCursor ? h("a", { id: "next-page", href: `#/locks?${next}` }, "Next page") : null,
    ),
  ];
}

function without(query, name) {
  const rest = new URLSearchParams(query);
  rest.delete(name);
  return rest;
}

/// What is worth a look about a lock.
export function marks(lock) {
  return h(
    "span",
    { class: "marks" },
    lock.mode !== "exclusive" ? badge(lock.mode === "semaphore" ? `permit ${lock.permit}` : lock.mode) : null,
    lock.heldMs > LONG_HELD_MS ? badge("long held", "warn") : null,
    lock.missed > 0 ? badge(`missed ${lock.missed}`, "warn") : null,
    lock.class === "efficiency" ? badge("efficiency") : guarantee(lock.guarantee),
  );
}

function guarantee(word) {
  if (word === "fenced") return badge("fenced", "good");
  return badge(word === "lease_only" ? "no fence known" : "best effort", word === "lease_only" ? "" : "warn");
}
