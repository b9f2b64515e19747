import type { Container } from "../../api/container.ts";
import { errorMessage } from "../../base/errors.ts";
import { ContainerConfigError } from "./container-config-error.ts";
import type { MountedVolumes, VolumeReader } from "./mounted-volumes.ts";
import { TextRoom } from "./text-room.ts";

/** The env files of a container (`fileKeyRef`); undefined: none. */
export type EnvironmentFiles = (volumeName: string, path: string) => Uint8Array | undefined;

/** As large as a ConfigMap may be, and more than any process can be started with. */
const maxFileBytes = 1 << 20;
/** All of a container, which are in memory together. */
const maxFilesBytes = 6 << 20;

/**
 * Reads the env files of a container (KEP-3721), each once.
 * @throws ContainerConfigError for an unreadable file, and when they are too much; a missing one is no error yet
 */
export async function readEnvironmentFiles(
  volumes: VolumeReader,
  container: Container,
  mounted: MountedVolumes,
): Promise<EnvironmentFiles> {
  const files = new Map<string, Uint8Array | undefined>();
  const room = new TextRoom(maxFilesBytes, `the env files of a container have at most ${maxFilesBytes} bytes`);
  const key = (volumeName: string, path: string): string => `${volumeName}/${path}`;
  for (const { valueFrom } of container.env ?? []) {
    const reference = valueFrom?.fileKeyRef;
    if (reference === undefined || files.has(key(reference.volumeName, reference.path))) continue;
    const { volumeName, path } = reference;
    const volume = mounted.get(volumeName);
    if (volume === undefined) {
      throw new ContainerConfigError(`cannot find the volume ${JSON.stringify(volumeName)} referenced by fileKeyRef`);
    }
    const where = `env file ${JSON.stringify(path)} of volume ${JSON.stringify(volumeName)}`;
    let content: Uint8Array | undefined;
    try {
      content = await volumes.readFile(volume, path, maxFileBytes);
    } catch (cause) {
      throw new ContainerConfigError(`couldn't read ${where}: ${errorMessage(cause)}`, { cause });
    }
    if (content !== undefined) room.take([content], where);
    files.set(key(volumeName, path), content);
  }
  return (volumeName, path) => files.get(key(volumeName, path));
}

/**
 * The value of a variable in an env file, byte for byte; undefined when missing or empty. The syntax is upstream's
 * subset of a shell's: `NAME='value'`, a value in single quotes that may span lines, comments after `#`. Nothing is
 * expanded; the first definition counts, and the rest is not parsed. Pure.
 * @throws ContainerConfigError with the line number, never the content
 */
export function findVariable(content: Uint8Array, name: string): Uint8Array | undefined {
  // latin1 gives each byte back.
  const lines = Buffer.from(content).toString("latin1").split("\n");
  const bare = lines.map((line) => line.replace(/\r$/u, ""));
  for (let index = 0; index < bare.length; index++) {
    const line = (bare[index] ?? "").replace(/^[ \t]+/u, "");
    if (line === "" || line.startsWith("#")) continue;
    const found = assignment(line, index);
    // As in a shell: `NAME= 'value'` assigns nothing.
    if (found.value.startsWith(" ") || found.value.startsWith("\t")) {
      if (found.name === name) return undefined;
      continue;
    }
    const { value, last } = quoted(found.value, bare, index);
    if (found.name === name) return value === "" ? undefined : Buffer.from(value, "latin1");
    index = last;
  }
  return undefined;
}

function assignment(line: string, index: number): { readonly name: string; readonly value: string } {
  const equals = line.indexOf("=");
  if (equals === -1) throw badLine(index, "missing '='");
  const name = line.slice(0, equals);
  if (name === "") throw badLine(index, "empty variable name");
  if (/[ \t]$/u.test(name)) throw badLine(index, "whitespace before '=' is not allowed");
  return { name, value: line.slice(equals + 1) };
}

/** The text between two single quotes, and the line of the second. */
function quoted(
  text: string,
  lines: readonly string[],
  index: number,
): { readonly value: string; readonly last: number } {
  if (!text.startsWith("'")) throw badLine(index, "value must be enclosed in single quotes");
  const parts: string[] = [];
  let rest: string | undefined = text.slice(1);
  for (let last = index; rest !== undefined; rest = lines[++last]) {
    const end: number = rest.indexOf("'");
    if (end === -1) {
      parts.push(rest);
      continue;
    }
    if (!/^[ \t]*(?:#.*)?$/su.test(rest.slice(end + 1))) throw badLine(last, "unexpected content after closing quote");
    return { value: [...parts, rest.slice(0, end)].join("\n"), last };
  }
  throw badLine(index, "unclosed single quote");
}

function badLine(index: number, problem: string): ContainerConfigError {
  return new ContainerConfigError(`couldn't parse env file: line ${index + 1}: ${problem}`);
}
