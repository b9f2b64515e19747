/**
 * The cost of probing: CPU time of a prober that makes 500 network probes a second, as a share of one core. The floor
 * makes the same connections without decisions: it connects, sends the request, takes the first bytes and resets.
 *
 * probes.ts [--rate 500] [--seconds 10] [--json]
 *
 * The probed servers are a separate process and not counted. The journal and the CRI are not involved: nothing fails,
 * and no probe is a command.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import * as http from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Container } from "../src/api/container.ts";
import type { Pod } from "../src/api/pod.ts";
import { containerId, podUid } from "../src/base/ids.ts";
import { systemClock } from "../src/linux/processes/clock.ts";
import { systemFiles } from "../src/linux/files/files.ts";
import { systemNetworkProbes } from "../src/linux/network/network-probes.ts";
import { systemRandom } from "../src/linux/processes/random.ts";
import type { NetworkProbes } from "../src/ports/network-probes.ts";
import { ProbeManager } from "../src/prober/probe-manager.ts";
import type { ContainerStatus } from "../src/runtime/status/pod-status.ts";
import { silentLog } from "../src/sim/machine.ts";
import { startHealthServer } from "../test/support/health-server.ts";
import { testContainer } from "../test/support/observed.ts";
import { type Goal, printReport, progress } from "./support/report.ts";

interface Ports {
  readonly http: number;
  readonly tcp: number;
  readonly grpc: number;
}

interface Measurement {
  readonly kind: string;
  readonly perSecond: number;
  /** Of one core. */
  readonly cpuPercent: number;
  readonly microsecondsEach: number;
  readonly unexpected: number;
}

const goalPercent = 15;
const warmUpMs = 2_000;
const probesPerContainer = 2;
/** The floor's connections begin together at this interval, as those of the prober. */
const floorEachMs = 50;

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "500" },
    seconds: { type: "string", default: "10" },
    json: { type: "boolean", default: false },
    serve: { type: "boolean", default: false },
  },
});

/** The probed side: every response is a success. */
async function serve(): Promise<void> {
  const web = http.createServer((_request, response) => response.end("ok"));
  const plain = createServer((socket) => socket.on("error", () => {}).resume());
  for (const server of [web, plain]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const health = await startHealthServer();
  const portOf = (server: http.Server | typeof plain): number => (server.address() as AddressInfo).port;
  process.send?.({ http: portOf(web), tcp: portOf(plain), grpc: health.port } satisfies Ports);
  process.once("disconnect", () => process.exit());
}

type Probe = NonNullable<Container["livenessProbe"]>;

/** A pod of one container with a liveness and a readiness probe each second. */
function probedPod(index: number, [live, ready]: readonly [Probe, Probe]): Pod {
  const often = { periodSeconds: 1, timeoutSeconds: 1 };
  const container = { name: "c", livenessProbe: { ...live, ...often }, readinessProbe: { ...ready, ...often } };
  return {
    metadata: { name: `pod-${index}`, namespace: "bench", uid: podUid(`uid-${index}`) },
    spec: { hostNetwork: true, containers: [container] },
  };
}

function running(index: number): ContainerStatus {
  return testContainer({ id: containerId(`c-${index}`), startedAt: BigInt(Date.now()) * 1_000_000n });
}

async function measure(
  kind: string,
  probes: readonly [Probe, Probe],
  rate: number,
  seconds: number,
): Promise<Measurement> {
  const seen = { made: 0, unexpected: 0 };
  const count = async <T>(probe: Promise<T>): Promise<T> => {
    seen.made++;
    return await probe;
  };
  const networkProbes: NetworkProbes = {
    httpGet: (request, signal) => count(systemNetworkProbes.httpGet(request, signal)),
    tcpConnect: (host, port, signal) => count(systemNetworkProbes.tcpConnect(host, port, signal)),
    grpcHealth: (host, port, service, signal) => count(systemNetworkProbes.grpcHealth(host, port, service, signal)),
  };
  const manager = new ProbeManager({
    clock: systemClock,
    random: systemRandom,
    // Storing results is not measured.
    files: { ...systemFiles, writeAtomic: async () => {} },
    commands: { execSync: () => Promise.reject(new Error("no commands here")) },
    networkProbes,
    journal: { record: () => ++seen.unexpected },
    log: silentLog,
    node: { hostIPs: ["127.0.0.1"], rootDirectory: "/nonexistent" },
    objects: { secret: () => undefined },
    said: () => undefined,
  });
  const pods = Math.round(rate / probesPerContainer);
  for (let index = 0; index < pods; index++) {
    const status = { uid: podUid(`uid-${index}`), name: `pod-${index}`, namespace: "bench", sandboxes: [] };
    manager.observe(probedPod(index, probes), { ...status, containers: [running(index)] }, false);
    await sleep(1000 / pods);
  }
  const measurement = await watch(kind, seen, seconds);
  await manager.close();
  return measurement;
}

/** One bare connection; resolves when it is closed. */
async function bareProbe(port: number, request: string | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ host: "127.0.0.1", port }, () => {
    if (request === undefined) resolve();
    else socket.write(request, "latin1");
  });
  socket.once("data", () => resolve());
  socket.once("error", reject);
  try {
    await promise;
  } finally {
    socket.resetAndDestroy();
  }
}

