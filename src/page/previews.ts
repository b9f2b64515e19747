import type { EvictionPreview, GarbageReport } from "../server/local-api.ts";
import type { EvictionView, GarbageView } from "./view.ts";

/** The rank of pods for the node page, field by field. */
export function evictionView({ signal, standing, pods }: EvictionPreview): EvictionView {
  return {
    signal,
    standing,
    pods: pods.map(({ namespace, name, place, evictable }) => ({ namespace, name, place, evictable })),
  };
}

/** What a collection would remove, for the node page: what goes comes before what stays. */
export function garbageView({ items, imagesStay }: GarbageReport): GarbageView {
  const views = items.map(({ kind, name, pod, bytes, stays }) => ({
    ...{ kind, name },
    ...(pod !== undefined && { pod }),
    ...(bytes !== undefined && { bytes }),
    ...(stays !== undefined && { stays }),
  }));
  const goes = views.filter(({ stays }) => stays === undefined);
  return {
    items: [...goes, ...views.filter(({ stays }) => stays !== undefined)],
    ...(imagesStay !== undefined && { imagesStay }),
  };
}
