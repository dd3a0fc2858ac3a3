// Which fences are known, and what they stopped.

import { get } from "../api.js";
import { badge, fill, h, table } from "../dom.js";
import { count, duration } from "../format.js";
import { keepFresh } from "../live.js";

export function fences({ main, signal, failed }) {
  const refresh = async (signal) => fill(main, draw(await get("/v1/fences", {}, signal)));
  return keepFresh({ signal, refresh, failed });
}

function draw({ fences }) {
  const columns = [
    { label: "Locks that begin with", head: true, cell: ({ prefix }) => (prefix ? h("a", { href: `#/locks?prefix=${encodeURIComponent(prefix)}` }, h("code", {}, prefix)) : "every name") },
    { label: "Declared", cell: ({ declared }) => declared ?? "" },
    { label: "Roll-out", cell: ({ enforces }) => stage(enforces) },
    { label: "Last heard of", number: true, cell: ({ reportedMsAgo }) => (reportedMsAgo === undefined ? "never" : `${duration(reportedMsAgo)} ago`) },
    { label: "Stale writes", number: true, cell: ({ rejections }) => (rejections ? badge(count(rejections), "bad") : "0") },
  ];
  return [
    h("h1", {}, "Fences"),
    h(
      "p",
      { class: "faint" },
      "A lease alone never stops a holder that is paused; the fence at the resource does. Known are those that a policy declares, and those that reported to this node within five minutes. Counters of each are at the fence itself.",
    ),
    table("Fences", columns, fences, "No fence is declared or has reported: every lock here is a lease only."),
  ];
}

function stage(enforces) {
  if (enforces === undefined) return badge("not heard of", "warn");
  return enforces ? badge("enforces", "good") : badge("counts only", "warn");
}
