import type { PodRef } from "../journal/entry.ts";
import type { Health, PodView } from "../server/local-api.ts";
import type { EngineClient } from "./engine-client.ts";

/** The pods that an engine lists, and whether unlisted ones are gone. */
export interface Listing {
  readonly views: readonly PodView[];
  /** False while a new engine may not list all running pods yet. */
  readonly knowsAllPods: boolean;
}

export async function listPods(engine: Pick<EngineClient, "health" | "pods">): Promise<Listing> {
  // Health first: read afterwards, it might be true although the listing was incomplete.
  const health: Partial<Health> = await engine.health();
  const views = await engine.pods();
  // Engines of earlier versions do not report it.
  return { views, knowsAllPods: health.knowsAllPods ?? true };
}

/** Pods that the engine no longer lists; none while its listing may be incomplete. */
export function gonePods<T extends Pick<PodRef, "uid">>(
  pods: readonly T[],
  { views, knowsAllPods }: { readonly views: readonly Pick<PodView, "uid">[]; readonly knowsAllPods: boolean },
): readonly T[] {
  const uids = new Set(views.map(({ uid }) => uid));
  return knowsAllPods ? pods.filter(({ uid }) => !uids.has(uid)) : [];
}
