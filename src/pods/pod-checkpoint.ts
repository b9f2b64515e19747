import * as z from "zod";
import type { Pod } from "../api/pod.ts";
import type { PodPhase } from "../api/status.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { RecordFiles } from "../base/patient-files.ts";
import { formatTime } from "../base/time.ts";
import { causeCodeOf } from "../journal/vocabulary.ts";
import { inDirectory } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { dropSpec, keepSpec } from "../runtime/layout/kept-spec.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { podDirectory } from "../runtime/layout/pod-directories.ts";
import { bootId } from "../base/boot-id.ts";
import type { ActiveDeadline } from "./active-deadline.ts";
import { dependsOnExits, type Ending, type LastingEnding } from "./ending.ts";
import { preempting, preemptionDisruption } from "./preemption.ts";
import type { RestartTimes } from "./restart-times.ts";

const Content = z.object({
  /** Wall clock, milliseconds since the epoch. */
  startedAt: z.int().optional(),
  backOff: z.array(
    z.object({ key: z.string(), delayMs: z.number().min(0), updatedAt: z.int(), startsOver: z.string().optional() }),
  ),
  /** Instances that were stopped to be restarted. Missing in records of earlier versions. */
  stopped: z.array(z.object({ id: z.string(), code: z.string(), message: z.string() })).optional(),
  /** Its stop was requested; it never runs again. */
  ends: z.boolean().optional(),
  /** Why it ended, if it must not run again. */
  end: z
    .object({
      code: z.string(),
      message: z.string(),
      /** Missing in records of earlier versions. */
      outcome: z.enum(["failed", "cutShort", "refused", "asContainers"]).optional(),
      disruption: z.string().optional(),
      graceSeconds: z.number().min(0).optional(),
      /** Where it depends on the containers, once they have exited: they may be collected. */
      phase: z.enum(["Succeeded", "Failed"]).optional(),
      /** The boot id of the machine while it lasts; missing: for good. */
      boot: z.string().optional(),
    })
    .optional(),
});

type StoredEnd = z.infer<typeof Content>["end"];

const fileName = "podwright.json";
const maxBytes = 1 << 20;

export interface CheckpointDependencies {
  readonly files: RecordFiles;
  readonly node: Pick<NodeContext, "rootDirectory">;
  readonly log: Pick<Logger, "warn">;
}

/**
 * What neither the manifest nor the runtime knows of a pod: since when it is on the node, its crash-loop back-offs, what
 * was stopped to be restarted, and why it ended. Stored in the pod's directory, so it is removed with the pod and survives
 * a restart of podwright.
 */
export class PodCheckpoint {
  readonly #deps: CheckpointDependencies;
  readonly #uid: PodUid;
  readonly #deadline: ActiveDeadline;
  readonly #restarts: RestartTimes;
  #saved = "";
  #ends = false;
  #end: StoredEnd;
  #untilReboot = false;
  /** Writes one at a time, so the newest comes last; never rejects. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The pod as last stored. */
  #kept = "";

  constructor(deps: CheckpointDependencies, uid: PodUid, deadline: ActiveDeadline, restarts: RestartTimes) {
    this.#deps = deps;
    this.#uid = uid;
    this.#deadline = deadline;
    this.#restarts = restarts;
  }

