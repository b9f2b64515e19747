import type { Readable } from "node:stream";
import { PodwrightError } from "../base/errors.ts";
import { openedFile } from "../linux/files/opened-file.ts";
import { FileError } from "../ports/files.ts";
import type { ApplyRequest } from "../server/local-api.ts";
import { loadManifests } from "../sources/load.ts";
import { locatedProblems } from "../sources/located-problems.ts";
import type { ManifestError, Origin } from "../yaml/manifest-error.ts";
import type { MachineContext } from "./machine-context.ts";

export interface LoadedInput {
  /** The valid objects. */
  readonly request: ApplyRequest;
  readonly errors: readonly ManifestError[];
  readonly warnings: readonly ManifestError[];
  /** The source of each object, by its name. */
  readonly origins: ReadonlyMap<string, Origin>;
}

/** Reads manifests: files, directories, URLs, and `-` for standard input. */
export async function loadInput(
  { clock, files, network }: Pick<MachineContext, "clock" | "files" | "network">,
  inputs: readonly string[],
  signal: AbortSignal,
): Promise<LoadedInput> {
  const workingDirectory = process.cwd();
  const readDescriptor = async (descriptor: number, maxBytes: number): Promise<Uint8Array> =>
    readAll(descriptor === 0 ? process.stdin : openedFile(descriptor), maxBytes, signal);
  const deps = { clock, files, network, workingDirectory, readDescriptor };
  const { errors, warnings, origins, ...request } = await loadManifests(inputs, deps, signal);
  return { request, errors, warnings, origins };
}

/** The type of what is at the path, links followed. Undefined: nothing, or a dangling link. */
export async function pathType({ files }: Pick<MachineContext, "files">, path: string): Promise<string | undefined> {
  try {
    return (await files.stat(await files.realPath(path)))?.type;
  } catch (error) {
    if (error instanceof FileError && ["ENOENT", "ENOTDIR"].includes(error.code)) return undefined;
    throw error;
  }
}

/** The engine's error with the files and lines of its objects. */
export function located(error: unknown, origins: LoadedInput["origins"]): unknown {
  if (!(error instanceof PodwrightError) || error.problems.length === 0) return error;
  const lines = locatedProblems(error.problems, origins);
  const { remedy } = error;
  return new PodwrightError(error.exitCode, lines.join("\n"), {
    cause: error,
    ...(remedy !== undefined && { remedy }),
  });
}

async function readAll(input: Readable, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  const onAbort = (): void => void input.destroy();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // Destroyed on abort: a terminal without input must not block Ctrl-C.
    for await (const chunk of input) {
      const bytes = Buffer.from(chunk as Uint8Array);
      length += bytes.length;
      if (length > maxBytes) throw new Error(`is longer than ${maxBytes} bytes`);
      chunks.push(bytes);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks);
}
