import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { webPod } from "../../test/support/node-api.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import { containerId } from "../base/ids.ts";
import { simCompression } from "../sim/compression.ts";
import { MemoryFiles } from "../sim/files.ts";
import { containerLogs } from "./container-logs.ts";
import type { NodePod } from "./node-pods.ts";

/** A followed log that has not ended in as many seconds is taken for one that goes on. */
const goesOnAfter = 20;
const directory = "/var/log/pods/web/app";
const path = `${directory}/0.log`;
const line = (text: string): string => `2026-11-20T14:02:00.000000001Z stdout F ${text}\n`;

/** Requests the log at {@link path}. */
async function request(files: MemoryFiles, onPiece = async (): Promise<void> => {}): Promise<string> {
  const deps = {
    clock: new ManualClock(),
    store: { files, compression: simCompression(files) },
    pods: () => [webPod()],
  };
  const target = { namespace: "default", name: "web", uid: undefined, container: "app" };
  const { body } = await containerLogs(deps, target, new URLSearchParams(), AbortSignal.any([]));
  assert.ok(typeof body === "object" && Symbol.asyncIterator in body);
  let text = "";
  for await (const piece of body) {
    text += new TextDecoder().decode(piece as Uint8Array);
    await onPiece();
  }
  return text;
}

test("a missing log is an error with upstream's message, and an empty one is not", async () => {
  const files = new MemoryFiles(new ManualClock());
  const message = `failed to try resolving symlinks in path "${path}": lstat ${path}: no such file or directory\n`;
  await assert.rejects(request(files), { name: "ApiError", status: 400, message });
  await files.makeDirectory(directory, 0o755);
  await files.write(path, "", 0o640);
  assert.equal(await request(files), "");
  await files.write(path, line("one"), 0o640);
  assert.equal(await request(files), "one\n");
});

test("the response breaks off when the log is removed while it is sent", async () => {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory(directory, 0o755);
  await files.write(path, Array.from({ length: 20_000 }, (_, index) => line(`line ${index}`)).join(""), 0o640);
  await assert.rejects(
    request(files, () => files.removeTree(directory)),
    { code: "ENOENT" },
  );
});

interface Followed {
  readonly text: string;
  readonly hasEnded: boolean;
}

/** Follows the log of a container named app. */
async function follow(pod: NodePod, query: string, { files, clock }: Disk): Promise<Followed> {
  const deps = { clock, store: { files, compression: simCompression(files) }, pods: () => [pod] };
  const target = { namespace: "default", name: "web", uid: undefined, container: "app" };
  const stop = new AbortController();
  const { body } = await containerLogs(deps, target, new URLSearchParams(query), stop.signal);
  assert.ok(typeof body === "object" && Symbol.asyncIterator in body);
  let text = "";
  let hasEnded = false;
  const reading = (async () => {
    for await (const piece of body) text += new TextDecoder().decode(piece as Uint8Array);
    hasEnded = true;
  })();
  for (let seconds = 0; seconds < goesOnAfter; seconds++) await clock.advance(1000);
  const followed = { text, hasEnded };
  stop.abort();
  await clock.advance(1000);
  await reading.catch(() => {});
  return followed;
}

function statusOf(container: object): NonNullable<NodePod["status"]> {
  const status: unknown = { phase: "Running", containerStatuses: [container] };
  return status as NonNullable<NodePod["status"]>;
}

interface Disk {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
}

/** With a log for each instance. */
async function diskWith(...logs: readonly string[]): Promise<Disk> {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory(directory, 0o755);
  for (const [index, text] of logs.entries()) await files.write(`${directory}/${index}.log`, line(text), 0o640);
  return { clock, files };
}

test("the previous instance's log alone is told, and ends, also when it is followed", async () => {
  const disk = await diskWith("previous", "current");
  const running = { name: "app", containerID: "containerd://new", state: { running: { startedAt: "" } } };
  const status = { ...running, lastState: { terminated: { exitCode: 1, containerID: "containerd://old" } } };
  const observed = testStatus(
    [testSandbox()],
    [
      testContainer({ id: containerId("new"), name: "app", logPath: `${directory}/1.log`, restartCount: 1 }),
      testContainer({ id: containerId("old"), name: "app", state: "exited", logPath: path }),
    ],
  );
  const pod = webPod({ observed, status: statusOf(status) });
  for (const query of ["previous=true", "previous=true&follow=true"]) {
    assert.deepEqual(await follow(pod, query, disk), { text: "previous\n", hasEnded: true });
  }
  const { text, hasEnded } = await follow(pod, "follow=true", disk);
  assert.deepEqual([text, hasEnded], ["current\n", false]);
});

for (const [what, spec, exitCode, ends] of [
  ["under Never", { restartPolicy: "Never" }, 1, true],
  ["that succeeded under OnFailure", { restartPolicy: "OnFailure" }, 0, true],
  ["that failed under OnFailure", { restartPolicy: "OnFailure" }, 1, false],
  ["that succeeded under Always", {}, 0, false],
  ["whose own policy is Never", { own: { restartPolicy: "Never" } }, 1, true],
  ["whose pod may restart as a whole", { restartPolicy: "Never", other: restartsAll() }, 1, false],
  ["that initialized its pod", { as: "initContainers" }, 0, true],
  ["that failed to initialize its pod", { as: "initContainers" }, 1, false],
  ["that failed to initialize its pod under Never", { as: "initContainers", restartPolicy: "Never" }, 1, true],
  ["that is a sidecar", { as: "initContainers", own: { restartPolicy: "Always" } }, 0, false],
  ["that is ephemeral", { as: "ephemeralContainers" }, 0, true],
] as const) {
  test(`a followed log of a container that has ended ${what} ${ends ? "ends" : "goes on"}`, async () => {
    const { as = "containers", own = {}, other = {}, ...pod } = spec as EndedIn;
    const app = { name: "app", image: "busybox", ...own };
    const all = { containers: [{ name: "other", image: "busybox", ...other }] };
    const containers = [...(as === "containers" ? [app] : []), ...all.containers];
    const ended = { name: "app", containerID: "containerd://app-id", state: { terminated: { exitCode } } };
    const seen = webPod({
      pod: testPod({ ...pod, containers, ...(as !== "containers" && { [as]: [app] }) }, "uid-1", "web"),
      status: statusOf(ended),
    });
    assert.deepEqual(await follow(seen, "follow=true", await diskWith("done")), { text: "done\n", hasEnded: ends });
  });
}

interface EndedIn {
  readonly restartPolicy?: "Never" | "OnFailure";
  readonly as?: "containers" | "initContainers" | "ephemeralContainers";
  readonly own?: Partial<Container>;
  readonly other?: Partial<Container>;
}

function restartsAll(): Partial<Container> {
  const exitCodes = { operator: "In", values: [42] };
  return { restartPolicy: "Never", restartPolicyRules: [{ action: "RestartAllContainers", exitCodes }] };
}
