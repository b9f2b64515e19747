import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import { Semaphore } from "../base/semaphore.ts";
import type { Files } from "../ports/files.ts";
import type { Locks } from "../ports/locks.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import type { ProcessInfo, Processes } from "../ports/processes.ts";
import { HeldError } from "./hand-over.ts";
import { LOCK_DIRECTORY } from "./layout.ts";
import { isOfItself, occupied } from "./place-occupant.ts";
import { runtimeUsers } from "./runtime-users.ts";
import { requireNoEngine } from "./shown-engine.ts";
import { toldCommand } from "./told-command.ts";

/** Where the manifests of CSI drivers expect the kubelet of their node. */
export const kubeletPlace = "/var/lib/kubelet";

const placeLock = `${LOCK_DIRECTORY}/kubelet-place`;
const programLimitMs = 30_000;

/** What drivers share with their kubelet: they mount volumes into the first, and stage them below the second. */
const shared = ["pods", "plugins"];

export interface KubeletPlaceDependencies {
  readonly files: Files;
  readonly mounts: Mounts;
  readonly locks: Pick<Locks, "tryOwnLock" | "holder">;
  readonly processes: Processes;
  /** Has mounts below the directory propagate; false: existing ones would be hidden. */
  readonly share: (directory: string) => Promise<boolean>;
}

/**
 * The place of a kubelet, for an engine without one: CSI drivers that run as its pods find its directories there. Only one has
 * it at a time, and none while a kubelet does.
 */
export class KubeletPlace {
  readonly #deps: KubeletPlaceDependencies;
  readonly #own: string;
  readonly #turn = new Semaphore(1);
  readonly #needed = Promise.withResolvers<void>();
  #taken = Promise.withResolvers<void>();
  #left = new AbortController();
  #lock: Disposable | undefined;
  /** It was left to a kubelet, or is being left. */
  #isLeft = false;

  /** @param own the engine's root directory, whose `pods` and `plugins` are shown there */
  constructor(deps: KubeletPlaceDependencies, own: string) {
    this.#deps = deps;
    this.#own = own;
  }

  /** Resolves once the engine needs it, or has taken it. */
  get needed(): Promise<void> {
    return this.#needed.promise;
  }

  /** It is to be taken as soon as that is possible, whatever the obstacle is now. */
  need(): void {
    this.#needed.resolve();
  }

  /** Resolves once it is taken, immediately if it is. */
  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  /** Aborts when the place that is taken now is no longer. */
  get left(): AbortSignal {
    return this.#left.signal;
  }

  get isTaken(): boolean {
    return this.#lock !== undefined && !this.#isLeft;
  }

  /** Something of the engine may be there: also after a {@link leave} that failed, or from an engine before this one. */
  async isHeld(): Promise<boolean> {
    return this.#lock !== undefined || (await this.isShown());
  }

