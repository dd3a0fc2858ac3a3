// What a person does with the console, step by step. Each scenario has a server of its own; `main.rs` runs them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { LEASEHOLD_BIN, LEASEHOLD_TOOLS, LEASEHOLD_DATA, LEASEHOLD_PORT, LEASEHOLD_PICTURES } = process.env;
const require = createRequire(join(LEASEHOLD_TOOLS, "package.json"));
const { chromium } = require("playwright-core");

/// Long enough for a machine that is busy with other tests.
const PATIENCE = 30_000;
const BASE = `http://127.0.0.1:${LEASEHOLD_PORT}`;
const PAGES = ["", "locks", "resource/billing%2Facme", "sessions", "elections", "fences", "audit", "tenants", "cluster"];
const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

class Server {
  static async start(more = []) {
    const server = new Server();
    const args = ["serve", "--listen", `127.0.0.1:${LEASEHOLD_PORT}`, "--data", LEASEHOLD_DATA, ...more];
    server.process = spawn(LEASEHOLD_BIN, args, { stdio: ["ignore", "ignore", "ignore"] });
    await until("the server is ready", async () => (await fetch(`${BASE}/readyz`).catch(() => null))?.ok);
    return server;
  }

  async stop() {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill("SIGTERM");
    await ended;
  }
}

async function until(what, so) {
  const end = Date.now() + PATIENCE;
  while (!(await so())) {
    assert(Date.now() < end, `never: ${what}`);
    await new Promise((done) => setTimeout(done, 30));
  }
}

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(BASE + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert(answer.ok, `${path}: ${await answer.clone().text()}`);
  return answer.json();
}

const acquire = (resource, ownerId, more = {}) => post("/v1/locks/acquire", { resource, ownerId, ttlMs: 240_000, ...more });
const release = async ({ leaseId }) => assert((await fetch(`${BASE}/v1/locks/${leaseId}`, { method: "DELETE" })).ok);

/// Something of everything that a page can show.
async function furnish() {
  await release(await acquire("billing/acme", "early"));
  await acquire("billing/acme", "taken");
  await post("/v1/resources/billing%2Facme/force-release", { actorId: "ann", reason: "stuck", all: true });
  await acquire("billing/acme", "biller@host-4:811", { labels: { release: "7" } });
  post("/v1/locks/acquire", { resource: "billing/acme", ownerId: "next", ttlMs: 240_000, waitMs: 240_000 }).catch(() => {});
  const { sessionId } = await post("/v1/sessions", { ownerId: "worker-1", ttlMs: 240_000 });
  await post("/v1/locks/acquire", { resource: "jobs/nightly", sessionId });
  const rejections = [{ resource: "billing/acme", fencingToken: 2, highestToken: 3 }];
  await post("/v1/fences/report", { prefix: "billing/", enforces: true, rejections });
  await post("/v1/fences/report", { prefix: "jobs/", enforces: false });
  await post("/v1/elections/scheduler/campaign", { ownerId: "sched-a", ttlMs: 240_000, value: "http://127.0.0.1:9" });
}

/// A page whose console must stay silent.
async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(error.message));
  page.on("console", (line) => line.type() === "error" && page.complaints.push(line.text()));
  return page;
}

async function visit(page, place) {
  await page.goto(`${BASE}/#/${place}`);
  await page.locator("main h1").first().waitFor();
}

