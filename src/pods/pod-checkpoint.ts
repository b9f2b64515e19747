import * as z from "zod";
import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { formatTime } from "../base/time.ts";
import { causeCodeOf } from "../journal/vocabulary.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { dropSpec, keepSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { podDirectory } from "../runtime/layout/pod-directories.ts";
import type { ActiveDeadline } from "./active-deadline.ts";
import type { Ending, LastingEnding } from "./ending.ts";
import { preempting, preemptionDisruption } from "./preemption.ts";
import type { RestartTimes } from "./restart-times.ts";

const Content = z.object({
  /** Wall clock, milliseconds since the epoch. */
  startedAt: z.int().optional(),
  backOff: z.array(
    z.object({ key: z.string(), delayMs: z.number().min(0), updatedAt: z.int(), startsOver: z.string().optional() }),
  ),
  /** It was told to stop, and never runs again. */
  ends: z.boolean().optional(),
  /** Why it is over, where nothing of it may run again. */
  end: z
    .object({
      code: z.string(),
      message: z.string(),
      /** Missing in records of earlier versions. */
      outcome: z.enum(["failed", "refused", "asContainers"]).optional(),
      disruption: z.string().optional(),
    })
    .optional(),
});

type StoredEnd = z.infer<typeof Content>["end"];

const fileName = "podwright.json";
const maxBytes = 1 << 20;

export interface CheckpointDependencies {
  readonly files: Files;
  readonly node: Pick<NodeContext, "rootDirectory">;
  readonly log: Pick<Logger, "warn">;
}

/**
 * What of a pod's past neither its manifest nor the runtime tells: since when the node has it, and how long its
 * containers' crash-loop back-offs have become; and why it is over. Kept in the pod's directory, so that it goes with the
 * pod, and a restart of podwright starts none of it over.
 */
export class PodCheckpoint {
  readonly #deps: CheckpointDependencies;
  readonly #uid: PodUid;
  readonly #deadline: ActiveDeadline;
  readonly #restarts: RestartTimes;
  #saved = "";
  #ends = false;
  #end: StoredEnd;
  /** One write after the other, so that the newest is the last; it never rejects. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The pod as it was kept last. */
  #kept = "";

  constructor(deps: CheckpointDependencies, uid: PodUid, deadline: ActiveDeadline, restarts: RestartTimes) {
    this.#deps = deps;
    this.#uid = uid;
    this.#deadline = deadline;
    this.#restarts = restarts;
  }

  /** Reads what an earlier life left. Never rejects: without it, all begins anew. */
  async load(): Promise<void> {
    const turn = this.#turn.then(async () => this.#read());
    this.#turn = turn;
    await turn;
  }

