import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { invariant } from "../base/invariant.ts";
import { Semaphore } from "../base/semaphore.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import { isPlainPath, type ProjectLists, type ProjectQuotas, type QuotaFileSystem } from "../ports/project-quotas.ts";
import type { TreeUsage } from "../ports/stats-files.ts";
import { podRef } from "../runtime/pod-ref.ts";
import {
  isListedElsewhere,
  kubeletLines,
  listedProject,
  unlistedProjects,
  withoutPaths,
  withProject,
} from "./project-lists.ts";

/** As upstream: so many unlisted projects may belong to somebody else before none is taken. */
const mostTried = 128;
/** How long after a failure the lists are tidied up again. */
const againMs = 60_000;
/** A problem that has not repeated for so long is over. */
const overMs = 600_000;

export interface VolumeQuotasDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "list" | "stat">;
  readonly quotas: ProjectQuotas;
  readonly log: Logger;
  readonly rootDirectory: string;
}

/** A volume that is measured by its project. */
interface Quota {
  readonly project: number;
  readonly on: QuotaFileSystem;
}

/**
 * Measures emptyDir volumes by project quotas (KEP-1029): at once, and with files that are open but have no name. A
 * volume has a project of its own, with a limit that nothing reaches: as upstream, quotas enforce nothing.
 *
 * What is measured cannot leave the project. The kernel gives a new file the project of its directory; the file keeps it
 * wherever it is moved, and nothing is moved or linked into a directory of another project. Only users of the node may
 * change a file's project, so only pods with a user namespace have quotas; and only a volume that is still empty is given
 * to a project. Whatever else is found, or fails, the tree is walked instead.
 */
export class VolumeQuotas {
  readonly #deps: VolumeQuotasDependencies;
  /** By directory. Undefined: it has none. */
  readonly #known = new Map<string, Quota | undefined>();
  /** Grows with each quota that comes or goes: what was read before may be outdated. */
  #changes = 0;
  readonly #turn = new Semaphore(1);
  /** The last problem of each kind of work. */
  readonly #problems = new Map<string, { readonly text: string; readonly atMs: number }>();
  /** Something has failed since the lists were tidied up, for whatever volume. */
  #isUntidy = true;

  constructor(deps: VolumeQuotasDependencies) {
    this.#deps = deps;
  }

  /** Gives a volume's new, empty directory a quota where possible. Rejects only with the signal's reason. */
  async assign(pod: Pod, directory: string, signal?: AbortSignal): Promise<void> {
    if (pod.spec.hostUsers !== false || !isPlainPath(directory)) return;
    const what = { work: "assign a quota to a volume", ...podRef(pod), directory };
    await this.#attempt(what, signal, async () => {
      // What is in it, e.g. after an interrupted teardown, would not be the project's.
      if ((await this.#deps.files.list(directory)).length > 0) return;
      const on = await this.#deps.quotas.fileSystemOf(directory, signal);
      if (on === undefined) return;
      // An interrupted set-up may have assigned another one.
      this.#forget(directory);
      const project = await this.#assignOn(on, directory, signal);
      this.#known.set(directory, { on, project });
      this.#changes++;
    });
    signal?.throwIfAborted();
  }

  /** What the volume takes by its quota; undefined: it has none, or none that answers. */
  async usage(pod: Pod, directory: string, signal?: AbortSignal): Promise<TreeUsage | undefined> {
    if (pod.spec.hostUsers !== false || !isPlainPath(directory)) return undefined;
    const what = { work: "measure a volume by its quota", ...podRef(pod), directory };
    return await this.#attempt(what, signal, async () => {
      if (!this.#known.has(directory)) await this.#find(directory, signal);
      const quota = this.#known.get(directory);
      return quota && (await this.#usageOf(directory, quota, signal));
    });
  }

