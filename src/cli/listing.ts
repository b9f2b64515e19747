import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Health, PodView } from "../server/local-api.ts";
import type { EngineClient } from "./engine-client.ts";
import { ownCommand } from "./own-command.ts";

/** The pods that an engine lists, and unlisted ones that may be running. */
export interface Listing {
  readonly views: readonly PodView[];
  /** False while a new engine may not list all running pods yet. */
  readonly knowsAllPods: boolean;
  /** UIDs of unlisted pods that run or should run; undefined: any pod may. */
  readonly unlisted: readonly string[] | undefined;
}

export async function listPods(engine: Pick<EngineClient, "health" | "pods">): Promise<Listing> {
  // Health first: read afterwards, it might be true although the listing was incomplete.
  const health: Partial<Health> = await engine.health();
  const views = await engine.pods();
  // Engines of earlier versions do not report it.
  return { views, knowsAllPods: health.knowsAllPods ?? true, unlisted: health.unlisted };
}

type UidsListed = Omit<Listing, "views"> & { readonly views: readonly Pick<PodView, "uid">[] };

/** Pods that the engine no longer lists, except those that may still be running. */
export function gonePods<T extends Pick<PodRef, "uid">>(pods: readonly T[], listing: UidsListed): readonly T[] {
  return pods.filter((pod) => !isListed(pod, listing) && !mayRun(pod, listing));
}

/** Pods that may run without the engine's knowledge: a new engine may not have found them yet. */
export function unknownPods<T extends Pick<PodRef, "uid">>(pods: readonly T[], listing: UidsListed): readonly T[] {
  return pods.filter((pod) => !isListed(pod, listing) && mayRun(pod, listing));
}

function isListed({ uid }: Pick<PodRef, "uid">, { views }: UidsListed): boolean {
  return views.some((view) => view.uid === uid);
}

function mayRun({ uid }: Pick<PodRef, "uid">, { knowsAllPods, unlisted }: UidsListed): boolean {
  return !knowsAllPods && unlisted?.includes(uid) !== false;
}

/** An engine knows its runtime's pods within this time, unless it cannot read some pod's manifest. */
const knowsWithinMs = 60_000;

/**
 * Ends waits for knowledge that the engine will never have: the owner of a pod with an unreadable manifest stays
 * unknown.
 */
export class KnowledgeLimit {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #stateDirectory: string;
  #unknownSince: number | undefined;

  constructor(clock: Pick<Clock, "monotonic">, stateDirectory: string) {
    this.#clock = clock;
    this.#stateDirectory = stateDirectory;
  }

  /**
   * Call it with each listing.
   * @throws PodwrightError if the engine's knowledge has been incomplete for too long
   */
  check(knowsAll: boolean): void {
    const now = this.#clock.monotonic();
    if (knowsAll) this.#unknownSince = undefined;
    else this.#unknownSince ??= now;
    if (this.#unknownSince === undefined || now - this.#unknownSince < knowsWithinMs) return;
    const doctor = ownCommand(this.#stateDirectory, "doctor");
    throw new PodwrightError(ExitCode.failed, "the engine has not found all running pods yet", {
      remedy: `'${doctor}' lists unreadable manifests; correct or remove them, and try again`,
    });
  }
}
