import { didYouMean } from "../../base/did-you-mean.ts";

/**
 * A capability's name in Kubernetes and CRI: `NET_ADMIN`. Runtimes prepend `CAP_`, and containerd does so even to a
 * name that already has it, which yields an unknown capability that is silently ignored.
 */
export function plainCapability(name: string): string {
  return name.replace(/^CAP_(?=.)/iu, "");
}

/** The capabilities of Linux 6.12 (capability.h), by their names in Kubernetes. */
const capabilities: readonly string[] = (
  "CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE " +
  "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN " +
  "SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE " +
  "MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE"
).split(" ");

/** Whether it is a capability or ALL, in any case and with or without `CAP_`. */
export function isCapability(name: string): boolean {
  const plain = plainCapability(name).toUpperCase();
  return plain === "ALL" || capabilities.includes(plain);
}

/** The most similar capability. */
export function nearestCapability(name: string): string | undefined {
  return didYouMean(plainCapability(name), capabilities);
}
