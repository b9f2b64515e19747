import type { Pod } from "../../api/pod.ts";
import { bothEnded } from "../../base/side-by-side.ts";
import { errorMessage } from "../../base/errors.ts";
import { type ContainerId, containerId } from "../../base/ids.ts";
import { ImageError } from "../../images/image-error.ts";
import type { EnsuredImage } from "../../images/image-manager.ts";
import type { Cause } from "../../journal/entry.ts";
import { type ActionInput, perform } from "../../journal/perform.ts";
import { isCriError } from "../../ports/cri.ts";
import { recordActuated } from "../status/actuated.ts";
import { type ContainerConfig, generateContainerConfig } from "../config/container-config.ts";
import { ContainerConfigError } from "../config/container-config-error.ts";
import { withRemedy } from "./create-remedy.ts";
import { expandCommand, makeEnvironment } from "../config/environment.ts";
import { readEnvironmentFiles } from "../config/environment-file.ts";
import { containerGraceSeconds } from "../actions/grace.ts";
import { hostsFile, mountsHostsFile } from "../config/hosts-file.ts";
import { hideSecrets } from "../config/hidden-secrets.ts";
import { runHook } from "./hooks.ts";
import { killContainer } from "./kill-pod.ts";
import { recordLateContainer } from "./late-container.ts";
import { linkLog } from "../layout/log-links.ts";
import { shortId } from "../actions/sandbox-actions.ts";
import { makeContainerDirectories, makeTerminationLog, podDirectory } from "../layout/pod-directories.ts";
import { patiently } from "./patiently.ts";
import type { OperationProgress, StartFailure } from "./pod-operation.ts";
import { podRef } from "../pod-ref.ts";
import { pullSecretsOf } from "./pull-secrets.ts";
import { VolumeError } from "../volume-error.ts";
import type { RuntimeDependencies } from "../dependencies.ts";
import type { MountedVolumes } from "../config/mounted-volumes.ts";
import type { SandboxConfig } from "../config/sandbox-config.ts";
import type { StartPlace } from "./start-place.ts";
import { honoursStopSignal } from "../config/stop-signal.ts";
import type { ContainerToStart } from "../actions/container-decision.ts";
import { removeUnstarted } from "./unstarted.ts";

/** The sandbox in which a container starts. */
export interface StartSandbox {
  readonly id: string;
  readonly config: SandboxConfig;
  readonly ips: readonly string[];
  /** The pod's volumes, when they were mounted for this very start. */
  readonly volumes?: MountedVolumes | undefined;
}

/** How a start goes on beside others. */
export interface StartProgress {
  readonly place: StartPlace;
  readonly progress: Pick<OperationProgress, "attempted">;
}

/** What has to be there before a container is made. */
interface ContainerParts {
  readonly image: EnsuredImage;
  readonly volumes: MountedVolumes;
  /** For how long the start waited for its turn. */
  readonly queuedMs: number;
}

