import { hostname } from "node:os";
import { resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { podUid } from "../base/ids.ts";
import { version } from "../base/version.ts";
import { configurationInUse } from "../config/configuration-in-use.ts";
import { defaultEvictionHard, withDefaults } from "../config/defaults.ts";
import { kubeletSettings } from "../config/settings.ts";
import { connectCri } from "../cri/client.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { kubeletConfig } from "../engine/kubelet-config.ts";
import { defaultImageLimits } from "../images/image-manager.ts";
import { NodeMetrics } from "../metrics/node-metrics.ts";
import { systemDaemons } from "../linux/processes/daemons.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { isCriError } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import type { Ports } from "../ports/ports.ts";
import { removingAbandonedTasks } from "../private-runtime/abandoned-tasks.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { cgroupPath, parseCgroupfsPath } from "../resources/cgroup-names.ts";
import { ensurePrivateRuntime } from "../private-runtime/containerd.ts";
import { type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { sweepFirewall } from "../private-runtime/firewall.ts";
import { type MachineFacts, preflight, requireReady } from "../private-runtime/preflight/preflight.ts";
import { takeStateFormat } from "../private-runtime/state-format.ts";
import { stopPrivateRuntime } from "../private-runtime/stop.ts";
import { watchPrivateRuntime } from "../private-runtime/watch.ts";
import { defaultPodIds } from "../runtime/config/id-ranges.ts";
import type { FlightRecorder } from "../replay/flight-recorder.ts";
import { withDeadlines } from "../runtime-service/deadlines.ts";
import { discoverRuntime } from "../runtime-service/features.ts";
import type { SubsystemHealth } from "../status/health.ts";
import { BootManifests } from "./boot-manifests.ts";
import { credentialFiles } from "./credential-files.ts";
import { evictionSettings } from "./evictions.ts";
import { engineImageGarbage } from "./image-garbage.ts";
import { KeptSettings, runtimeOfPods } from "./kept-settings.ts";
import { RunDrivers } from "./run-drivers.ts";
import { machineInfo } from "./machine-info.ts";
import { type NodeProcess, runNode } from "./node-process.ts";
import {
  type AgentPorts,
  claim,
  lockStateDirectory,
  onHangup,
  openPorts,
  openRecorder,
  terminationSignal,
} from "./process-start.ts";

export interface EngineOptions {
  readonly stateDir: string;
  /** Undefined: the runtime in which its pods are, or the private containerd. */
  readonly runtimeEndpoint?: string;
  /** Keeps running without pods. */
  readonly stay?: true;
  /** Evicts pods when the machine runs out of memory or disk; undefined: if the engine before did. */
  readonly evict?: boolean;
  /** The file to which decisions are recorded. */
  readonly record?: string;
  /** A directory whose manifests run as long as they are there. */
  readonly manifests?: string;
}

/**
 * Runs the engine behind `podwright run` until its last pod is gone or it is asked to stop, and returns the exit code.
 * Its pods keep running when it is killed; the next engine on the state directory takes them over.
 */
export async function runEngine(options: EngineOptions): Promise<ExitCode> {
  const layout = runtimeLayout(options.stateDir, systemHashing);
  const ports = await openPorts([layout.stateDirectory, layout.kubeletRoot]);
  const log = createLogger({ level: "info" });
  await ports.files.makeDirectory(layout.stateDirectory, 0o711);
  await ports.files.makeDirectory(layout.runDirectory, 0o755);
  // Before the node is served, a signal ends this process immediately.
  const never = AbortSignal.any([]);
  using _engineLock = await lockStateDirectory(ports, layout, log, never);
  await takeStateFormat(ports.files, layout.stateDirectory, version);
  const recorder = await openRecorder(ports, log, options.record);
  const kept = new KeptSettings(ports.files, log, layout);
  const settings = await kept.choose(options);
  const { evict, runtimeEndpoint } = settings;
  const endpoint = runtimeEndpoint ?? layout.containerd.endpoint;
  using _claim = await claim(ports, endpoint, log, never);
  const machine = runtimeEndpoint === undefined ? await startRuntime(ports, layout) : undefined;
  await kept.keep(settings);
  const serving = {
    machine,
    endsWhenIdle: options.stay !== true,
    evicts: evict,
    manifests: options.manifests === undefined ? undefined : resolve(process.cwd(), options.manifests),
    recorder,
  };
  const ended = await serve(ports, layout, endpoint, serving, log);
  if (ended === "idle") await kept.forget();
  // After a termination signal pods keep running, and so does the runtime: it only stops without sandboxes.
  if (machine !== undefined) await stopRuntime(ports, layout, machine, log);
  return ExitCode.done;
}

function runtimeDependencies(ports: AgentPorts): Parameters<typeof stopPrivateRuntime>[0] {
  const connect = (endpoint: string): ReturnType<typeof connectCri> => connectCri(endpoint, systemClock);
  return { ...ports, hashing: systemHashing, locks: systemLocks, daemons: systemDaemons, connect };
}

async function startRuntime(ports: AgentPorts, layout: RuntimeLayout): Promise<MachineFacts> {
  const searchPath = (process.env["PATH"] ?? "").split(":").filter((directory) => directory.startsWith("/"));
  const facts = requireReady(await preflight({ ...ports, layout, searchPath }));
  await ensurePrivateRuntime(runtimeDependencies(ports), layout, facts);
  return facts;
}

async function stopRuntime(ports: AgentPorts, layout: RuntimeLayout, facts: MachineFacts, log: Logger): Promise<void> {
  const outcome = await stopPrivateRuntime(runtimeDependencies(ports), layout, facts.programs);
  if (!outcome.stopped) {
    log.info("private runtime keeps running: it still has sandboxes", { sandboxes: outcome.sandboxes });
  } else if (outcome.leftovers.length > 0) {
    log.warn("private runtime stopped, some of its resources remain", { leftovers: outcome.leftovers });
  }
}

/** `ctr` and the socket of the private runtime. */
function ownClient({ containerd }: RuntimeLayout, { programs }: MachineFacts): { ctr: string; socket: string } {
  return { ctr: programs.ctr, socket: containerd.socket };
}

/** For an external runtime: of the machine's resources only the pods' parent cgroup is podwright's. */
async function removeCgroup(
  { cgroups }: Ports,
  cgroupRoot: string,
  { cgroupDriver }: Pick<NodeContext, "cgroupDriver">,
  log: Logger,
): Promise<void> {
  const cgroup = cgroupPath(parseCgroupfsPath(cgroupRoot), cgroupDriver);
  await cgroups.remove(cgroup).catch((error: unknown) => {
    log.warn("cannot remove the pods' cgroup", { cgroup, error: errorMessage(error) });
  });
}

async function giveBack({ place }: RunDrivers, log: Logger): Promise<void> {
  await place.give().catch((error: unknown) => {
    log.warn("cannot unmount the directories for CSI drivers", { error: errorMessage(error) });
  });
}

interface Serving {
  /** Undefined: with an external runtime. */
  readonly machine: MachineFacts | undefined;
  readonly endsWhenIdle: boolean;
  /** Whether pods are evicted under node pressure. */
  readonly evicts: boolean;
  /** The directory of manifests; undefined: pods only come from `podwright run`. */
  readonly manifests: string | undefined;
  readonly recorder: FlightRecorder | undefined;
}

/** What to do about a runtime that does not answer. */
function runtimeRemedy(layout: RuntimeLayout, endpoint: string, ofPods: string | undefined): string {
  if (ofPods !== endpoint) return "start the runtime, or omit --runtime-endpoint to use podwright's own";
  return `start the runtime: pods are in it. If it is gone for good, remove ${layout.engineSettings}`;
}

/** The service's manifests, once the node is there that they are applied to. */
class ManifestsRoom {
  #manifests: BootManifests | undefined;

  /** Reloads on SIGHUP, which `systemctl reload` sends. */
  async applyAll(manifests: BootManifests, signal: AbortSignal): Promise<void> {
    this.#manifests = manifests;
    using _hangup = onHangup(() => manifests.reload());
    await manifests.run(signal);
  }

  findings(): SubsystemHealth[] {
    return this.#manifests?.findings() ?? [];
  }
}

interface BesideEngine extends Pick<Serving, "machine" | "manifests"> {
  readonly room: ManifestsRoom;
  readonly ports: AgentPorts;
  readonly layout: RuntimeLayout;
  readonly log: Logger;
  readonly cri: ReturnType<typeof connectCri>;
}

/** The engine's tasks besides its node: manifests of a directory, the private runtime and its firewall rules. */
function besideEngine({ ports, layout, log, cri, machine, manifests, room }: BesideEngine): NodeProcess["beside"] {
  const { clock, processes } = ports;
  return async ({ localApi }, _figures, signal, journal) => {
    const places = manifests === undefined ? undefined : { directory: manifests, memory: layout.bootPods };
    const fromManifests =
      places && room.applyAll(new BootManifests({ ...ports, log, journal, localApi }, places), signal);
    if (machine === undefined) return await fromManifests;
    const ensure = (ensuring: AbortSignal): Promise<unknown> =>
      ensurePrivateRuntime(runtimeDependencies(ports), layout, machine, ensuring);
    const firewall = { processes, iptables: machine.programs.iptables, network: layout.cni.networkName };
    await Promise.all([
      fromManifests,
      watchPrivateRuntime({ clock, log, runtime: cri.runtime, ensure }, signal),
      sweepFirewall({ ...firewall, clock, log, runtime: cri.runtime }, signal),
    ]);
  };
}

/** Serves until idle or terminated. */
async function serve(
  ports: AgentPorts,
  layout: RuntimeLayout,
  endpoint: string,
  { machine, endsWhenIdle, evicts, manifests, recorder }: Serving,
  log: Logger,
): ReturnType<typeof runNode> {
  const { clock, files, network } = ports;
  const termination = terminationSignal();
  using cri = connectCri(endpoint, systemClock);
  const runtime = await discoverRuntime(cri, termination).catch(async (error: unknown) => {
    if (!isCriError(error)) throw error;
    throw new PodwrightError(ExitCode.environment, `container runtime does not answer: ${error.message}`, {
      cause: error,
      remedy: runtimeRemedy(layout, endpoint, await runtimeOfPods(files, layout)),
    });
  });
  // A standalone node: upstream's defaults, with podwright's own directories and cgroup.
  const configuration = withDefaults(evicts ? { evictionHard: { ...defaultEvictionHard } } : {});
  const { cgroupRoot } = layout;
  const logs = { podLogsRoot: layout.podLogs, containerLogsRoot: layout.containerLogs };
  const settings = { ...kubeletSettings(configuration), ...logs, cgroupRoot, images: defaultImageLimits };
  const podIds = defaultPodIds(settings.idsPerPod);
  const rootDirectory = layout.kubeletRoot;
  const credentials = { credentialFiles: credentialFiles(rootDirectory) };
  const node = { nodeName: hostname(), rootDirectory, hostIPs: network.addresses(), podIds, ...credentials };
  const isPrivate = endpoint === layout.containerd.endpoint;
  const config = kubeletConfig(node, settings, await machineInfo(ports, rootDirectory), runtime);
  const inUse = configurationInUse(configuration, config.node);
  const services =
    machine === undefined ? cri : removingAbandonedTasks(cri, { ...ports, log, ...ownClient(layout, machine) });
  const metrics = new NodeMetrics(clock);
  const { syncFrequencyMs } = settings;
  const { nodeName } = config.node;
  const drivers = new RunDrivers({ ports, log, metrics, nodeName, rootDirectory, syncFrequencyMs });
  const room = new ManifestsRoom();
  const ended = await runNode({
    ports,
    layout,
    log,
    metrics,
    runtime: {
      endpoint,
      cri: withDeadlines(services, clock, settings.runtimeRequestTimeoutMs, metrics.runtime),
      info: runtime,
    },
    config,
    sources: { run: { directory: layout.manifests, claims: layout.claims, volumes: layout.volumes, drivers } },
    checks: [],
    cluster: undefined,
    // Without thresholds only the pods' own limits cause evictions.
    eviction: evictionSettings(settings.eviction, ports.cgroups.version, {}),
    rooms: (journal) => [...drivers.rooms(journal), room],
    ownsPodLogs: false,
    // In an external runtime podwright owns only pods that have a directory below its own root.
    imageGarbage: engineImageGarbage(settings.imageGarbage, isPrivate),
    owns: async (uid) => isPrivate || (await files.stat(`${layout.kubeletRoot}/pods/${podUid(uid)}`)) !== undefined,
    termination,
    endsWhenIdle,
    hasWork: () => drivers.isUnstaging,
    recorder,
    subject: { configuration: inUse, flags: {}, rootDirectory: layout.kubeletRoot, setVerbosity: undefined },
    beside: besideEngine({ ports, layout, log, cri, machine, manifests, room }),
  });
  if (ended === "idle") await giveBack(drivers, log);
  if (ended === "idle" && machine === undefined) await removeCgroup(ports, cgroupRoot, config.node, log);
  return ended;
}
