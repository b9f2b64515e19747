import type { ApplyRequest } from "../server/engine.ts";
import { loadManifests } from "../sources/load.ts";
import type { ManifestError } from "../sources/manifest-error.ts";
import type { CommandContext } from "./context.ts";

export interface LoadedInput {
  /** The objects without errors. */
  readonly request: ApplyRequest;
  readonly errors: readonly ManifestError[];
}

/** Reads what the operands of `podwright run` name: files, directories, URLs, and `-` for standard input. */
export async function loadInput(
  { clock, files, network }: Pick<CommandContext, "clock" | "files" | "network">,
  inputs: readonly string[],
  signal: AbortSignal,
): Promise<LoadedInput> {
  const workingDirectory = process.cwd();
  const readStandardInput = async (maxBytes: number): Promise<Uint8Array> => readAll(process.stdin, maxBytes, signal);
  const deps = { clock, files, network, workingDirectory, readStandardInput };
  const { errors, ...request } = await loadManifests(inputs, deps, signal);
  return { request, errors };
}

async function readAll(input: NodeJS.ReadStream, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  const onAbort = (): void => void input.destroy();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // Not for…await alone: a terminal that nobody types at must not keep Ctrl-C waiting.
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
