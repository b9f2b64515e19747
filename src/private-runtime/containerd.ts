import { ExitCode, PodwrightError, errorMessage } from "../base/errors.ts";
import { isCriError } from "../ports/cri.ts";
import type { Cri } from "../ports/cri.ts";
import type { Daemons } from "../ports/daemons.ts";
import { PAUSE_IMAGE } from "./built-in-images.ts";
import { cniConfig, containerdConfig } from "./containerd-config.ts";
import { endContainerd, findContainerd, logTail } from "./containerd-process.ts";
import { importBuiltInImages } from "./image-import.ts";
import type { ImageImportDeps } from "./image-import.ts";
import { closeLoopback } from "./firewall.ts";
import type { RuntimeLayout } from "./layout.ts";
import { claimSubnet } from "./pod-network.ts";
import type { PodNetworkDeps } from "./pod-network.ts";
import type { MachineFacts } from "./preflight/preflight.ts";
import { programDirectories } from "./programs.ts";

export interface PrivateRuntimeDeps extends PodNetworkDeps, ImageImportDeps {
  readonly daemons: Daemons;
  /** A client of the runtime at an endpoint; disposing of it closes its connections. */
  readonly connect: (endpoint: string) => Cri & Disposable;
}

/** The private containerd, up and ready. */
export interface PrivateRuntime {
  /** `unix://…` */
  readonly endpoint: string;
  /** False when it ran before. */
  readonly started: boolean;
  readonly pid: number;
}

const ANSWER_TIMEOUT_MS = 2_000;
const START_LIMIT_MS = 30_000;
const POLL_MS = 20;
const MAX_LOG_BYTES = 10 * 1024 * 1024;

/**
 * Starts the layout's containerd, unless it runs, and waits until it is ready for pods and has the built-in images. It
 * runs in its own session and outlives podwright. The caller owns the runtime (see `claimRuntime`), so that nothing
 * else starts or stops it meanwhile.
 * @throws PodwrightError (environment) with the end of containerd's log if it does not become ready
 */
export async function ensurePrivateRuntime(
  deps: PrivateRuntimeDeps,
  layout: RuntimeLayout,
  facts: MachineFacts,
  signal?: AbortSignal,
): Promise<PrivateRuntime> {
  signal?.throwIfAborted();
  const running = await findContainerd(deps.processes, layout);
  const logOffset = (await deps.files.stat(layout.containerd.log))?.size ?? 0;
  using cri = deps.connect(layout.containerd.endpoint);
  const { iptables } = facts.programs;
  await closeLoopback({ processes: deps.processes, iptables, network: layout.cni.networkName }, layout.cni.bridge);
  if (running !== undefined) {
    await waitUntilReady(deps, layout, cri, { pid: running, logOffset }, signal);
    await importBuiltInImages(deps, layout, facts.programs, cri, signal);
    return { endpoint: layout.containerd.endpoint, started: false, pid: running };
  }
  await refuseForeignSocket(layout, cri, signal);
  const started = await startContainerd(deps, layout, facts, signal);
  try {
    await waitUntilReady(deps, layout, cri, started, signal);
    await importBuiltInImages(deps, layout, facts.programs, cri, signal);
  } catch (error) {
    await endContainerd(deps, layout);
    throw error;
  }
  return { endpoint: layout.containerd.endpoint, started: true, pid: started.pid };
}

/** Something at our socket that is not our containerd, e.g. one in another container that shares /run. */
async function refuseForeignSocket(layout: RuntimeLayout, cri: Cri, signal: AbortSignal | undefined): Promise<void> {
  try {
    await cri.runtime.version({}, { timeoutMs: ANSWER_TIMEOUT_MS, ...(signal && { signal }) });
  } catch {
    signal?.throwIfAborted();
    return;
  }
  throw new PodwrightError(ExitCode.environment, `another container runtime answers at ${layout.containerd.endpoint}`, {
    remedy: `find which process listens there (ss -xlp), or use it with --runtime-endpoint ${layout.containerd.endpoint}`,
  });
}

interface Started {
  readonly pid: number;
  /** Where in the log this run begins. */
  readonly logOffset: number;
}

