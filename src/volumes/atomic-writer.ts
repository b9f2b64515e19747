import { normalize } from "node:path/posix";
import { invariant } from "../base/invariant.ts";
import { eachOf } from "../base/side-by-side.ts";
import type { Clock } from "../ports/clock.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Random } from "../ports/random.ts";
import { VolumeError } from "../runtime/volume-error.ts";

/** One file of a volume with content from objects. */
export interface ProjectedFile {
  readonly data: Uint8Array;
  /** Permission bits. */
  readonly mode: number;
  /** Its owner; default: root. */
  readonly uid?: number | undefined;
}

/** Files by their path in the volume. */
export type Payload = ReadonlyMap<string, ProjectedFile>;

export interface AtomicWriterDependencies {
  readonly files: Files;
  readonly clock: Pick<Clock, "now">;
  readonly random: Random;
}

const dataLink = "..data";
const nextDataLink = "..data_tmp";
/** `..2026_01_31_12_00_00.1a2b3c4d`; upstream's end in decimal digits. */
const generationName = /^\.\.\d{4}(?:_\d\d){5}\.[0-9a-f]+$/;
const maxPathBytes = 4096;
const maxNameBytes = 255;
const directoryMode = 0o755;
/** Files written concurrently: as many as Node.js has threads for. */
const atOnce = 4;

/**
 * Writes the files of a volume so that a reader sees all of the old ones or all of the new ones: they go into a new
 * directory, and then one rename points the link `..data` at it, through which every visible name leads:
 *
 *     key → ..data/key
 *     ..data → ..2026_01_31_12_00_00.1a2b3c4d
 *
 * Safe to interrupt at any step: the next write starts from what it finds, and removes leftovers. Nothing found in the
 * volume is followed except a `..data` that names a generation beside it: otherwise a pod with access to its volume
 * could get files of the node removed (CVE-2017-1002102).
 *
 * One writer at a time.
 */
export class AtomicWriter {
  readonly #deps: AtomicWriterDependencies;
  readonly #directory: string;

  /** @param directory the volume's, which exists */
  constructor(deps: AtomicWriterDependencies, directory: string) {
    this.#deps = deps;
    this.#directory = directory;
  }