  async #read(): Promise<void> {
    const { files, log } = this.#deps;
    try {
      if ((await files.stat(this.#path)) === undefined) return;
      const text = new TextDecoder().decode(await files.read(this.#path, maxBytes));
      const { startedAt, backOff, ends = false, end } = Content.parse(JSON.parse(text));
      this.#ends ||= ends;
      this.#end ??= end;
      if (startedAt !== undefined) this.#deadline.remember(startedAt);
      this.#restarts.remember(backOff);
      this.#saved = text;
    } catch (error) {
      log.warn("cannot read a pod checkpoint", { uid: this.#uid, error: errorMessage(error) });
    }
  }

  /**
   * Writes what has changed, also of the pod. Never rejects: what is not remembered starts over in the next life. False
   * when it could not be written; the next time tries again.
   */
  async save(pod?: Pod): Promise<boolean> {
    const turn = this.#turn.then(async () => this.#write(pod));
    this.#turn = turn;
    return await turn;
  }

  async #write(pod: Pod | undefined): Promise<boolean> {
    if (pod !== undefined) await this.#keep(pod);
    const { files, node, log } = this.#deps;
    const content = {
      startedAt: this.#deadline.startedAt,
      backOff: this.#restarts.delays(),
      ...(this.#ends && { ends: true }),
      ...(this.#end && { end: this.#end }),
    };
    const text = JSON.stringify(content satisfies z.input<typeof Content>);
    if (text === this.#saved) return true;
    try {
      await files.makeDirectory(podDirectory(node, this.#uid), 0o750);
      await files.writeAtomic(this.#path, text, 0o600);
      this.#saved = text;
      return true;
    } catch (error) {
      log.warn("cannot record a pod's times", { uid: this.#uid, error: errorMessage(error) });
      return false;
    }
  }

  /**
   * Before anything of the pod is stopped for good: whoever finds it half stopped must not start it again. Where that
   * can't be written, as on a full disk, the spec of the API server's pod goes: what is not known can't be started.
   * @param ending undefined: nobody wants the pod any more, and it does not matter how it ended
   */
  async stopping(pod: Pod | undefined, ending: Ending | undefined): Promise<void> {
    this.#ends = true;
    this.#end = ending?.lasts === true ? stored(ending) : undefined;
    if ((await this.save()) || pod === undefined || !isOfApi(pod)) return;
    const { files, node, log } = this.#deps;
    await dropSpec(files, node, this.#uid).catch((error: unknown) => {
      log.warn("cannot delete the checkpoint of a stopped pod", { uid: this.#uid, error: errorMessage(error) });
    });
  }

  /** A pod of the API server as it is now: a next life that finds no API server goes by that. */
  async #keep(pod: Pod): Promise<void> {
    const { files, node, log } = this.#deps;
    if (!isOfApi(pod)) return;
    const text = JSON.stringify([pod.metadata, pod.spec]);
    if (text === this.#kept) return;
    try {
      // The first start of the pod keeps it as well.
      if ((await files.stat(podDirectory(node, this.#uid))) !== undefined) await keepSpec(files, node, pod, "record");
      this.#kept = text;
    } catch (error) {
      log.warn("cannot record a pod's spec", { uid: this.#uid, error: errorMessage(error) });
    }
  }

  get #path(): string {
    return `${podDirectory(this.#deps.node, this.#uid)}/${fileName}`;
  }
}

/**
 * Keeps of an API server's pod that it was deleted, before it has a worker that could stop it: should podwright be killed
 * until then, a next life that finds no API server must not take it up. Where that can't be written the spec goes, as in
 * {@link PodCheckpoint.stopping}. Never rejects.
 */
export async function keepDeletion(
  { files, node, log }: CheckpointDependencies,
  pod: Pod,
  nowMs: number,
): Promise<void> {
  const { uid, deletionTimestamp = formatTime(nowMs) } = pod.metadata;
  if (!isOfApi(pod)) return;
  try {
    if ((await files.stat(podDirectory(node, podUid(uid)))) === undefined) return;
    await keepSpec(files, node, { ...pod, metadata: { ...pod.metadata, deletionTimestamp } }, "deletion");
  } catch (error) {
    log.warn("cannot record pod deletion", { uid, error: errorMessage(error) });
    await dropSpec(files, node, uid).catch(() => {});
  }
}

/** Only these are looked after by what was kept of them. */
function isOfApi({ metadata }: Pod): boolean {
  return metadata.annotations?.[Annotation.configSource] === "api";
}

/** Whether the pod was told to stop in an earlier life; true also when that can't be said. */
export async function hasEnded(from: Omit<CheckpointDependencies, "log">, uid: PodUid): Promise<boolean> {
  try {
    return (await readContent(from, uid))?.ends === true;
  } catch {
    return true;
  }
}

/** How the pod was ended for good in an earlier life; undefined: it was not. Rejects when that can't be said. */
export async function rememberedEnd(
  from: Omit<CheckpointDependencies, "log">,
  uid: PodUid,
): Promise<LastingEnding | undefined> {
  const end = (await readContent(from, uid))?.end;
  return end && restored(end);
}

function stored({ cause: { code, message }, outcome, disruption }: LastingEnding): StoredEnd {
  return { code, message, outcome, ...(disruption !== undefined && { disruption }) };
}

function restored({ code, message, outcome, disruption }: NonNullable<StoredEnd>): LastingEnding {
  const cause = { code: causeCodeOf(code), message };
  if (outcome !== undefined) return { cause, outcome, disruption };
  // Earlier versions kept the reason alone: one of these two, or else the node's own.
  const isOfContainers = code === "PodCompleted" || code === "InitContainerFailed";
  const isPreemption = code === preempting.reason;
  return {
    cause,
    outcome: isOfContainers ? "asContainers" : "failed",
    disruption: isPreemption ? preemptionDisruption : undefined,
  };
}

async function readContent(
  { files, node }: Omit<CheckpointDependencies, "log">,
  uid: PodUid,
): Promise<z.infer<typeof Content> | undefined> {
  const path = `${podDirectory(node, uid)}/${fileName}`;
  if ((await files.stat(path)) === undefined) return undefined;
  const bytes = await files.read(path, maxBytes);
  return Content.parse(JSON.parse(new TextDecoder().decode(bytes)));
}
