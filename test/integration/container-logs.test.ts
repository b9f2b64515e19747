import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { dirname } from "node:path";
import { test } from "node:test";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { systemCompression } from "../../src/linux/files/compression.ts";
import { systemFiles } from "../../src/linux/files/files.ts";
import { LogRotation, type RunningLog } from "../../src/logs/rotation.ts";
import { silentLog } from "../../src/sim/machine.ts";
import { podManifest } from "../support/manifests.ts";
import { type Podwright, until, withPodwright } from "../support/podwright.ts";

const lines = 20_000;
/** A few thousand lines a second: several files' worth between two looks of the rotation below. */
const writer = `i=0
while [ $i -lt ${lines} ]; do
  i=$((i + 1))
  echo "line $i of ${lines}, and some more text so that files fill"
  [ $((i % 500)) = 0 ] && sleep 0.1
done
sleep 3`;

const numbers = (text: string): number[] => [...text.matchAll(/^line (\d+) of /gm)].map((match) => Number(match[1]));
const expected = Array.from({ length: lines }, (_, index) => index + 1);

/** podwright's own rotation, only with smaller files and more frequent checks than a kubelet's. */
async function rotateUntilAborted(podwright: Podwright, log: RunningLog, signal: AbortSignal): Promise<void> {
  using cri = podwright.connect();
  const rotation = new LogRotation(
    {
      clock: systemClock,
      files: systemFiles,
      compression: systemCompression,
      runtime: cri.runtime,
      journal: { record: () => 0 },
      log: silentLog,
      running: () => [log],
    },
    // So many that none is removed: every line is compared.
    { maxSizeBytes: 100 << 10, maxFiles: 100, maxWorkers: 1, monitorIntervalMs: 200 },
  );
  await rotation.run(signal);
}

test("logs -f follows a fast writer over many rotations, and every line appears once, also in compressed files", async () => {
  await withPodwright(async (podwright) => {
    const manifest = podManifest("writer", `sleep 2; ${writer}`, { restartPolicy: "Never", grace: 0 });
    await podwright.succeed("run", "--detach", await podwright.manifest("writer.yaml", manifest));
    await podwright.waitFor("the writer to run", (pods) => pods.some((pod) => pod.ready));
    const { uid } = await podwright.pod("writer");
    const { id, logPath } = await podwright.container("writer", "app");
    const log = {
      pod: { namespace: "default", name: "writer", uid },
      container: "app",
      containerId: id.replace(/^.*:\/\//, ""),
      path: logPath,
    };
    const follower = podwright.start(["logs", "-f", "writer"]);
    const stop = new AbortController();
    const rotating = rotateUntilAborted(podwright, log, stop.signal);
    await until("the last line", async () => numbers(follower.stdout).at(-1) === lines, 90_000);
    stop.abort();
    await rotating;
    const end = await follower.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.deepEqual(numbers(end.stdout), expected);

    const files = await readdir(dirname(logPath));
    assert.ok(files.filter((name) => /^0\.log\.\d{8}-\d{6}\.gz$/.test(name)).length >= 3, files.join(" "));
    assert.deepEqual(
      files.filter((name) => !/^0\.log(?:\.\d{8}-\d{6}(?:\.gz)?)?$/.test(name)),
      [],
    );
    assert.deepEqual(numbers(await podwright.succeed("logs", "writer")), expected);
    assert.deepEqual(numbers(await podwright.succeed("logs", "--tail", "15000", "writer")), expected.slice(-15_000));
  });
});

test("termination messages are reported, however hostile they are", async () => {
  await withPodwright(async (podwright) => {
    const hostile = `rm -f /dev/termination-log; ln -sf /etc/shadow /dev/termination-log
      head -c 100000 /dev/zero | tr '\\0' x > /dev/termination-log
      printf '\\033]0;owned\\007the end' >> /dev/termination-log
      exit 3`;
    const options = { restartPolicy: "Never" } as const;
    const paths = [
      await podwright.manifest("hostile.yaml", podManifest("hostile", hostile, options)),
      await podwright.manifest("polite.yaml", podManifest("polite", "printf bye > /dev/termination-log", options)),
    ];
    const run = await podwright.run(["run", "--detach", "--wait", "none", ...paths]);
    const ended = await podwright.waitFor("both to end", (pods) =>
      pods.every((pod) => pod.containers.every(({ exitCode }) => exitCode !== undefined)),
    );
    const message = (name: string): string => ended.find((pod) => pod.name === name)?.containers[0]?.message ?? "";
    assert.equal(message("polite"), "bye");
    assert.equal(message("hostile").length, 4096);
    assert.ok(message("hostile").endsWith("x\u001b]0;owned\u0007the end"));
    const shown = `${run.stdout}${run.stderr}${await podwright.succeed("ps")}`;
    assert.equal(shown.includes("\u001b]0;"), false);
    assert.equal(shown.includes("x".repeat(1000)), false);
  });
});