async function measureFloor(ports: Ports, rate: number, seconds: number): Promise<Measurement> {
  const request = `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${ports.http}\r\nConnection: close\r\n\r\n`;
  const seen = { made: 0, unexpected: 0 };
  const turn = setInterval(() => {
    for (let left = (rate * floorEachMs) / 1000; left > 0; left--) {
      const probe = seen.made++ % 2 === 0 ? bareProbe(ports.tcp, undefined) : bareProbe(ports.http, request);
      probe.catch(() => seen.unexpected++);
    }
  }, floorEachMs);
  const measurement = await watch("floor, HTTP and TCP", seen, seconds);
  clearInterval(turn);
  return measurement;
}

/** This process's CPU usage while probes are counted, after a warm-up. */
async function watch(
  kind: string,
  seen: { readonly made: number; readonly unexpected: number },
  seconds: number,
): Promise<Measurement> {
  await sleep(warmUpMs);
  const [began, madeBefore, cpuBefore] = [performance.now(), seen.made, process.cpuUsage()];
  await sleep(seconds * 1000);
  const { user, system } = process.cpuUsage(cpuBefore);
  const [tookMs, counted, cpuMicroseconds] = [performance.now() - began, seen.made - madeBefore, user + system];
  return {
    kind,
    perSecond: (counted / tookMs) * 1000,
    cpuPercent: (cpuMicroseconds / 1000 / tookMs) * 100,
    microsecondsEach: cpuMicroseconds / counted,
    unexpected: seen.unexpected,
  };
}

async function main(): Promise<void> {
  const [rate, seconds] = [Number(values.rate), Number(values.seconds)];
  const server = fork(import.meta.filename, ["--serve"]);
  try {
    const [ports] = (await once(server, "message")) as [Ports];
    const web: Probe = { httpGet: { path: "/healthz", port: ports.http } };
    const plain: Probe = { tcpSocket: { port: ports.tcp } };
    const health: Probe = { grpc: { port: ports.grpc } };
    const kinds: readonly (readonly [string, readonly [Probe, Probe]])[] = [
      ["HTTP and TCP", [web, plain]],
      ["HTTP", [web, web]],
      ["gRPC", [health, health]],
    ];
    progress(`the floor: ${rate} connections a second for ${seconds} s`);
    const floor = await measureFloor(ports, rate, seconds);
    const measurements: Measurement[] = [];
    for (const [kind, probes] of kinds) {
      progress(`${kind}: ${rate} probes a second for ${seconds} s`);
      measurements.push(await measure(kind, probes, rate, seconds));
    }
    const goals: Goal[] = measurements.map(({ kind, cpuPercent }) => {
      return { name: `${rate} ${kind} probes a second`, value: cpuPercent, atMost: goalPercent, unit: "%" };
    });
    printReport(
      {
        bench: "probes",
        setting: [`node ${process.version}, CPU time of the prober's process alone`],
        columns: ["probes", "a second", "% of a core", "µs each", "failed"],
        rows: [floor, ...measurements].map(({ kind, perSecond, cpuPercent, microsecondsEach, unexpected }) => {
          return [kind, perSecond, cpuPercent.toFixed(1), microsecondsEach, unexpected];
        }),
        goals,
        measurements: [floor, ...measurements],
      },
      values.json,
    );
  } finally {
    server.disconnect();
  }
}

await (values.serve ? serve() : main());
