import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import { complete, shellWordMeant } from "./complete.ts";
import { completionScripts, type Shell } from "./completion-scripts.ts";
import { buildProgram } from "./program.ts";
import { Terminal } from "./terminal.ts";

const silent = { write: () => true };
const views = [
  podView({ containers: [containerView({}), containerView({ name: "side" })] }),
  podView({ name: "worker", namespace: "tools" }),
  podView({
    name: "full",
    containers: [containerView({ state: "waiting" })],
    initContainers: [
      { ...containerView({ name: "setup", state: "terminated" }), sidecar: false, done: true },
      { ...containerView({ name: "sidecar" }), sidecar: true, done: true },
    ],
    ephemeralContainers: [containerView({ name: "debug-1" }), containerView({ name: "debug-0", state: "terminated" })],
  }),
];

const claims = ["data", "cache"].map((name) => ({
  ...{ namespace: name === "data" ? "default" : "tools", name, phase: "Bound" as const, message: "", requested: "1Gi" },
  ...{ accessModes: [], isOwn: true, usedBy: [], objects: [] },
}));

/** The candidates for a line whose last word is at the cursor. @param asked receives the state directories that engines are asked of */
async function texts(line: string, asked: (string | undefined)[] = []): Promise<string[]> {
  const program = buildProgram(new Terminal(silent, silent, {}), () => {});
  const from =
    <T>(answer: readonly T[]) =>
    async (stateDirectory: string | undefined): Promise<readonly T[]> => {
      asked.push(stateDirectory);
      return answer;
    };
  const found = await complete(program, line.split(" "), { pods: from(views), claims: from(claims) });
  return found.map(({ text }) => text);
}

test("commands and their options are those of --help", async () => {
  assert.deepEqual(await texts("en"), ["enable"]);
  assert.ok((await texts("")).includes("run"));
  assert.ok(!(await texts("")).includes("engine"), "hidden commands are not offered");
  assert.deepEqual(await texts("run --ke"), ["--keep"]);
  assert.deepEqual(await texts("kubelet --config"), ["--config", "--config-dir"]);
  assert.deepEqual(await texts("nonsense --"), []);
});

test("volumes completes its actions and the names of claims", async () => {
  assert.deepEqual(await texts("volumes "), ["ls", "inspect", "rm", "copy-out"]);
  const asked: (string | undefined)[] = [];
  assert.deepEqual(await texts("volumes --state-dir /tmp/pw rm ", asked), ["data", "tools/cache"]);
  assert.deepEqual(asked, ["/tmp/pw"]);
  assert.deepEqual(await texts("volumes inspect t"), ["tools/cache"]);
  assert.deepEqual(await texts("volumes ls "), []);
});

test("options and arguments with choices offer them", async () => {
  assert.deepEqual(await texts("run --detach --wait r"), ["ready", "running"]);
  assert.deepEqual(await texts("completion "), ["bash", "zsh", "fish"]);
  assert.deepEqual(await texts("explain CrashLoop"), ["CrashLoopBackOff"]);
  assert.deepEqual(await texts("run "), [], "files are the shell's");
});

test("names of pods and of a pod's containers are offered", async () => {
  assert.deepEqual(await texts("why "), ["web", "tools/worker", "full"]);
  assert.deepEqual(await texts("stop web t"), ["tools/worker"]);
  assert.deepEqual(await texts("logs -f web "), ["app", "side"]);
  assert.deepEqual(await texts("exec web -c s"), ["side"]);
  assert.deepEqual(await texts("exec web -- s"), [], "a command of the container");
  const asked: (string | undefined)[] = [];
  await texts("logs --state-dir /srv/pw web ", asked);
  assert.deepEqual(asked, ["/srv/pw"]);
});

test("of init and ephemeral containers, logs offers all, and other commands those that run", async () => {
  assert.deepEqual(await texts("logs full "), ["app", "setup", "sidecar", "debug-1", "debug-0"]);
  assert.deepEqual(await texts("logs full -c s"), ["setup", "sidecar"]);
  assert.deepEqual(await texts("exec full -c "), ["app", "sidecar", "debug-1"]);
  assert.deepEqual(await texts("attach full --container "), ["app", "sidecar", "debug-1"]);
  assert.deepEqual(await texts("debug full --target "), ["app", "sidecar"]);
});

