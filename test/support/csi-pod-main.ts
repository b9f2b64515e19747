/**
 * The programs in the containers of a CSI driver's pod, with the flags of drivers, of node-driver-registrar and of
 * livenessprobe: the tests' driver, what makes it known to the kubelet, and what tells whether it answers.
 *
 * csi-pod-main.ts driver --endpoint=unix:///csi/csi.sock --drivername=NAME --nodeid=ID --data=DIR
 * csi-pod-main.ts registrar --csi-address=PATH --kubelet-registration-path=PATH --http-endpoint=HOST:PORT
 * csi-pod-main.ts livenessprobe --csi-address=PATH --http-endpoint=HOST:PORT
 */
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { pluginClient } from "../../src/grpc/plugin-client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import { Identity } from "../../src/ports/gen/csi/v1/csi_pb.js";
import { CsiDriver } from "./csi-driver.ts";
import { serveRegistration } from "./csi-registrar.ts";

const text = { type: "string", default: "" } as const;
const options = {
  endpoint: text,
  drivername: text,
  nodeid: text,
  data: text,
  "csi-address": text,
  "kubelet-registration-path": text,
  "http-endpoint": text,
} as const;
const registrationDirectory = "/registration";
const timeoutMs = 3_000;
const startMs = 2_000;

type Flags = Readonly<Record<keyof typeof options, string>>;

/** @returns its end */
async function drive({ endpoint, drivername: name, nodeid: nodeId, data }: Flags): Promise<() => Promise<void>> {
  const directory = dirname(endpoint.replace("unix://", ""));
  const driver = new CsiDriver({ name, nodeId, directory, volumes: data, root: directory });
  await driver.serve();
  return () => driver.stop();
}

async function register(flags: Flags): Promise<() => Promise<void>> {
  const name = await nameAt(flags["csi-address"]);
  const socket = `${registrationDirectory}/${name}-reg.sock`;
  const endpoint = flags["kubelet-registration-path"];
  process.umask(0o077);
  const registration = await serveRegistration(
    socket,
    async () => ({ type: "CSIPlugin", name, endpoint, supportedVersions: ["1.0.0"] }),
    (registered) => {
      // It is tried again by the container's restart.
      if (!registered) process.exit(1);
    },
  );
  serveHealth(flags["http-endpoint"], async () => existsSync(socket));
  return async () => await registration[Symbol.asyncDispose]();
}

async function probe(flags: Flags): Promise<() => Promise<void>> {
  const calls = pluginClient(systemClock).connect(Identity, flags["csi-address"], "driver");
  serveHealth(flags["http-endpoint"], async () => {
    await calls.probe({}, { timeoutMs });
    return true;
  });
  return async () => calls[Symbol.dispose]();
}

/** The driver's name, once it answers. */
async function nameAt(address: string): Promise<string> {
  using calls = pluginClient(systemClock).connect(Identity, address, "driver");
  for (;;) {
    try {
      const { name } = await calls.getPluginInfo({}, { timeoutMs });
      return name;
    } catch {
      await sleep(100);
    }
  }
}

function serveHealth(endpoint: string, isHealthy: () => Promise<boolean>): void {
  const { hostname, port } = new URL(`http://${endpoint}`);
  const server = createServer((_request, response) => {
    void isHealthy()
      .catch(() => false)
      .then((healthy) => response.writeHead(healthy ? 200 : 500).end());
  });
  server.listen(Number(port), hostname);
}

const roles = { driver: drive, registrar: register, livenessprobe: probe };

const { positionals, values } = parseArgs({ options, allowPositionals: true });
const role = Object.entries(roles).find(([name]) => name === positionals[0])?.[1];
if (role === undefined) throw new Error(`no role ${positionals[0]}`);
const started = role(values);
// The first process of a container gets no default action for it. One that has just started removes its socket all the same.
process.once("SIGTERM", () => {
  void Promise.race([started, sleep(startMs, undefined)])
    .then(async (end) => await end?.())
    .then(() => process.exit(0));
});
await started;
