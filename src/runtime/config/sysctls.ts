/** The kernel namespace that a sysctl belongs to. */
export type SysctlNamespace = "IPC" | "Net";

const ipcSysctls: ReadonlySet<string> = new Set([
  "kernel.sem",
  "kernel.shm",
  "kernel.shmall",
  "kernel.shmmax",
  "kernel.shmmni",
  "kernel.shm_rmid_forced",
  "kernel.msg",
  "kernel.msgmax",
  "kernel.msgmnb",
  "kernel.msgmni",
]);

/**
 * A sysctl's name with dots, as runtimes expect: both `net.ipv4.ping_group_range` and `net/ipv4/ping_group_range` are
 * valid (sysctl.d(5)); whichever separator comes first separates, the other is literal.
 */
export function normalizeSysctl(name: string): string {
  if (/[./]/u.exec(name)?.[0] !== "/") return name;
  return name.replaceAll(/[./]/gu, (separator) => (separator === "/" ? "." : "/"));
}

/** Undefined for a sysctl that is not namespaced. `name` is normalized and may be a prefix. */
export function sysctlNamespace(name: string): SysctlNamespace | undefined {
  if (ipcSysctls.has(name) || name.startsWith("fs.mqueue.")) return "IPC";
  return name.startsWith("net.") ? "Net" : undefined;
}
