import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { RuntimeLayout } from "../private-runtime/layout.ts";

const maxBytes = 4096;

/** What an engine does that the next one, which takes its pods over, does likewise. */
export interface EngineSettings {
  /** Whether it evicts pods for the node. */
  readonly evict: boolean;
  /** The CRI endpoint of the runtime; undefined: the private containerd. */
  readonly runtimeEndpoint: string | undefined;
}

/** What an engine was started with; undefined: as before. */
export type AskedSettings = Partial<EngineSettings>;

type SettingsFiles = Pick<Files, "read" | "list">;
type StateLayout = Pick<
  RuntimeLayout,
  "stateDirectory" | "engineSettings" | "manifests" | "kubeletRoot" | "containerd"
>;

/**
 * The runtime in which the pods of a state directory are; undefined: it has none, or nothing says where they are. Never
 * rejects.
 */
export async function runtimeOfPods(files: SettingsFiles, layout: StateLayout): Promise<string | undefined> {
  try {
    return await runtimeIn(await readSettings(files, layout.engineSettings), files, layout);
  } catch {
    // The engine reports it, and other commands need root.
    return undefined;
  }
}

/**
 * The endpoint that an engine gets; undefined: the private containerd. Pure.
 * @param ofPods the runtime in which its pods are
 * @throws PodwrightError (bad input) when another one is asked for: the pods would run twice
 */
export function chosenRuntime(
  asked: string | undefined,
  ofPods: string | undefined,
  { stateDirectory, containerd }: Pick<RuntimeLayout, "stateDirectory" | "containerd">,
): string | undefined {
  if (ofPods === undefined || asked === ofPods) return asked;
  const own = containerd.endpoint;
  if (asked === undefined) return ofPods === own ? undefined : ofPods;
  const name = ofPods === own ? "podwright's own containerd" : ofPods;
  throw new PodwrightError(ExitCode.badInput, `the pods of ${stateDirectory} run in ${name}, not in ${asked}`, {
    remedy: "omit --runtime-endpoint, stop its pods first, or use another --state-dir",
  });
}

/**
 * What the engines of a state directory were asked for. The next one, which takes the pods over after a crash or a reboot,
 * protects the machine likewise, and finds the containers where they are: in another runtime it would start them once more.
 * It is forgotten with the last pod.
 */
export class KeptSettings {
  readonly #files: SettingsFiles & Pick<Files, "writeAtomic" | "remove">;
  readonly #log: Logger;
  readonly #layout: StateLayout;

  constructor(files: SettingsFiles & Pick<Files, "writeAtomic" | "remove">, log: Logger, layout: StateLayout) {
    this.#files = files;
    this.#log = log;
    this.#layout = layout;
  }

  /**
   * What holds for this engine. A record that cannot be read prevents no start.
   * @throws PodwrightError (bad input) when its pods are in another runtime than the one asked for
   */
  async choose(asked: AskedSettings): Promise<EngineSettings> {
    const path = this.#layout.engineSettings;
    const kept = await this.#read();
    const ofPods = await runtimeIn(kept, this.#files, this.#layout).catch(() => undefined);
    const runtimeEndpoint = chosenRuntime(asked.runtimeEndpoint, ofPods, this.#layout);
    if (runtimeEndpoint !== asked.runtimeEndpoint) {
      this.#log.info("using the runtime of the engine before", { path, runtimeEndpoint });
    }
    const evict = asked.evict ?? kept?.evict ?? false;
    if (asked.evict === undefined && evict) this.#log.info("evictions are on, as for the engine before", { path });
    return { evict, runtimeEndpoint };
  }

  /** Records what holds, before the engine has pods. Never rejects: on a full disk the engine is needed most. */
  async keep({ evict, runtimeEndpoint }: EngineSettings): Promise<void> {
    const path = this.#layout.engineSettings;
    const external = runtimeEndpoint === this.#layout.containerd.endpoint ? undefined : runtimeEndpoint;
    const before = await readSettings(this.#files, path).catch(() => undefined);
    if (before?.evict === evict && before.runtimeEndpoint === external) return;
    const text = `${JSON.stringify({ evict, runtimeEndpoint: external })}\n`;
    try {
      await this.#files.writeAtomic(path, text, 0o600);
    } catch (error) {
      this.#log.warn("cannot record what the next engine needs to know", { path, error: errorMessage(error) });
      // Better none than one that names another runtime.
      if (before !== undefined && before.runtimeEndpoint !== external) await this.forget();
    }
  }

  async forget(): Promise<void> {
    const path = this.#layout.engineSettings;
    await this.#files.remove(path).catch((error: unknown) => {
      this.#log.warn("cannot forget what the engine was asked for", { path, error: errorMessage(error) });
    });
  }

  async #read(): Promise<EngineSettings | undefined> {
    const path = this.#layout.engineSettings;
    try {
      return await readSettings(this.#files, path);
    } catch (error) {
      this.#log.warn("cannot read what the engine before was asked for", {
        path,
        error: errorMessage(error),
        remedy: "start the engine with the options of the one before: --evict, --runtime-endpoint",
      });
      return undefined;
    }
  }
}

/** {@link runtimeOfPods} by the record. @throws FileError */
async function runtimeIn(
  kept: EngineSettings | undefined,
  files: Pick<Files, "list">,
  layout: StateLayout,
): Promise<string | undefined> {
  if (kept === undefined || !(await hasPods(files, layout))) return undefined;
  return kept.runtimeEndpoint ?? layout.containerd.endpoint;
}

/** Undefined: no engine left one. @throws FileError; Error for a damaged record */
async function readSettings(files: Pick<Files, "read">, path: string): Promise<EngineSettings | undefined> {
  let text: string;
  try {
    text = new TextDecoder().decode(await files.read(path, maxBytes));
  } catch (error) {
    if (error instanceof FileError && error.code === "ENOENT") return undefined;
    throw error;
  }
  const { evict, runtimeEndpoint } = JSON.parse(text) as Partial<Record<keyof EngineSettings, unknown>>;
  return { evict: evict === true, runtimeEndpoint: typeof runtimeEndpoint === "string" ? runtimeEndpoint : undefined };
}

/** Whether an earlier engine left pods: their manifests, or directories of pods that had not stopped. */
async function hasPods(files: Pick<Files, "list">, { manifests, kubeletRoot }: StateLayout): Promise<boolean> {
  if ((await files.list(manifests)).some(({ name }) => name.startsWith("pod_"))) return true;
  return (await files.list(`${kubeletRoot}/pods`)).length > 0;
}
