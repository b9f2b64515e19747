import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { RunningCommand } from "../support/command.ts";
import { patience } from "../support/patience.ts";
import { type Podwright, sleep, until, withPodwright } from "../support/podwright.ts";

const root = join(import.meta.dirname, "../..");
const example = (name: string): string => join(root, "examples", `${name}.yaml`);

async function logsHave(podwright: Podwright, pod: string, text: RegExp): Promise<void> {
  const logs = podwright.start(["logs", "-f", pod]);
  await logs.prints(text);
  logs.child.kill();
}

/** What each example is there to show; hello has a test of its own. */
const shows: Readonly<Record<string, (podwright: Podwright) => Promise<void>>> = {
  config: async (podwright) => {
    await logsHave(podwright, "config", /Good morning from config on .*; the token has 16 characters/u);
  },
  claim: async (podwright) => {
    await logsHave(podwright, "claim", /run 1\n/u);
    assert.match(await podwright.succeed("volumes"), /claim-scratch +Bound .*\n.*counts +Bound/u);
    await podwright.succeed("stop", "claim");
    assert.doesNotMatch(await podwright.succeed("volumes"), /claim-scratch/u);
    await podwright.succeed("run", "--detach", example("claim"));
    await logsHave(podwright, "claim", /run 2\n/u);
  },
  crash: async (podwright) => {
    await podwright.waitFor("a restart", (pods) =>
      pods.some(({ name, containers }) => {
        return name === "crash" && (containers[0]?.restartCount ?? 0) > 0;
      }),
    );
    assert.match(await podwright.succeed("why", "crash"), /exited with code 3/u);
    await logsHave(podwright, "crash", /the database is not there/u);
  },
  job: async (podwright) => {
    await podwright.waitFor("the end of the job", (pods) =>
      pods.some(({ name, phase }) => name === "job" && phase === "Succeeded"),
    );
    assert.match(await podwright.succeed("logs", "job"), /done: 15\n$/u);
  },
  sidecar: async (podwright) => {
    await podwright.waitFor("the end of the work", (pods) =>
      pods.some(({ name, phase }) => name === "sidecar" && phase === "Succeeded"),
    );
    assert.match(await podwright.succeed("logs", "sidecar", "clock"), /last\n$/u);
  },
  limits: async (podwright) => {
    await podwright.waitFor("an OOM kill", (pods) =>
      pods.some(({ name, containers }) => {
        return name === "limits" && (containers[0]?.restartCount ?? 0) > 0;
      }),
    );
    assert.match(await podwright.succeed("why", "limits"), /OOMKilled/u);
  },
  probes: async (podwright) => {
    const isReady = (wanted: boolean): Promise<unknown> =>
      podwright.waitFor(`ready is ${wanted}`, (pods) =>
        pods.some(({ name, ready }) => name === "probes" && ready === wanted),
      );
    await isReady(true);
    await podwright.succeed("exec", "probes", "--", "rm", "/tmp/ready");
    await isReady(false);
    await podwright.succeed("exec", "probes", "--", "touch", "/tmp/ready");
    await isReady(true);
    await podwright.succeed("exec", "probes", "--", "touch", "/tmp/hung");
    await podwright.waitFor("the restart of what hangs", (pods) =>
      pods.some(({ name, containers }) => {
        return name === "probes" && containers[0]?.restartCount === 1;
      }),
    );
    assert.match(await podwright.succeed("timeline", "probes"), /liveness probe failed 2\/2/u);
  },
  resize: async (podwright) => {
    const before = await podwright.container("resize", "app");
    const larger = (await readFile(example("resize"), "utf8")).replaceAll("64Mi", "96Mi");
    const { exitCode, stderr } = await podwright.run(["run", "--detach", "-"], { stdin: larger });
    assert.equal(exitCode, 0, stderr);
    await until("the container is resized", async () =>
      /UpdateContainerResources/u.test(await podwright.succeed("timeline", "resize")),
    );
    const after = await podwright.container("resize", "app");
    assert.deepEqual([after.id, after.restartCount], [before.id, 0]);
  },
  debug: async (podwright) => {
    const page = await podwright.succeed("debug", "quiet", "--", "wget", "-q", "-O", "-", "http://localhost:8081/");
    assert.match(page, /all is well/u);
    assert.match(await podwright.succeed("debug", "quiet", "--target", "app", "--", "ps"), /httpd -f -p 8081/u);
  },
  talk: (podwright) => logsHave(podwright, "caller", /hello from the server/u),
  eviction: async (podwright) => {
    const order = await podwright.succeed("evict", "--preview", "--signal", "memory.available");
    const places = ["besteffort", "burstable", "guaranteed"].map((name) => order.indexOf(`default/${name}`));
    assert.ok(
      places.every((place) => place >= 0),
      order,
    );
    assert.ok((places[0] ?? 0) < (places[2] ?? 0), order);
  },
};

