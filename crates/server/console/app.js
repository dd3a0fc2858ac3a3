// The frame of the console: which page is shown, who is signed in, whether the server is there.

import { get, isSignedIn, Problem, signIn, Unreachable } from "./api.js";
import { badge, fill, h } from "./dom.js";
import { onReachability } from "./live.js";
import { audit } from "./pages/audit.js";
import { cluster } from "./pages/cluster.js";
import { elections } from "./pages/elections.js";
import { fences } from "./pages/fences.js";
import { locks } from "./pages/locks.js";
import { overview } from "./pages/overview.js";
import { resource } from "./pages/resource.js";
import { sessions } from "./pages/sessions.js";
import { tenants } from "./pages/tenants.js";

/// Path, label in the menu (none: reached from another page), what shows it.
const PAGES = [
  ["", "Overview", overview],
  ["locks", "Locks", locks],
  ["resource", null, resource],
  ["sessions", "Sessions", sessions],
  ["elections", "Elections", elections],
  ["fences", "Fences", fences],
  ["audit", "Audit", audit],
  ["tenants", "Tenants", tenants],
  ["cluster", "Cluster", cluster],
];

/// On a server without credentials everybody may do everything.
const OPEN = { open: true, name: "", tenant: "default", role: "admin" };

const main = document.getElementById("main");
let present = null;
let identity = OPEN;

/// `#/resource/a%2Fb?x=1` → { name: "resource", rest: "a/b", query }.
function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  return { name, rest: rest.map(decodeURIComponent).join("/"), query: new URLSearchParams(query) };
}

async function show() {
  const here = place();
  const [, label, page] = PAGES.find(([path]) => path === here.name) ?? PAGES[0];
  present?.abort();
  present = new AbortController();
  const { signal } = present;
  drawMenu(here.name);
  drawNode();
  document.title = label ? `${label} · Leasehold` : `${here.rest} · Leasehold`;
  fill(main, h("p", { class: "faint" }, "Loading …"));
  const failed = (problem) => !signal.aborted && fill(main, refusal(problem));
  const may = (role) => rank(identity.role) >= rank(role);
  await page({ main, signal, failed, may, identity, rest: here.rest, query: here.query });
}

function rank(role) {
  return ["client", "observer", "operator", "admin"].indexOf(role);
}

function refusal(problem) {
  if (problem.status === 401) {
    return [h("h1", {}, "Sign in"), h("p", {}, "This server wants a credential."), signInForm()];
  }
  const title = problem.status === 403 ? "Not for this credential" : "The server refused";
  return [h("h1", {}, title), h("p", { class: "problem" }, problem.message)];
}

function signInForm() {
  const secret = h("input", { type: "password", id: "credential", name: "credential", autocomplete: "off", required: true });
  const problem = h("p", { class: "problem", role: "alert" });
  const submit = async (event) => {
    event.preventDefault();
    signIn(secret.value.trim());
    secret.value = "";
    try {
      await learnIdentity();
      show();
    } catch (error) {
      signIn("");
      problem.textContent = error.message;
    }
  };
  return h(
    "form",
    { class: "bar", onsubmit: submit },
    h("label", {}, "Credential", secret),
    h("button", { class: "primary", type: "submit" }, "Sign in"),
    problem,
  );
}

async function learnIdentity() {
  try {
    identity = await get("/v1/identity");
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 401) throw error;
    identity = { open: false, role: "", name: "", tenant: "" };
    if (isSignedIn()) throw error;
  }
  drawWho();
}

function drawWho() {
  const signOut = () => {
    signIn("");
    learnIdentity().then(show);
  };
  fill(
    document.getElementById("who"),
    identity.open ? badge("open server", "warn") : null,
    identity.name ? h("span", { class: "faint" }, `${identity.name}, ${identity.role} of ${identity.tenant}`) : null,
    isSignedIn() ? h("button", { type: "button", onclick: signOut }, "Sign out") : null,
  );
}

/// Which node answers, below every page.
async function drawNode() {
  const line = document.getElementById("node");
  try {
    const { node, role, epoch, journal, durability, version } = await get("/v1/status");
    line.textContent = `${node} · ${role} · epoch ${epoch} · ${journal}, ${durability} · ${version}`;
  } catch {
    // The page itself says what is wrong.
    line.textContent = "";
  }
}

function drawMenu(current) {
  const links = PAGES.filter(([, label]) => label).map(([path, label]) =>
    h("a", { href: `#/${path}`, "aria-current": path === current || (current === "resource" && path === "locks") ? "page" : null }, label),
  );
  const nav = document.getElementById("nav");
  fill(nav, links);
  // On a narrow screen the menu is longer than its line.
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

function keys(event) {
  const typing = event.target.closest("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    const search = document.getElementById("search");
    if (search) search.focus();
    else location.hash = "#/locks?search";
  }
}

onReachability((away) => {
  const banner = document.getElementById("banner");
  fill(banner, away ? h("p", {}, "The server does not answer. What is shown may be out of date; trying again …") : null);
  if (away) return;
  learnIdentity().catch(() => {});
  drawNode();
});

async function begin() {
  while (true) {
    try {
      await learnIdentity();
      break;
    } catch (error) {
      if (!(error instanceof Unreachable)) break;
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
  window.addEventListener("hashchange", () => {
    show();
    main.focus();
  });
  document.addEventListener("keydown", keys);
  show();
}

begin();
