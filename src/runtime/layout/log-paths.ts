import { hasUidForm, type PodUid, podUid } from "../../base/ids.ts";
import type { PodRef } from "../../journal/entry.ts";

/** Longest file name of ext4 in bytes. */
export const maxFileName = 255;

/** `<ns>_<name>_<uid>`: the name of a pod's log directory. */
export function podLogDirectoryName({ namespace, name, uid }: PodRef): string {
  return `${namespace}_${name}_${uid}`;
}

/** `/var/log/pods/<ns>_<name>_<uid>`: `log_directory` of a sandbox. */
export function podLogDirectory(podLogsRoot: string, pod: PodRef): string {
  return `${podLogsRoot}/${podLogDirectoryName(pod)}`;
}

/** The pod UID of a log directory's name; also of the bare UIDs that old kubelets used. */
export function podUidOfLogDirectory(directoryName: string): PodUid {
  return podUid(directoryName.slice(directoryName.lastIndexOf("_") + 1));
}

/** The pod whose logs a directory holds, by its name alone; undefined for one that kubelets do not make. */
export function podOfLogDirectory(directoryName: string): PodRef | undefined {
  const [namespace = "", name, uid, ...rest] = directoryName.split("_");
  if (name === undefined) {
    // As old kubelets named them.
    return hasUidForm(namespace) ? { uid: podUid(namespace), namespace: "", name: "" } : undefined;
  }
  return uid === undefined || uid === "" || rest.length > 0 ? undefined : { uid: podUid(uid), namespace, name };
}

/** `<container>/<restart count>.log`: `log_path` of a container, relative to its sandbox's log_directory. */
export function containerLogPath(containerName: string, restartCount: number): string {
  return `${containerName}/${restartCount}.log`;
}

/** The restart count in the name of a log file (`3.log`, rotated `3.log.20060102-150405.gz`); undefined for others. */
export function restartCountOfLog(fileName: string): number | undefined {
  const match = /^(\d+)\.log(?:\.|$)/.exec(fileName);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/**
 * `<pod>_<ns>_<container>-<id>.log`: the link in /var/log/containers for log collectors. Truncated to the file system's
 * limit, as upstream does.
 */
export function containerLogLinkName(
  pod: { readonly name: string; readonly namespace: string },
  containerName: string,
  containerId: string,
): string {
  const suffix = ".log";
  return `${pod.name}_${pod.namespace}_${containerName}-${containerId}`.slice(0, maxFileName - suffix.length) + suffix;
}

/** The container ID in a link's name; undefined for other names and truncated ones. */
export function containerIdOfLogLink(linkName: string): string | undefined {
  return /-([^-]{6,})\.log$/.exec(linkName)?.[1];
}
