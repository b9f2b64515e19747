import { hostname } from "node:os";
import { resolve } from "node:path/posix";
import { version } from "../base/version.ts";
import type { KubeletConfiguration } from "../config/defaults.ts";
import type { KubeletFlags } from "../config/flags.ts";
import { loadConfiguration } from "../config/load.ts";
import { nodeIpsOf, nodeNameOf } from "../config/node-options.ts";
import { kubeletSettings, socketEndpoint } from "../config/settings.ts";
import { servingSettings } from "../config/serving.ts";
import { connectCri } from "../cri/client.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { lockFileContention, takeLockFile } from "../engine/lock-file.ts";
import type { Node } from "../engine/node.ts";
import { tellPodCidr } from "../engine/pod-cidr.ts";
import { waitForRuntime } from "../engine/wait-for-runtime.ts";
import { systemHashing } from "../linux/files/hashing.ts";
import { systemLocks } from "../linux/files/lock.ts";
import { createLogger } from "../linux/processes/log-sink.ts";
import { shareDirectory } from "../linux/files/shared-directory.ts";
import { serveTcp } from "../linux/servers/tcp-server.ts";
import { NodeMetrics } from "../metrics/node-metrics.ts";
import { HostAddresses } from "../node/host-addresses.ts";
import type { Cri } from "../ports/cri.ts";
import type { LogLevel } from "../ports/log.ts";
import { canonicalPath } from "../private-runtime/canonical-path.ts";
import { holdKubeletPlace } from "../private-runtime/kubelet-place.ts";
import { type RuntimeLayout, runtimeLayout } from "../private-runtime/layout.ts";
import { whenFree } from "../private-runtime/hand-over.ts";
import { takeStateFormat } from "../private-runtime/state-format.ts";
import { withDeadlines } from "../runtime-service/deadlines.ts";
import type { Health } from "../server/local-api.ts";
import { healthzRoutes } from "../server/healthz.ts";
import { keepServing } from "./keep-serving.ts";
import { credentialPlugins } from "./credential-providers.ts";
import type { Daemon } from "./daemon.ts";
import { prepareProcess } from "./prepare-process.ts";
import { nodeCredentials } from "./node-credentials.ts";
import { makeNodeDirectories } from "./node-directories.ts";
import { claim, lockStateDirectory, openPorts, openRecorder, terminationSignal } from "./process-start.ts";
import { rootDirectoryOf, startChecks } from "./start-checks.ts";

/** Verbosity from which upstream logs debug information. */
const debugVerbosity = 4;

/**
 * Runs the node agent until SIGTERM or SIGINT. It owns every pod of its runtime; pods keep running when it stops or is
 * killed, and the next start takes them over.
 * @throws PodwrightError when the configuration or the machine does not allow it
 */
export async function runKubelet(flags: KubeletFlags): Promise<void> {
  const termination = terminationSignal();
  const ports = await openPorts([rootDirectoryOf(flags.node)]);
  const { configuration, warnings, isWritten } = await loadConfiguration(
    { files: ports.files, workingDirectory: process.cwd(), cgroupVersion: ports.cgroups.version },
    flags,
  );
  const levelOf = (verbosity: number): LogLevel => (verbosity >= debugVerbosity ? "debug" : "info");
  const log = createLogger({ level: levelOf(configuration.logging.verbosity) });
  const setVerbosity = (verbosity: number): void => log.setLevel(levelOf(verbosity));
  for (const warning of warnings) log.warn("configuration warning", { warning });
  try {
    const served = servingSettings(configuration, isWritten);
    await operate({ ports, log, configuration, flags: flags.node, served, setVerbosity, termination });
  } catch (error) {
    if (!termination.aborted || error !== termination.reason) throw error;
  }
  log.info("kubelet stops; its pods keep running");
}