  /** Whether something was written completely. */
  async hasContent(): Promise<boolean> {
    return (await this.#currentGeneration()) !== undefined;
  }

  /** Whether the volume holds exactly these files with these contents. */
  async isCurrent(payload: Payload): Promise<boolean> {
    const wanted = cleanPayload(payload);
    const generation = await this.#currentGeneration();
    if (generation === undefined) return false;
    const { links, directories } = await this.#visibleNames();
    const names = firstNames(wanted).difference(directories);
    const sameLinks =
      links.size === names.size && [...names].every((name) => links.get(name) === `${dataLink}/${name}`);
    return sameLinks && (await this.#holds(`${this.#directory}/${generation}`, wanted));
  }

  /**
   * Replaces the files of the volume.
   * @param beforePublish sets the owner of the new files, before anybody can see them
   * @throws VolumeError when a path of the payload is invalid; FileError
   */
  async write(payload: Payload, beforePublish: () => Promise<void>): Promise<void> {
    const wanted = cleanPayload(payload);
    const { files } = this.#deps;
    const before = await this.#currentGeneration();
    await this.#removeLeftovers(before);
    const generation = this.#newGenerationName();
    await this.#writeFiles(`${this.#directory}/${generation}`, wanted);
    await beforePublish();
    await files.symlink(generation, `${this.#directory}/${nextDataLink}`);
    await files.rename(`${this.#directory}/${nextDataLink}`, `${this.#directory}/${dataLink}`);
    await this.#showNames(firstNames(wanted));
    if (before !== undefined) await files.removeTree(`${this.#directory}/${before}`);
  }

  /** The directory that `..data` points at, when both are of this writer's form. */
  async #currentGeneration(): Promise<string | undefined> {
    const { files } = this.#deps;
    const link = `${this.#directory}/${dataLink}`;
    if ((await files.stat(link))?.type !== "symlink") return undefined;
    const target = await files.readLink(link);
    if (!generationName.test(target)) return undefined;
    return (await files.stat(`${this.#directory}/${target}`))?.type === "directory" ? target : undefined;
  }

  /**
   * Visible names: links with their targets, and directories, in which containers mount other volumes. Where a file has
   * the name of such a directory, that mount is in front of it, so that it needs no link.
   */
  async #visibleNames(): Promise<{ readonly links: Map<string, string>; readonly directories: ReadonlySet<string> }> {
    const { files } = this.#deps;
    const links = new Map<string, string>();
    const directories = new Set<string>();
    for (const { name, type } of await files.list(this.#directory)) {
      if (name.startsWith("..")) continue;
      if (type === "directory") directories.add(name);
      if (type === "symlink") links.set(name, await files.readLink(`${this.#directory}/${name}`));
    }
    return { links, directories };
  }

  async #holds(generation: string, wanted: Payload): Promise<boolean> {
    const present = await this.#filesBelow(generation);
    if (present.length !== wanted.size) return false;
    for (const path of present) {
      const data = wanted.get(path)?.data;
      if (data === undefined || !(await this.#isSame(`${generation}/${path}`, data))) return false;
    }
    return true;
  }

  async #filesBelow(directory: string, prefix = ""): Promise<string[]> {
    const paths: string[] = [];
    for (const { name, type } of await this.#deps.files.list(directory)) {
      if (type === "directory") paths.push(...(await this.#filesBelow(`${directory}/${name}`, `${prefix}${name}/`)));
      else paths.push(prefix + name);
    }
    return paths;
  }

  async #isSame(path: string, data: Uint8Array): Promise<boolean> {
    const { files } = this.#deps;
    const info = await files.stat(path);
    if (info?.type !== "file" || info.size !== data.length) return false;
    try {
      return Buffer.compare(await files.read(path, data.length), data) === 0;
    } catch (error) {
      if (error instanceof FileError && ["EFBIG", "ENOENT"].includes(error.code)) return false;
      throw error;
    }
  }

  /** Leftovers of an interrupted write, and whatever else took the writer's names. */
  async #removeLeftovers(keep: string | undefined): Promise<void> {
    const { files } = this.#deps;
    for (const { name } of await files.list(this.#directory)) {
      if (!name.startsWith("..") || name === keep || (name === dataLink && keep !== undefined)) continue;
      await files.removeTree(`${this.#directory}/${name}`);
    }
  }

  #newGenerationName(): string {
    const time = new Date(this.#deps.clock.now()).toISOString().slice(0, 19).replaceAll(/[-T:]/g, "_");
    return `..${time}.${Buffer.from(this.#deps.random.bytes(5)).toString("hex")}`;
  }

  async #writeFiles(generation: string, wanted: Payload): Promise<void> {
    const { files } = this.#deps;
    await files.makeDirectory(generation, directoryMode);
    await eachOf(wanted, atOnce, async ([path, { data, mode, uid }]) => {
      // Anything else would let a container take its user's rights.
      invariant(
        "a projected file has permission bits only",
        (mode & ~0o777) === 0,
        () => `${path}: ${mode.toString(8)}`,
      );
      const slash = path.lastIndexOf("/");
      if (slash > 0) await files.makeDirectory(`${generation}/${path.slice(0, slash)}`, directoryMode);
      await files.write(`${generation}/${path}`, data, mode);
      if (uid !== undefined) await files.chown(`${generation}/${path}`, uid, 0);
    });
  }

  async #showNames(names: ReadonlySet<string>): Promise<void> {
    const { files } = this.#deps;
    const { links, directories } = await this.#visibleNames();
    await eachOf(names.difference(directories), atOnce, async (name) => {
      const target = `${dataLink}/${name}`;
      if (links.get(name) === target) return;
      if (links.has(name)) await files.remove(`${this.#directory}/${name}`);
      await files.symlink(target, `${this.#directory}/${name}`);
    });
    for (const name of links.keys()) if (!names.has(name)) await files.remove(`${this.#directory}/${name}`);
  }
}

function firstNames(payload: Payload): Set<string> {
  return new Set([...payload.keys()].map((path) => path.slice(0, (path.indexOf("/") + 1 || path.length + 1) - 1)));
}

/** @throws VolumeError for paths that leave the volume or use the writer's own names */
function cleanPayload(payload: Payload): Map<string, ProjectedFile> {
  const clean = new Map<string, ProjectedFile>();
  for (const [path, file] of payload) {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new VolumeError(`invalid path ${JSON.stringify(path)}: ${problem}`);
    clean.set(normalize(path).replace(/\/$/, ""), file);
  }
  for (const path of clean.keys()) {
    for (let slash = path.indexOf("/"); slash > 0; slash = path.indexOf("/", slash + 1)) {
      const parent = path.slice(0, slash);
      if (clean.has(parent)) throw new VolumeError(`invalid path ${JSON.stringify(path)}: ${parent} is a file`);
    }
  }
  return clean;
}

function pathProblem(path: string): string | undefined {
  if (path === "") return "must not be empty";
  if (path.startsWith("/")) return "must be relative path";
  if (path.includes("\0")) return "must not contain a zero byte";
  if (Buffer.byteLength(path) > maxPathBytes) return `must be less than or equal to ${maxPathBytes} characters`;
  const names = path.split("/");
  if (names.includes("..")) return "must not contain '..'";
  if (names[0]?.startsWith("..") === true) return "must not start with '..'";
  if (normalize(path) === "." || normalize(path) === "./") return "must name a file";
  if (normalize(path).startsWith("..")) return "must not start with '..'";
  const isLong = names.some((name) => Buffer.byteLength(name) > maxNameBytes);
  return isLong ? `filenames must be less than or equal to ${maxNameBytes} characters` : undefined;
}
