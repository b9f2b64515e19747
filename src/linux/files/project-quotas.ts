import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path/posix";
import { errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Files } from "../../ports/files.ts";
import type { CommandResult, Processes } from "../../ports/processes.ts";
import { isPlainPath, type ProjectQuotas, type QuotaFileSystem } from "../../ports/project-quotas.ts";
import { errnoOf } from "../file-error.ts";
import { mountsAbove, readMountTable } from "./mountinfo.ts";
import { type ListPaths, ProjectListFiles } from "./project-list-files.ts";
import { accountsForProjects, directoryProject, projectUsage } from "./quota-output.ts";

const commandTimeoutMs = 30_000;
const environment = { LC_ALL: "C" };

/**
 * Upstream's limits: the largest that each file system has. A limit is set although nothing reaches it, as it makes the
 * file system keep a record of the project.
 */
const unreachable = { xfs: 2n ** 63n - 1n, ext4: 2n ** 58n - 1n } as const;

export interface QuotaPorts {
  readonly clock: Clock;
  readonly files: Pick<Files, "read" | "stat" | "writeAtomic">;
  readonly processes: Pick<Processes, "run">;
  /** The mount table; a test's may have file systems that the machine lacks. */
  readonly mountTable?: () => Buffer;
}

const systemLists: ListPaths = { projects: "/etc/projects", projid: "/etc/projid" };

/** Project quotas by xfs_quota(8) and xfs_io(8) of xfsprogs, which also know ext4. */
export function projectQuotas(
  { clock, files, processes, mountTable = readMountTable }: QuotaPorts,
  paths = systemLists,
): ProjectQuotas {
  const listFiles = new ProjectListFiles(files, clock, paths);

  async function quota(on: QuotaFileSystem, commands: readonly string[], signal?: AbortSignal): Promise<string> {
    return await withMountsFile(on, async (mountsFile) => {
      // Project numbers only: the lists need not be read.
      const given = ["-t", mountsFile, "-P/dev/null", "-D/dev/null", "-x", "-f"];
      const words = [...given, ...commands.flatMap((command) => ["-c", command]), on.mountPoint];
      return await run("xfs_quota", words, signal);
    });
  }

  async function run(program: string, words: readonly string[], signal?: AbortSignal): Promise<string> {
    const options = { timeoutMs: commandTimeoutMs, environment, ...(signal && { signal }) };
    const result = await processes.run(program, words, options).catch((error: unknown) => {
      signal?.throwIfAborted();
      const { cause } = error instanceof Error ? error : { cause: undefined };
      const message = errnoOf(cause) === "ENOENT" ? `${program} is missing: install xfsprogs` : errorMessage(error);
      throw new Error(message, { cause: error });
    });
    if (result.exitCode !== 0) throw new Error(`${program}: ${problemOf(result)}`);
    return result.stdout;
  }

  return {
    async fileSystemOf(path, signal) {
      const on = mountedAt(mountTable(), path);
      if (on === undefined) return undefined;
      return accountsForProjects(await quota(on, ["state -p"], signal)) ? on : undefined;
    },

    async usage(_path, on, project, signal) {
      const output = await quota(on, ["state -p", `quota -p -N -n -v -b -i ${project}`], signal);
      // Without a state it cannot be told whether the record is missing, or the answer.
      if (!accountsForProjects(output)) throw new Error(`${on.mountPoint} does not account for projects any more`);
      return projectUsage(output, on.source);
    },

    async projectOf(directory, signal) {
      requirePlain(directory);
      const output = await run("xfs_io", ["-r", "-c", "lsproj", directory], signal);
      const project = directoryProject(output);
      if (project === undefined) throw new Error(`xfs_io shows no project: ${JSON.stringify(output)}`);
      return project;
    },

    async assign(directory, on, project, signal) {
      requirePlain(directory);
      const limit = unreachable[on.type];
      const commands = [
        `limit -p bhard=${limit} bsoft=${limit} ${project}`,
        `project -s -d 0 -p ${directory} ${project}`,
      ];
      await quota(on, commands, signal);
    },

    async release(_directory, on, project) {
      await quota(on, [`limit -p bhard=0 bsoft=0 ${project}`]);
    },

    lists: () => listFiles.lists(),
    editLists: (path, change) => listFiles.editLists(path, change),
  };
}

/** The mount that a path without links is in, if its type can have projects. */
function mountedAt(table: Buffer, path: string): QuotaFileSystem | undefined {
  const [nearest, ...others] = mountsAbove(table, path);
  // Of several mounts at one place the last is visible.
  const mount = others.findLast(({ target }) => target === nearest?.target) ?? nearest;
  if (mount === undefined) return undefined;
  const { fileSystem: type, target: mountPoint, source } = mount;
  if (type !== "xfs" && type !== "ext4") return undefined;
  return [mountPoint, source].every(isPlainPath) ? { type, mountPoint, source } : undefined;
}

/** As upstream, xfs_quota sees one mount only: it would look at all of them, also of a server that does not respond. */
async function withMountsFile<T>(
  { source, mountPoint, type }: QuotaFileSystem,
  use: (path: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-mounts-"));
  try {
    const path = join(directory, "mounts");
    await writeFile(path, `${source} ${mountPoint} ${type} rw 0 0\n`, { mode: 0o600 });
    return await use(path);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function requirePlain(path: string): void {
  if (!isPlainPath(path)) throw new Error(`${JSON.stringify(path)} cannot be a word of xfs_quota's commands`);
}

function problemOf({ exitCode, signal, stderr }: CommandResult): string {
  const outcome = exitCode === undefined ? `ended by ${signal}` : `exit code ${exitCode}`;
  return stderr.trim().replaceAll("\n", "; ") || outcome;
}
