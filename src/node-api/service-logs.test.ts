import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiResponse } from "../ports/api-server.ts";
import type { CommandOutput } from "../ports/command-output.ts";
import { answerText, nodeApiDeps, nodeRequest } from "../../test/support/node-api.ts";
import type { MemoryFiles } from "../sim/files.ts";
import { nodeApi, type NodeApiDependencies } from "./routes.ts";

/** A machine with a journal of one unit; records its queries. */
function journal(asked: string[][]): CommandOutput {
  return async function* (program, arguments_) {
    asked.push([program, ...arguments_]);
    yield Buffer.from(arguments_[0] === "--field" ? "sshd.service\ncron.service\n" : "a journal line\n");
  };
}

async function* noJournal(): AsyncGenerator<Uint8Array> {
  yield await Promise.reject(new Error("cannot run journalctl: ENOENT"));
}

async function ask(query: string, changed: Partial<NodeApiDependencies> = {}): Promise<string> {
  const deps = await nodeApiDeps({ commandOutput: noJournal, ...changed });
  await deps.files.makeDirectory("/var/log/dock", 0o755);
  const files = deps.files as unknown as { write(path: string, text: string, mode: number): Promise<void> };
  await files.write("/var/log/kube.log", "kube's lines\n", 0o644);
  await files.write("/var/log/dock/dock.log", "dock's lines\n", 0o644);
  return await answerText(await nodeApi(deps)(nodeRequest("GET", `/logs/?${query}`)));
}

test("the journal is queried for known services, with every option as one argument", async () => {
  const asked: string[][] = [];
  const query =
    "query=sshd&query=cron&sinceTime=2026-01-02T03:04:05%2B01:00&untilTime=2026-01-03T00:00:00Z" +
    "&tailLines=10&pattern=a.*b&boot=-1";
  assert.equal(await ask(query, { commandOutput: journal(asked) }), "200 a journal line\n");
  assert.deepEqual(asked[1], [
    "journalctl",
    "--utc",
    "--no-pager",
    "--output=short-precise",
    "--since=2026-01-02 02:04:05 UTC",
    "--until=2026-01-03 00:00:00 UTC",
    "--lines=10",
    "--unit=sshd",
    "--unit=cron",
    "--grep=a.*b",
    "--boot=-1",
  ]);
});

test("without a journal, files in /var/log named after the service are returned", async () => {
  assert.equal(await ask("query=syslog"), "200 a line\n");
  assert.equal(await ask("query=kube&query=dock"), "200 kube's lines\ndock's lines\n");
  assert.equal(await ask("query=none"), "200 \nlog not found for none\n");
  assert.match(await ask("query=kube&tailLines=1"), /^200 \noptions present and query resolved to log files for kube/);
});

test("one file is requested by its path, and none outside of /var/log", async () => {
  assert.equal(await ask("query=/kube.log"), "200 kube's lines\n");
  assert.equal(await ask("query=dock%5Cdock.log"), "200 dock's lines\n");
  for (const path of ["/../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%5C..%5C..%5Cetc%5Cpasswd", "/none"]) {
    assert.match(await ask(`query=${path}`), /^406 query: Invalid value: .*no such file below \/var\/log/, path);
  }
});

test("a path that comes to lead out of /var/log while its file is sent exposes nothing", async () => {
  const deps = await nodeApiDeps();
  const files = deps.files as MemoryFiles;
  const log = "a line of the log\n".repeat(20_000);
  await files.makeDirectory("/var/log/app", 0o755);
  await files.makeDirectory("/etc/app", 0o755);
  await files.write("/var/log/app/log", log, 0o644);
  await files.write("/etc/app/log", "the node's\n".repeat(50_000), 0o600);
  await files.symlink("/etc/app", "/var/log/link");
  const begin = async (): Promise<ApiResponse> => {
    const answer = await nodeApi(deps)(nodeRequest("GET", "/logs/app/log"));
    if ("forwardTo" in answer || typeof answer.body === "string") assert.fail("it is a file");
    return answer;
  };
  const exchange = async (): Promise<void> => {
    await files.rename("/var/log/app", "/var/log/moved");
    await files.rename("/var/log/link", "/var/log/app");
  };
  const [first, later] = [await begin(), await begin()];
  let sent = "";
  for await (const piece of first.body) {
    if (sent === "") await exchange();
    sent += Buffer.from(piece).toString();
  }
  assert.equal(sent, log);
  await assert.rejects(
    async () => {
      for await (const _piece of later.body) assert.fail("nothing of it is sent");
    },
    { code: "EXDEV" },
  );
  assert.match(await answerText(await nodeApi(deps)(nodeRequest("GET", "/logs/app/log"))), /^404 /);
});