test("each example demonstrates its feature", { concurrency: true }, async (context) => {
  await withPodwright(async (podwright) => {
    const names = Object.keys(shows);
    await podwright.succeed("run", "--detach", "--evict", "--wait", "none", ...names.map(example));
    await podwright.waitFor(
      "all have started",
      (pods) =>
        pods.length >= names.length &&
        pods.every(({ containers }) => containers.some(({ startedAt }) => startedAt !== undefined)),
    );
    await Promise.all(Object.entries(shows).map(([name, shown]) => context.test(name, () => shown(podwright))));
    const pods = (await podwright.pods()).map(({ name }) => name);
    await podwright.succeed("stop", "--grace", "0", ...pods);
  });
});

/** Commands that go on until they are ended, and what they print first. */
const lasting: readonly (readonly [command: RegExp, prints: RegExp])[] = [
  [/^podwright run examples\/hello\.yaml$/u, /hello is ready/u],
  [/^podwright logs -f /u, /\S/u],
];

/** The commands in the head of an example; an explanation follows after blanks. */
async function headOf(name: string): Promise<string[]> {
  const [head = ""] = (await readFile(example(name), "utf8")).split(/^apiVersion:/mu);
  return [...head.matchAll(/^# {3}(\S.*?)(?: {2,}.*)?$/gmu)].map(([, command = ""]) => command);
}

/** Types the command into a shell, again while it is too early for it, as a person would. */
async function typed(podwright: Podwright, command: string): Promise<void> {
  const through = ["sh", "-c", `own="$*"; podwright() { $own "$@"; }; ${command}`, "sh"];
  const limitMs = performance.now() + 60_000 * patience;
  for (;;) {
    const { exitCode, stdout, stderr } = await podwright.start([], { through }).ended;
    if (exitCode === 0) return;
    assert.ok(performance.now() < limitMs, `${command}: exit code ${exitCode}\n${stdout}${stderr}`);
    await sleep(1000);
  }
}

async function runHead(podwright: Podwright, name: string): Promise<void> {
  const commands = await headOf(name);
  assert.ok(commands.length > 0, name);
  const begun: RunningCommand[] = [];
  for (const command of commands) {
    const [, prints] = lasting.find(([pattern]) => pattern.test(command)) ?? [];
    if (prints === undefined) {
      await typed(podwright, command);
    } else {
      const running = podwright.start(command.split(" ").slice(1));
      begun.push(running);
      await running.prints(prints);
    }
  }
  for (const running of begun.toReversed()) {
    running.child.kill("SIGINT");
    await running.ended;
  }
}

test(
  "the commands in the head of each example work as they are printed there",
  { concurrency: true },
  async (context) => {
    await withPodwright(async (podwright) => {
      // Only an engine that evicts takes the pods of this one.
      await runHead(podwright, "eviction");
      const names = ["hello", ...Object.keys(shows)].filter((name) => name !== "eviction");
      await Promise.all(names.map((name) => context.test(name, () => runHead(podwright, name))));
      const pods = (await podwright.pods()).map(({ name }) => name);
      await podwright.succeed("stop", "--grace", "0", ...pods);
    });
  },
);
