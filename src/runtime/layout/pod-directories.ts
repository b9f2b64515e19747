import type { PodUid } from "../../base/ids.ts";
import { bothEnded, settleAll } from "../../base/side-by-side.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { PodRef } from "../../journal/entry.ts";
import { FileError, type Files, removeEmpty } from "../../ports/files.ts";
import type { Random } from "../../ports/random.ts";
import { removeLogLinks } from "./log-links.ts";
import { maxFileName, podLogDirectory, podLogDirectoryName } from "./log-paths.ts";
import type { NodeContext } from "../node-context.ts";
import type { PodHolding } from "../pod-holdings.ts";

type Directories = Pick<NodeContext, "rootDirectory" | "podLogsRoot">;

/** `<root>/pods/<uid>`: everything on disk of a pod except its logs. */
export function podDirectory(node: Pick<NodeContext, "rootDirectory">, uid: PodUid): string {
  return `${node.rootDirectory}/pods/${uid}`;
}

/**
 * Creates the pod's directories with upstream's layout (owner root, 0750). The pod's own comes first: after a crash
 * halfway, the next run finds it and knows that the rest is this node's to remove.
 */
export async function makePodDirectories(files: Files, node: Directories, pod: Pod): Promise<void> {
  const directory = podDirectory(node, pod.metadata.uid);
  await files.makeDirectory(directory, 0o750);
  const below = ["volumes", "plugins", "containers"].map((name) => files.makeDirectory(`${directory}/${name}`, 0o750));
  const logs = files.makeDirectory(podLogDirectory(node.podLogsRoot, pod.metadata), 0o755);
  await settleAll("directories of the pod", [...below, logs]);
}

/** Creates what one container needs: its log directory and the one for its termination messages. */
export async function makeContainerDirectories(
  files: Files,
  node: Directories,
  pod: Pod,
  container: Container,
): Promise<void> {
  await bothEnded(
    files.makeDirectory(`${podLogDirectory(node.podLogsRoot, pod.metadata)}/${container.name}`, 0o755),
    files.makeDirectory(`${podDirectory(node, pod.metadata.uid)}/containers/${container.name}`, 0o750),
  );
}

/** Creates an empty termination message file for one container instance, writable by any user. */
export async function makeTerminationLog(
  files: Files,
  random: Random,
  node: Directories,
  pod: Pod,
  container: Container,
): Promise<string | undefined> {
  if (!container.terminationMessagePath) return undefined;
  const name = Buffer.from(random.bytes(4)).toString("hex");
  const path = `${podDirectory(node, pod.metadata.uid)}/containers/${container.name}/${name}`;
  await files.write(path, "", 0o666);
  return path;
}

type LogPlaces = Pick<NodeContext, "podLogsRoot" | "containerLogsRoot">;

/**
 * A pod's logs and directory as holdings. The directory is removed last: while it exists, a later run knows that the
 * rest is this node's to remove.
 */
export function directoryHoldings(files: Files, node: Directories & LogPlaces): readonly PodHolding[] {
  return [
    { name: "logs", until: "removed", release: (pod, { comesBack }) => removePodLogs(files, node, pod, comesBack) },
    {
      name: "directory",
      until: "removed",
      release: ({ uid }, { comesBack }) => removePodDirectory(files, node, uid, comesBack),
    },
  ];
}

/**
 * Removes a pod's logs and their links.
 * @param keepsLogs of a pod that returns under its UID
 */
export async function removePodLogs(files: Files, node: LogPlaces, pod: PodRef, keepsLogs = false): Promise<void> {
  await removeLogLinks(files, node, pod);
  const logs = podLogDirectoryName(pod);
  // A pod whose log directory has no valid name has no logs.
  if (logs.length <= maxFileName && !keepsLogs) await files.removeTree(`${node.podLogsRoot}/${logs}`);
}

/**
 * Removes a pod's directory. It stays while volumes or mounts remain in it: other data may be behind them, and the
 * release of the volumes has reported them.
 * @param comesBack the pod is to return; if it does not, the search for leftovers finds the directory and its logs
 */
export async function removePodDirectory(
  files: Files,
  node: Pick<NodeContext, "rootDirectory">,
  uid: PodUid,
  comesBack = false,
): Promise<void> {
  const directory = podDirectory(node, uid);
  for (const name of ["volumes", "volumeDevices"]) {
    if (!(await removeEmpty(files, `${directory}/${name}`))) return;
  }
  try {
    await files.removeTree(directory);
  } catch (error) {
    if (error instanceof FileError && error.code === "EBUSY") return;
    throw error;
  }
  if (comesBack) await files.makeDirectory(directory, 0o750);
}