  /** Call before the volume's directory is removed. Never rejects: a line that stays is removed later. */
  async clear(directory: string): Promise<void> {
    if (!isPlainPath(directory)) return;
    const known = this.#known.get(directory);
    await this.#attempt({ work: "clear a volume's quota", directory }, undefined, async () => {
      const project = listedProject(await this.#deps.quotas.lists(), directory);
      if (project !== undefined) await this.#release(directory, project, known);
      await this.#edit(directory, (lists) => withoutPaths(lists, (path) => path === directory));
    });
    this.#forget(directory);
  }

  #forget(directory: string): void {
    this.#known.delete(directory);
    this.#changes++;
  }

  /** Removes what is left of volumes that are gone, of any kubelet, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const wait = new WakeableWait(this.#deps.clock, "project quotas to be tidied up");
    while (!signal.aborted) {
      if (this.#isUntidy) {
        this.#isUntidy = false;
        await this.#attempt({ work: "look at the file system" }, signal, () => this.#look(signal));
        await this.#attempt({ work: "remove projects of volumes that are gone" }, signal, () => this.#tidyUp());
      }
      await wait.for(againMs, signal);
      this.#forgetOldProblems();
    }
  }

  /** Present problems, as clauses. */
  get problems(): readonly string[] {
    return [...this.#problems].map(([work, { text }]) => `cannot ${work}: ${text}`);
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { quotas, rootDirectory } = this.#deps;
    if ((await quotas.fileSystemOf(rootDirectory, signal)) !== undefined) return;
    throw new Error(`the file system of ${rootDirectory} does not account for projects`);
  }

  async #assignOn(on: QuotaFileSystem, directory: string, signal: AbortSignal | undefined): Promise<number> {
    const { quotas } = this.#deps;
    let project: number | undefined;
    await this.#edit(directory, async (lists) => {
      // An interrupted set-up, or an earlier volume of this path, may have left a line.
      const others = withoutPaths(lists, (path) => path === directory) ?? lists;
      project = await this.#unusedProject(others, on, directory, signal);
      return withProject(others, { project, path: directory });
    });
    if (project === undefined) throw new Error("no project was listed");
    const owner = [...this.#known].find(([, quota]) => quota?.project === project)?.[0];
    // It was in no list, and one that is in use counts at least its directory.
    invariant("a project belongs to one volume", owner === undefined, () => `${project} of ${owner}: ${directory}`);
    try {
      await quotas.assign(directory, on, project, signal);
      if ((await this.#usageOf(directory, { on, project }, signal)) === undefined) {
        throw new Error(`the directory does not count for project ${project}`);
      }
      return project;
    } catch (error) {
      await this.clear(directory);
      throw error;
    }
  }

  /** Neither listed nor used, e.g. by files that somebody still has open. */
  async #unusedProject(
    lists: ProjectLists,
    on: QuotaFileSystem,
    directory: string,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    let tried = 0;
    for (const project of unlistedProjects(lists)) {
      if (tried++ > mostTried) break;
      const { bytes = 0, inodes = 0 } = (await this.#deps.quotas.usage(directory, on, project, signal)) ?? {};
      if (bytes === 0 && inodes === 0) return project;
    }
    throw new Error("cannot find available quota ID");
  }

  /** Looks for the quota of an earlier run, of this or a Go kubelet. */
  async #find(directory: string, signal: AbortSignal | undefined): Promise<void> {
    const { quotas } = this.#deps;
    const changes = this.#changes;
    const learned = (quota: Quota | undefined): void => {
      if (changes === this.#changes) this.#known.set(directory, quota);
    };
    const project = listedProject(await quotas.lists(), directory);
    if (project === undefined) return learned(undefined);
    const on = await quotas.fileSystemOf(directory, signal);
    // Quotas may be turned on again.
    if (on === undefined) return;
    // The line may be an earlier volume's.
    const isOwn = (await quotas.projectOf(directory, signal)) === project;
    learned(isOwn ? { on, project } : undefined);
  }

  /** Its directory counts as well, so a project without inodes is not the volume's. */
  async #usageOf(
    directory: string,
    { on, project }: Quota,
    signal: AbortSignal | undefined,
  ): Promise<TreeUsage | undefined> {
    const usage = await this.#deps.quotas.usage(directory, on, project, signal);
    return usage !== undefined && usage.inodes > 0 ? usage : undefined;
  }

  /** Unless others have the project as well. Its line goes even if this fails. */
  async #release(directory: string, project: number, known: Quota | undefined): Promise<void> {
    const { quotas } = this.#deps;
    await this.#attempt({ work: "remove the limit of a volume's project", directory, project }, undefined, async () => {
      if (isListedElsewhere(await quotas.lists(), { project, path: directory })) return;
      const on = known?.on ?? (await quotas.fileSystemOf(directory));
      if (on !== undefined) await quotas.release(directory, on, project);
    });
  }

  async #tidyUp(): Promise<void> {
    const own = `${this.#deps.rootDirectory}/pods/`;
    const { projects } = await this.#deps.quotas.lists();
    const gone = new Set<string>();
    for (const { path } of kubeletLines(projects)) {
      if (path.startsWith(own) && (await this.#deps.files.stat(path)) === undefined) gone.add(path);
    }
    if (gone.size === 0) return;
    await this.#edit(own, async (lists) => {
      // Meanwhile a volume may have been created at the path.
      for (const path of gone) if ((await this.#deps.files.stat(path)) !== undefined) gone.delete(path);
      for (const path of gone) this.#forget(path);
      return withoutPaths(lists, (path) => gone.has(path));
    });
  }

  async #edit(
    path: string,
    change: (lists: ProjectLists) => ProjectLists | undefined | Promise<ProjectLists | undefined>,
  ): Promise<void> {
    using _turn = await this.#turn.acquire();
    await this.#deps.quotas.editLists(path, async (lists) => await change(lists));
  }

  /** A problem that repeats is logged once; the next success ends it. */
  async #attempt<T>(
    { work, ...fields }: { readonly work: string; readonly [field: string]: unknown },
    signal: AbortSignal | undefined,
    attempt: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      const result = await attempt();
      this.#problems.delete(work);
      return result;
    } catch (error) {
      this.#isUntidy = true;
      if (signal?.aborted === true) return undefined;
      const text = errorMessage(error);
      if (this.#problems.get(work)?.text !== text) {
        this.#deps.log.warn("cannot use a project quota", { ...fields, work, error: text });
      }
      this.#problems.set(work, { text, atMs: this.#deps.clock.monotonic() });
      return undefined;
    }
  }

  #forgetOldProblems(): void {
    const sinceMs = this.#deps.clock.monotonic() - overMs;
    for (const [work, { atMs }] of this.#problems) if (atMs < sinceMs) this.#problems.delete(work);
  }
}