  /** Any of the engine's directories is there. One that ended without {@link give} leaves its mounts. */
  async isShown(): Promise<boolean> {
    for (const name of shared) if (await this.#isShown(name)) return true;
    return false;
  }

  /**
   * Takes the place, until the process ends or it is released; false: it was already taken.
   * @throws PodwrightError naming the obstacle
   */
  async take(): Promise<boolean> {
    using _turn = await this.#turn.acquire();
    if (this.isTaken) return false;
    const lock = this.#lock ?? (await lockPlace(this.#deps, ofEngine));
    try {
      const kubelet = await this.kubelet();
      if (kubelet !== undefined) throw inTheWay(kubelet, ofEngine);
      // What a failed leave() has left there may be private mounts.
      if (this.#lock !== undefined) await this.#hideAll();
      await this.#show();
    } catch (error) {
      if (lock !== this.#lock) lock[Symbol.dispose]();
      throw error;
    }
    this.#lock = lock;
    this.#isLeft = false;
    this.#left = new AbortController();
    this.#taken.resolve();
    this.#needed.resolve();
    return true;
  }

  /** For an engine without pods: leaves nothing there, also of an engine before it. */
  async give(): Promise<void> {
    using _turn = await this.#turn.acquire();
    const { files, mounts } = this.#deps;
    const own = await files.realPath(this.#own).catch(() => this.#own);
    const lock = await this.#lockOfShown();
    if (lock === undefined) {
      // It was shared for the place, which was left then, by this engine or the one before.
      if (this.#isLeft || isOfItself(own, await mounts.list())) await mounts.unmount(own);
      this.#isLeft = false;
      return;
    }
    try {
      for (const name of shared) if (await this.#isShown(name)) await mounts.unmount(await this.#realPath(name));
      await mounts.unmount(own);
      if (!this.#isLeft && (await this.kubelet()) === undefined) await this.#removeDirectories();
    } catch (error) {
      if (lock !== this.#lock) lock[Symbol.dispose]();
      throw error;
    }
    this.#isLeft = false;
    if (this.#lock !== undefined) this.#untake("the place was given back");
    this.#lock = undefined;
    lock[Symbol.dispose]();
  }

  /** The lock that it has, or else takes if any of its directories is there. */
  async #lockOfShown(): Promise<Disposable | undefined> {
    if (this.#lock !== undefined || !(await this.isShown())) return this.#lock;
    return await lockPlace(this.#deps, ofEngine);
  }

  async #removeDirectories(): Promise<void> {
    for (const name of [...shared, "plugins_registry"]) await this.#removeDirectory(`${kubeletPlace}/${name}`);
    await this.#removeDirectory(kubeletPlace);
  }

  /**
   * Leaves the place to a kubelet: it gets its own directories back. What drivers have mounted there remains where it is
   * seen otherwise, in the engine's root directory and in the drivers' containers. If it fails, nothing else is done at the
   * place all the same, and it can be repeated.
   */
  async leave(): Promise<void> {
    using _turn = await this.#turn.acquire();
    const lock = await this.#lockOfShown();
    if (lock === undefined) return;
    const wasTaken = this.isTaken;
    this.#lock = lock;
    this.#isLeft = true;
    if (wasTaken) this.#untake("the place is left to a kubelet");
    await this.#hideAll();
    lock[Symbol.dispose]();
    this.#lock = undefined;
  }

  #untake(why: string): void {
    this.#taken = Promise.withResolvers();
    this.#left.abort(new Error(why));
  }

  async #hideAll(): Promise<void> {
    for (const name of shared) if (await this.#isShown(name)) await this.#hide(await this.#realPath(name));
  }

  /** Unmounts one of the engine's directories there, with the volumes below it, which stay mounted elsewhere. */
  async #hide(target: string): Promise<void> {
    const { mounts, processes } = this.#deps;
    if (!(await isMountPoint(mounts, target))) return;
    // Otherwise the volumes below would be unmounted in the root directory and in the containers as well.
    const words = ["--make-rprivate", target];
    const { exitCode, stderr } = await processes.run("mount", words, { timeoutMs: programLimitMs });
    if (exitCode !== 0) throw new Error(`cannot make ${target} a private mount: ${stderr.trim()}`);
    await mounts.unmount(target, { lazy: true });
  }

  /** A live kubelet whose place it is. A Go kubelet does not know the lock. */
  async kubelet(): Promise<ProcessInfo | undefined> {
    const { files, processes } = this.#deps;
    for (const { process, usualRoot } of await runtimeUsers(files, await processes.list())) {
      if (process.pid !== processes.ownPid && (await this.#isAtPlace(process, usualRoot))) return process;
    }
    return undefined;
  }

  /** A kubelet in a container has its own place. If that cannot be determined, equal paths count as the same. */
  async #isAtPlace(process: ProcessInfo, usualRoot: string | undefined): Promise<boolean> {
    const { files } = this.#deps;
    const root = rootOf(process) ?? usualRoot ?? kubeletPlace;
    if (!(await isPlace(files, root))) return false;
    const theirs = await files.stat(`/proc/${process.pid}/root${root}`).catch(() => undefined);
    if (theirs === undefined) return true;
    const own = await files.stat(root);
    return own?.inode === theirs.inode && own.device === theirs.device;
  }

  /** All or nothing. */
  async #show(): Promise<void> {
    const { files } = this.#deps;
    const paths = [kubeletPlace, ...shared.map((name) => `${kubeletPlace}/${name}`)];
    const present = await Promise.all(paths.map((path) => files.stat(path)));
    try {
      await this.#makeDirectories();
      await this.#mountAll(await files.realPath(this.#own));
    } catch (error) {
      const made = paths.filter((_path, index) => present[index] === undefined);
      for (const path of made.toReversed()) await this.#removeDirectory(path);
      throw error;
    }
  }

  async #makeDirectories(): Promise<void> {
    const { files } = this.#deps;
    for (const name of shared) {
      await files.makeDirectory(`${this.#own}/${name}`, 0o750);
      await files.makeDirectory(`${kubeletPlace}/${name}`, 0o750);
      if (await this.#isShown(name)) continue;
      if ((await files.list(`${kubeletPlace}/${name}`)).length === 0) continue;
      throw occupied(await this.#realPath(name), name, await this.#deps.mounts.list());
    }
  }

  /** All or nothing. */
  async #mountAll(own: string): Promise<void> {
    const { mounts, share } = this.#deps;
    const isShared = await isMountPoint(mounts, own);
    const shown: string[] = [];
    try {
      if (!(await share(own))) throw unshared(this.#own);
      for (const name of shared) {
        const target = await this.#realPath(name);
        if (await this.#isShown(name)) {
          if (!(await this.#isPrivate(target))) continue;
          await this.#hide(target);
        }
        // With the volumes that drivers have mounted below: their calls name these paths.
        await mounts.mount({ source: `${own}/${name}`, target, fileSystem: "", options: ["rbind"] });
        shown.push(target);
      }
    } catch (error) {
      await this.#hideAgain(shown, error);
      if (!isShared) await mounts.unmount(own).catch(() => {});
      throw error;
    }
  }

  /** @throws PodwrightError if one remains, which nothing guards from then on */
  async #hideAgain(shown: readonly string[], error: unknown): Promise<void> {
    for (const target of shown.toReversed()) {
      await this.#hide(target).catch((failure: unknown) => {
        const message = `${errorMessage(error)}; ${target} remains mounted: ${errorMessage(failure)}`;
        const word = shellWord(target);
        const remedy = `'mount --make-rprivate ${word}' and 'umount --lazy ${word}'`;
        throw new PodwrightError(ExitCode.environment, message, { remedy, cause: error });
      });
    }
  }

  /** As in the mount table: an administrator may have made a link of the place, or in it. */
  async #realPath(name: string): Promise<string> {
    const path = `${kubeletPlace}/${name}`;
    return await this.#deps.files.realPath(path).catch(() => path);
  }

  /** If it is empty. A link is an administrator's. */
  async #removeDirectory(path: string): Promise<void> {
    const { files } = this.#deps;
    if ((await files.stat(path))?.type === "directory") await files.remove(path).catch(() => {});
  }

  /** An engine that ended while it left the place to a kubelet has left such a mount: no driver's mounts would reach it. */
  async #isPrivate(target: string): Promise<boolean> {
    return (await this.#deps.mounts.list()).findLast((mount) => mount.target === target)?.isShared === false;
  }

  /** Whether a directory there is the engine's. */
  async #isShown(name: string): Promise<boolean> {
    const [own, there] = await Promise.all([
      this.#deps.files.stat(`${this.#own}/${name}`),
      this.#deps.files.stat(`${kubeletPlace}/${name}`),
    ]);
    return own !== undefined && own.inode === there?.inode && own.device === there.device;
  }
}

/** The root directory in the flags of a node agent. */
function rootOf({ arguments: words }: ProcessInfo): string | undefined {
  const flag = "--root-dir";
  const at = words.indexOf(flag);
  const value = at < 0 ? words.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1) : words[at + 1];
  return value?.replace(/\/+$/u, "") || undefined;
}

function unshared(own: string): PodwrightError {
  const why = "is not a shared mount and has volumes of running pods: mounts of CSI drivers would not reach containers";
  return new PodwrightError(ExitCode.environment, `${own} ${why}`, {
    remedy: "stop the pods first, or 'mount --make-rshared /'",
  });
}

const ofEngine = "CSI drivers need this directory: stop that agent first, or run the pods with it";
const ofKubelet =
  "stop that agent, or its pods with CSI drivers and volumes ('podwright stop'); or choose another --root-dir";

/**
 * Holds the place for a kubelet, if it is its root directory: an engine's pods and plugins would look like its own, and it
 * would remove the volumes of those pods.
 * @throws HeldError naming the engine that has it; PodwrightError naming the directory that shows one of an engine
 */
export async function holdKubeletPlace(
  deps: Pick<KubeletPlaceDependencies, "files" | "locks" | "mounts" | "processes">,
  rootDirectory: string,
): Promise<Disposable | undefined> {
  if (!(await isPlace(deps.files, rootDirectory))) return undefined;
  const lock = await lockPlace(deps, ofKubelet);
  try {
    for (const name of shared) await requireNoEngine(deps, kubeletPlace, name);
    return lock;
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}

/** Whether a root directory is the place: either may be a link. */
async function isPlace(files: Pick<Files, "realPath">, rootDirectory: string): Promise<boolean> {
  const real = async (path: string): Promise<string> => await files.realPath(path).catch(() => path);
  return (await real(rootDirectory)) === (await real(kubeletPlace));
}

async function lockPlace(
  { files, locks, processes }: Pick<KubeletPlaceDependencies, "files" | "locks" | "processes">,
  remedy: string,
): Promise<Disposable> {
  await files.makeDirectory(LOCK_DIRECTORY, 0o755);
  const lock = await locks.tryOwnLock(placeLock);
  if (lock !== undefined) return lock;
  const pid = await locks.holder(placeLock);
  throw inTheWay(
    (await processes.list()).find((process) => process.pid === pid),
    remedy,
  );
}

function inTheWay(process: ProcessInfo | undefined, remedy: string): HeldError {
  return new HeldError(`${kubeletPlace} belongs to another node agent${whoIs(process)}`, process?.pid, remedy);
}

/** ` (pid 7: /usr/bin/kubelet …)` */
export function whoIs(process: ProcessInfo | undefined): string {
  return process === undefined ? "" : ` (pid ${process.pid}: ${toldCommand(process)})`;
}
