import { z } from "zod";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { podDirectory } from "../runtime/pod-directories.ts";
import type { ActiveDeadline } from "./active-deadline.ts";
import type { RestartTimes } from "./restart-times.ts";

const Content = z.object({
  /** Wall clock, milliseconds since the epoch. */
  startedAt: z.int().optional(),
  backOff: z.array(z.object({ key: z.string(), delayMs: z.number().min(0), updatedAt: z.int() })),
});

const fileName = "podwright.json";
const maxBytes = 1 << 20;

export interface RecordDependencies {
  readonly files: Files;
  readonly node: Pick<NodeContext, "rootDirectory">;
  readonly log: Pick<Logger, "warn">;
}

/**
 * What of a pod's past neither its manifest nor the runtime tells: since when the node has it, and how long its
 * containers' crash-loop back-offs have become. Kept in the pod's directory, so that it goes with the pod, and a
 * restart of podwright starts neither over.
 */
export class PodRecord {
  readonly #deps: RecordDependencies;
  readonly #uid: PodUid;
  readonly #deadline: ActiveDeadline;
  readonly #restarts: RestartTimes;
  #saved = "";

  constructor(deps: RecordDependencies, uid: PodUid, deadline: ActiveDeadline, restarts: RestartTimes) {
    this.#deps = deps;
    this.#uid = uid;
    this.#deadline = deadline;
    this.#restarts = restarts;
  }

  /** Reads what an earlier life left. Never rejects: without it, both begin anew. */
  async load(): Promise<void> {
    const { files, log } = this.#deps;
    try {
      if ((await files.stat(this.#path)) === undefined) return;
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      const { startedAt, backOff } = Content.parse(JSON.parse(text));
      if (startedAt !== undefined) this.#deadline.remember(startedAt);
      this.#restarts.remember(backOff);
      this.#saved = text;
    } catch (error) {
      log.warn("what was remembered of a pod can't be read", { uid: this.#uid, error: errorMessage(error) });
    }
  }

  /** Writes what has changed. Never rejects: what is not remembered starts over in the next life. */
  async save(): Promise<void> {
    const { files, node, log } = this.#deps;
    const content = { startedAt: this.#deadline.startedAt, backOff: this.#restarts.delays() };
    const text = JSON.stringify(content satisfies z.input<typeof Content>);
    if (text === this.#saved) return;
    this.#saved = text;
    try {
      await files.makeDirectory(podDirectory(node, this.#uid), 0o750);
      await files.writeAtomic(this.#path, text, 0o600);
    } catch (error) {
      log.warn("remembering a pod's times failed", { uid: this.#uid, error: errorMessage(error) });
    }
  }

  get #path(): string {
    return `${podDirectory(this.#deps.node, this.#uid)}/${fileName}`;
  }
}
