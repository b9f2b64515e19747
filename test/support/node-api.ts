import type { Cri } from "../../src/ports/cri.ts";
import type { NodePod } from "../../src/node-api/node-pods.ts";
import type { NodeApiDependencies } from "../../src/node-api/routes.ts";
import type { ApiResponse } from "../../src/ports/api-server.ts";
import type { Forward, NodeRequest } from "../../src/ports/node-server.ts";
import { simCompression } from "../../src/sim/compression.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { ManualClock } from "./manual-clock.ts";
import { testContainer, testPod, testSandbox, testStatus } from "./observed.ts";

/** The pod `default/web` with a running container `app`. */
export function webPod(changed: Partial<NodePod> = {}): NodePod {
  const pod = testPod({ containers: [{ name: "app", image: "busybox" }] }, "uid-1", "web");
  const containerID = "containerd://app-id";
  const running = { name: "app", containerID, state: { running: { startedAt: "" } } };
  const status = { phase: "Running", containerStatuses: [running] } as unknown as NonNullable<NodePod["status"]>;
  const observed = testStatus(
    [testSandbox()],
    [testContainer({ name: "app", logPath: "/var/log/pods/web/app/0.log" })],
  );
  return { pod, status, observed, ended: false, ...changed };
}

/** A node with one pod, for the handlers of the kubelet's API. */
export async function nodeApiDeps(changed: Partial<NodeApiDependencies> = {}): Promise<NodeApiDependencies> {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/var/log/pods/web/app", 0o755);
  await files.write("/var/log/pods/web/app/0.log", "2026-01-01T00:00:00Z stdout F hello\n", 0o640);
  await files.write("/var/log/syslog", "a line\n", 0o640);
  return {
    clock,
    files,
    store: { files, compression: simCompression(files) },
    cri: fakeCri(),
    commandOutput: () => {
      throw new Error("there is no journalctl here");
    },
    pods: () => [webPod()],
    desired: () => [webPod()],
    health: () => [{ name: "pleg", ok: true, detail: "last listing 0.1 s ago" }],
    surroundings: () => [{ name: "apiserver", ok: false, detail: "the lease was never renewed" }],
    configuration: { kind: "KubeletConfiguration" },
    flags: new Map([["port", "10250"]]),
    withoutPages: [],
    otherPaths: [],
    version: "0.1.0",
    logsDirectory: "/var/log",
    checkpointDirectory: "/checkpoints",
    debugging: true,
    systemLogs: true,
    systemLogQuery: true,
    profiling: true,
    debugFlags: true,
    setVerbosity: () => {},
    ...changed,
  };
}

/** A runtime that accepts all streams and commands. */
function fakeCri(): Cri {
  const streams = async (): Promise<{ readonly url: string }> => ({ url: "http://127.0.0.1:1/stream" });
  const runtime = {
    exec: streams,
    attach: streams,
    portForward: streams,
    execSync: async () => ({ stdout: Buffer.from("done\n"), stderr: Buffer.of(), exitCode: 0 }),
    checkpointContainer: async () => ({}),
  };
  return { runtime, images: {} } as unknown as Cri;
}

/** A request for a path, with its query. */
export function nodeRequest(method: string, target: string, more: Partial<NodeRequest> = {}): NodeRequest {
  const [path = "", query = ""] = target.split("?");
  return {
    method,
    path,
    query: new URLSearchParams(query),
    body: async () => "",
    signal: new AbortController().signal,
    headers: {},
    certificate: undefined,
    upgrade: false,
    ...more,
  };
}

/** A handler's response, as `<status> <text>`. */
export async function answerText(answer: ApiResponse | Forward): Promise<string> {
  if (!("status" in answer)) return `101 ${answer.forwardTo}`;
  if (typeof answer.body === "string") return `${answer.status} ${answer.body}`;
  const pieces: Uint8Array[] = [];
  for await (const piece of answer.body) pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
  return `${answer.status} ${Buffer.concat(pieces).toString()}`;
}
