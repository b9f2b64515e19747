import type { MountPoint } from "../../ports/mounts.ts";
import { failed, passed, readText, warned } from "./check.ts";
import type { Check, CheckContext } from "./check.ts";

/** Capability numbers by name (linux/capability.h). */
const capabilityNumbers = {
  CHOWN: 0,
  DAC_OVERRIDE: 1,
  FOWNER: 3,
  FSETID: 4,
  KILL: 5,
  SETGID: 6,
  SETUID: 7,
  SETPCAP: 8,
  NET_BIND_SERVICE: 10,
  NET_ADMIN: 12,
  NET_RAW: 13,
  SYS_CHROOT: 18,
  SYS_PTRACE: 19,
  SYS_ADMIN: 21,
  SYS_RESOURCE: 24,
  MKNOD: 27,
  AUDIT_WRITE: 29,
  SETFCAP: 31,
} as const;
type Capability = keyof typeof capabilityNumbers;

/**
 * What the runtime and CNI need themselves (the first four), and the default set of a container, which only a process
 * that has it can grant. Each was omitted once, with runc 1.1: no pod started.
 */
const neededCapabilities: readonly Capability[] = [
  "SYS_ADMIN",
  "NET_ADMIN",
  "SYS_PTRACE",
  "DAC_OVERRIDE",
  "CHOWN",
  "FOWNER",
  "FSETID",
  "KILL",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "NET_BIND_SERVICE",
  "NET_RAW",
  "SYS_CHROOT",
  "MKNOD",
  "AUDIT_WRITE",
  "SETFCAP",
];

/** podwright's own /proc/self/status. */
export interface OwnStatus {
  readonly effectiveUid: number;
  readonly effectiveCapabilities: bigint;
}

/** Parses /proc/self/status (proc_pid_status(5)). */
export function parseOwnStatus(text: string): OwnStatus | undefined {
  const uid = /^Uid:\s+\d+\s+(\d+)/m.exec(text)?.[1];
  const capabilities = /^CapEff:\s+([0-9a-f]+)/m.exec(text)?.[1];
  if (uid === undefined || capabilities === undefined) return undefined;
  return { effectiveUid: Number(uid), effectiveCapabilities: BigInt(`0x${capabilities}`) };
}

/** Reads {@link OwnStatus}; undefined where there is no Linux /proc. */
export async function readOwnStatus({ files }: Pick<CheckContext, "files">): Promise<OwnStatus | undefined> {
  const text = await readText(files, "/proc/self/status");
  return text === undefined ? undefined : parseOwnStatus(text);
}

export function hasCapability(status: OwnStatus, capability: Capability): boolean {
  return ((status.effectiveCapabilities >> BigInt(capabilityNumbers[capability])) & 1n) === 1n;
}

export function checkPlatform(status: OwnStatus | undefined): Check {
  return status === undefined
    ? failed("platform", "this is not Linux, or /proc is not mounted", "run podwright on a Linux machine")
    : passed("platform", "Linux");
}

export function checkRoot(status: OwnStatus): Check {
  return status.effectiveUid === 0
    ? passed("user", "root")
    : failed("user", `user id ${status.effectiveUid}, not root`, "run podwright as root, e.g. with sudo");
}

export function checkCapabilities(status: OwnStatus): Check {
  const missing = neededCapabilities.filter((capability) => !hasCapability(status, capability));
  if (missing.length > 0) {
    const names = missing.map((capability) => `CAP_${capability}`).join(", ");
    return failed("capabilities", `missing ${names}`, "grant them, e.g. run the outer container as privileged");
  }
  return hasCapability(status, "SYS_RESOURCE")
    ? passed("capabilities", "all that pods need")
    : warned(
        "capabilities",
        "missing CAP_SYS_RESOURCE: containers cannot get OOM scores below podwright's own",
        "grant it where guaranteed pods must outlive others under memory pressure",
      );
}

/** Cgroup controllers that pods need; v1 knows devices as a controller too, and runc insists on it. */
const neededControllers = { v1: ["cpu", "memory", "pids", "devices"], v2: ["cpu", "memory", "pids"] } as const;

export async function checkCgroups({ files, mounts }: CheckContext): Promise<Check> {
  const name = "control groups";
  const all = await mounts.list();
  const unified = all.find(({ target, fileSystem }) => target === "/sys/fs/cgroup" && fileSystem === "cgroup2");
  if (unified === undefined) return checkCgroupsV1(name, all);
  const available = (await readText(files, "/sys/fs/cgroup/cgroup.controllers"))?.trim().split(/\s+/) ?? [];
  const missing = neededControllers.v2.filter((controller) => !available.includes(controller));
  if (missing.length > 0) {
    return failed(
      name,
      `cgroup v2 without the ${controllers(missing)}`,
      "enable them on the kernel command line, or in cgroup.subtree_control above an outer container",
    );
  }
  return unified.options.includes("ro") ? readOnly(name, ["/sys/fs/cgroup"]) : passed(name, "cgroup v2");
}

function checkCgroupsV1(name: string, all: readonly MountPoint[]): Check {
  const hierarchies = all.filter(({ fileSystem }) => fileSystem === "cgroup");
  if (hierarchies.length === 0) {
    return failed(name, "no cgroup hierarchy is mounted", "run: mount -t cgroup2 cgroup2 /sys/fs/cgroup");
  }
  const holders = neededControllers.v1.map((controller) => ({
    controller,
    mount: hierarchies.find(({ options }) => options.includes(controller)),
  }));
  const missing = holders.filter(({ mount }) => mount === undefined).map(({ controller }) => controller);
  if (missing.length > 0) {
    return failed(
      name,
      `cgroup v1 without the ${controllers(missing)}`,
      "mount their hierarchies below /sys/fs/cgroup",
    );
  }
  const locked = holders.flatMap(({ mount }) => (mount?.options.includes("ro") === true ? [mount.target] : []));
  return locked.length > 0 ? readOnly(name, locked) : passed(name, "cgroup v1");
}

function readOnly(name: string, targets: readonly string[]): Check {
  return failed(
    name,
    `mounted read-only: ${[...new Set(targets)].join(", ")}`,
    "remount them writable, e.g. run the outer container as privileged",
  );
}

function controllers(names: readonly string[]): string {
  return `${names.join(", ")} ${names.length === 1 ? "controller" : "controllers"}`;
}