test("values after an equals sign are completed, in one word or in three, as bash splits them", async () => {
  assert.deepEqual(await texts("run --detach --wait=r"), ["--wait=ready", "--wait=running"]);
  assert.deepEqual(await texts("run --detach --wait ="), ["ready", "running", "none"]);
  assert.deepEqual(await texts("run --detach --wait = r"), ["ready", "running"]);
  assert.deepEqual(await texts("exec web --container=s"), ["--container=side"]);
  assert.deepEqual(await texts("exec web --container = app --sh"), await texts("exec web --container=app --sh"));
  assert.deepEqual(await texts("logs --container=app web "), ["app", "side"], "the value is not an operand");
  assert.deepEqual(await texts("logs --state-dir=/sr"), [], "files are the shell's");
  assert.deepEqual(await texts("kubelet --config="), []);
  for (const line of ["kubelet --fail-swap-on=", "kubelet --fail-swap-on =", "run --keep =", "run --keep="]) {
    assert.deepEqual(await texts(line), [], line);
  }
  for (const line of ["logs --state-dir=/srv/pw web ", "logs --state-dir = /srv/pw web "]) {
    const asked: (string | undefined)[] = [];
    assert.deepEqual(await texts(line, asked), ["app", "side"]);
    assert.deepEqual(asked, ["/srv/pw"]);
  }
});

test("words are understood as a shell would, also while a quote is open", () => {
  for (const [typed, meant] of [
    ['"/srv/my pods"', "/srv/my pods"],
    ["'/srv/my po", "/srv/my po"],
    ["/srv/my\\ pods", "/srv/my pods"],
    ["~/pods", "/home/me/pods"],
    ["a~/b", "a~/b"],
  ] as const) {
    assert.equal(shellWordMeant(typed, "/home/me"), meant);
  }
  assert.equal(shellWordMeant("~/pods", undefined), "~/pods");
});

test("help completes the commands", async () => {
  assert.deepEqual(await texts("help ti"), ["timeline"]);
  assert.deepEqual(await texts("help timeline "), []);
});

test("the kubelet's flags are offered, except where a flag expects a value", async () => {
  assert.deepEqual(await texts("kubelet --fail-swap-on --node-i"), ["--node-ip"]);
  assert.ok((await texts("kubelet --fail-swap-on ")).includes("--config"));
  assert.deepEqual(await texts("kubelet --config "), [], "files are the shell's");
});

/** Runs the script's function with a `podwright` that prints two candidates; prints what the shell offers, one per line. */
const probes: Readonly<Record<Shell, string>> = {
  bash: 'source "$1"; COMP_WORDS=(podwright why w); COMP_CWORD=2; _podwright; printf "%s\\n" "${COMPREPLY[@]}"',
  zsh: 'compdef() { :; }; _describe() { print -l -- "${found[@]%%:*}"; }; source "$1"; words=(podwright why w); CURRENT=3; _podwright',
  fish: 'source $argv[1]; complete -C "podwright why w" | cut -f1',
};

for (const shell of Object.keys(probes) as Shell[]) {
  const present = spawnSync(shell, ["--version"]).error === undefined;
  const options = present ? {} : { skip: `${shell} is not installed here` };
  test(`${shell} offers the program's candidates, and passes on the words up to the cursor`, options, () => {
    const directory = mkdtempSync(join(tmpdir(), "podwright-complete-"));
    try {
      const script = join(directory, "script");
      writeFileSync(script, completionScripts[shell]);
      const program = `#!/bin/sh\n[ "$*" = "complete -- why w" ] && printf 'web\\tRunning\\nworker one\\tRunning\\n'\n`;
      writeFileSync(join(directory, "podwright"), program, { mode: 0o755 });
      const env = { ...process.env, PATH: `${directory}:${process.env["PATH"]}`, HOME: directory };
      const words =
        shell === "fish" ? ["--no-config", "-c", probes[shell], script] : ["-c", probes[shell], shell, script];
      const { stdout, stderr } = spawnSync(shell, words, { cwd: directory, env, encoding: "utf8" });
      assert.deepEqual(stdout.trim().split("\n"), ["web", "worker one"], stderr);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
}
