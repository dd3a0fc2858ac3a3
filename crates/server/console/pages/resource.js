// One resource explained: who holds it and since when, who waits, how earlier leases ended, and taking it away.

import { get } from "../api.js";
import { badge, facts, fill, h, svg, table } from "../dom.js";
import { forceRelease } from "../force_release.js";
import { count, duration, when } from "../format.js";
import { keepFresh } from "../live.js";
import { marks } from "./locks.js";

export function resource({ main, signal, failed, may, identity, rest }) {
  const refresh = async (signal) => {
    const answer = await get(`/v1/resources/${encodeURIComponent(rest)}`, {}, signal);
    fill(main, draw(answer, may("operator") ? (holder) => forceRelease(rest, holder, identity) : null));
  };
  return keepFresh({ signal, refresh, failed, prefix: rest });
}

function draw(answer, takeAway) {
  const { holders, waiters, endings } = answer;
  return [
    h("p", { class: "faint" }, h("a", { href: "#/locks" }, "Locks"), " / resource"),
    h("h1", { class: "mono" }, answer.resource),
    h("p", {}, state(answer)),
    timeline(answer),
    facts([
      ["Last token", answer.lastToken === null ? "never granted" : String(answer.lastToken)],
      ["Contention", `${count(answer.contention)} acquires met a holder, a waiter or a lock delay`],
      ["Fence rejections", answer.fenceRejections > 0 ? badge(count(answer.fenceRejections), "bad") : "none reported"],
      answer.earliestRegrantAt ? ["Earliest re-grant", when(answer.earliestRegrantAt)] : null,
    ]),
    h("h2", {}, holders.length > 1 ? "Holders" : "Holder"),
    holders.map((holder) => holderCard(holder, takeAway)),
    holders.length ? null : h("p", { class: "faint" }, "Nobody holds it."),
    h("h2", {}, "Queue"),
    table(
      "Queue",
      [
        { label: "Place", cell: ({ place }) => String(place) },
        { label: "Owner", head: true, cell: ({ ownerId }) => h("code", {}, ownerId) },
        { label: "Mode", cell: ({ mode }) => mode },
        { label: "Waiting for", number: true, cell: ({ waitingMs }) => duration(waitingMs) },
      ],
      waiters.map((waiter, i) => ({ place: i + 1, ...waiter })),
      "Nobody waits.",
    ),
    h("h2", {}, "Endings"),
    table(
      "Endings",
      [
        { label: "Ended", head: true, cell: ({ at }) => when(at) },
        { label: "Why", cell: ({ reason }) => badge(reason.replace("_", " "), reason === "released" ? "good" : reason === "forced" ? "bad" : "warn") },
        { label: "Owner", cell: ({ ownerId }) => h("code", {}, ownerId) },
        { label: "Token", number: true, cell: ({ fencingToken }) => String(fencingToken) },
      ],
      endings,
      "No lease of it has ended yet, as far as is remembered.",
    ),
  ];
}

function state({ holders, waiters, earliestRegrantAt }) {
  if (holders.length) return badge(waiters.length ? `held, ${count(waiters.length)} waiting` : "held", "good");
  return earliestRegrantAt ? badge("closed by its lock delay", "warn") : badge("free");
}

function holderCard(holder, takeAway) {
  const labels = Object.entries(holder.labels).map(([key, value]) => `${key}=${value}`);
  return h(
    "div",
    { class: "tile" },
    facts([
      ["Owner", h("code", {}, holder.ownerId)],
      ["Token", String(holder.fencingToken)],
      ["Since", `${when(holder.createdAt)}, for ${duration(holder.heldMs)}`],
      ["Left", `${duration(holder.remainingMs)} of ${duration(holder.ttlMs)}`],
      ["Renewals", `${count(holder.renewals)}; missed ${count(holder.missed)}; longest gap ${duration(holder.maxGapMs)}`],
      holder.lastError ? ["Last error", holder.lastError] : null,
      labels.length ? ["Labels", labels.join(", ")] : null,
      ["", marks(holder)],
    ]),
    takeAway
      ? h("button", { type: "button", class: "danger", id: `take-${holder.fencingToken}`, onclick: () => takeAway(holder) }, "Force-release …")
      : null,
  );
}

/// A picture of the last endings and of the present hold, oldest on the left.
function timeline({ holders, endings, asOf }) {
  const ends = endings.map(({ at, reason, fencingToken }) => ({ at: Date.parse(at), reason, fencingToken })).sort((a, b) => a.at - b.at);
  const begun = holders.map(({ createdAt }) => Date.parse(createdAt));
  const now = Date.parse(asOf);
  const from = Math.min(...ends.map(({ at }) => at), ...begun, now - 1000);
  if (!ends.length && !begun.length) return null;
  const x = (time) => 20 + (760 * (time - from)) / Math.max(now - from, 1);
  const said = `${holders.length ? "held now" : "free now"}; ${ends.length} endings since ${when(new Date(from).toISOString())}`;
  return svg(
    "svg",
    { class: "timeline", viewBox: "0 0 800 74", role: "img", "aria-label": `Timeline: ${said}` },
    svg("rect", { class: "past", x: 20, y: 36, width: 760, height: 2 }),
    ...begun.map((at) => svg("rect", { class: "hold", x: x(at), y: 29, width: Math.max(x(now) - x(at), 3), height: 16, rx: 3 })),
    ...ends.map(({ at, reason, fencingToken }) =>
      svg("circle", { class: reason, cx: x(at), cy: 37, r: 6 }, svgTitle(`${reason.replace("_", " ")}, token ${fencingToken}, ${when(new Date(at).toISOString())}`)),
    ),
    svgText(20, "start", when(new Date(from).toISOString())),
    svgText(780, "end", "now"),
    svgNote(),
  );
}

function svgTitle(words) {
  const title = svg("title");
  title.textContent = words;
  return title;
}

function svgText(x, anchor, words) {
  const text = svg("text", { x, y: 66, "text-anchor": anchor });
  text.textContent = words;
  return text;
}

function svgNote() {
  const text = svg("text", { class: "note", x: 20, y: 16, "text-anchor": "start" });
  text.textContent = "bar: held · dots: endings (green released, amber expired, red forced)";
  return text;
}