async function startContainerd(
  deps: PrivateRuntimeDeps,
  layout: RuntimeLayout,
  { programs, mayLowerOomScore, openForwarding }: MachineFacts,
  signal: AbortSignal | undefined,
): Promise<Started> {
  const { files, daemons } = deps;
  const { containerd, cni } = layout;
  const subnet = await claimSubnet(deps, layout, signal);
  // 0711: with user namespaces, containers reach their files through these as other users.
  for (const directory of [
    layout.stateDirectory,
    layout.runDirectory,
    parentOf(containerd.config),
    containerd.root,
    containerd.state,
  ]) {
    await files.makeDirectory(directory, 0o711);
  }
  for (const directory of [
    parentOf(containerd.socket),
    containerd.registryHosts,
    cni.configDirectory,
    cni.dataDirectory,
  ]) {
    await files.makeDirectory(directory, 0o755);
  }
  const settings = {
    sandboxImage: PAUSE_IMAGE,
    cniPluginDirectory: programs.cniPlugins,
    runc: programs.runc,
    mayLowerOomScore,
  };
  await files.writeAtomic(containerd.config, containerdConfig(layout, settings), 0o644);
  await files.writeAtomic(cni.configFile, cniConfig(layout, { subnet, openForwarding }), 0o644);
  const logOffset = await rotateLog(deps, layout);
  // containerd looks for its shim, and CNI for iptables, in PATH.
  const path = programDirectories([programs.containerd, programs.iptables].map(parentOf)).join(":");
  const { pid } = await daemons.start({
    program: programs.containerd,
    arguments: ["--config", containerd.config],
    logPath: containerd.log,
    environment: { PATH: path },
    workingDirectory: "/",
  });
  return { pid, logOffset };
}

/** Keeps one old log. Only while containerd is down: it would keep writing to the old one. */
async function rotateLog({ files }: PrivateRuntimeDeps, layout: RuntimeLayout): Promise<number> {
  const { log } = layout.containerd;
  const size = (await files.stat(log))?.size ?? 0;
  if (size <= MAX_LOG_BYTES) return size;
  await files.rename(log, `${log}.1`);
  return 0;
}

async function waitUntilReady(
  deps: PrivateRuntimeDeps,
  layout: RuntimeLayout,
  cri: Cri,
  { pid, logOffset }: Started,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { clock, processes } = deps;
  const limit = clock.monotonic() + START_LIMIT_MS;
  for (;;) {
    const isAlive = processes.isAlive(pid);
    const state = await readiness(cri, signal);
    if (state.ready) return;
    const why = isAlive ? state.why : "it exited";
    if (!isAlive || state.hopeless || clock.monotonic() >= limit) {
      const lines = await logTail(deps.files, layout, logOffset);
      throw new PodwrightError(
        ExitCode.environment,
        [`the private containerd (pid ${pid}) did not become ready: ${why}`, ...lines.map((line) => `  ${line}`)].join(
          "\n",
        ),
        { remedy: `see ${layout.containerd.log}` },
      );
    }
    await clock.sleep("private containerd to become ready", POLL_MS, signal);
  }
}

type Readiness = { readonly ready: true } | { readonly ready: false; readonly why: string; readonly hopeless: boolean };

async function readiness(cri: Cri, signal: AbortSignal | undefined): Promise<Readiness> {
  try {
    const { status } = await cri.runtime.status({}, { timeoutMs: ANSWER_TIMEOUT_MS, ...(signal && { signal }) });
    const unmet = status?.conditions.filter((condition) => !condition.status) ?? [];
    if (status !== undefined && unmet.length === 0) return { ready: true };
    const why = unmet.map(({ type, reason, message }) => `${type} is false (${reason}: ${message})`).join(", ");
    return { ready: false, why: why || "it has no status", hopeless: false };
  } catch (error) {
    signal?.throwIfAborted();
    // It serves only after all its plugins are loaded: a CRI that is missing then never comes.
    return { ready: false, why: errorMessage(error), hopeless: isCriError(error, "Unimplemented") };
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
