import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { podUid } from "../../src/base/ids.ts";
import { serveUnix } from "../../src/linux/servers/unix-server.ts";
import { localApiRoutes } from "../../src/server/routes.ts";
import { CommandBench, webManifest } from "../support/command.ts";
import { FakeEngine } from "../support/fake-engine.ts";
import type { OptionRow, OptionWorld } from "../support/option-rows.ts";
import { runHere, shownOptions } from "../support/own-command.ts";
import { containerView, podView } from "../support/pod-views.ts";
import { prepareVolumes, volumeOptions } from "../support/volume-options.ts";

const root = join(import.meta.dirname, "../..");
const recording = join(root, "test/fixtures/recordings/crash-and-probe.jsonl");

const log = "one\ntwo\nthree\n";
/** Commands with what they need, to be led to the engine by an option. */
const led = [
  "run --detach --wait none @/web.yaml",
  "ps",
  "logs web",
  "why web",
  "timeline web",
  "blame web",
  "plan",
  "stop gone",
  "retry web",
];

/** What each option does, seen from outside: the command line goes through the whole program to an engine and its files. */
const rows: readonly OptionRow[] = [
  { shows: "run --detach", line: "run -d --wait none @/web.yaml", out: /^running web/ },
  { shows: "run --wait", line: "run --detach --wait running @/web.yaml", out: /^running web/ },
  {
    shows: "run --wait",
    line: "run --wait never @/web.yaml",
    exitCode: 2,
    error: /Allowed choices are ready, running, none/,
  },
  { shows: "run --timeout", line: "run --detach --timeout 1ms @/new.yaml", exitCode: 1, error: /not ready after/ },
  {
    shows: "run --keep",
    line: "run --keep @/web.yaml",
    until: /running web/,
    check: ({ engine }) => assert.equal(engine.stops.length, 0),
  },
  { shows: "run --record", line: "run --record @/rec @/web.yaml", exitCode: 2, error: /does not record/ },
  {
    shows: "run --evict",
    line: "run --evict @/web.yaml",
    exitCode: 2,
    error: /does not evict pods under memory or disk pressure/,
  },
  { shows: "run --no-evict", line: "run --detach --wait none --no-evict @/web.yaml", out: /^running web/ },
  {
    shows: "run --runtime-endpoint",
    line: "run --runtime-endpoint /other.sock @/web.yaml",
    exitCode: 2,
    error: /uses unix:\/\/\/fake\.sock, not unix:\/\/\/other\.sock/,
  },
  { shows: "run --json", line: "run --json --wait none @/web.yaml", out: /^\{\n {2}"wait": "none"/ },
  { shows: "ps --output", line: "ps -o wide", out: /NAMESPACE .*UID +IMAGES\n/ },
  { shows: "ps --output", line: "ps --output json", out: /^\{\n {2}"engine": true/ },
  { shows: "ps --json", line: "ps --json", out: /^\{\n {2}"engine": true/ },
  { shows: "logs --container", line: "logs -c side web", out: "beside\n" },
  { shows: "logs --container", line: "logs --container none web", exitCode: 2, error: /no container "none"/ },
  { shows: "logs --container", line: "logs -c side web app", exitCode: 2, error: /two containers given/ },
  { shows: "logs --follow", line: "logs -f web app", until: /three/, out: log },
  { shows: "logs --tail", line: "logs --tail all web app", out: log },
  { shows: "logs --tail", line: "logs --tail -1 web app", out: log },
  { shows: "logs --tail", line: "logs --tail=-1 web app", out: log },
  { shows: "logs --tail", line: "logs --tail 2 web app", out: "two\nthree\n" },
  { shows: "logs --tail", line: "logs --tail 0 web app", out: "" },
  { shows: "logs --tail", line: "logs --tail -2 web app", exitCode: 2, error: /Use a number of lines, or all/ },
  { shows: "logs --previous", line: "logs -p web app", exitCode: 2, error: /no previous instance/ },
  { shows: "logs --timestamps", line: "logs --timestamps --tail 1 web app", out: /^\d{4}-\d\d-\d\dT.*Z three\n$/ },
  { shows: "logs --since", line: "logs --since 1h web app", out: "three\n" },
  { shows: "logs --since", line: "logs --since 0 web app", out: log },
  { shows: "logs --since", line: "logs --since 0s web app", out: log },
  { shows: "logs --since", line: "logs --since 1ms web app", out: "" },
  {
    shows: "exec --container",
    line: "exec web -c side -- true",
    exitCode: 1,
    asks: /^\/exec\/default\/web\/uid-web\/side\?/,
  },
  { shows: "exec --container", line: "exec web -- true", exitCode: 1, asks: /\/uid-web\/app\?/ },
  { shows: "exec --stdin", line: "exec -i web -- cat", exitCode: 1, asks: /[?&]input=1(&|$)/ },
  { shows: "exec --tty", line: "exec -t web -- true", exitCode: 1, error: /-t without -i has no effect/ },
  {
    shows: "attach --container",
    line: "attach -c side web",
    exitCode: 1,
    asks: /^\/attach\/default\/web\/uid-web\/side\?/,
  },
  { shows: "attach --stdin", line: "attach -i web", exitCode: 1, error: /container app has no stdin/ },
  { shows: "attach --tty", line: "attach -t web", exitCode: 1, error: /container app did not allocate one/ },
  {
    shows: "port-forward --address",
    line: "port-forward --address 127.0.0.1 web :80",
    until: /-> 80/,
    out: /^Forwarding from 127\.0\.0\.1:\d+ -> 80\n$/,
  },
  {
    shows: "port-forward --address",
    line: "port-forward web :80",
    until: /-> 80/,
    out: /^Forwarding from 127\.0\.0\.1/,
  },
  ...["", "127.0.0.1,", "web", "0.0.0.256"].map((address) => ({
    shows: "port-forward --address",
    line: `port-forward --address=${address} web :80`,
    exitCode: 2,
    error: /Use IP addresses of this machine, or localhost/,
  })),
  {
    shows: "port-forward --address",
    line: "port-forward --address 192.0.2.1 web :80",
    exitCode: 3,
    error: /cannot listen on 192\.0\.2\.1:0: EADDRNOTAVAIL\n[^]*use an address of this machine/,
  },
  {
    shows: "debug --image",
    line: "debug web --image busybox -- ps",
    until: /of pod web/,
    exitCode: 1,
    error: /of pod web/,
    check: ({ engine }) => assert.equal(engine.debugs.at(-1)?.image, "busybox"),
  },
  {
    shows: "debug --target",
    line: "debug web --target app -- ps",
    until: /of pod web/,
    exitCode: 1,
    check: ({ engine }) => assert.equal(engine.debugs.at(-1)?.target, "app"),
  },
  { shows: "stop --grace", line: "stop --grace 0 gone", check: stoppedWithin(0), out: /gone/ },
  { shows: "stop --grace", line: "stop --grace 1m gone", check: stoppedWithin(60), out: /gone/ },
  { shows: "stop --grace", line: "stop gone", check: stoppedWithin(undefined), out: /gone/ },
  { shows: "stop --json", line: "stop --json gone", out: /^\{\n {2}"stopped": \[/ },
  { shows: "enable --kubelet", line: "enable --kubelet @/none.yaml", exitCode: 2, error: /none\.yaml/ },
  { shows: "enable --kubelet", line: "enable", exitCode: 2, error: /specify either manifests or --kubelet CONFIG/ },
  {
    shows: "disable --kubelet",
    line: "disable --kubelet web.yaml",
    exitCode: 2,
    error: /specify either names of manifests/,
  },
  { shows: "join --from-kubeadm", line: "join", exitCode: 2, error: /'join' needs --from-kubeadm/ },
  { shows: "join --dry-run", line: "join --dry-run", exitCode: 2, error: /'join' needs --from-kubeadm/ },
  { shows: "doctor --kubelet", line: "doctor --kubelet" },
  { shows: "why --json", line: "why --json web", out: /^\{\n {2}"verdict": "Running and Ready/ },
  { shows: "timeline --json", line: "timeline --json web", out: /^\{\n {2}"incarnation"/ },
  { shows: "blame --json", line: "blame --json web", out: /^\{\n/ },
  { shows: "plan --json", line: "plan --json", out: /^\{\n {2}"pods": \[/ },
  {
    shows: "plan --state-dir",
    line: "plan @/web.yaml --state-dir @/none",
    out: /^default\/web {2}would be added\n[^]*start container app/,
    error: /no engine runs/,
  },
  { shows: "plan --state-dir", line: "plan @/broken.yaml --state-dir @/none", exitCode: 2, error: /broken\.yaml:\d+/ },
  { shows: "plan --state-dir", line: "plan --state-dir @/none", exitCode: 1, error: /no engine runs/ },
  { shows: "ui --port", line: "ui --port 0", until: /code=/, out: /^http:\/\/127\.0\.0\.1:\d+\/ui\/#code=/ },
  { shows: "ui --port", line: "ui --port 65536", exitCode: 2, error: /Use a port, 0 to 65535/ },
  { shows: "exec --state-dir", line: "exec --state-dir @ web -- true", exitCode: 1, asks: /^\/exec\// },
  { shows: "attach --state-dir", line: "attach --state-dir @ web", exitCode: 1, asks: /^\/attach\// },
  { shows: "port-forward --state-dir", line: "port-forward --state-dir @ web :80", until: /-> 80/ },
  {
    shows: "debug --state-dir",
    line: "debug --state-dir @ web -- ps",
    until: /of pod web/,
    exitCode: 1,
    error: /of pod web/,
  },
  {
    shows: "ui --state-dir",
    line: "ui --state-dir @",
    until: /code=/,
    check: (_world, end) => assert.doesNotMatch(end.stderr, /no engine/),
  },
  {
    shows: "replay --pod",
    line: `replay --pod nobody ${recording}`,
    exitCode: 2,
    error: /no decision about pod nobody/,
  },
  { shows: "replay --json", line: `replay --json ${recording}`, out: /^\{\n/ },
  { shows: "doctor --json", line: "doctor --json", out: /^\{\n {2}"checks": \[/, check: doctorKnowsEngine(false) },
  { shows: "doctor --state-dir", line: "doctor --json --state-dir @", check: doctorKnowsEngine(true) },
  {
    shows: "doctor --runtime-endpoint",
    line: "doctor --json --runtime-endpoint unix:///run/podwright-nobody.sock",
    out: /\/run\/podwright-nobody\.sock/,
  },
  { shows: "retry --json", line: "retry --json web", out: /^\{\n {2}"retried": \{/ },
  { shows: "gc --preview", line: "gc --preview", out: /0 images, 0 dead containers, 0 sandboxes would be removed/ },
  { shows: "gc --json", line: "gc --json", out: /^\{\n {2}"items": \[/ },
  { shows: "gc --state-dir", line: "gc --state-dir @", out: /0 sandboxes removed/ },
  { shows: "evict --preview", line: "evict --preview", out: /^memory\.available is 1Gi of 2Gi\n[^]*default\/web/ },
  { shows: "evict --preview", line: "evict", exitCode: 2, error: /'evict' needs either --preview or --confirm/ },
  {
    shows: "evict --confirm",
    line: "evict --preview --confirm",
    exitCode: 2,
    error: /'evict' takes --preview or --confirm, not both/,
  },
  { shows: "evict --confirm", line: "evict --confirm", check: ({ engine }) => assert.ok(engine.confirmed) },
  { shows: "evict --signal", line: "evict --preview --signal nodefs.available", out: /^nodefs\.available is/ },
  { shows: "evict --json", line: "evict --preview --json", out: /^\{\n {2}"signal": "memory\.available"/ },
  { shows: "evict --state-dir", line: "evict --preview --state-dir @", out: /^memory\.available is/ },
  ...volumeOptions,
  { shows: "explain --json", line: "explain --json backoff", out: /^\[\n[^]*"name": "BackOff"/ },
  { shows: "version --json", line: "version --json", out: /^\{"version":/ },
  // With the variable that names the place without an engine, only the option leads to the one that answers.
  ...led.map((line) => ({
    shows: `${line.split(" ")[0]} --state-dir`,
    line: `${line} --state-dir @`,
    error: /^(?![^]*no engine)/,
  })),
];

function stoppedWithin(graceSeconds: number | undefined): NonNullable<OptionRow["check"]> {
  return ({ engine }) => assert.equal(engine.stops.at(-1)?.graceSeconds, graceSeconds);
}

function doctorKnowsEngine(known: boolean): NonNullable<OptionRow["check"]> {
  return (_world, { stdout }) => assert.equal((JSON.parse(stdout) as { engine: unknown }).engine !== null, known);
}

test("every option in --help or docs/cli.md is tested here", async () => {
  const tried = new Set(rows.map(({ shows }) => shows));
  const shown = [...shownOptions()].flatMap(([command, options]) => options.map((option) => `${command} ${option}`));
  assert.deepEqual(
    shown.filter((option) => !tried.has(option)),
    [],
    "shown by --help, and not tried",
  );
  assert.deepEqual(
    [...tried].filter((option) => !shown.includes(option)),
    [],
    "tried, and not shown by --help",
  );
  const documented = documentedOptions(await readFile(join(root, "docs/cli.md"), "utf8"), [...shownOptions().keys()]);
  assert.deepEqual(
    documented.filter((option) => !shown.includes(option)),
    [],
    "in docs/cli.md, and not in --help",
  );
  // What several commands have in common stands above them, once.
  const own = shown.filter((option) => !/ --(state-dir|json)$/.test(option));
  assert.deepEqual(
    own.filter((option) => !documented.includes(option)),
    [],
    "in --help, and not in docs/cli.md",
  );
});

/** `command --option` of the first cells of the tables below a heading that names commands. */
function documentedOptions(text: string, commands: readonly string[]): string[] {
  return text.split(/^## /mu).flatMap((section) => {
    const headed = (section.split("\n")[0] ?? "").split(", ").filter((name) => commands.includes(name));
    const cells = section.split("\n").flatMap((line) => /^\| (`-[^|]*(?:\\\|[^|]*)*)\|/u.exec(line)?.[1] ?? []);
    const options = cells.flatMap((cell) => cell.match(/--[a-z][a-z-]*/gu) ?? []);
    return headed.flatMap((command) => options.map((option) => `${command} ${option}`));
  });
}

/** What a command may ask of the kubelet's API is refused: that it asks is what is looked at. */
async function serveWorld(bench: CommandBench, world: OptionWorld): Promise<AsyncDisposable> {
  const routes = localApiRoutes(world.engine);
  const containers = [{ name: "app", ports: [{ name: "http", containerPort: 80 }] }, { name: "side" }];
  const pod = { metadata: { name: "web", namespace: "default", uid: "uid-web" }, spec: { containers } };
  return await serveUnix(bench.layout.engineSocket, async (request) => {
    if (request.path === "/pods") {
      return { status: 200, contentType: "application/json", body: JSON.stringify({ items: [pod] }) };
    }
    if (!/^\/(exec|attach)\//u.test(request.path)) return await routes(request);
    world.asked.push(`${request.path}?${request.query.toString()}`);
    return { status: 400, contentType: "text/plain", body: "not here" };
  });
}

/** As before each row: a pod with two containers and their logs, one to be stopped, and nothing asked of the engine. */
async function begin({ engine, stateDirectory, asked }: OptionWorld): Promise<void> {
  const logPath = join(stateDirectory, "app.log");
  const line = (time: string, text: string): string => `${time} stdout F ${text}\n`;
  const old = "2025-11-20T14:00:00.000000001Z";
  await writeFile(
    logPath,
    line(old, "one") + line(old, "two") + line(new Date(Date.now() - 60_000).toISOString(), "three"),
  );
  const side = containerView({ name: "side", logPath: join(stateDirectory, "side.log") });
  await writeFile(side.logPath, line(old, "beside"));
  engine.end();
  engine.views.clear();
  engine.views.set("uid-web", podView({ containers: [containerView({ logPath }), side] }));
  engine.views.set("uid-gone", podView({ name: "gone" }));
  await prepareVolumes(engine, stateDirectory);
  engine.stops.length = 0;
  asked.length = 0;
}

const limitMs = 20_000;

async function inTime<T>(what: string, work: Promise<T>): Promise<T> {
  const limit = new AbortController();
  const late = sleep(limitMs, undefined, { ref: false, signal: limit.signal }).then(() => {
    throw new Error(`${what} has not ended within ${limitMs / 1000} s`);
  });
  late.catch(() => {});
  return await Promise.race([work, late]).finally(() => limit.abort());
}

test("every option has its documented effect in the whole program", async () => {
  await using bench = await CommandBench.open();
  await using nowhere = await CommandBench.open();
  const { stateDirectory } = bench.layout;
  const world: OptionWorld = { stateDirectory, engine: new FakeEngine(), asked: [] };
  await mkdir(bench.layout.runDirectory, { recursive: true, mode: 0o700 });
  await using _server = await serveWorld(bench, world);
  await writeFile(join(stateDirectory, "web.yaml"), webManifest);
  await writeFile(join(stateDirectory, "new.yaml"), webManifest.replace("name: web", "name: new"));
  await writeFile(join(stateDirectory, "broken.yaml"), webManifest.replace("image:", "imag:"));
  world.engine.record({
    kind: "input",
    what: "PodAdded",
    message: "added",
    pod: { namespace: "default", name: "web", uid: podUid("uid-web") },
  });
  for (const row of rows) {
    await begin(world);
    const leads = row.shows.endsWith("--state-dir") || row.line === "doctor --json";
    process.env["PODWRIGHT_STATE_DIR"] = (leads ? nowhere : bench).layout.stateDirectory;
    const words = row.line.replaceAll("@", stateDirectory).split(" ");
    const end = await inTime(row.line, runHere(words, row.until));
    const told = `${row.line}\n${end.stdout}\n${end.stderr}`;
    if (!row.line.startsWith("doctor")) assert.equal(end.exitCode, row.exitCode ?? 0, told);
    if (typeof row.out === "string") assert.equal(end.stdout, row.out, told);
    else if (row.out !== undefined) assert.match(end.stdout, row.out, told);
    if (row.error !== undefined) assert.match(end.stderr, row.error, told);
    if (row.asks !== undefined) assert.match(world.asked.at(-1) ?? "", row.asks, told);
    row.check?.(world, end);
  }
  world.engine.end();
});
