import { hostname } from "node:os";
import { resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { cloudOptions } from "../config/cloud-options.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { KubeletFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load.ts";
import { nodeIpsOf, nodeNameOf } from "../config/node-options.ts";
import { kubeletSettings, socketEndpoint, uselessNameServers, uselessThresholds } from "../config/settings.ts";
import { servingSettings } from "../config/serving.ts";
import { connectCri } from "../cri/client.ts";
import { lockFileContention, takeLockFile } from "../engine/lock-file.ts";
import type { Node } from "../engine/node.ts";
import { checkReservedProcessors } from "../engine/reserved-processors.ts";
import { tellPodCidr } from "../engine/pod-cidr.ts";
import { waitForRuntime } from "../engine/wait-for-runtime.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { shareDirectory } from "../linux/files/shared-directory.ts";
import { isSwapOn, openFilesLimit, setOomScoreAdjust } from "../linux/processes/own-process.ts";
import { serveTcp } from "../linux/servers/tcp-server.ts";
import { NodeMetrics } from "../metrics/node-metrics.ts";
import { HostAddresses } from "../node/host-addresses.ts";
import type { Cri } from "../ports/cri.ts";
import type { LogLevel } from "../ports/log.ts";
import { canonicalPath } from "../private-runtime/canonical-path.ts";
import { type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { withDeadlines } from "../runtime-service/deadlines.ts";
import type { Health } from "../server/engine.ts";
import { healthzRoutes } from "../server/healthz.ts";
import { keepServing } from "./keep-serving.ts";
import { credentialPlugins } from "./credential-providers.ts";
import type { Daemon } from "./kubelet-node.ts";
import { nodeCredentials } from "./node-credentials.ts";
import { makeNodeDirectories } from "./node-directories.ts";
import { readClientAuthorities } from "./serving-certificates.ts";
import { claim, lockStateDirectory, openPorts, openRecorder, terminationSignal } from "./process-start.ts";

/** From this `-v` on upstream logs what helps to find a fault. */
const debugVerbosity = 4;

/**
 * Runs the node agent until SIGTERM or SIGINT. It owns every pod of its runtime; they go on running when it ends or is
 * killed, and the next start takes them up.
 * @throws PodwrightError when the configuration or the machine does not let it
 */
export async function runKubelet(flags: KubeletFlags): Promise<void> {
  const told = terminationSignal();
  const ports = await openPorts();
  const { configuration, warnings, isWritten } = await loadConfiguration(
    { files: ports.files, workingDirectory: process.cwd(), cgroupVersion: ports.cgroups.version },
    flags,
  );
  const levelOf = (verbosity: number): LogLevel => (verbosity >= debugVerbosity ? "debug" : "info");
  const log = createLogger({ level: levelOf(configuration.logging.verbosity) });
  const setVerbosity = (verbosity: number): void => log.setLevel(levelOf(verbosity));
  for (const warning of warnings) log.warn(warning);
  try {
    const served = servingSettings(configuration, isWritten);
    await operate({ ports, log, configuration, flags: flags.node, served, setVerbosity, told });
  } catch (error) {
    if (!told.aborted || error !== told.reason) throw error;
  }
  log.info("the kubelet ends; its pods go on running");
}

async function operate(daemon: Daemon): Promise<void> {
  const { ports, log, configuration, flags } = daemon;
  // How long the node takes to start is counted from here.
  const metrics = new NodeMetrics(ports.clock);
  const settings = kubeletSettings(configuration, flags.experimentalAllocatableIgnoreEviction);
  const endpoint = socketEndpoint("containerRuntimeEndpoint", configuration.containerRuntimeEndpoint);
  const nodeName = nodeNameOf(flags.hostnameOverride, hostname());
  const addresses = await hostAddresses(daemon, nodeName);
  await checkMachine(daemon);
  const plugins = await credentialPlugins(ports.files, flags);
  using lockFile = await openLockFile(daemon);
  const { rootDirectory, layout } = await makeDirectories(daemon);
  using _stateLock = await lockStateDirectory(ports, layout, log, daemon.told);
  const recorder = await openRecorder(ports, log, flags.record);
  using _claim = await claim(ports, endpoint, log, daemon.told);
  const credentials = await ownCredentials(daemon, nodeName);
  await shareRoot(daemon, rootDirectory);
  using runtimeConnection = connectCri(endpoint);
  using imageConnection = connectImages(configuration);
  const services = { runtime: runtimeConnection.runtime, images: (imageConnection ?? runtimeConnection).images };
  const cri = withDeadlines(services, ports.clock, settings.runtimeRequestTimeoutMs, metrics.runtime);
  const runtime = await waitForRuntime(cri, ports.clock, log, endpoint, lockFile.told).catch((error: unknown) => {
    if (error === lockFile.told.reason) return undefined;
    throw error;
  });
  if (runtime === undefined) return;
  if (credentials === undefined) await tellPodCidr(cri, log, configuration.podCIDR ?? "");
  let node: Node | undefined;
  await using _healthz = serveHealthz(daemon, () => node?.health() ?? []);
  // What makes up a node is most of this program, and nothing so far needed it.
  const { runKubeletNode } = await import("./kubelet-node.ts");
  const own = { nodeName, addresses, rootDirectory, layout, settings, plugins, credentials };
  const connected = { endpoint, cri, runtime, metrics, recorder, told: lockFile.told };
  await runKubeletNode({ ...daemon, ...own, ...connected }, (made) => (node = made));
}

async function ownCredentials(daemon: Daemon, nodeName: string): ReturnType<typeof nodeCredentials> {
  const renews = daemon.configuration.rotateCertificates ?? false;
  const credentials = await nodeCredentials({ ...daemon, nodeName, renews });
  if (credentials === undefined) daemon.log.info("standalone mode, no API client");
  return credentials;
}

async function hostAddresses({ ports, log, flags, told }: Daemon, nodeName: string): Promise<HostAddresses> {
  const addresses = new HostAddresses({ ...ports, log }, nodeIpsOf(flags.nodeIp), nodeName);
  await addresses.look(told);
  return addresses;
}

function connectImages({ imageServiceEndpoint = "" }: KubeletConfiguration): (Cri & Disposable) | undefined {
  if (imageServiceEndpoint === "") return undefined;
  return connectCri(socketEndpoint("imageServiceEndpoint", imageServiceEndpoint));
}

/** What has to be so before anything is done, and what this process does to itself. */
async function checkMachine({ ports, log, configuration, flags, served }: Daemon): Promise<void> {
  cloudOptions(flags);
  if (served !== undefined) await readClientAuthorities(ports.files, served);
  await checkReservedProcessors(ports.files, configuration.reservedSystemCPUs);
  if (process.getuid?.() !== 0) {
    throw new PodwrightError(ExitCode.environment, "podwright runs pods as root, not as this user", {
      remedy: "run it with sudo",
    });
  }
  if (configuration.failSwapOn && (await isSwapOn())) {
    throw new PodwrightError(
      ExitCode.environment,
      "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false",
    );
  }
  if (ports.cgroups.version === 1) {
    log.warn("cgroup v1 detected. cgroup v1 support is deprecated; please migrate to cgroup v2");
  }
  for (const signal of uselessThresholds(configuration)) {
    log.warn("a threshold of containerfs says nothing: that of nodefs or imagefs counts for it", { signal });
  }
  for (const address of uselessNameServers(configuration)) {
    log.warn("invalid IP address in clusterDNS; it is passed over", { address });
  }
  await setOomScoreAdjust(configuration.oomScoreAdj).catch((error: unknown) => {
    log.info("oomScoreAdj can't be applied", { oomScoreAdj: configuration.oomScoreAdj, error: errorMessage(error) });
  });
  const maxOpenFiles = await openFilesLimit();
  if (maxOpenFiles < configuration.maxOpenFiles) {
    log.info("this process may open fewer files than maxOpenFiles says", {
      limit: maxOpenFiles,
      maxOpenFiles: configuration.maxOpenFiles,
    });
  }
}

/** `--lock-file`: held until the result is disposed of. `told` also aborts when another process waits for it. */
async function openLockFile(daemon: Daemon): Promise<Disposable & { readonly told: AbortSignal }> {
  const { ports, log, flags, told } = daemon;
  const { lockFile = "", exitOnLockContention = false } = flags;
  if (lockFile === "") {
    if (!exitOnLockContention) return { told, [Symbol.dispose]: () => {} };
    throw new PodwrightError(ExitCode.badInput, "cannot exit on lock file contention: no lock file specified", {
      remedy: "give --lock-file",
    });
  }
  const path = resolve(process.cwd(), lockFile);
  const lock = await takeLockFile({ ...ports, locks: systemLocks, log }, path, told);
  if (!exitOnLockContention) return { told, [Symbol.dispose]: () => lock[Symbol.dispose]() };
  const contention = lockFileContention({ ...ports, log }, path, told);
  return { told: contention, [Symbol.dispose]: () => lock[Symbol.dispose]() };
}

async function makeDirectories({
  ports,
  flags,
  configuration,
}: Daemon): Promise<{ readonly rootDirectory: string; readonly layout: RuntimeLayout }> {
  const { files } = ports;
  const rootDirectory = resolve(process.cwd(), flags.rootDir || "/var/lib/kubelet");
  await makeNodeDirectories(files, rootDirectory, configuration.podLogsDir);
  const stateDirectory = resolve(process.cwd(), flags.stateDir || `${rootDirectory}/podwright`);
  await files.makeDirectory(stateDirectory, 0o700);
  const layout = runtimeLayout(await canonicalPath(files, stateDirectory), systemHashing);
  await files.makeDirectory(layout.runDirectory, 0o755);
  return { rootDirectory, layout };
}

/** Comes after all that a wrong input keeps from starting: the directory stays mounted on itself, as upstream leaves it. */
async function shareRoot({ ports, log }: Daemon, rootDirectory: string): Promise<void> {
  if (await shareDirectory(ports.mounts, await canonicalPath(ports.files, rootDirectory))) return;
  log.warn("what is mounted below the root directory is not shared: pods have mounts there", { rootDirectory });
}

/** Serves /healthz until it is disposed of. */
function serveHealthz({ ports, log, configuration }: Daemon, checks: () => Health["checks"]): AsyncDisposable {
  const { healthzBindAddress: host, healthzPort: port } = configuration;
  const end = new AbortController();
  const serve = async (): Promise<AsyncDisposable> => await serveTcp({ host, port }, healthzRoutes(checks));
  const serving = port === 0 ? undefined : keepServing({ clock: ports.clock, log }, "/healthz", end.signal, serve);
  return {
    [Symbol.asyncDispose]: async () => {
      end.abort();
      await serving;
    },
  };
}
