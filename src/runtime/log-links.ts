import type { Files } from "../ports/files.ts";
import { containerIdOfLogLink, podUidOfLogDirectory } from "./log-paths.ts";
import type { NodeContext } from "./node-context.ts";

type LinkFiles = Pick<Files, "list" | "readLink" | "remove" | "stat">;
type LinkPlaces = Pick<NodeContext, "containerLogsRoot" | "podLogsRoot">;

/** A link by which log collectors know a container's log. */
export interface LogLink {
  readonly path: string;
  readonly target: string;
  readonly podUid: string;
  /** Undefined when the name was cut. */
  readonly containerId: string | undefined;
}

/** The links to logs below this node's pod logs. Others in the same directory are somebody else's. */
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

/** Removes every link to a log of one pod, also of containers that somebody else removed. */
export async function removeLogLinks(
  files: LinkFiles,
  node: LinkPlaces,
  pod: { readonly uid: string; readonly namespace: string; readonly name: string },
): Promise<void> {
  for (const { path, podUid } of await logLinks(files, node, `${pod.name}_${pod.namespace}_`)) {
    if (podUid === pod.uid) await files.remove(path);
  }
}

/** True when there is no log behind a link. While a log is rotated that is so for a moment: containers that run keep theirs. */
export async function isDeadLink(
  files: LinkFiles,
  { target, containerId }: LogLink,
  mayWrite: (containerId: string | undefined) => boolean,
): Promise<boolean> {
  return !mayWrite(containerId) && (await files.stat(target)) === undefined;
}