/** A container that could not be started: `reason` is the waiting reason that users know. */
export class StartError extends Error {
  readonly reason: string;
  /** Monotonic ms before which another try is pointless; undefined: the worker's own back-off decides. */
  readonly retryAtMs: number | undefined;
  constructor(
    reason: string,
    message: string,
    options: ErrorOptions & { readonly retryAtMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = "StartError";
    this.reason = reason;
    this.retryAtMs = options.retryAtMs;
  }
}

/** What a start's error says to users. */
export function failureOf(error: unknown): StartFailure {
  if (error instanceof StartError) {
    return { reason: error.reason, message: error.message, retryAtMs: error.retryAtMs, error };
  }
  return { reason: "RunContainerError", message: errorMessage(error), retryAtMs: undefined, error };
}

/**
 * Starts one container: image, volumes, configuration, create, start, log link, postStart hook. Resolves when the hook
 * has ended; a container whose hook fails is killed.
 * @throws StartError, or the signal's reason when the start was called off
 */
export async function startContainer(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  start: ContainerToStart,
  { place, progress }: StartProgress,
  signal: AbortSignal,
): Promise<void> {
  const [image, volumes] = await place.during(
    "a start's image and volumes",
    bothEnded(
      ensureImage(deps, pod, sandbox, start, signal),
      volumesOf(deps, pod, sandbox, start, signal).then((mounted) => {
        signal.throwIfAborted();
        progress.attempted(start.container);
        return mounted;
      }),
    ),
  );
  const queuedMs = await place.take("first", signal);
  const id = await createAndRun(deps, pod, sandbox, start, { image, volumes, queuedMs }, signal);
  await place.during("a postStart hook", postStart(deps, pod, sandbox, start, id, signal));
}

async function createAndRun(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  start: ContainerToStart,
  parts: ContainerParts,
  signal: AbortSignal,
): Promise<ContainerId> {
  const [config] = await bothEnded(
    containerConfig(deps, pod, sandbox, start, parts, signal),
    grantResources(deps, pod, start),
  );
  const { leftover, cause } = start;
  if (leftover !== undefined) {
    // Seen not to have run, whatever its start was told: it counts for nothing.
    deps.attempts.making(pod.metadata.uid, start.container.name, start.attempt);
    await attempt("CreateContainerError", () => removeUnstarted(deps, podRef(pod), leftover, cause, signal));
  }
  const id = await create(deps, pod, sandbox, start, { config, queuedMs: parts.queuedMs }, signal);
  await bothEnded(run(deps, pod, start, id, signal), linkLog(deps, pod, start.container.name, start.attempt, id));
  return containerId(id);
}

/**
 * What the pod was granted may have grown since its cgroup was made. It is recorded before the container is made: one
 * that nobody knows the resources of would be left as it is by every later resize.
 */
async function grantResources(
  deps: RuntimeDependencies,
  pod: Pod,
  { container, kind }: ContainerToStart,
): Promise<void> {
  if (kind === "ephemeral") return;
  await attempt("CreateContainerError", () => deps.podCgroups.raise(pod));
  recordActuated(deps, pod, container);
  await deps.actuated.saved();
}

async function ensureImage(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  { container, cause }: ContainerToStart,
  signal: AbortSignal,
): Promise<EnsuredImage> {
  const pullSecrets = await pullSecretsOf(deps, pod, cause, signal);
  const request = {
    pod: podRef(pod),
    container: container.name,
    image: container.image ?? "",
    pullPolicy: container.imagePullPolicy ?? "IfNotPresent",
    annotations: pod.metadata.annotations ?? {},
    sandboxConfig: sandbox.config,
    pullSecrets,
    account: deps.objects.account?.(pod),
    cause,
  };
  try {
    return await deps.images.ensureImageExists(request, signal);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    throw new StartError(error.reason, error.message, { cause: error, retryAtMs: error.retryAtMs });
  }
}

/** They are there since before the sandbox was; a restart may come long after that, and in another life of podwright. */
async function volumesOf(
  deps: RuntimeDependencies,
  pod: Pod,
  { volumes }: StartSandbox,
  start: ContainerToStart,
  signal: AbortSignal,
): Promise<MountedVolumes> {
  if (volumes !== undefined) return volumes;
  try {
    const spec = { containers: [start.container] };
    return await deps.volumes.mount(pod, { spec, services: "remembered" }, start.cause, signal);
  } catch (error) {
    if (!(error instanceof VolumeError)) throw error;
    throw new StartError("ContainerCreating", error.message, { cause: error });
  }
}

async function containerConfig(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  start: ContainerToStart,
  { image, volumes }: ContainerParts,
  signal: AbortSignal,
): Promise<ContainerConfig> {
  const { container } = start;
  const { files, node } = deps;
  try {
    const environment = makeEnvironment(pod, container, {
      objects: deps.objects,
      environmentFiles: await readEnvironmentFiles(deps.volumes, container, volumes),
      podIPs: pod.spec.hostNetwork === true ? node.hostIPs : sandbox.ips,
      hostIPs: node.hostIPs,
      serviceVariables: deps.objects.serviceVariables?.(pod) ?? [],
      resources: node.resources,
    });
    const [terminationLogPath, hostsFilePath] = await bothEnded(
      makeContainerDirectories(files, node, pod, container).then(() =>
        makeTerminationLog(files, deps.random, node, pod, container),
      ),
      writeHostsFile(deps, pod, start, sandbox),
    );
    const userNamespace = await deps.userNamespaces.namespaceOf(pod);
    return generateContainerConfig(
      pod,
      container,
      {
        restartCount: start.attempt,
        imageRef: image.imageRef,
        imageUser: image.user,
        environment,
        ...expandCommand(container, environment),
        volumeMounts: await deps.volumes.mountsFor(pod, container, environment, volumes, signal),
        ...targetOf(start),
        ...(hostsFilePath === undefined ? {} : { hostsFilePath }),
        ...(terminationLogPath === undefined ? {} : { terminationLogPath }),
      },
      {
        seccompProfileRoot: `${node.rootDirectory}/seccomp`,
        seccompDefault: node.seccompDefault,
        maskedPaths: node.maskedPaths,
        seLinux: node.seLinux,
        resources: node.resources,
        ...(userNamespace && { userNamespace }),
      },
    );
  } catch (error) {
    signal.throwIfAborted();
    throw misconfigured(deps, pod, start, errorMessage(error), { cause: error });
  }
}

/** Nothing was asked of the runtime, so that no action tells of it: an observation does. */
function misconfigured(
  { journal }: RuntimeDependencies,
  pod: Pod,
  { container: { name: container }, cause }: ContainerToStart,
  message: string,
  options: ErrorOptions = {},
): StartError {
  journal.record({ kind: "observation", what: "ContainerConfigError", message, pod: podRef(pod), container, cause });
  return new StartError("CreateContainerConfigError", message, options);
}

/** @throws ContainerConfigError while the container whose processes an ephemeral one is to see does not run */
function targetOf({ target }: ContainerToStart): { readonly targetContainerId?: ContainerId } {
  if (target === undefined) return {};
  if (target.id === undefined) throw new ContainerConfigError(`target container "${target.name}" does not run`);
  return { targetContainerId: target.id };
}

/** The managed /etc/hosts, written anew at each start so that it cannot grow. */
async function writeHostsFile(
  deps: RuntimeDependencies,
  pod: Pod,
  start: ContainerToStart,
  sandbox: StartSandbox,
): Promise<string | undefined> {
  if (!mountsHostsFile(pod, start.container, sandbox.ips)) return undefined;
  const path = `${podDirectory(deps.node, pod.metadata.uid)}/etc-hosts`;
  const nodeHosts = pod.spec.hostNetwork === true ? await readText(deps, "/etc/hosts") : "";
  await deps.files.write(path, hostsFile(pod, sandbox.ips, deps.node.clusterDomain, nodeHosts), 0o644);
  return path;
}

/** The node's hosts file, without which the pod's still works. */
async function readText(deps: RuntimeDependencies, path: string): Promise<string> {
  try {
    return new TextDecoder().decode(await deps.files.read(path, 10 * 1024 * 1024));
  } catch {
    return "";
  }
}

async function create(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  start: ContainerToStart,
  { config, queuedMs }: { readonly config: ContainerConfig; readonly queuedMs: number },
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const action: ActionInput = {
    what: "CreateContainer",
    message: `create container ${start.container.name}, attempt ${start.attempt}`,
    pod: podRef(pod),
    container: start.container.name,
    cause: start.cause,
    data: { attempt: start.attempt, sandbox: sandbox.id, queuedMs },
  };
  const isAgain = deps.attempts.making(pod.metadata.uid, start.container.name, start.attempt);
  const request = { podSandboxId: sandbox.id, config, sandboxConfig: sandbox.config };
  const { containerId: id } = await attempt("CreateContainerError", () =>
    perform(deps.journal, deps.clock, action, () =>
      patiently(deps, "a container", signal, (options) => deps.cri.runtime.createContainer(request, options)),
    ),
  );
  if (isAgain) await recordLateContainer(deps, pod, start, id);
  // Said before it runs: nobody should learn at its end that it was told to end in the wrong way.
  const honoured = await attempt("CreateContainerError", () => honoursStopSignal(deps.cri, start.container, id));
  if (!honoured) {
    const wanted = start.container.lifecycle?.stopSignal;
    const problem = `the container runtime does not know lifecycle.stopSignal and would not stop the container with ${wanted}`;
    throw misconfigured(deps, pod, start, problem);
  }
  return id;
}

async function run(
  deps: RuntimeDependencies,
  pod: Pod,
  start: ContainerToStart,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  // Called off since: the next look finds it created and removes it with the pod.
  signal.throwIfAborted();
  deps.attempts.started(pod.metadata.uid, start.container.name);
  const because: Cause = start.cause;
  const action: ActionInput = {
    what: "StartContainer",
    message: `start container ${start.container.name} (${shortId(id)})`,
    pod: podRef(pod),
    container: start.container.name,
    cause: because,
    data: { id, attempt: start.attempt, kind: start.kind },
  };
  await attempt("RunContainerError", () =>
    perform(deps.journal, deps.clock, action, () =>
      patiently(deps, "a start", signal, (options) => deps.cri.runtime.startContainer({ containerId: id }, options)),
    ),
  );
}

/** @throws StartError when the hook failed; the container is stopped by then */
async function postStart(
  deps: RuntimeDependencies,
  pod: Pod,
  sandbox: StartSandbox,
  { container, cause }: ContainerToStart,
  id: ContainerId,
  signal: AbortSignal,
): Promise<void> {
  const handler = container.lifecycle?.postStart;
  if (handler === undefined) return;
  const { name, ports = [] } = container;
  const ref = podRef(pod);
  const ips = pod.spec.hostNetwork === true ? deps.node.hostIPs : sandbox.ips;
  try {
    const hide = hideSecrets(deps.objects, pod);
    await runHook(deps, "postStart", { pod: ref, name, id, ports, ips, hide }, handler, cause, signal);
  } catch (error) {
    signal.throwIfAborted();
    const message = `the postStart hook of container ${name} failed: ${errorMessage(error)}`;
    const what = "FailedPostStartHook";
    const entry = deps.journal.record({ kind: "observation", what, message, pod: ref, container: name, cause });
    const failure: Cause = { code: what, message, entry };
    try {
      const target = { ref, pod, ips };
      const graceSeconds = containerGraceSeconds(pod, undefined);
      await killContainer(deps, target, { id, name }, graceSeconds, failure, signal);
    } catch (killError) {
      signal.throwIfAborted();
      const about = { ...ref, container: name, error: errorMessage(killError) };
      deps.log.warn("a container whose postStart hook failed could not be stopped", about);
    }
    // It was started and has ended: what delays the next instance is its crash-loop back-off.
    throw new StartError("PostStartHookError", message, { cause: error, retryAtMs: deps.clock.monotonic() });
  }
}

async function attempt<T>(reason: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isCriError(error)) throw error;
    throw new StartError(reason, withRemedy(error.message), { cause: error });
  }
}
