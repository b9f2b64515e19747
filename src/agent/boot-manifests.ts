import { isDeepStrictEqual } from "node:util";
import { bootId } from "../base/boot-id.ts";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Network } from "../ports/network.ts";
import type { ServiceManager } from "../ports/service-manager.ts";
import type { AppliedPod, ApplyRequest, LocalApi } from "../server/local-api.ts";
import { holdsStorage } from "../sources/held-storage.ts";
import { type LoadedManifests, loadManifests, manifestNames } from "../sources/load.ts";
import { locatedProblems } from "../sources/located-problems.ts";
import { objectName } from "../sources/prepare.ts";
import type { SubsystemHealth } from "../status/health.ts";
import { BootMemory } from "./boot-memory.ts";
import { tell } from "./supervision.ts";

/** Otherwise claims could get wrong volumes; pods with new claims wait. */
const storageHeld = "no claim or volume of the manifests is applied until these errors are corrected";
/** inotify may miss a change. */
const periodMs = 60_000;
/** Retry interval for stops. */
const retryMs = 5000;

interface BootManifestDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly network: Pick<Network, "httpGet">;
  readonly log: Logger;
  readonly journal: Recorder;
  readonly localApi: Pick<LocalApi, "apply" | "stop" | "health">;
  readonly serviceManager: ServiceManager | undefined;
}

/** The contents of the directory. */
interface Seen {
  readonly request: ApplyRequest;
  /** A message for each rejected manifest. */
  readonly problems: readonly string[];
}

/** What came of a request. */
interface Applied {
  /** The pods that were taken. */
  readonly names: readonly string[];
  /** A message for each rejected object. */
  readonly problems: readonly string[];
  readonly waiting: readonly Waiting[];
}

/** A pod that needs what the machine does not give now. */
interface Waiting {
  /** `Pod default/web` */
  readonly object: string;
  readonly message: string;
  readonly remedy: string | undefined;
}

interface Places {
  readonly directory: string;
  /** The file that records across restarts which pods came from the directory. */
  readonly memory: string;
}

/**
 * Keeps the pods of a directory of manifests running beside those of `podwright run`: applies new and changed manifests, and stops
 * pods whose manifests were removed. While a manifest is invalid no pod is stopped: a half-written file is not a request.
 * A pod that the machine does not allow now delays no other one, and is applied once it does.
 */
export class BootManifests {
  readonly #deps: BootManifestDependencies;
  readonly #directory: string;
  readonly #memory: BootMemory;
  readonly #wait: WakeableWait;
  #last: Seen | undefined;
  /** Pods of removed manifests whose stop was not accepted yet. */
  #gone: readonly string[] = [];
  /** What the last attempt left for a later one. */
  #waiting: readonly Waiting[] = [];
  /** As of the last attempt. */
  #request: ApplyRequest | undefined;
  /** Of the objects of that request, the problems that are known. */
  #told: ReadonlySet<string> = new Set();
  /** Why the manifests could not be applied at all. */
  #failure: string | undefined;
  #reloads = false;
  #watch: Disposable | undefined;
  #polls = false;

  constructor(deps: BootManifestDependencies, places: Places) {
    this.#deps = deps;
    this.#directory = places.directory;
    this.#memory = new BootMemory(deps.files, deps.log, places.memory);
    this.#wait = new WakeableWait(deps.clock, "changes of the manifests");
  }