const scenarios = {
  async every_page_shows_and_is_accessible(browser) {
    await furnish();
    mkdirSync(LEASEHOLD_PICTURES, { recursive: true });
    const looks = { light: [1200, "light"], dark: [1200, "dark"], narrow: [390, "light"] };
    for (const [look, [width, colorScheme]] of Object.entries(looks)) {
      const page = await open(browser, { viewport: { width, height: 800 }, colorScheme });
      for (const place of PAGES) {
        await visit(page, place);
        await page.screenshot({ path: join(LEASEHOLD_PICTURES, `${place.split("/")[0] || "overview"}-${look}.png`), fullPage: true });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert(wide <= 0, `${place} on ${look} is ${wide} pixels too wide`);
        const menu = await page.locator("nav [aria-current]").evaluate((link) => link.getBoundingClientRect().right - innerWidth);
        assert(menu <= 0, `${place} on ${look}: the menu hides where one is`);
        await checkAccessibility(page, `${place} on ${look}`);
      }
      assert.deepEqual(page.complaints, []);
    }
  },

  async a_lock_taken_elsewhere_appears_by_itself(browser) {
    const page = await open(browser);
    await visit(page, "locks?prefix=orders%2F");
    await page.getByText("No lock is held that fits.").waitFor();
    const grant = await acquire("orders/41", "shop-3");
    await page.getByRole("link", { name: "orders/41" }).waitFor();
    await page.getByText("shop-3").waitFor();
    await release(grant);
    await page.getByText("No lock is held that fits.").waitFor();
    assert.deepEqual(page.complaints, []);
  },

  async filters_show_what_wants_a_look(browser) {
    const { leaseId } = await acquire("jobs/late", "slow");
    await post(`/v1/locks/${leaseId}/renew`, { missed: 2, lastError: "timed out", maxGapMs: 9000 });
    await acquire("jobs/light", "cache", { class: "efficiency" });
    await acquire("jobs/fenced", "writer");
    await post("/v1/fences/report", { prefix: "jobs/fenced", enforces: true });
    const page = await open(browser);
    const shown = () => page.locator("tbody th a").allInnerTexts();
    const wanted = { failing: ["jobs/late"], unfenced: ["jobs/late"], long: [] };
    await visit(page, "locks");
    await page.getByRole("link", { name: "jobs/light" }).waitFor();
    assert.deepEqual(await shown(), ["jobs/fenced", "jobs/late", "jobs/light"]);
    for (const [filter, names] of Object.entries(wanted)) {
      await page.locator(`#only-${filter}`).click();
      await until(`${filter} shows ${names}`, async () => (await shown()).join() === names.join());
      await page.locator(`#only-${filter}`).click();
      await until("all are shown again", async () => (await shown()).length === 3);
    }
    await visit(page, "resource/jobs%2Flate");
    await page.getByText("missed 2; longest gap 9").waitFor();
    await page.getByText("from now if its holder stays silent").waitFor();
    await page.getByText("timed out").waitFor();
    assert.deepEqual(page.complaints, []);
  },

  async a_lock_is_taken_away_only_with_name_and_reason(browser) {
    const { fencingToken } = await acquire("billing/acme", "stuck");
    const page = await open(browser);
    await visit(page, "resource/billing%2Facme");
    await page.getByRole("button", { name: "Force-release" }).click();
    const confirm = page.locator("#confirm");
    await page.locator("#typed-name").fill("billing/acm");
    await page.locator("#reason").fill("stuck since noon");
    await page.locator("#actor").fill("ann");
    assert(await confirm.isDisabled(), "the name is not complete");
    await page.locator("#typed-name").fill("billing/acme");
    await page.locator("#reason").fill("  ");
    assert(await confirm.isDisabled(), "there is no reason");
    await page.locator("#reason").fill("stuck since noon");
    await confirm.click();
    await page.getByText("Nobody holds it.").waitFor();
    await visit(page, "audit");
    await page.getByText("stuck since noon").waitFor();
    await page.getByText("intact").waitFor();
    const { entries } = await (await fetch(`${BASE}/v1/audit`)).json();
    assert.equal(entries[0].fencingToken, fencingToken);
    assert.deepEqual(page.complaints, []);
  },

  async a_lease_that_ended_meanwhile_is_not_hit(browser) {
    const first = await acquire("billing/acme", "first");
    const page = await open(browser);
    await visit(page, "resource/billing%2Facme");
    await page.getByRole("button", { name: "Force-release" }).click();
    await release(first);
    const second = await acquire("billing/acme", "second");
    await page.locator("#typed-name").fill("billing/acme");
    await page.locator("#reason").fill("stuck");
    await page.locator("#actor").fill("ann");
    await page.locator("#confirm").click();
    await page.getByText("That lease has ended meanwhile").waitFor();
    const { holders } = await (await fetch(`${BASE}/v1/resources/billing%2Facme`)).json();
    assert.deepEqual(holders.map(({ fencingToken }) => fencingToken), [second.fencingToken]);
  },

  async a_server_that_goes_and_comes_back_is_said(browser, server) {
    await acquire("kept", "ann");
    const page = await open(browser);
    await visit(page, "locks");
    await page.getByRole("link", { name: "kept" }).waitFor();
    await page.locator("footer").getByText("epoch 1").waitFor();
    await server.stop();
    await page.getByText("The server does not answer").waitFor();
    await page.getByRole("link", { name: "kept" }).waitFor();
    Object.assign(server, await Server.start());
    await page.getByText("The server does not answer").waitFor({ state: "detached" });
    await page.locator("footer").getByText("epoch 2").waitFor();
    await acquire("after", "bob");
    await page.getByRole("link", { name: "after" }).waitFor();
  },

  async ten_thousand_locks_are_no_burden(browser) {
    const { sessionId } = await post("/v1/sessions", { ownerId: "many", ttlMs: 240_000 });
    const names = Array.from({ length: 10_000 }, (_, i) => `many/${String(i).padStart(5, "0")}`);
    const taker = async () => {
      for (let name = names.pop(); name; name = names.pop()) await post("/v1/locks/acquire", { resource: name, sessionId });
    };
    await Promise.all(Array.from({ length: 16 }, taker));
    const page = await open(browser);
    await page.addInitScript(() => {
      window.longest = 0;
      new PerformanceObserver((list) => list.getEntries().forEach((task) => (window.longest = Math.max(window.longest, task.duration)))).observe({ type: "longtask" });
    });
    // The page is quick if it is once: what else the machine does makes it slower, never quicker.
    let longest = Infinity;
    for (let attempt = 0; attempt < 5 && longest >= 500; attempt++) {
      await page.evaluate(() => (window.longest = 0)).catch(() => {});
      await visit(page, "locks");
      await page.getByRole("link", { name: "many/00000" }).waitFor();
      await page.getByRole("link", { name: "Next page" }).click();
      await page.getByRole("link", { name: "many/00100" }).waitFor();
      await page.locator("#search").fill("many/0999");
      await page.locator("#search").press("Enter");
      await page.getByRole("link", { name: "many/09990" }).waitFor();
      longest = await page.evaluate(() => window.longest);
      console.log(`longest task with 10,000 locks held: ${Math.round(longest)} ms`);
    }
    assert(longest < 500, `a task of the page took ${longest} ms`);
    assert.deepEqual(page.complaints, []);
  },

  async without_rights_there_is_no_button(browser, server) {
    await server.stop();
    Object.assign(server, await Server.start(["--auth"]));
    const file = join(LEASEHOLD_DATA, "admin-credential");
    await until("the first credential is there", () => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"));
    const admin = readFileSync(file, "utf8").trim();
    const as = (secret) => ({ authorization: `Bearer ${secret}`, "content-type": "application/json" });
    const made = async (role) => {
      const body = JSON.stringify({ principal: `${role}-1`, role });
      const answer = await fetch(`${BASE}/v1/credentials`, { method: "POST", headers: as(admin), body });
      assert(answer.ok, await answer.clone().text());
      return (await answer.json()).secret;
    };
    const [observer, operator] = [await made("observer"), await made("operator")];
    const body = JSON.stringify({ resource: "billing/acme", ownerId: "ann", ttlMs: 240_000 });
    assert((await fetch(`${BASE}/v1/locks/acquire`, { method: "POST", headers: as(operator), body })).ok);

    const page = await open(browser);
    await signIn(page, observer);
    await page.getByRole("heading", { name: "Holder" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Force-release" }).count(), 0, "an observer has no button");
    const force = JSON.stringify({ actorId: "o", reason: "r", all: true });
    const refused = await fetch(`${BASE}/v1/resources/billing%2Facme/force-release`, { method: "POST", headers: as(observer), body: force });
    assert.equal(refused.status, 403);
    assert.deepEqual(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]), [0, 0, ""]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.locator("#credential").fill("lh_nonsense");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator("form .problem").filter({ hasText: /./ }).waitFor();
    await signIn(page, operator);
    await page.getByRole("button", { name: "Force-release" }).waitFor();
  },

  async the_keyboard_is_enough(browser) {
    await acquire("billing/acme", "ann");
    const page = await open(browser);
    await visit(page, "");
    await page.keyboard.press("/");
    await page.locator("#search:focus").waitFor();
    await page.keyboard.type("billing/");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "billing/acme" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Force-release" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#typed-name:focus").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Force-release" }).press("Enter");
    await page.locator("dialog").waitFor();
    await page.goBack();
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.deepEqual(page.complaints, []);
  },
};

/// Opens a resource on a protected server and shows a credential.
async function signIn(page, secret) {
  await page.goto(`${BASE}/#/resource/billing%2Facme`);
  await page.locator("#credential").fill(secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "billing/acme" }).waitFor();
}

/// No serious finding of axe. It is run from outside the page's policy, which allows no script but the console's own.
async function checkAccessibility(page, what) {
  const { source } = require("axe-core");
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const told = serious.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html).join(" ; ")}`);
  assert.deepEqual(told, [], what);
}

const server = await Server.start();
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: QUIET });
try {
  await scenarios[process.argv[2]](browser, server);
} finally {
  await browser.close();
  await server.stop();
}