test("links are followed while they stay below /var/log", async () => {
  const deps = await nodeApiDeps();
  await deps.files.symlink("/var/log/pods/web", "/var/log/absolute");
  await deps.files.symlink("../syslog", "/var/log/pods/relative");
  await deps.files.symlink("/etc", "/var/log/out");
  const answer = async (path: string): Promise<string> =>
    await answerText(await nodeApi(deps)(nodeRequest("GET", `/logs/${path}`)));
  assert.match(await answer("absolute/app/0.log"), /^200 .*hello/);
  assert.equal(await answer("pods/relative"), "200 a line\n");
  for (const path of ["out/", "out/passwd"]) assert.match(await answer(path), /^404 /, path);
});

test("invalid queries are rejected with the problem", async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["query=", /^400 query: Invalid value: "": query cannot be empty/],
    ["query=%20%20", /^400 query/],
    ["query=a&sinceTime=yesterday", /^400 sinceTime: Invalid value: "yesterday": invalid time format/],
    ["query=a&tailLines=ten", /^400 tailLines/],
    ["query=a&boot=x", /^400 boot/],
    ["query=a&boot=1", /^406 boot: Invalid value: 1: must be less than 1/],
    ["query=a&tailLines=100001", /^406 tailLines: .*between 0 and 100000/],
    ["query=a&tailLines=-1", /^406 tailLines/],
    ["query=a;reboot", /^406 query: .*unsupported characters/],
    ["query=$(id)", /^406 query: .*unsupported characters/],
    ["query=..", /^406 query: .*is not a name/],
    [`query=${"a".repeat(257)}`, /^406 query: .*length must be less than 256/],
    ["query=a&query=b&query=c&query=d&query=e", /^406 query: Too many: 5: must have at most 4 items/],
    ["query=a&query=/b", /^406 .*cannot specify a file and service/],
    ["query=/a&query=/b", /^406 .*cannot specify more than one file/],
    ["query=/kube.log&tailLines=1", /^406 .*cannot specify file with options/],
    ["query=a&pattern=(", /^406 pattern/],
    ["query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z", /^406 untilTime: .*must be after/],
  ];
  for (const [query, pattern] of cases) assert.match(await ask(query), pattern, query);
});

test("a pattern may have what Go's expressions have, and JavaScript's do not", async () => {
  const valid = ["(?i)error", "a(?i:b|c)(?s-m:.)", "(?U)a+", "(?P<name>x)", String.raw`\Q(*[\E+`, String.raw`\Q(`];
  for (const pattern of valid) {
    const asked: string[][] = [];
    const query = `query=sshd&pattern=${encodeURIComponent(pattern)}`;
    assert.equal(await ask(query, { commandOutput: journal(asked) }), "200 a journal line\n", pattern);
    assert.ok(asked[1]?.includes(`--grep=${pattern}`), pattern);
  }
  for (const pattern of [
    "(?i)(",
    "(?i)*",
    "(?x)a",
    "(?P=a)",
    "(?P<a>x",
    String.raw`\\Q(`,
    String.raw`\(?i)`,
    "[a",
    "a**",
  ]) {
    assert.match(await ask(`query=sshd&pattern=${encodeURIComponent(pattern)}`), /^406 pattern/, pattern);
  }
});

test("a node with queries disabled lists the directory", async () => {
  assert.match(await ask("query=kube", { systemLogQuery: false }), /^200 <pre>/);
});
