// Keeps a page true: it is made anew when something happened, and every few seconds in any case.

import { listen, Problem, Unreachable, withQuery } from "./api.js";

/// Pages are not made anew more often than this, however much happens.
const PAUSE_MS = 700;
/// Ages and remaining times go on also when nothing happens.
const EVERY_MS = 5000;
/// How long to wait for a server that is away before asking again.
const AWAY_MS = 1000;

const reachability = new EventTarget();
let away = false;

/// Calls `told(isAway)` whenever the server goes or comes back.
export function onReachability(told) {
  reachability.addEventListener("change", () => told(away));
}

function setAway(now) {
  if (now === away) return;
  away = now;
  reachability.dispatchEvent(new Event("change"));
}

const sleep = (ms, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

/// Calls `refresh` until `signal` stops it; `failed(problem)` shows what the server refuses. `prefix` says which events
/// matter; null: none.
export async function keepFresh({ signal, refresh, failed, prefix = null, everyMs = EVERY_MS }) {
  const bell = new EventTarget();
  let rung = true;
  const ring = () => ((rung = true), bell.dispatchEvent(new Event("ring")));
  if (prefix !== null) hear(prefix, ring, signal);
  while (!signal.aborted) {
    rung = false;
    try {
      await refresh(signal);
      setAway(false);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Unreachable) {
        setAway(true);
        await sleep(AWAY_MS, signal);
        rung = true;
      } else if (error instanceof Problem) {
        setAway(false);
        failed(error);
        if (error.status === 401) return;
      } else {
        throw error;
      }
    }
    await sleep(PAUSE_MS, signal);
    if (!rung) {
      const waiting = new AbortController();
      bell.addEventListener("ring", () => waiting.abort(), { once: true });
      signal.addEventListener("abort", () => waiting.abort(), { once: true });
      await sleep(everyMs, waiting.signal);
    }
  }
}

async function hear(prefix, ring, signal) {
  while (!signal.aborted) {
    try {
      await listen(withQuery("/v1/events", { prefix }), ring, signal);
    } catch (error) {
      // No right to watch: the page is made anew every few seconds all the same.
      if (error instanceof Problem && (error.status === 403 || error.status === 401)) return;
    }
    await sleep(AWAY_MS, signal);
    ring();
  }
}
