import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import type { Hashing } from "../ports/hashing.ts";

/** The default state directory of `podwright run`. */
export const DEFAULT_STATE_DIRECTORY = "/var/lib/podwright";

/** The option of commands that leads them to this state directory; empty: none is needed. Pure. */
export function stateOption(stateDirectory: string): readonly string[] {
  return stateDirectory === DEFAULT_STATE_DIRECTORY ? [] : ["--state-dir", shellWord(stateDirectory)];
}

/** Parent of everything that need not outlive a reboot, of all state directories of the machine. */
export const RUN_ROOT = "/run/podwright";
/** Locks of all podwrights of the machine, while they are held. */
export const LOCK_DIRECTORY = `${RUN_ROOT}/locks`;
/** Which podwright uses which pod subnet: one file for each. */
export const SUBNET_CLAIM_DIRECTORY = `${RUN_ROOT}/subnets`;

/** `sun_path` of unix(7) is 108 bytes with its closing zero. */
const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Every path and name that one state directory's engine and private runtime use. Two state directories of one machine
 * share none of them.
 */
export interface RuntimeLayout {
  readonly stateDirectory: string;
  /** Parent of sockets and of what need not outlive a reboot. */
  readonly runDirectory: string;
  /** Undefined for the default state directory; 8 hex digits of the path's digest for any other. */
  readonly instance: string | undefined;

  readonly containerd: {
    readonly config: string;
    readonly root: string;
    readonly state: string;
    readonly socket: string;
    /** The socket as a CRI endpoint, `unix://…`. */
    readonly endpoint: string;
    readonly log: string;
    /** Where runc keeps its container states. */
    readonly runcRoot: string;
    /** `hosts.toml` files, one directory a registry (containerd's registry `config_path`). */
    readonly registryHosts: string;
    /** Image archives on their way into containerd. */
    readonly imports: string;
  };
  readonly cni: {
    readonly configDirectory: string;
    readonly configFile: string;
    /** host-local's addresses in use. */
    readonly dataDirectory: string;
    readonly networkName: string;
    /** At most 15 bytes, as interface names are. */
    readonly bridge: string;
    /** Remembers the pod subnet that was chosen. */
    readonly subnetFile: string;
  };
  /** Parent cgroup of all pods, as a logical path. */
  readonly cgroupRoot: string;

  /** The engine's own socket, for the client commands. */
  readonly engineSocket: string;
  /** Held by the engine while it lives. */
  readonly lockFile: string;
  readonly pidFile: string;
  readonly manifests: string;
  /** The claims of `podwright run`, with the volumes and classes that came with them. */
  readonly claims: string;
  /** The data of claims: `<namespace>/<claim>`. */
  readonly volumes: string;
  /** Names the pods that are there because of the manifests that run at boot. */
  readonly bootPods: string;
  /** What one engine was asked for that holds for the next one. */
  readonly engineSettings: string;
  readonly journal: string;
  /** What upstream calls the root directory: `pods/` with the volumes is below it. */
  readonly kubeletRoot: string;
  /** The logs of its pods, and the links to them by container. */
  readonly podLogs: string;
  readonly containerLogs: string;
}

/**
 * The layout of a state directory.
 * @param stateDirectory absolute, with symbolic links resolved by the caller: one directory must have one name
 * @throws PodwrightError (bad input) when the path can't be used
 */
export function runtimeLayout(stateDirectory: string, hashing: Hashing): RuntimeLayout {
  const state = checkedStateDirectory(stateDirectory);
  const instance = state === DEFAULT_STATE_DIRECTORY ? undefined : hashing.sha256(state).slice(0, 8);
  const run = instance === undefined ? RUN_ROOT : `${RUN_ROOT}/${instance}`;
  const suffix = instance === undefined ? "" : `-${instance}`;
  const socket = `${run}/containerd/containerd.sock`;
  return {
    stateDirectory: state,
    runDirectory: run,
    instance,
    containerd: {
      config: `${state}/containerd/config.toml`,
      root: `${state}/containerd/root`,
      state: `${run}/containerd/state`,
      socket,
      endpoint: `unix://${socket}`,
      log: `${state}/containerd/containerd.log`,
      runcRoot: `${run}/containerd/runc`,
      registryHosts: `${state}/containerd/certs.d`,
      imports: `${state}/containerd/imports`,
    },
    cni: {
      configDirectory: `${state}/cni/net.d`,
      configFile: `${state}/cni/net.d/10-podwright.conflist`,
      dataDirectory: `${state}/cni/networks`,
      networkName: `podwright${suffix}`,
      bridge: instance === undefined ? "podwright0" : `podw-${instance}`,
      subnetFile: `${state}/cni/subnet`,
    },
    cgroupRoot: `/podwright${suffix}`,
    engineSocket: checkedSocketPath(`${run}/engine.sock`),
    lockFile: `${run}/engine.lock`,
    pidFile: `${run}/engine.pid`,
    manifests: `${state}/manifests`,
    claims: `${state}/claims`,
    volumes: `${state}/volumes`,
    bootPods: `${state}/boot-pods.json`,
    engineSettings: `${state}/engine.json`,
    journal: `${state}/journal`,
    kubeletRoot: `${state}/kubelet`,
    podLogs: `${state}/logs/pods`,
    containerLogs: `${state}/logs/containers`,
  };
}

/** The path itself; rejects one that is too long for a Unix socket. */
export function checkedSocketPath(path: string): string {
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new PodwrightError(
      ExitCode.badInput,
      `the socket path ${path} has ${bytes} bytes; Linux allows ${MAX_SOCKET_PATH_BYTES}`,
      { remedy: "use a shorter path" },
    );
  }
  return path;
}

function checkedStateDirectory(path: string): string {
  const trimmed = path.length > 1 ? path.replace(/\/+$/, "") : path;
  const refuse = (why: string, remedy: string): never => {
    throw new PodwrightError(ExitCode.badInput, `the state directory ${JSON.stringify(path)} ${why}`, { remedy });
  };
  if (!trimmed.startsWith("/")) refuse("is not an absolute path", "use an absolute path");
  if (trimmed === "" || trimmed === "/") {
    refuse("is the root directory", `use another, e.g. ${DEFAULT_STATE_DIRECTORY}`);
  }
  if (trimmed.split("/").some((part, index) => part === ".." || part === "." || (part === "" && index > 0))) {
    refuse("is not a plain path", "write it without '.', '..' and doubled slashes");
  }
  // overlayfs separates its options with commas and its lower directories with colons, and escapes with backslashes.
  if (/[:,\\]|\p{Cc}/u.test(trimmed)) {
    refuse("holds a character that overlayfs cannot mount (colon, comma, backslash, control)", "use another name");
  }
  return trimmed;
}
