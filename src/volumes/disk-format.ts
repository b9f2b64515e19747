import type { CommandResult, Processes } from "../ports/processes.ts";
import { VolumeError } from "../runtime/volume-error.ts";

export interface DiskPorts {
  readonly processes: Pick<Processes, "run">;
}

const lookMs = 60_000;
/** A large disk takes long, and one that is half done is of no use. */
const workMs = 3_600_000;
/** blkid(8): it has found nothing. */
const nothingFound = 2;
/** fsck(8): errors are left. */
const uncorrected = 4;

/**
 * What is on a device: a type of file systems, or other data that blkid(8) knows; undefined: nothing that it knows.
 * @throws Error when that cannot be told
 */
export async function formatOf(ports: DiskPorts, device: string): Promise<string | undefined> {
  const found = await probe(ports, device);
  // blkid(8) also finds nothing on a device that it cannot read, on which there may be everything. If the first look was
  // one of those and reading works again, the second one finds it.
  if (found !== undefined) return found;
  await requireReadable(ports, device);
  const again = await probe(ports, device);
  if (again === undefined) await requireReadable(ports, device);
  return again;
}

async function probe({ processes }: DiskPorts, device: string): Promise<string | undefined> {
  const words = ["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export", device];
  const result = await run(processes, "blkid", words, lookMs);
  if (result.exitCode === nothingFound) return undefined;
  if (result.exitCode !== 0) throw failed(`failed to get disk format of disk ${device}`, result);
  if (/^PTTYPE=./mu.test(result.stdout)) return "unknown data, probably partitions";
  return /^TYPE=(.+)$/mu.exec(result.stdout)?.[1] ?? "unknown data";
}

async function requireReadable({ processes }: DiskPorts, device: string): Promise<void> {
  const read = await run(processes, "dd", [`if=${device}`, "of=/dev/null", "bs=4096", "count=1"], lookMs);
  if (read.exitCode !== 0) throw failed(`cannot read disk ${device}`, read);
}

/** Makes a file system on a device that has none. */
export async function formatDisk({ processes }: DiskPorts, device: string, fileSystem: string): Promise<void> {
  const words = fileSystem === "ext4" || fileSystem === "ext3" ? ["-F", "-m0"] : fileSystem === "xfs" ? ["-f"] : [];
  const result = await run(processes, `mkfs.${fileSystem}`, [...words, device], workMs);
  if (result.exitCode !== 0) throw failed(`format of disk ${JSON.stringify(device)} failed`, result);
}

/** Mends what can be mended of a file system before it is mounted. */
export async function checkDisk({ processes }: DiskPorts, device: string): Promise<void> {
  // Where fsck(8) is missing, the mount tells whether the file system can be used.
  const result = await run(processes, "fsck", ["-a", device], workMs).catch(() => undefined);
  if (result?.exitCode !== uncorrected) return;
  throw failed(`'fsck' found errors on device ${device} but could not correct them`, result);
}

/** The type of file systems as it may be part of a program's name. */
export function fileSystemOf(wanted: string | undefined): string {
  const type = wanted || "ext4";
  if (/^[a-z0-9][a-z0-9._-]{0,31}$/u.test(type)) return type;
  throw new VolumeError(`fsType ${JSON.stringify(type)} is no file system`);
}

async function run(
  processes: DiskPorts["processes"],
  program: string,
  words: readonly string[],
  timeoutMs: number,
): Promise<CommandResult> {
  return await processes.run(program, words, { timeoutMs, environment: { LC_ALL: "C" } });
}

function failed(what: string, { exitCode, signal, stdout, stderr }: CommandResult): Error {
  const lines = `${stdout}\n${stderr}`.split("\n").map((line) => line.trim());
  const said = lines
    .filter((line) => line !== "")
    .join("; ")
    .slice(0, 500);
  return new Error(`${what}: ${said || (exitCode === undefined ? `ended by ${signal}` : `exit code ${exitCode}`)}`);
}
