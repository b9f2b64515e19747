/** Runs all static checks in parallel: one line each, details of failures. */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";

const root = dirname(import.meta.dirname);
const bin = (name: string): string => join(root, "node_modules/.bin", name);

interface Check {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** What to do about a failure. */
  readonly remedy: string;
}

const shellScripts = globSync(
  ["scripts/*.sh", "scripts/hooks/*", "scripts/deb/*", "test/vm/**/*.sh", "bin/podwright"],
  { cwd: root },
);

const checks: readonly Check[] = [
  { name: "types", command: bin("tsc"), args: ["-p", "."], remedy: "" },
  { name: "page types", command: bin("tsc"), args: ["-p", "web"], remedy: "" },
  { name: "lint", command: bin("oxlint"), args: ["--deny-warnings"], remedy: "many of these: npx oxlint --fix" },
  { name: "format", command: bin("oxfmt"), args: ["--check"], remedy: "npm run format" },
  { name: "dead code", command: bin("knip"), args: ["--no-progress"], remedy: "remove what nobody uses" },
  { name: "style", command: process.execPath, args: ["scripts/test.ts", "--unit", "test/style.test.ts"], remedy: "" },
  { name: "behaviour", command: process.execPath, args: ["scripts/compatibility.ts"], remedy: "name tests that exist" },
  {
    name: "shell",
    command: "sh",
    args: ["-c", 'for f; do sh -n "$f" || exit 1; done', "sh", ...shellScripts],
    remedy: "",
  },
];

interface Result {
  readonly good: boolean;
  readonly output: string;
  readonly seconds: number;
}

async function run(check: Check): Promise<Result> {
  const started = performance.now();
  // The tools' launchers must find this Node.js rather than an older one of the system.
  const path = `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`;
  const child = spawn(check.command, check.args, {
    cwd: root,
    env: { ...process.env, PATH: path, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const { promise, resolve } = Promise.withResolvers<{ readonly good: boolean; readonly problem?: string }>();
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  }
  child.once("error", (error) => resolve({ good: false, problem: `could not be started: ${error.message}\n` }));
  child.once("close", (code, signal) => {
    resolve(signal === null ? { good: code === 0 } : { good: false, problem: `ended by ${signal}\n` });
  });
  const { good, problem = "" } = await promise;
  return { good, output: output + problem, seconds: (performance.now() - started) / 1000 };
}

const started = performance.now();
const results = await Promise.all(
  checks.map(async (check) => {
    const result = await run(check);
    console.log(`${result.good ? "ok  " : "FAIL"} ${check.name.padEnd(10)} ${result.seconds.toFixed(1)} s`);
    return { check, result };
  }),
);
const failed = results.filter(({ result }) => !result.good);
for (const { check, result } of failed) {
  console.log(`\n--- ${check.name} ---\n${result.output.trim()}`);
  if (check.remedy !== "") console.log(`(${check.remedy})`);
}
const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`\n${results.length - failed.length} of ${results.length} checks good, ${seconds} s`);
process.exitCode = failed.length === 0 ? 0 : 1;
