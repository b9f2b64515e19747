import { resolve } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { FileError } from "../ports/files.ts";
import { replayText } from "../replay/describe.ts";
import { RecordingError, replay, type Replay } from "../replay/replay.ts";
import type { Terminal } from "./terminal.ts";

/** Several times the limit of a recording. */
const maxFileBytes = 256 * 1024 * 1024;

/**
 * `podwright replay FILE`: repeats the decisions of a recording, and shows the first one that differs. Exit code 1 if there
 * is one, 2 if the file is not a recording.
 */
export async function replayCommand(
  terminal: Terminal,
  file: string,
  { pod, json }: { readonly pod?: string; readonly json?: true },
): Promise<ExitCode> {
  const result = await replayFile(file, pod);
  if (pod !== undefined && result.decisions === 0) {
    throw new PodwrightError(ExitCode.badInput, `${file} has no decision about pod ${pod}`);
  }
  if (json === true) terminal.print(JSON.stringify({ ...result, first: result.first ?? null }, undefined, 2));
  else terminal.print(replayText(result, terminal.paint).join("\n"));
  return result.different === 0 ? ExitCode.done : ExitCode.failed;
}

async function replayFile(file: string, pod: string | undefined): Promise<Replay> {
  try {
    const bytes = await systemFiles.read(resolve(process.cwd(), file), maxFileBytes);
    return replay(new TextDecoder().decode(bytes), pod);
  } catch (error) {
    if (error instanceof RecordingError) {
      const remedy = "use a file written by --record";
      throw new PodwrightError(ExitCode.badInput, `${file}: ${error.message}`, { cause: error, remedy });
    }
    const message = error instanceof FileError && error.code === "ENOENT" ? "it does not exist" : errorMessage(error);
    throw new PodwrightError(ExitCode.badInput, `cannot read ${file}: ${message}`, {
      cause: error,
      remedy: "use a file written by --record",
    });
  }
}
