import { hostname } from "node:os";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { version } from "../base/version.ts";
import { connectCri } from "../cri/client.ts";
import { discoverRuntime } from "../runtime-service/features.ts";
import { kubeletDefaults } from "../engine/defaults.ts";
import { IdleExit } from "../engine/idle-exit.ts";
import { readMachineInfo } from "../engine/machine.ts";
import { RunEngine } from "../engine/run-engine.ts";
import { Journal } from "../journal/journal.ts";
import { Kubelet } from "../kubelet.ts";
import { openCgroups } from "../linux/cgroups.ts";
import { systemClock } from "../linux/clock.ts";
import { systemDaemons } from "../linux/daemons.ts";
import { systemFiles } from "../linux/files.ts";
import { systemHashing } from "../linux/hashing.ts";
import { systemLocks } from "../linux/lock.ts";
import { createLogger } from "../linux/log-sink.ts";
import { systemMounts } from "../linux/mounts.ts";
import { systemNetwork } from "../linux/network.ts";
import { systemProcesses } from "../linux/processes.ts";
import { systemRandom } from "../linux/random.ts";
import { systemVolumeFiles } from "../linux/volume-files.ts";
import { serveUnix } from "../linux/unix-server.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { ensurePrivateRuntime } from "../private-runtime/containerd.ts";
import { type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { claimRuntime } from "../private-runtime/ownership.ts";
import { type MachineFacts, preflight, requireReady } from "../private-runtime/preflight/preflight.ts";
import { stopPrivateRuntime } from "../private-runtime/stop.ts";
import { engineRoutes } from "../server/routes.ts";
import { PodMux } from "../sources/mux.ts";
import { RunSource } from "../sources/run-source.ts";

export interface EngineOptions {
  readonly stateDir: string;
  readonly runtimeEndpoint?: string;
}

/**
 * Runs the engine behind `podwright run` until its last pod is gone or it is told to end, and returns the exit code.
 * Pods go on running when it is killed; the next engine on the state directory takes them up.
 */
export async function runEngine(options: EngineOptions): Promise<ExitCode> {
  const layout = runtimeLayout(options.stateDir, systemHashing);
  const ports = await openPorts();
  const log = createLogger({ level: "info" });
  await ports.files.makeDirectory(layout.stateDirectory, 0o711);
  await ports.files.makeDirectory(layout.runDirectory, 0o755);
  using _engineLock = await lockStateDirectory(ports, layout);
  const endpoint = options.runtimeEndpoint ?? layout.containerd.endpoint;
  using _claim = await claimRuntime({ ...ports, hashing: systemHashing, locks: systemLocks }, endpoint);
  const machine = options.runtimeEndpoint === undefined ? await startRuntime(ports, layout) : undefined;
  const ended = await serve(ports, layout, endpoint, log);
  if (machine !== undefined && ended === "idle") await stopRuntime(ports, layout, machine, log);
  return ExitCode.done;
}

async function openPorts(): Promise<Ports> {
  return {
    clock: systemClock,
    random: systemRandom,
    files: systemFiles,
    processes: systemProcesses,
    mounts: systemMounts,
    volumeFiles: systemVolumeFiles,
    network: systemNetwork,
    cgroups: await openCgroups(systemClock),
  };
}

/** Two engines on one state directory would fight over its manifests. */
async function lockStateDirectory(ports: Ports, layout: RuntimeLayout): Promise<Disposable> {
  const lock = await systemLocks.tryLock(layout.lockFile);
  if (lock !== undefined) return lock;
  const pid = await systemLocks.holder(layout.lockFile);
  const holder = (await ports.processes.list()).find((process) => process.pid === pid);
  throw new PodwrightError(
    ExitCode.environment,
    `another engine has ${layout.stateDirectory}: pid ${pid ?? "unknown"} (${holder?.arguments.join(" ") ?? "gone"})`,
    { remedy: "use that one, or choose another --state-dir" },
  );
}

function runtimeDependencies(ports: Ports): Parameters<typeof stopPrivateRuntime>[0] {
  const connect = (endpoint: string): ReturnType<typeof connectCri> => connectCri(endpoint);
  return { ...ports, hashing: systemHashing, locks: systemLocks, daemons: systemDaemons, connect };
}

async function startRuntime(ports: Ports, layout: RuntimeLayout): Promise<MachineFacts> {
  const searchPath = (process.env["PATH"] ?? "").split(":").filter((directory) => directory.startsWith("/"));
  const facts = requireReady(await preflight({ ...ports, layout, searchPath }));
  await ensurePrivateRuntime(runtimeDependencies(ports), layout, facts);
  return facts;
}

async function stopRuntime(ports: Ports, layout: RuntimeLayout, facts: MachineFacts, log: Logger): Promise<void> {
  const outcome = await stopPrivateRuntime(runtimeDependencies(ports), layout, facts.programs.busybox);
  if (!outcome.stopped)
    log.info("the private runtime still has sandboxes and goes on", { sandboxes: outcome.sandboxes });
  else if (outcome.leftovers.length > 0)
    log.warn("stopping the private runtime left something", { leftovers: outcome.leftovers });
}

/** Serves until idle or told to end; says which. */
async function serve(ports: Ports, layout: RuntimeLayout, endpoint: string, log: Logger): Promise<"idle" | "told"> {
  const { clock, files, random, cgroups } = ports;
  const stop = new AbortController();
  const ended = Promise.withResolvers<"idle" | "told">();
  const journal = await Journal.open({ files, clock, directory: layout.journal });
  using cri = connectCri(endpoint);
  const runtime = await discoverRuntime(cri, stop.signal);
  const node = {
    nodeName: hostname(),
    rootDirectory: layout.kubeletRoot,
    hostIPs: ports.network.addresses(),
    cgroupRoot: layout.cgroupRoot,
    cgroupDriver: runtime.cgroupDriver ?? "cgroupfs",
    cgroupVersion: cgroups.version,
    runtimeName: runtime.name,
  } as const;
  const config = kubeletDefaults(node, await readMachineInfo(files, cgroups));
  const mux: PodMux = new PodMux({ clock, journal, onUpdate: (update) => kubelet.handle(update) }, ["run"]);
  const deliver = (state: Parameters<PodMux["set"]>[1]): void => mux.set("run", state);
  const run = new RunSource(
    {
      clock,
      journal,
      log,
      nodeName: node.nodeName,
      deliver,
      files,
      random,
      objectsChanged: (objects, cause) => kubelet.objectsChanged(objects, cause),
    },
    { directory: layout.manifests },
  );
  const idle = new IdleExit(
    clock,
    () => mux.pods().length === 0 && kubelet.pods().length === 0,
    () => ended.resolve("idle"),
  );
  // Runtimes that don't list their handlers can't do what came after that.
  const handler = runtime.handlers.find(({ name }) => name === "");
  const isPrivate = endpoint === layout.containerd.endpoint;
  const kubelet: Kubelet = new Kubelet(
    {
      ports,
      cri,
      journal,
      log,
      objects: run.objects,
      features: { recursiveReadOnlyMounts: handler?.recursiveReadOnlyMounts ?? false },
      sourcesReady: () => mux.allSourcesSeen(),
      // In somebody else's runtime only pods that have a directory of ours are ours.
      owns: async (uid) => isPrivate || (await files.stat(`${node.rootDirectory}/pods/${podUid(uid)}`)) !== undefined,
    },
    config,
    () => idle.podGone(),
  );
  await run.load();
  const engine = new RunEngine(
    {
      clock,
      journal,
      kubelet,
      mux,
      run,
      exit: () => clock.timer("answers to go out", 100, () => ended.resolve("told")),
    },
    {
      version,
      pid: ports.processes.ownPid,
      runtime: `${runtime.name} ${runtime.version}`,
      runtimeEndpoint: endpoint,
      nodeName: node.nodeName,
      podLogsRoot: config.node.podLogsRoot,
    },
  );
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => ended.resolve("told"));
  const server = await serveUnix(layout.engineSocket, engineRoutes(engine), {
    onError: (error, request) => log.error("request failed", { ...request, error: String(error) }),
  });
  log.info("engine started", { version, runtime: `${runtime.name} ${runtime.version}`, endpoint });
  idle.started();
  const running = kubelet.run(stop.signal);
  const reason = await ended.promise;
  stop.abort(new Error("the engine ends"));
  await server[Symbol.asyncDispose]();
  await running;
  if (reason === "idle") await kubelet.removeCgroups();
  await journal.close();
  return reason;
}
