import type { ContainerId } from "../../base/ids.ts";
import { errorMessage } from "../../base/errors.ts";
import type { PodRef } from "../../journal/entry.ts";
import { type LogStore, readLog } from "../../logs/reader.ts";
import { FileError, type Files } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { podLogDirectory } from "../layout/log-paths.ts";
import { podDirectory } from "../layout/pod-directories.ts";
import type { ContainerStatus, PodStatus } from "./pod-status.ts";

/**
 * Maximum message size of one container in bytes; of a longer file the end is used
 * (MaxContainerTerminationMessageLength).
 */
const maxMessageBytes = 4096;
/** How much of the log replaces an empty file under FallbackToLogsOnError. */
const fallbackLines = 80;
const fallbackBytes = 2048;
/** The runtime's reason for a process that could not even be started: it cannot have logged anything. */
const couldNotRun = "ContainerCannotRun";

export interface MessageDependencies {
  readonly logs: LogStore;
  readonly files: Pick<Files, "realPath">;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot">;
}

/**
 * The termination messages of a pod's exited containers (terminationMessagePath), each read once: an exited container
 * writes no more. Messages of containers that the status no longer shows are dropped, which bounds the result. Never
 * rejects: a read error is reported in the message's place, as upstream does.
 *
 * The container controls the content and, with a volume at the same path, the file: only a regular file in the
 * container's own directory is read, through no symbolic link, and no more of it than is used.
 */
export async function readTerminationMessages(
  deps: MessageDependencies,
  pod: PodRef,
  status: PodStatus,
  known: ReadonlyMap<ContainerId, string>,
): Promise<ReadonlyMap<ContainerId, string>> {
  const exited = status.containers.filter((container) => container.state === "exited");
  if (exited.length === known.size && exited.every(({ id }) => known.has(id))) return known;
  const read = exited.map(async (container): Promise<[ContainerId, string]> => {
    return [container.id, known.get(container.id) ?? (await terminationMessage(deps, pod, container))];
  });
  return new Map(await Promise.all(read));
}

async function terminationMessage(deps: MessageDependencies, pod: PodRef, container: ContainerStatus): Promise<string> {
  const path = container.terminationMessageHostPath;
  try {
    const message = path === "" ? "" : await readMessageFile(deps, pod, container);
    if (message !== "") return message;
  } catch (error) {
    return `Error on reading termination log ${path}: ${errorMessage(error)}`;
  }
  const fallsBack = container.terminationMessagePolicy === "FallbackToLogsOnError" && container.exitCode !== 0;
  if (!fallsBack || container.reason === couldNotRun || container.logPath === "") return "";
  try {
    return await endOfLog(deps, pod, container);
  } catch (error) {
    return `Error on reading termination message from logs: ${errorMessage(error)}`;
  }
}

async function readMessageFile(deps: MessageDependencies, pod: PodRef, container: ContainerStatus): Promise<string> {
  const { files } = deps.logs;
  const path = container.terminationMessageHostPath;
  const info = await files.stat(path);
  if (info === undefined) return "";
  await requireOwnFile(deps, pod, container);
  if (info.type !== "file") throw new FileError("EINVAL", path, "not a regular file");
  const from = Math.max(0, info.size - maxMessageBytes);
  return endOfText(await files.readRange(path, from, maxMessageBytes, { noFollow: true }), maxMessageBytes);
}

async function endOfLog(deps: MessageDependencies, pod: PodRef, container: ContainerStatus): Promise<string> {
  requireBelow(`${podLogDirectory(deps.node.podLogsRoot, pod)}/${container.name}`, container.logPath);
  let end: Uint8Array = new Uint8Array(0);
  for await (const line of readLog(deps.logs, container.logPath, { tailLines: fallbackLines })) {
    const text = line.end ? [line.text, newline] : [line.text];
    end = Buffer.concat([end, ...text]).subarray(-fallbackBytes);
  }
  return endOfText(end, fallbackBytes);
}

const newline = Uint8Array.of(0x0a);

/**
 * The file must be where podwright made it. Some runtimes, such as CRI-O, report its real path: the node's root
 * directory may be, or be below, a link. No other links are resolved, because pods may make them.
 */
async function requireOwnFile(
  { files, node }: MessageDependencies,
  { uid }: PodRef,
  { name, terminationMessageHostPath: path }: ContainerStatus,
): Promise<void> {
  const directoryBelow = (rootDirectory: string): string =>
    `${podDirectory({ rootDirectory }, uid)}/containers/${name}`;
  const isMoved = !isDirectlyIn(directoryBelow(node.rootDirectory), path);
  requireBelow(directoryBelow(isMoved ? await files.realPath(node.rootDirectory) : node.rootDirectory), path);
}

function requireBelow(directory: string, path: string): void {
  if (!isDirectlyIn(directory, path)) throw new FileError("EACCES", path, `it is not in ${directory}`);
}

/** Directly in the directory: the kubelet's file is there, and nothing that a container could name leads out. */
function isDirectlyIn(directory: string, path: string): boolean {
  const name = path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : "";
  return name !== "" && name !== "." && name !== ".." && !name.includes("/");
}

/**
 * Bytes as API text. Invalid UTF-8 becomes U+FFFD, as in upstream's JSON; control characters stay, and are escaped for
 * display. The result does not exceed `maxBytes` either.
 */
function endOfText(bytes: Uint8Array, maxBytes: number): string {
  const text = decoder.decode(bytes.length < maxBytes ? bytes : fromCharacterStart(bytes));
  const encoded = new TextEncoder().encode(text);
  return encoded.length <= maxBytes ? text : decoder.decode(fromCharacterStart(encoded.subarray(-maxBytes)));
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Drops the rest of a character that was cut: 10xxxxxx continues a character that began before. */
function fromCharacterStart(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
