import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { createLogger } from "./log-sink.ts";
import { humanLine } from "./log-text.ts";

function lines(): { readonly stream: { write(line: string): void }; readonly written: string[] } {
  const written: string[] = [];
  return { stream: { write: (line) => void written.push(line) }, written };
}

test("a line is JSON with level, RFC 3339 time, message and fields, and nothing else", () => {
  const { stream, written } = lines();
  createLogger({ level: "info", stream }).warn("pulling takes long", { image: "demo", seconds: 12 });
  const [line = ""] = written;
  assert.ok(line.endsWith("}\n"));
  const { time, ...rest }: { time?: string } = JSON.parse(line);
  assert.deepEqual(rest, { level: "warn", msg: "pulling takes long", image: "demo", seconds: 12 });
  assert.match(time ?? "", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test("levels below the configured one are not written", () => {
  const { stream, written } = lines();
  const log = createLogger({ level: "warn", stream });
  log.debug("no");
  log.info("no");
  log.warn("yes");
  log.error("yes");
  assert.equal(written.length, 2);
});

test("a child logger adds its fields to every line, and secrets are masked in both", () => {
  const { stream, written } = lines();
  const log = createLogger({ level: "debug", stream }).child({ pod: "default/hello", token: "abc" });
  log.child({ container: "web" }).debug("starting", { password: "abc" });
  const [line = ""] = written;
  assert.match(line, /"pod":"default\/hello","token":"\[redacted\]","container":"web","password":"\[redacted\]"/);
  assert.doesNotMatch(line, /abc/);
});

test("a line for people has the time of day, the level, the message and name=value", () => {
  const { stream, written } = lines();
  createLogger({ level: "info", stream, human: true }).info("pod started", {
    pod: "default/hello",
    reason: "a b",
    n: 3,
  });
  assert.match(written.join(""), /^\d\d:\d\d:\d\d\.\d{3} INFO {2}pod started pod=default\/hello reason="a b" n=3\n$/);
});

test("text from a pod can neither control the terminal nor forge a line", () => {
  const line = JSON.stringify({ level: "info", time: 0, msg: "a\u001b[31m\nb", x: "\u009b1m\u202e", "y\n": "z" });
  const text = humanLine(line);
  assert.equal(text.slice(0, -1).match(/[^\u0020-\u007e]/), null, text);
  assert.ok(text.includes("a\\u001b[31m\\u000ab") && text.includes("\\u202e"));
});

test("lines reach standard error, also when the process exits at once", () => {
  const moduleUrl = new URL("./log-sink.ts", import.meta.url).href;
  const script = `import { createLogger } from ${JSON.stringify(moduleUrl)};
    const log = createLogger({ level: "info" });
    for (let line = 0; line < 1000; line++) log.info("line", { line });
    process.exit(0);`;
  const result = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(result.stdout, "");
  assert.equal(result.stderr.trim().split("\n").length, 1_000);
});

test("each line for the journal begins with its priority", () => {
  const { stream, written } = lines();
  const log = createLogger({ level: "debug", stream, prioritised: true });
  for (const level of ["debug", "info", "warn", "error"] as const) log[level]("said", { level: "other" });
  assert.deepEqual(
    written.map((line) => line.slice(0, 4)),
    ["<7>{", "<6>{", "<4>{", "<3>{"],
  );
});

test("standard error is the journal if JOURNAL_STREAM names it, and not after a redirection", () => {
  const program = `
    const { createLogger } = await import(${JSON.stringify(new URL("log-sink.ts", import.meta.url).href)});
    const { fstatSync } = await import("node:fs");
    const { dev, ino } = fstatSync(2);
    process.env.JOURNAL_STREAM = process.argv[1] === "own" ? dev + ":" + ino : "1:1";
    createLogger({ level: "info" }).warn("said");`;
  const written = (stream: string): string =>
    spawnSync(process.execPath, ["--input-type=module", "-e", program, stream], { encoding: "utf8" }).stderr;
  assert.match(written("own"), /^<4>\{"level":"warn"/);
  assert.match(written("other"), /^\{"level":"warn"/);
});
