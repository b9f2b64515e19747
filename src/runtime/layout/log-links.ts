import type { PodUid } from "../../base/ids.ts";
import { type Files, inDirectory } from "../../ports/files.ts";
import type { Pod } from "../../api/pod.ts";
import type { PodRef } from "../../journal/entry.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../ports/log.ts";
import { containerIdOfLogLink, containerLogLinkName, podLogDirectory, podUidOfLogDirectory } from "./log-paths.ts";
import type { NodeContext } from "../node-context.ts";

type LinkFiles = Pick<Files, "list" | "readLink" | "remove" | "stat">;
type LinkPlaces = Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;

/** A link by which log collectors find a container's log. */
export interface LogLink {
  readonly path: string;
  readonly target: string;
  readonly podUid: PodUid;
  /** Undefined when the name was truncated. */
  readonly containerId: string | undefined;
}

/** The links to this node's pod logs. Others in the same directory belong to others. */
export async function logLinks(files: LinkFiles, node: LinkPlaces, namePrefix = ""): Promise<LogLink[]> {
  const root = `${node.podLogsRoot}/`;
  const links: LogLink[] = [];
  for (const { name, type } of await files.list(node.containerLogsRoot)) {
    if (type !== "symlink" || !name.startsWith(namePrefix) || !name.endsWith(".log")) continue;
    const path = `${node.containerLogsRoot}/${name}`;
    const target = await files.readLink(path).catch(() => "");
    const parts = target.slice(root.length).split("/");
    if (!target.startsWith(root) || parts.length !== 3 || parts.includes("..")) continue;
    links.push({
      path,
      target,
      podUid: podUidOfLogDirectory(parts[0] ?? ""),
      containerId: containerIdOfLogLink(name),
    });
  }
  return links;
}

interface Linking {
  readonly files: Files;
  readonly node: LinkPlaces;
  readonly log: Logger;
}

/** Without its link, log collectors miss the log: worth a log line, but not a failed container. */
export async function linkLog(
  { files, node, log }: Linking,
  pod: Pod,
  container: string,
  attempt: number,
  id: string,
): Promise<void> {
  const target = `${podLogDirectory(node.podLogsRoot, pod.metadata)}/${container}/${attempt}.log`;
  const path = linkPath(node, pod.metadata, { name: container, id });
  try {
    await inDirectory(files, node.containerLogsRoot, 0o755, async () => files.symlink(target, path));
  } catch (error) {
    log.warn("cannot link a container log", { pod: pod.metadata.name, container, error: errorMessage(error) });
  }
}

/** Removes the link of one container, if any. On failure it is removed with the pod. */
export async function unlinkLog(
  { files, node }: Omit<Linking, "log">,
  pod: PodRef,
  container: { readonly name: string; readonly id: string },
): Promise<void> {
  await files.remove(linkPath(node, pod, container)).catch(() => {});
}

function linkPath(node: LinkPlaces, pod: PodRef, container: { readonly name: string; readonly id: string }): string {
  return `${node.containerLogsRoot}/${containerLogLinkName(pod, container.name, container.id)}`;
}

/** Removes every link to a log of one pod, also of containers that others removed. */
export async function removeLogLinks(
  files: LinkFiles,
  node: LinkPlaces,
  pod: { readonly uid: PodUid; readonly namespace: string; readonly name: string },
): Promise<void> {
  for (const { path, podUid } of await logLinks(files, node, `${pod.name}_${pod.namespace}_`)) {
    if (podUid === pod.uid) await files.remove(path);
  }
}

/** True when a link's log is missing. During rotation that is so for a moment: running containers keep theirs. */
export async function isDeadLink(
  files: LinkFiles,
  { target, containerId }: LogLink,
  mayWrite: (containerId: string | undefined) => boolean,
): Promise<boolean> {
  return !mayWrite(containerId) && (await files.stat(target)) === undefined;
}
