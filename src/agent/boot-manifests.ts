import { isDeepStrictEqual } from "node:util";
import { errorMessage } from "../base/errors.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { Network } from "../ports/network.ts";
import type { ServiceManager } from "../ports/service-manager.ts";
import type { AppliedPod, ApplyRequest, LocalApi } from "../server/local-api.ts";
import { loadManifests, manifestNames } from "../sources/load.ts";
import { tell } from "./supervision.ts";

/** The watch may miss a change. */
const periodMs = 60_000;

interface BootManifestDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly network: Pick<Network, "httpGet">;
  readonly log: Logger;
  readonly journal: Recorder;
  readonly localApi: Pick<LocalApi, "apply" | "stop">;
  readonly serviceManager: ServiceManager | undefined;
}

/** What the directory held. */
interface Seen {
  readonly request: ApplyRequest;
  /** Why manifests are rejected. */
  readonly problems: readonly string[];
}

interface Places {
  /** The manifests that run as long as they are there. */
  readonly directory: string;
  /** Remembers which pods came from there, over restarts. */
  readonly memory: string;
}

/**
 * Keeps the pods of a directory of manifests running beside those of `podwright run`: applies what is new or changed, and stops
 * pods whose manifests are gone. While a manifest is invalid nothing is stopped: a half-written file is not a request.
 */
export class BootManifests {
  readonly #deps: BootManifestDependencies;
  readonly #places: Places;
  readonly #wait: WakeableWait;
  #last: Seen | undefined;
  #reloads = false;

  constructor(deps: BootManifestDependencies, places: Places) {
    this.#deps = deps;
    this.#places = places;
    this.#wait = new WakeableWait(deps.clock, "changes of the manifests");
  }

  /** Applies everything again soon, also what was stopped by hand. */
  reload(): void {
    this.#reloads = true;
    this.#wait.wake();
  }

  /** Until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, files, log, serviceManager: manager } = this.#deps;
    const { directory } = this.#places;
    let watch: Disposable | undefined;
    while (!signal.aborted) {
      // Watched before it is read, so that no change is missed.
      watch ??= await watchDirectory(
        files,
        directory,
        () => this.#wait.wake(),
        () => (watch = undefined),
      );
      const reloads = this.#reloads;
      this.#reloads = false;
      if (reloads) {
        this.#last = undefined;
        await tell(
          { clock, log, manager },
          ["RELOADING=1", `MONOTONIC_USEC=${Math.round(clock.monotonic() * 1000)}`],
          signal,
        );
      }
      await this.#look(signal).catch((error: unknown) => {
        if (!signal.aborted) log.error("cannot apply the manifests", { directory, error: errorMessage(error) });
      });
      if (reloads) await tell({ clock, log, manager }, ["READY=1"], signal);
      await this.#wait.for(periodMs, signal);
    }
    watch?.[Symbol.dispose]();
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { journal, localApi, log } = this.#deps;
    const seen = await this.#read(signal);
    if (isDeepStrictEqual(seen, this.#last)) return;
    for (const message of seen.problems) {
      journal.record({ kind: "input", what: "ManifestRejected", message });
      log.error("manifest rejected", { problem: message });
    }
    const names = (await localApi.apply(seen.request)).map(nameOf);
    const before = await this.#remembered();
    const gone = seen.problems.length === 0 ? before.filter((name) => !names.includes(name)) : [];
    const kept = before.filter((name) => !gone.includes(name));
    await this.#remember([...new Set([...names, ...kept])]);
    for (const name of gone) await this.#stop(name);
    this.#last = seen;
  }

  async #read(signal: AbortSignal): Promise<Seen> {
    const { directory } = this.#places;
    const paths = (await manifestNames(this.#deps.files, directory)).map((name) => `${directory}/${name}`);
    const deps = { ...this.#deps, workingDirectory: "/", readStandardInput: async () => new Uint8Array() };
    const { pods, configMaps, secrets, errors } = await loadManifests(paths, deps, signal);
    return { request: { pods, configMaps, secrets }, problems: errors.map(({ message }) => message) };
  }

  /** It may have been stopped by hand. */
  async #stop(name: string): Promise<void> {
    const { log, localApi } = this.#deps;
    await localApi.stop(name, undefined).catch((error: unknown) => {
      log.info("pod of a removed manifest is not there to be stopped", { pod: name, error: errorMessage(error) });
    });
  }

  async #remembered(): Promise<readonly string[]> {
    const { files } = this.#deps;
    if ((await files.stat(this.#places.memory)) === undefined) return [];
    const value: unknown = JSON.parse(new TextDecoder().decode(await files.read(this.#places.memory, 1024 * 1024)));
    return Array.isArray(value) ? value.filter((name) => typeof name === "string") : [];
  }

  async #remember(names: readonly string[]): Promise<void> {
    await this.#deps.files.writeAtomic(this.#places.memory, `${JSON.stringify(names)}\n`, 0o600);
  }
}

function nameOf({ namespace, name }: AppliedPod): string {
  return `${namespace}/${name}`;
}

async function watchDirectory(
  files: Files,
  directory: string,
  onChange: () => void,
  onEnd: () => void,
): Promise<Disposable | undefined> {
  try {
    await files.makeDirectory(directory, 0o755);
    return files.watch(directory, onChange, onEnd);
  } catch {
    return undefined;
  }
}
