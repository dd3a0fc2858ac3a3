// What is going on: how much is held and asked for, how fast it is, which prefixes are hot.

import { get, text } from "../api.js";
import { badge, fill, h, svg, table } from "../dom.js";
import { count, duration, latency, rate } from "../format.js";
import { keepFresh } from "../live.js";
import { parse, quantile, total, totalBy } from "../metrics.js";

const LOOKS_EVERY_MS = 2000;
/// What the page of metrics calls the prefixes that are too many to be told apart.
const OTHER = "other";
/// Two minutes of looks.
const LOOKS_KEPT = 60;

export function overview({ main, signal, failed }) {
  const looks = [];
  const refresh = async (signal) => {
    const [status, page] = await Promise.all([get("/v1/status", {}, signal), text("/metrics", signal)]);
    looks.push({ at: performance.now(), status, samples: parse(page) });
    if (looks.length > LOOKS_KEPT) looks.shift();
    fill(main, draw(looks));
  };
  return keepFresh({ signal, refresh, failed, everyMs: LOOKS_EVERY_MS });
}

function draw(looks) {
  const { status, samples } = looks.at(-1);
  return [
    h("h1", {}, "Overview"),
    h("p", { class: "faint" }, health(status)),
    h(
      "div",
      { class: "tiles" },
      tile("Held", count(status.locksHeld), looks.map((look) => look.status.locksHeld)),
      tile("Waiting", count(status.waiters), looks.map((look) => look.status.waiters)),
      tile("Sessions", count(status.sessionsOpen), looks.map((look) => look.status.sessionsOpen)),
      rateTile("Grants", looks, "lock_acquire_success_total"),
      rateTile("Renewals", looks, "lock_renewals_total"),
      rateTile("Contended", looks, "lock_acquire_contended_total"),
      rateTile("Expired", looks, "lock_expired_total"),
      latencyTile("Acquire, p99", looks, "lock_acquire_latency_seconds"),
      latencyTile("Commit, p99", looks, "journal_commit_seconds"),
      tile("Longest held", duration(1000 * total(samples, "lock_held_longest_seconds")), looks.map((look) => total(look.samples, "lock_held_longest_seconds"))),
      tile("Role", status.role),
      tile("Epoch", count(status.epoch)),
    ),
    h("h2", {}, "Prefixes"),
    prefixes(looks[0], looks.at(-1)),
    h("p", { class: "faint note" }, "Rates and latencies are of the time since this page was opened, two minutes at most; a latency that nobody had meanwhile is that of the node's whole life."),
  ];
}

function health(status) {
  if (status.stalled) return badge("commits make no progress: renewals are refused", "bad");
  if (!status.room) return badge("disk almost full: acquires are refused, releases go on", "bad");
  if (status.durability !== "durable") return badge(`journal is ${status.durability}: grants are best effort`, "warn");
  return badge("serving", "good");
}

function tile(label, value, history) {
  return h("div", { class: "tile" }, h("div", { class: "label" }, label), h("div", { class: "value" }, value), history ? spark(history) : null);
}

function rateTile(label, looks, name) {
  const totals = looks.map(({ at, samples }) => ({ at, sum: total(samples, name) }));
  const rates = totals.slice(1).map(({ at, sum }, i) => (1000 * Math.max(0, sum - totals[i].sum)) / (at - totals[i].at));
  return tile(label, rates.length ? rate(rates.at(-1)) : "–", rates);
}

/// Of what was counted while the page is open, or else ever: a page that was just opened has something to say, too.
function latencyTile(label, looks, name) {
  const p99 = (before, after) => quantile(before, after, name, 0.99);
  const { samples } = looks.at(-1);
  const steps = looks.slice(1).map((look, i) => p99(looks[i].samples, look.samples) ?? 0);
  return tile(label, latency(p99(looks[0].samples, samples) ?? p99([], samples)), steps);
}

function spark(values) {
  const top = Math.max(...values, 0) || 1;
  const step = 100 / Math.max(values.length - 1, 1);
  const points = values.map((value, i) => `${(i * step).toFixed(2)},${(30 - (28 * value) / top).toFixed(2)}`).join(" ");
  return svg("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { class: "spark", points }));
}

function prefixes(first, last) {
  const names = [...totalBy(last.samples, "lock_acquire_attempts_total", "prefix").keys()];
  const seconds = Math.max((last.at - first.at) / 1000, 1);
  const perSecond = (name, prefix) =>
    ((totalBy(last.samples, name, "prefix").get(prefix) ?? 0) - (totalBy(first.samples, name, "prefix").get(prefix) ?? 0)) / seconds;
  const rows = names.map((prefix) => ({
    prefix,
    attempts: perSecond("lock_acquire_attempts_total", prefix),
    contended: perSecond("lock_acquire_contended_total", prefix),
    expired: totalBy(last.samples, "lock_expired_total", "prefix").get(prefix) ?? 0,
  }));
  rows.sort((a, b) => b.attempts - a.attempts || a.prefix.localeCompare(b.prefix));
  const columns = [
    { label: "Prefix", head: true, cell: ({ prefix }) => (prefix === OTHER ? "all others" : h("a", { href: `#/locks?prefix=${encodeURIComponent(prefix)}` }, h("code", {}, prefix))) },
    { label: "Acquires", number: true, cell: ({ attempts }) => rate(attempts) },
    { label: "Contended", number: true, cell: ({ attempts, contended }) => (attempts ? `${Math.round((100 * contended) / attempts)} %` : "–") },
    { label: "Expired, ever", number: true, cell: ({ expired }) => count(expired) },
  ];
  return table("Prefixes", columns, rows.slice(0, 20), "Nothing has been asked for yet.");
}
