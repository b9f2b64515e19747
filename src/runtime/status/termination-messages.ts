import type { ContainerId } from "../../base/ids.ts";
import { errorMessage } from "../../base/errors.ts";
import type { PodRef } from "../../journal/entry.ts";
import { type LogStore, readLog } from "../../logs/reader.ts";
import { FileError } from "../../ports/files.ts";
import type { NodeContext } from "../node-context.ts";
import { podLogDirectory } from "../layout/log-paths.ts";
import { podDirectory } from "../layout/pod-directories.ts";
import type { ContainerStatus, PodStatus } from "./pod-status.ts";

/** Longest message of one container in bytes; of a longer file its end is taken (MaxContainerTerminationMessageLength). */
const maxMessageBytes = 4096;
/** What of the log stands in for an empty file under FallbackToLogsOnError. */
const fallbackLines = 80;
const fallbackBytes = 2048;
/** The runtime's word for a container whose process could not even be started: it can't have logged anything. */
const couldNotRun = "ContainerCannotRun";

export interface MessageDependencies {
  readonly logs: LogStore;
  readonly node: Pick<NodeContext, "rootDirectory" | "podLogsRoot">;
}

/**
 * What the exited containers of a pod left as their termination messages (terminationMessagePath), each read once: an ended
 * container writes no more. What is known of containers that the status does not show any more is dropped, so the result
 * is bounded by it. Never rejects: that a message can't be read is told in its place, as upstream does.
 *
 * The container could write what it liked and, with a volume at the same place, chose the file: only a regular file in
 * the container's own directory is read, through no symbolic link, and no more of it than can be told.
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
  const directory = `${podDirectory(deps.node, pod.uid)}/containers/${container.name}`;
  const info = await files.stat(path);
  if (info === undefined) return "";
  requireBelow(directory, path);
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

/** Directly in the directory: what the kubelet made is there, and nothing that a container could name leads out. */
function requireBelow(directory: string, path: string): void {
  const name = path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : "";
  if (name === "" || name === "." || name === ".." || name.includes("/")) {
    throw new FileError("EACCES", path, `it is not in ${directory}`);
  }
}

/**
 * Bytes as the API holds them: text. What is no UTF-8 becomes U+FFFD, as in upstream's JSON; control characters stay,
 * whoever shows them to people escapes them. The result is not longer than `maxBytes` either.
 */
function endOfText(bytes: Uint8Array, maxBytes: number): string {
  const text = decoder.decode(bytes.length < maxBytes ? bytes : fromCharacterStart(bytes));
  const encoded = new TextEncoder().encode(text);
  return encoded.length <= maxBytes ? text : decoder.decode(fromCharacterStart(encoded.subarray(-maxBytes)));
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Without what is left of a character that the cut went through: 10xxxxxx goes on with one that began before. */
function fromCharacterStart(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
