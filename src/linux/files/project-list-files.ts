import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { type FileInfo, FileError, type Files } from "../../ports/files.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ProjectLists, ProjectQuotas } from "../../ports/project-quotas.ts";
import { fileError } from "../file-error.ts";
import { isStillAt, lockDescriptor } from "./lock.ts";

const { O_CREAT, O_NOFOLLOW, O_RDONLY } = constants;

/** Where the lists are: `/etc/projects` and `/etc/projid`, if not in a test. */
export interface ListPaths {
  readonly projects: string;
  readonly projid: string;
}

const mostBytes = 4 << 20;
/** Another kubelet has the lists for as long as its xfs_quota takes. */
const lockWaitMs = 30_000;
const lockRetryMs = 100;

/**
 * The machine's lists of projects. As upstream, an edit locks both files by flock(2) and replaces them. Unlike there, a
 * file that was replaced before it was locked is opened again: its content would be outdated.
 */
export class ProjectListFiles implements Pick<ProjectQuotas, "lists" | "editLists"> {
  readonly #files: Pick<Files, "read" | "stat" | "writeAtomic">;
  readonly #clock: Clock;
  readonly #paths: ListPaths;

  constructor(files: Pick<Files, "read" | "stat" | "writeAtomic">, clock: Clock, paths: ListPaths) {
    this.#files = files;
    this.#clock = clock;
    this.#paths = paths;
  }

  async lists(): Promise<ProjectLists> {
    const { projects, projid } = this.#paths;
    return { projects: await this.#read(projects), projid: await this.#read(projid) };
  }

  async editLists(_path: string, change: (lists: ProjectLists) => Promise<ProjectLists | undefined>): Promise<void> {
    const { projects, projid } = this.#paths;
    // In upstream's order.
    using projectsLock = await this.#lock(projects);
    using projidLock = await this.#lock(projid);
    const before = await this.lists();
    const after = await change(before);
    if (after === undefined) return;
    // A project without a path is harmless; a path without its project's name would let others take the project.
    if (after.projid !== before.projid) await this.#write(projid, after.projid, projidLock.mode);
    if (after.projects !== before.projects) await this.#write(projects, after.projects, projectsLock.mode);
  }

  async #read(path: string): Promise<string> {
    const found = await this.#files.stat(path);
    if (found === undefined) return "";
    requireFile(path, found);
    return Buffer.from(await this.#files.read(path, mostBytes)).toString("latin1");
  }

  async #write(path: string, text: string, mode: number): Promise<void> {
    await this.#files.writeAtomic(path, Buffer.from(text, "latin1"), mode);
  }

  async #lock(path: string): Promise<Disposable & { readonly mode: number }> {
    const found = await this.#files.stat(path);
    if (found !== undefined) requireFile(path, found);
    const late = new AbortController();
    using _limit = this.#clock.timer("the lists of projects", lockWaitMs, () => {
      late.abort(new FileError("EAGAIN", path, `another process has locked ${path} for ${lockWaitMs / 1000} s`));
    });
    for (;;) {
      const descriptor = open(path);
      let isKept = false;
      try {
        if (await lockDescriptor(descriptor, path)) {
          if (!isStillAt(descriptor, path)) continue;
          isKept = true;
          const mode = fstatSync(descriptor).mode & 0o7777;
          return { mode, [Symbol.dispose]: () => closeSync(descriptor) };
        }
      } finally {
        if (!isKept) closeSync(descriptor);
      }
      await this.#clock.sleep("a lock on the lists of projects", lockRetryMs, late.signal);
    }
  }
}

function open(path: string): number {
  try {
    return openSync(path, O_RDONLY | O_CREAT | O_NOFOLLOW, 0o644);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** As upstream: a link could lead to any file of the machine. */
function requireFile(path: string, { type }: FileInfo): void {
  if (type !== "file") throw new FileError("EINVAL", path, `${path} is not a plain file`);
}
