import { ExitCode, PodwrightError } from "../base/errors.ts";
import { isCriError, type Cri } from "../ports/cri.ts";
import { CgroupDriver, type StatusResponse } from "../ports/gen/runtime/v1/api_pb.js";

/** The CRI version that podwright speaks; the only one since Kubernetes 1.26. */
const criVersion = "v1";

/** A condition of the runtime's Status answer, e.g. `RuntimeReady`. */
export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

/** A runtime handler (`runtimeClass.handler`); the default one has an empty name. */
export interface RuntimeHandlerInfo {
  readonly name: string;
  /** Makes what is mounted below a read-only mount read-only as well. */
  readonly recursiveReadOnlyMounts: boolean;
  /** Makes user namespaces, and mounts with ids mapped into them. */
  readonly userNamespaces: boolean;
}

/**
 * The detected features of the runtime. Everything else is decided by feature, never by comparing versions.
 *
 * Whether it has `GetContainerEvents` is not here, because testing would cost an event: containerd 1.7 feeds all
 * subscribers from one channel, and the server side of a stream that was only opened as a test takes one more event
 * before it notices the missing reader. So the real subscription is the test (src/pleg/evented.ts): it continues, or
 * its end shows whether a retry makes sense.
 */
export interface RuntimeInfo {
  readonly name: string;
  readonly version: string;
  readonly apiVersion: string;
  /** The cgroup driver that the runtime wants its client to use (KEP-4033); undefined when it can't say. */
  readonly cgroupDriver: "systemd" | "cgroupfs" | undefined;
  /** Whether it knows the call that asks for the driver, whatever it answers. */
  readonly hasRuntimeConfig: boolean;
  readonly conditions: readonly RuntimeCondition[];
  /** The condition `RuntimeReady`. */
  readonly runtimeReady: boolean;
  /** The condition `NetworkReady`. */
  readonly networkReady: boolean;
  /** Empty when the runtime doesn't list them (before Kubernetes 1.30's CRI). */
  readonly handlers: readonly RuntimeHandlerInfo[];
  readonly supplementalGroupsPolicy: boolean;
  readonly userNamespacesHostNetwork: boolean;
}

/**
 * Queries the runtime's version, status and features.
 * @throws PodwrightError (environment) if it does not support CRI v1
 * @throws CriError if it does not respond
 */
export async function discoverRuntime(cri: Cri, signal?: AbortSignal): Promise<RuntimeInfo> {
  const options = signal === undefined ? {} : { signal };
  const version = await askVersion(cri, options);
  const [status, driver] = await Promise.all([cri.runtime.status({}, options), askCgroupDriver(cri, options)]);
  const conditions = (status.status?.conditions ?? []).map(({ type, status: met, reason, message }) => ({
    type,
    status: met,
    reason,
    message,
  }));
  const isMet = (type: string): boolean => conditions.some((condition) => condition.type === type && condition.status);
  return {
    ...version,
    ...driver,
    conditions,
    runtimeReady: isMet("RuntimeReady"),
    networkReady: isMet("NetworkReady"),
    ...statedFeatures(status),
    userNamespacesHostNetwork: status.features?.userNamespacesHostNetwork ?? false,
  };
}

/**
 * What a Status answer says of handlers and features; handlers by name, as a runtime may list them in any order. Pure.
 */
export function statedFeatures(status: StatusResponse): Pick<RuntimeInfo, "handlers" | "supplementalGroupsPolicy"> {
  return {
    handlers: status.runtimeHandlers
      .map(({ name, features }) => ({
        name,
        recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
        userNamespaces: features?.userNamespaces ?? false,
      }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    supplementalGroupsPolicy: status.features?.supplementalGroupsPolicy ?? false,
  };
}

interface SignalOption {
  readonly signal?: AbortSignal;
}

async function askVersion(
  cri: Cri,
  options: SignalOption,
): Promise<Pick<RuntimeInfo, "name" | "version" | "apiVersion">> {
  try {
    const answer = await cri.runtime.version({ version: criVersion }, options);
    if (answer.runtimeApiVersion === criVersion) {
      return { name: answer.runtimeName, version: answer.runtimeVersion, apiVersion: answer.runtimeApiVersion };
    }
    const runtime = `${answer.runtimeName} ${answer.runtimeVersion}`;
    throw new PodwrightError(
      ExitCode.environment,
      `the container runtime ${runtime} speaks CRI "${answer.runtimeApiVersion}", podwright speaks "${criVersion}"`,
      { remedy: "use a runtime with CRI v1, such as containerd 1.6 or newer" },
    );
  } catch (error) {
    if (!isCriError(error, "Unimplemented")) throw error;
    throw new PodwrightError(
      ExitCode.environment,
      `the container runtime does not serve CRI ${criVersion}: ${error.message}`,
      {
        cause: error,
        remedy: `enable its CRI plugin (in containerd's config.toml, remove "cri" from disabled_plugins) or use containerd 1.6 or newer`,
      },
    );
  }
}

async function askCgroupDriver(
  cri: Cri,
  options: SignalOption,
): Promise<Pick<RuntimeInfo, "cgroupDriver" | "hasRuntimeConfig">> {
  try {
    const { linux } = await cri.runtime.runtimeConfig({}, options);
    return { cgroupDriver: driverOf(linux?.cgroupDriver), hasRuntimeConfig: true };
  } catch (error) {
    if (isCriError(error, "Unimplemented")) return { cgroupDriver: undefined, hasRuntimeConfig: false };
    throw error;
  }
}

function driverOf(driver: CgroupDriver | undefined): RuntimeInfo["cgroupDriver"] {
  switch (driver) {
    case CgroupDriver.SYSTEMD:
      return "systemd";
    case CgroupDriver.CGROUPFS:
      return "cgroupfs";
    default:
      return undefined;
  }
}
