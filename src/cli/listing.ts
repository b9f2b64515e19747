import type { PodRef } from "../journal/entry.ts";
import type { Health, PodView } from "../server/local-api.ts";
import type { EngineClient } from "./engine-client.ts";

/** The pods that an engine lists, and whether one that it does not list is gone. */
export interface Listing {
  readonly views: readonly PodView[];
  /** False while an engine that has just been started may list less than runs. */
  readonly knowsAllPods: boolean;
}

export async function listPods(engine: Pick<EngineClient, "health" | "pods">): Promise<Listing> {
  // In this order: what was not known before the list was made may be missing in it.
  const health: Partial<Health> = await engine.health();
  const views = await engine.pods();
  // An engine that was started before an update of podwright does not say.
  return { views, knowsAllPods: health.knowsAllPods ?? true };
}

/** Pods that the engine no longer lists; none while it may not know all pods of earlier runs. */
export function gonePods<T extends Pick<PodRef, "uid">>(
  pods: readonly T[],
  { views, knowsAllPods }: { readonly views: readonly Pick<PodView, "uid">[]; readonly knowsAllPods: boolean },
): readonly T[] {
  const uids = new Set(views.map(({ uid }) => uid));
  return knowsAllPods ? pods.filter(({ uid }) => !uids.has(uid)) : [];
}