  /** Reads the checkpoint of an earlier run. Never rejects: without it, everything starts fresh. */
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
      const { startedAt, backOff, stopped, ends = false, end } = Content.parse(JSON.parse(text));
      this.#ends ||= ends;
      this.#end ??= end;
      if (startedAt !== undefined) this.#deadline.remember(startedAt);
      this.#restarts.remember(backOff, stopped);
      this.#saved = text;
    } catch (error) {
      log.warn("cannot read a pod checkpoint", { uid: this.#uid, error: errorMessage(error) });
    }
  }

  /**
   * Writes changes, also of the pod. Never rejects: what is not stored starts fresh in the next run. False when the
   * write failed; the next call retries.
   */
  async save(pod?: Pod): Promise<boolean> {
    const turn = this.#turn.then(async () => this.#write(pod));
    this.#turn = turn;
    return await turn;
  }

  async #write(pod: Pod | undefined): Promise<boolean> {
    if (pod !== undefined) await this.#keep(pod);
    const { files, node, log } = this.#deps;
    const boot = this.#untilReboot ? await bootId(files) : this.#end?.boot;
    const stops = this.#ends ? [] : this.#restarts.stops();
    const content = {
      startedAt: this.#deadline.startedAt,
      backOff: this.#restarts.delays(),
      ...(stops.length > 0 && { stopped: stops }),
      ...(this.#ends && { ends: true }),
      ...(this.#end && { end: { ...this.#end, ...(boot !== undefined && { boot }) } }),
    };
    const text = JSON.stringify(content satisfies z.input<typeof Content>);
    if (text === this.#saved) return true;
    try {
      const write = async (): Promise<void> => files.writeAtomic(this.#path, text, 0o600);
      await inDirectory(files, podDirectory(node, this.#uid), 0o750, write);
      this.#saved = text;
      return true;
    } catch (error) {
      log.warn("cannot write a pod checkpoint", { uid: this.#uid, error: errorMessage(error) });
      return false;
    }
  }

  /**
   * Called before anything of the pod is stopped for good: a half-stopped pod must not be started again. If the write
   * fails, as on a full disk, the spec of the API server's pod is deleted: an unknown pod cannot be started.
   * @param ending undefined: orphaned, so it does not matter how it ended
   */
  async stopping(pod: Pod | undefined, ending: Ending | undefined): Promise<void> {
    this.#ends = true;
    this.#end =
      ending?.lasts === true ? { ...stored(ending), phase: this.#end?.phase ?? ending.endedPhase } : undefined;
    this.#untilReboot = ending?.untilReboot === true;
    if ((await this.save()) || pod === undefined || !isOfApi(pod)) return;
    const { files, node, log } = this.#deps;
    await dropSpec(files, node, this.#uid).catch((error: unknown) => {
      log.warn("cannot delete the stored spec of a stopping pod", { uid: this.#uid, error: errorMessage(error) });
    });
  }

  /** The pod has stopped, with that phase; recorded by the next {@link save}. */
  stopped(phase: PodPhase | undefined): void {
    if (this.#end === undefined || !dependsOnExits(this.#end.outcome)) return;
    if (phase === "Succeeded" || phase === "Failed") this.#end = { ...this.#end, phase };
  }

  /** The pod's first start stores the pod itself. */
  keptByStart(pod: Pod): void {
    if (isOfApi(pod)) this.#kept = textOf(pod);
  }

  /** The API server's present pod, for a next run without an API server. */
  async #keep(pod: Pod): Promise<void> {
    const { files, node, log } = this.#deps;
    if (!isOfApi(pod)) return;
    const text = textOf(pod);
    if (text === this.#kept) return;
    try {
      // Without its directory it has not started; its start will store it.
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
 * Records the deletion of an API server's pod that has no worker yet: if podwright is killed before the pod has one, a
 * next run without an API server must not start it. If the write fails, the spec is deleted, as in
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

function textOf({ metadata, spec }: Pod): string {
  return JSON.stringify([metadata, spec]);
}

/** Only these are managed from their checkpoints. */
function isOfApi({ metadata }: Pod): boolean {
  return metadata.annotations?.[Annotation.configSource] === "api";
}

/** Whether the pod's stop was requested in an earlier run; true also if that cannot be read. */
export async function hasEnded(from: Omit<CheckpointDependencies, "log">, uid: PodUid): Promise<boolean> {
  try {
    return (await readContent(from, uid))?.ends === true;
  } catch {
    return true;
  }
}

/** The pod's permanent ending in an earlier run; undefined: none. Rejects if it cannot be read. */
export async function rememberedEnd(
  from: Omit<CheckpointDependencies, "log">,
  uid: PodUid,
): Promise<LastingEnding | undefined> {
  const end = (await readContent(from, uid))?.end;
  if (end?.boot !== undefined && end.boot !== (await bootId(from.files))) return undefined;
  return end && restored(end);
}

function stored({ cause: { code, message }, outcome, disruption, graceSeconds }: Ending): NonNullable<StoredEnd> {
  return { code, message, outcome, graceSeconds, ...(disruption !== undefined && { disruption }) };
}

function restored(end: NonNullable<StoredEnd>): LastingEnding {
  const { code, message, outcome, disruption, boot, phase, graceSeconds } = end;
  const cause = { code: causeCodeOf(code), message };
  const more = {
    ...(graceSeconds !== undefined && { graceSeconds }),
    ...(phase && { endedPhase: phase }),
    ...(boot !== undefined && { untilReboot: true }),
  };
  if (outcome !== undefined) return { cause, outcome, disruption, ...more };
  // Earlier versions stored only the reason: one of these two, or the node's own.
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
