// The elections that have a leader now.

import { get } from "../api.js";
import { fill, h, table } from "../dom.js";
import { when } from "../format.js";
import { keepFresh } from "../live.js";

const PREFIX = "election/";

export function elections({ main, signal, failed }) {
  const refresh = async (signal) => {
    const { locks } = await get("/v1/locks", { prefix: PREFIX, pageSize: 100 }, signal);
    const names = locks.map(({ resource }) => resource.slice(PREFIX.length));
    const all = await Promise.all(names.map((name) => get(`/v1/elections/${encodeURIComponent(name)}`, {}, signal)));
    fill(main, draw(all.filter(({ leader }) => leader)));
  };
  return keepFresh({ signal, refresh, failed, prefix: PREFIX });
}

function draw(all) {
  const columns = [
    { label: "Election", head: true, cell: ({ name }) => h("a", { href: `#/resource/${encodeURIComponent(PREFIX + name)}` }, h("code", {}, name)) },
    { label: "Leader", cell: ({ leader }) => h("code", {}, leader.ownerId) },
    { label: "Says", cell: ({ leader }) => leader.value ?? "" },
    { label: "Term (token)", number: true, cell: ({ leader }) => String(leader.fencingToken) },
    { label: "Since", cell: ({ leader }) => when(leader.electedAt) },
    { label: "Candidates", cell: ({ candidates }) => (candidates.length ? candidates.join(", ") : "none") },
  ];
  return [
    h("h1", {}, "Elections"),
    h("p", { class: "faint" }, "The token of a leader is its term: a fence refuses the writes of an earlier one."),
    table("Elections", columns, all, "No election has a leader now."),
  ];
}
