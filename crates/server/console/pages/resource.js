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
    fill(main, draw(answer, may("operator") ? (holder) => forceRelease(answer, holder, identity, signal) : null));
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
      ["Contention", `${count(answer.contention)} ${answer.contention === 1 ? "acquire" : "acquires"} met a holder, a waiter or a lock delay`],
      ["Fence rejections", answer.fenceRejections > 0 ? badge(count(answer.fenceRejections), "bad") : "none reported"],
      ["Earliest re-grant", regrant(answer)],
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

/// When somebody else can have it: at the latest when whoever holds it has been silent for its ttl, and the lock delay is over.
function regrant({ holders, earliestRegrantAt }) {
  if (earliestRegrantAt) return `${when(earliestRegrantAt)}, at the end of its lock delay`;
  if (!holders.length) return "at once";
  const left = Math.min(...holders.map(({ remainingMs }) => remainingMs));
  const room = holders[0].mode === "exclusive" ? "" : "at once while there is room for another; else ";
  return `${room}when it is released, or about ${duration(left)} from now if its holder stays silent`;
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
  if (!ends.length && !begun.length) return null;
  const now = Date.parse(asOf);
  const from = Math.min(...ends.map(({ at }) => at), ...begun, now - 1000);
  // In parts of the width, so that words and dots have their size on every screen.
  const x = (time) => 2.5 + (95 * (time - from)) / Math.max(now - from, 1);
  const said = `${holders.length ? "held now" : "free now"}; ${ends.length} endings since ${when(new Date(from).toISOString())}`;
  return [
    svg(
      "svg",
      { class: "timeline", role: "img", "aria-label": `Timeline: ${said}` },
      svg("rect", { class: "past", x: "2.5%", y: 23, width: "95%", height: 2 }),
      ...begun.map((at) => svg("rect", { class: "hold", x: `${x(at)}%`, y: 16, width: `${Math.max(x(now) - x(at), 0.4)}%`, height: 16, rx: 3 })),
      ...ends.map(({ at, reason, fencingToken }) =>
        svg("circle", { class: reason, cx: `${x(at)}%`, cy: 24, r: 6 }, svgWords("title", {}, `${reason.replace("_", " ")}, token ${fencingToken}, ${when(new Date(at).toISOString())}`)),
      ),
      svgWords("text", { x: "2.5%", y: 53, "text-anchor": "start" }, when(new Date(from).toISOString())),
      svgWords("text", { x: "97.5%", y: 53, "text-anchor": "end" }, "now"),
    ),
    h("p", { class: "faint legend" }, "Bar: held. Dots: endings, ", badge("released", "good"), badge("expired or session ended", "warn"), badge("forced", "bad")),
  ];
}

function svgWords(name, properties, words) {
  const element = svg(name, properties);
  element.textContent = words;
  return element;
}
