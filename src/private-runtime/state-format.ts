import { ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";

/** Counts up with each change of the state directory that an earlier podwright would misread. */
const currentFormat = 1;

/** The state directory's format file. */
interface StateFormat {
  readonly format: number;
  /** The version of podwright that wrote it last. */
  readonly podwright: string;
}

/**
 * Accepts a state directory of this or an earlier podwright, and marks it as this one's; readers convert its content.
 * One without a mark is of 0.1.0 or new. Call it with the directory's lock held, before anything is read.
 * @param version of this podwright
 * @throws PodwrightError if a newer podwright wrote it in its own format
 */
export async function takeStateFormat(
  files: Pick<Files, "read" | "writeAtomic">,
  stateDirectory: string,
  version: string,
): Promise<void> {
  const found = await requireStateFormat(files, stateDirectory, version);
  if (found?.format === currentFormat && found.podwright === version) return;
  const format: StateFormat = { format: currentFormat, podwright: version };
  await files.writeAtomic(formatFile(stateDirectory), `${JSON.stringify(format)}\n`, 0o644);
}

/** As {@link takeStateFormat}, without a change. @returns the mark; undefined: there is none */
export async function requireStateFormat(
  files: Pick<Files, "read">,
  stateDirectory: string,
  version: string,
): Promise<StateFormat | undefined> {
  const found = await readFormat(files, formatFile(stateDirectory));
  if (found === undefined || found.format <= currentFormat) return found;
  const written = `podwright ${found.podwright} wrote ${stateDirectory} in format ${found.format}`;
  throw new PodwrightError(
    ExitCode.environment,
    `${written}; podwright ${version} reads formats up to ${currentFormat}`,
    {
      // Not by version: builds of one version may differ in their formats.
      remedy: `install a podwright that reads format ${found.format}, or use another --state-dir; nothing was changed`,
    },
  );
}

/** Whether a directory is a state directory, of whatever podwright. */
export async function hasStateFormat(files: Pick<Files, "stat">, stateDirectory: string): Promise<boolean> {
  return (await files.stat(formatFile(stateDirectory)).catch(() => undefined)) !== undefined;
}

function formatFile(stateDirectory: string): string {
  return `${stateDirectory}/format.json`;
}

async function readFormat(files: Pick<Files, "read">, path: string): Promise<StateFormat | undefined> {
  let text: string;
  try {
    text = new TextDecoder().decode(await files.read(path, 4096));
  } catch (error) {
    if (error instanceof FileError && error.code === "ENOENT") return undefined;
    throw error;
  }
  const value = parse(text);
  if (value !== undefined) return value;
  throw new PodwrightError(ExitCode.environment, `${path} is damaged`, {
    remedy: "remove it if podwright has not been downgraded",
  });
}

function parse(text: string): StateFormat | undefined {
  try {
    const { format, podwright } = JSON.parse(text) as Partial<StateFormat>;
    return Number.isSafeInteger(format) && typeof podwright === "string"
      ? { format: Number(format), podwright }
      : undefined;
  } catch {
    return undefined;
  }
}