  /** Applies everything again soon, including pods that were stopped manually. */
  reload(): void {
    this.#reloads = true;
    this.#wait.wake();
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, serviceManager: manager } = this.#deps;
    while (!signal.aborted) {
      // Before reading the directory, so that no change is missed.
      this.#watch ??= await this.#startWatch();
      const reloads = this.#reloads;
      this.#reloads = false;
      if (reloads) {
        this.#last = undefined;
        await tell(
          { clock, log, manager },
          ["RELOADING=1", `MONOTONIC_USEC=${manager?.monotonicMicroseconds()}`],
          signal,
        );
      }
      await this.#lookOnce(signal);
      if (reloads) await tell({ clock, log, manager }, ["READY=1"], signal);
      await this.#wait.for(this.#gone.length > 0 ? retryMs : periodMs, signal);
    }
    this.#watch?.[Symbol.dispose]();
  }

  /** Undefined: the directory cannot be watched. */
  async #startWatch(): Promise<Disposable | undefined> {
    const { files, log } = this.#deps;
    const directory = this.#directory;
    try {
      await files.makeDirectory(directory, 0o755);
      const watch = files.watch(
        directory,
        () => this.#wait.wake(),
        () => (this.#watch = undefined),
      );
      this.#polls = false;
      return watch;
    } catch (error) {
      if (!this.#polls) {
        log.warn("cannot watch the manifests; polling instead", { directory, periodMs, error: errorMessage(error) });
      }
      this.#polls = true;
      return undefined;
    }
  }

  /** For `podwright doctor`. */
  findings(): SubsystemHealth[] {
    const finding = (detail: string, remedy?: string): SubsystemHealth => {
      return { name: "manifests", ok: true, warning: true, detail, ...(remedy !== undefined && { remedy }) };
    };
    const failed = this.#failure === undefined ? [] : [finding(`cannot apply the manifests: ${this.#failure}`)];
    return [...failed, ...this.#waiting.map(({ message, remedy }) => finding(message, remedy))];
  }

  async #lookOnce(signal: AbortSignal): Promise<void> {
    try {
      await this.#look(signal);
      this.#failure = undefined;
    } catch (error) {
      if (signal.aborted) return;
      this.#failure = errorMessage(error);
      this.#deps.log.error("cannot apply the manifests", { directory: this.#directory, error: this.#failure });
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { seen, origins } = await this.#read(signal);
    if (!isDeepStrictEqual(seen, this.#last)) await this.#apply(seen, origins);
    else if (this.#waiting.length > 0) await this.#applyWaiting(origins);
    await this.#stopGone();
  }

  async #apply(seen: Seen, origins: LoadedManifests["origins"]): Promise<void> {
    this.#report(seen.problems);
    const [boot, last] = [await bootId(this.#deps.files), await this.#memory.lastBoot()];
    // What has run to its end runs at each boot.
    const runsAgain = last !== undefined && last !== boot;
    const request = { ...seen.request, runsAgain };
    const { names, problems, waiting } = await this.#applyValid(request, origins);
    if (last !== boot) await this.#memory.writeBoot(boot);
    this.#report(problems);
    this.#told = new Set(problems);
    this.#hold(waiting, request);
    const before = await this.#memory.read();
    await this.#memory.write([...new Set([...names, ...before])]);
    const areAllValid = seen.problems.length + problems.length === 0;
    const wanted = new Set([...names, ...waiting.map(({ object }) => object.replace(/^Pod /u, ""))]);
    this.#gone = areAllValid ? before.filter((name) => !wanted.has(name)) : [];
    this.#last = seen;
  }

  /** Only the pods that wait: another one may have been stopped manually meanwhile. */
  async #applyWaiting(origins: LoadedManifests["origins"]): Promise<void> {
    const request = this.#request;
    if (request === undefined) return;
    const objects = new Set(this.#waiting.map(({ object }) => object));
    const pods = request.pods.filter((pod) => objects.has(objectName({ ...pod, kind: "Pod" })));
    const { names, problems, waiting } = await this.#applyValid({ ...request, pods }, origins, "pods");
    this.#report(problems.filter((problem) => !this.#told.has(problem)));
    this.#told = this.#told.union(new Set(problems));
    this.#hold(waiting, request);
    await this.#memory.write([...new Set([...names, ...(await this.#memory.read())])]);
  }

  #hold(waiting: readonly Waiting[], request: ApplyRequest): void {
    const before = new Set(this.#waiting.map(({ message }) => message));
    this.#report(waiting.map(({ message }) => message).filter((message) => !before.has(message)));
    const still = new Set(waiting.map(({ object }) => object));
    for (const { object } of this.#waiting) {
      if (still.has(object)) continue;
      this.#deps.journal.record({ kind: "input", what: "ManifestMended", message: `${object} waits no longer` });
    }
    this.#waiting = waiting;
    this.#request = request;
  }

  #report(problems: readonly string[]): void {
    const { journal, log } = this.#deps;
    for (const message of problems) {
      journal.record({ kind: "input", what: "ManifestRejected", message });
      log.error("manifest rejected", { problem: message });
    }
  }

  /** Applies the objects without those that the engine rejects, and without pods that the machine does not allow now. */
  async #applyValid(
    request: ApplyRequest,
    origins: LoadedManifests["origins"],
    what: "all" | "pods" = "all",
  ): Promise<Applied> {
    // The objects are there already, perhaps changed since by a user.
    if (what === "pods" && request.pods.length === 0) return { names: [], problems: [], waiting: [] };
    try {
      return { names: (await this.#deps.localApi.apply(request)).map(nameOf), problems: [], waiting: [] };
    } catch (error) {
      if (!(error instanceof PodwrightError)) throw error;
      const rejected = new Set(error.problems.map(({ object }) => object));
      const valid = without(request, rejected);
      if (isDeepStrictEqual(valid, request)) throw error;
      const { names, problems, waiting } = await this.#applyValid(valid, origins, what);
      if (error.exitCode === ExitCode.environment) {
        return { names, problems, waiting: [...waitingOf(error, origins), ...waiting] };
      }
      const held = valid.storage?.length === request.storage?.length ? [] : [storageHeld];
      return { names, problems: [...locatedProblems(error.problems, origins), ...held, ...problems], waiting };
    }
  }

  async #stopGone(): Promise<void> {
    const stopped: string[] = [];
    for (const name of this.#gone) if (await this.#stop(name)) stopped.push(name);
    if (stopped.length === 0) return;
    this.#gone = this.#gone.filter((name) => !stopped.includes(name));
    // Not before the stop: this process may be killed in between.
    await this.#memory.write((await this.#memory.read()).filter((name) => !stopped.includes(name)));
  }

  async #read(signal: AbortSignal): Promise<{ readonly seen: Seen; readonly origins: LoadedManifests["origins"] }> {
    const directory = this.#directory;
    const paths = (await manifestNames(this.#deps.files, directory)).map((name) => `${directory}/${name}`);
    const deps = { ...this.#deps, workingDirectory: "/", readDescriptor: undefined };
    const { pods, configMaps, secrets, storage, errors, origins } = await loadManifests(paths, deps, signal);
    const problems = errors.map(({ message }) => message);
    if (!holdsStorage({ errors, storage })) {
      return { seen: { request: { pods, configMaps, secrets, storage }, problems }, origins };
    }
    return {
      seen: { request: { pods, configMaps, secrets, storage: [] }, problems: [...problems, storageHeld] },
      origins,
    };
  }

  /** @returns false when the stop must be retried */
  async #stop(name: string): Promise<boolean> {
    const { log, localApi } = this.#deps;
    // Before the stop: a pod that is unknown afterwards was unknown although all were listed.
    const { knowsAllPods } = localApi.health();
    try {
      await localApi.stop(name, undefined);
      return true;
    } catch (error) {
      const isMissing = error instanceof PodwrightError && error.exitCode === ExitCode.badInput;
      if (!isMissing) log.error("cannot stop the pod of a removed manifest", { pod: name, error: errorMessage(error) });
      if (!isMissing || !knowsAllPods) return false;
      // Most likely a user stopped it.
      log.info("pod of a removed manifest has already been stopped", { pod: name, error: errorMessage(error) });
      return true;
    }
  }
}

function nameOf({ namespace, name }: AppliedPod): string {
  return `${namespace}/${name}`;
}

function waitingOf({ problems, remedy }: PodwrightError, origins: LoadedManifests["origins"]): Waiting[] {
  const messages = locatedProblems(problems, origins);
  return problems.map(({ object }, index) => {
    return { object, message: `${messages[index] ?? object}; the pod is applied once that has changed`, remedy };
  });
}

function without(request: ApplyRequest, rejected: ReadonlySet<string>): ApplyRequest {
  return {
    ...request,
    pods: request.pods.filter((pod) => !rejected.has(objectName({ ...pod, kind: "Pod" }))),
    configMaps: request.configMaps.filter((object) => !rejected.has(objectName({ ...object, kind: "ConfigMap" }))),
    secrets: request.secrets.filter((object) => !rejected.has(objectName({ ...object, kind: "Secret" }))),
    storage: request.storage?.some((object) => rejected.has(objectName(object))) ? [] : (request.storage ?? []),
  };
}
