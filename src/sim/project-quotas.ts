import type { ProjectLists, ProjectQuotas, QuotaFileSystem } from "../ports/project-quotas.ts";
import type { TreeUsage } from "../ports/stats-files.ts";
import { kubeletLines, listedProject, unlistedProjects } from "../volumes/project-lists.ts";
import type { MemoryFiles } from "./files.ts";

/** What a pod's processes have in a directory. */
interface Content {
  /** A new directory of the same path is empty. */
  readonly inode: number;
  /** Bytes of files that have names, and of those that are open and have none. */
  readonly named: number;
  readonly hidden: number;
}

const disk: QuotaFileSystem = { type: "xfs", mountPoint: "/var/lib/kubelet", source: "/dev/sdk" };

/** The contents of volumes on the simulated machine's disk, its project quotas, and the lists of projects. */
export class SimProjectQuotas implements ProjectQuotas {
  /** The file system accounts for projects. */
  isOn = false;
  /** What was done to others' projects; undefined: nothing. */
  damage: string | undefined;
  readonly #files: MemoryFiles;
  readonly #contents = new Map<string, Content>();
  /** Projects and paths of directories, by inode. */
  readonly #projects = new Map<number, number>();
  readonly #directories = new Map<number, string>();
  #lists: ProjectLists = { projects: "", projid: "" };
  /** Lines of others, with their projects. */
  readonly #others = new Map<string, number>();
  #isEdited = false;
  /** Others wait for the lock. */
  #waiting = 0;

  constructor(files: MemoryFiles) {
    this.#files = files;
  }

  /** Processes write files, and remove the names of some; false: the directory is not there. */
  async fill(directory: string, named: number, hidden: number): Promise<boolean> {
    const found = await this.#files.stat(directory);
    if (found !== undefined) this.#contents.set(directory, { inode: found.inode, named, hidden });
    return found !== undefined;
  }

  /** Another program takes the first project that no list has, and adds a line that is not one. */
  othersTakeProject(): void {
    if (this.#isEdited) {
      this.#waiting++;
      return;
    }
    const [project] = unlistedProjects(this.#lists);
    if (project === undefined) return;
    const line = `${project}:/srv/${project}`;
    this.#others.set(line, project);
    const { projects, projid } = this.#lists;
    this.#lists = {
      projects: `${projects}${line}\n# by hand: ${project}\n`,
      projid: `${projid}other${project}:${project}\n`,
    };
  }

  /** Bytes in a directory. */
  async filled(directory: string): Promise<number> {
    return (await this.#content(directory)).bytes;
  }

  /** What podwright should know of a directory: without a quota, only files that have names. */
  async visible(directory: string): Promise<number> {
    const isMeasured = this.isOn && (await this.projectOf(directory)) === listedProject(this.#lists, directory);
    return isMeasured ? await this.filled(directory) : ((await this.walk(directory))?.bytes ?? 0);
  }

  /** What a walk of the tree finds. */
  async walk(directory: string): Promise<TreeUsage | undefined> {
    const found = await this.#files.stat(directory);
    if (found === undefined) return undefined;
    const content = this.#contents.get(directory);
    const named = content?.inode === found.inode ? content.named : 0;
    return { bytes: named, inodes: 1 };
  }

  /** Directories that are listed, but not there. */
  async stale(): Promise<string[]> {
    const stale: string[] = [];
    for (const { path } of kubeletLines(this.#lists.projects)) {
      if (path.includes("/pods/") && (await this.#files.stat(path)) === undefined) stale.push(path);
    }
    return stale;
  }

  async fileSystemOf(): Promise<QuotaFileSystem | undefined> {
    return this.isOn ? disk : undefined;
  }

  async usage(_path: string, _on: QuotaFileSystem, project: number): Promise<TreeUsage | undefined> {
    if (!this.isOn) throw new Error(`${disk.mountPoint} does not account for projects any more`);
    const sum = { bytes: 0, inodes: 0 };
    let isKnown = false;
    for (const [inode, of] of this.#projects) {
      if (of !== project) continue;
      isKnown = true;
      const directory = await this.#directoryOf(inode);
      if (directory === undefined) continue;
      sum.bytes += (await this.#content(directory)).bytes;
      sum.inodes++;
    }
    return isKnown ? sum : undefined;
  }

  async projectOf(directory: string): Promise<number> {
    const found = await this.#files.stat(directory);
    return (found && this.#projects.get(found.inode)) ?? 0;
  }

  async assign(directory: string, _on: QuotaFileSystem, project: number): Promise<void> {
    const found = await this.#files.stat(directory);
    if (found === undefined) throw new Error(`cannot find ${directory}`);
    this.#mayChange(project, directory);
    this.#projects.set(found.inode, project);
    this.#directories.set(found.inode, directory);
  }

  async release(directory: string, _on: QuotaFileSystem, project: number): Promise<void> {
    this.#mayChange(project, directory);
  }

  async lists(): Promise<ProjectLists> {
    return this.#lists;
  }

  async editLists(path: string, change: (lists: ProjectLists) => Promise<ProjectLists | undefined>): Promise<void> {
    this.#isEdited = true;
    try {
      this.#lists = (await change(this.#lists)) ?? this.#lists;
    } finally {
      this.unlock();
    }
    const lines = new Set(this.#lists.projects.split("\n"));
    for (const line of this.#others.keys()) if (!lines.has(line)) this.damage ??= `${line} was removed for ${path}`;
  }

  /** The process that had the lists has ended. */
  unlock(): void {
    this.#isEdited = false;
    for (; this.#waiting > 0; this.#waiting--) this.othersTakeProject();
  }

  async #directoryOf(inode: number): Promise<string | undefined> {
    const directory = this.#directories.get(inode);
    if (directory === undefined || (await this.#files.stat(directory))?.inode !== inode) return undefined;
    return directory;
  }

  async #content(directory: string): Promise<TreeUsage> {
    const content = this.#contents.get(directory);
    const found = await this.#files.stat(directory);
    const isThere = content !== undefined && content.inode === found?.inode;
    return { bytes: isThere ? content.named + content.hidden : 0, inodes: 1 };
  }

  #mayChange(project: number, directory: string): void {
    const isOthers = [...this.#others.values()].includes(project);
    if (isOthers) this.damage ??= `project ${project} is another program's, and was used for ${directory}`;
  }
}