async function operate(daemon: Daemon): Promise<void> {
  const { ports, log, configuration, flags } = daemon;
  // The node's start-up time counts from here.
  const metrics = new NodeMetrics(ports.clock);
  const settings = kubeletSettings(configuration, flags);
  for (const { check } of startChecks(daemon)) await check();
  const endpoint = socketEndpoint("containerRuntimeEndpoint", configuration.containerRuntimeEndpoint);
  const nodeName = nodeNameOf(flags.hostnameOverride, hostname());
  const addresses = await hostAddresses(daemon, nodeName);
  await prepareProcess(daemon);
  const plugins = await credentialPlugins(ports.files, flags);
  using lockFile = await openLockFile(daemon);
  using _place = await holdPlace(daemon);
  const { rootDirectory, layout } = await makeDirectories(daemon);
  using _stateLock = await lockStateDirectory(ports, layout, log, daemon.termination);
  await takeStateFormat(ports.files, layout.stateDirectory, version);
  const recorder = await openRecorder(ports, log, flags.record);
  using _claim = await claim(ports, endpoint, log, daemon.termination);
  const credentials = await ownCredentials(daemon, nodeName);
  await shareRoot(daemon, rootDirectory);
  using runtimeConnection = connectCri(endpoint, systemClock);
  using imageConnection = connectImages(configuration);
  const services = { runtime: runtimeConnection.runtime, images: (imageConnection ?? runtimeConnection).images };
  const cri = withDeadlines(services, ports.clock, settings.runtimeRequestTimeoutMs, metrics.runtime);
  const info = await waitForRuntime(cri, ports.clock, log, endpoint, lockFile.termination).catch((error: unknown) => {
    if (error === lockFile.termination.reason) return undefined;
    throw error;
  });
  if (info === undefined) return;
  if (credentials === undefined) await tellPodCidr(cri, log, configuration.podCIDR ?? "");
  let node: Node | undefined;
  await using _healthz = serveHealthz(daemon, () => node?.health() ?? []);
  // Loaded lazily: it is most of the program, and nothing before needs it.
  const { runKubeletNode } = await import("./kubelet-node.ts");
  const { termination } = lockFile;
  const own = { settings, nodeName, addresses, rootDirectory, layout, plugins, credentials, metrics, recorder };
  await runKubeletNode(daemon, { ...own, termination }, { endpoint, cri, info }, (made) => (node = made));
}

async function ownCredentials(daemon: Daemon, nodeName: string): ReturnType<typeof nodeCredentials> {
  const renews = daemon.configuration.rotateCertificates ?? false;
  const { ports, log, flags } = daemon;
  const credentials = await nodeCredentials({ ports, log, flags, nodeName, renews });
  if (credentials === undefined) log.info("standalone mode, no API client");
  return credentials;
}

async function hostAddresses({ ports, log, flags, termination }: Daemon, nodeName: string): Promise<HostAddresses> {
  const { clock, files, network } = ports;
  const addresses = new HostAddresses({ clock, files, network, log }, nodeIpsOf(flags.nodeIp), nodeName);
  await addresses.look(termination);
  return addresses;
}

function connectImages({ imageServiceEndpoint = "" }: KubeletConfiguration): (Cri & Disposable) | undefined {
  if (imageServiceEndpoint === "") return undefined;
  return connectCri(socketEndpoint("imageServiceEndpoint", imageServiceEndpoint), systemClock);
}

/** `--lock-file`: held until the result is disposed of. `termination` also aborts when another process waits for it. */
async function openLockFile(daemon: Daemon): Promise<Disposable & { readonly termination: AbortSignal }> {
  const { ports, log, flags, termination } = daemon;
  const { lockFile = "", exitOnLockContention = false } = flags;
  if (lockFile === "") {
    return { termination, [Symbol.dispose]: () => {} };
  }
  const path = resolve(process.cwd(), lockFile);
  const lock = await takeLockFile({ clock: ports.clock, locks: systemLocks, log }, path, termination);
  if (!exitOnLockContention) return { termination, [Symbol.dispose]: () => lock[Symbol.dispose]() };
  const contention = lockFileContention({ clock: ports.clock, files: ports.files, log }, path, termination);
  return { termination: contention, [Symbol.dispose]: () => lock[Symbol.dispose]() };
}

/** `podwright run` shows CSI drivers the directories of its own pods at a kubelet's usual root directory. */
async function holdPlace({ ports, log, flags, termination }: Daemon): Promise<Disposable | undefined> {
  const deps = { ...ports, locks: systemLocks };
  const hold = (): Promise<Disposable | undefined> => holdKubeletPlace(deps, rootDirectoryOf(flags));
  return await whenFree({ clock: ports.clock, log }, "the kubelet's usual place", hold, termination);
}

async function makeDirectories({
  ports,
  flags,
  configuration,
}: Daemon): Promise<{ readonly rootDirectory: string; readonly layout: RuntimeLayout }> {
  const { files } = ports;
  const rootDirectory = rootDirectoryOf(flags);
  await makeNodeDirectories(files, rootDirectory, configuration.podLogsDir);
  const stateDirectory = resolve(process.cwd(), flags.stateDir || `${rootDirectory}/podwright`);
  await files.makeDirectory(stateDirectory, 0o700);
  const layout = runtimeLayout(await canonicalPath(files, stateDirectory), systemHashing);
  await files.makeDirectory(layout.runDirectory, 0o755);
  return { rootDirectory, layout };
}

/** To be called after all input is checked: the directory stays bind-mounted on itself, as upstream's. */
async function shareRoot({ ports, log }: Daemon, rootDirectory: string): Promise<void> {
  if (await shareDirectory(ports.mounts, await canonicalPath(ports.files, rootDirectory))) return;
  log.warn("cannot make the root directory a shared mount: pods have mounts in it", { rootDirectory });
}

/** Serves /healthz until disposed of. */
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
