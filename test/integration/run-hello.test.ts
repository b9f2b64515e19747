import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { documentedCommands, printedCommands } from "../support/documented-commands.ts";
import { type Podwright, withPodwright } from "../support/podwright.ts";

test("hello starts, responds, is explained, and stops without a trace", async () => {
  await withPodwright(async (podwright) => {
    const up = await podwright.succeed("run", "--detach", "--wait", "ready", "examples/hello.yaml");
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(up)?.[0];
    assert.ok(address, up);
    assert.equal(await (await fetch(address)).text(), "Hello from hello.\n");

    const pod = await podwright.pod("hello");
    assert.deepEqual(
      { phase: pod.phase, ready: pod.ready, source: pod.source, ports: pod.hostPorts.map((port) => port.hostPort) },
      { phase: "Running", ready: true, source: "run", ports: [8080] },
    );
    assert.deepEqual(
      pod.containers.map(({ name, state, restartCount }) => ({ name, state, restartCount })),
      ["web", "client"].map((name) => ({ name, state: "running", restartCount: 0 })),
    );
    assert.match(await podwright.succeed("plan"), /^default\/hello  uid \S+\n  nothing: everything is as desired\n$/);
    assert.match(await podwright.succeed("plan", "examples/hello.yaml"), /^default\/hello  unchanged  /);
    const planned = await podwright.succeed("plan", "examples/crash.yaml");
    assert.match(planned, /default\/crash  would be added\n  create sandbox[^]*  start container app, attempt 0\n/);
    const blame = await podwright.succeed("blame", "hello");
    assert.match(
      blame,
      // Which of the two is ready last is the machine's.
      /ready for the first time after[^]*│.* m?s +sandbox[^]*│.* web +create[^]*│.* (web|client) +until ready/,
    );

    const follow = podwright.start(["logs", "-f", "hello", "client"]);
    await follow.prints(/Hello from hello\.\n(?:.*\n)*Hello from hello\.\n/);
    assert.match(
      await podwright.succeed("why", "hello"),
      /after +start container client [^]*because +container client has not been started yet/,
    );
    const timeline = await podwright.succeed("timeline", "hello");
    for (const step of ["PodAdded", "RunPodSandbox", "CreateContainer", "StartContainer", "PodPhaseChanged"]) {
      assert.match(timeline, new RegExp(`\\b${step}\\b`));
    }
    assert.match(timeline, /StartContainer +start container web[^]*?because container web has not been started yet/);

    assert.match(await podwright.succeed("stop", "hello"), /stopping hello: \d+ s until SIGKILL\n✓ hello is stopped/);
    const logs = await follow.ended;
    assert.equal(logs.exitCode, 0, logs.stderr);
    assert.match(logs.stdout, /asked to stop\n$/, "the container had the time to say goodbye");
  });
});

/** Commands that run until Ctrl-C, with what they have printed by then. */
const lasting: readonly (readonly [command: RegExp, prints: RegExp])[] = [
  [/^run examples/u, /hello is ready/u],
  [/^logs -f/u, /Hello from hello\./u],
  [/^ui$/u, /http:\/\/127\.0\.0\.1:\d+/u],
];

async function runPrinted(podwright: Podwright, words: readonly string[]): Promise<void> {
  const [, prints] = lasting.find(([command]) => command.test(words.join(" "))) ?? [];
  if (prints === undefined) {
    await podwright.succeed(...words);
    return;
  }
  const command = podwright.start(words);
  await command.prints(prints);
  command.child.kill("SIGINT");
  await command.ended;
}

test("the commands of README work as they are printed there", async () => {
  const lines = printedCommands(await readFile(join(import.meta.dirname, "../../README.md"), "utf8"), "Use");
  const commands = documentedCommands(lines.map((line) => `    ${line}`).join("\n")).map(({ words }) => words);
  assert.ok(commands.length > 10, `${commands.length} commands`);
  await withPodwright(async (podwright) => {
    for (const words of commands) {
      // It needs systemd: test/vm/packages.
      if (words[0] !== "enable") await runPrinted(podwright, words);
    }
    assert.deepEqual(await podwright.pods(), []);
  });
});
