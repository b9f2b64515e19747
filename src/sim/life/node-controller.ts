import type { SimApiServer } from "../api-server/server.ts";
import { fieldsAt, listAt, type Value } from "../api-server/values.ts";
import type { SimClock } from "../clock.ts";

/** Upstream's node lifecycle controller: its interval, and the grace period of a lease. */
const lookMs = 5000;
const graceMs = 40_000;

/**
 * Reports a node as Unknown whose lease was not renewed for too long, and its pods as not ready (upstream's node
 * lifecycle controller, without its evictions).
 */
export function watchNodeLife(server: SimApiServer, clock: SimClock): void {
  let renewedMs = 0;
  const { store } = server.registry;
  store.onChange(({ resource }) => {
    if (resource === "leases") renewedMs = clock.nowMs;
  });
  const look = (): void => {
    clock.schedule("a look at the simulated cluster's nodes", lookMs, look);
    if (clock.nowMs - renewedMs < graceMs) return;
    for (const { key, value } of store.list("nodes")) {
      if (conditionOf(value, "Ready") === "Unknown" || renewedMs === 0) continue;
      store.put("nodes", key, withCondition(value, "Ready", "Unknown"));
      for (const pod of store.list("pods")) {
        if (conditionOf(pod.value, "Ready") === "True") {
          store.put("pods", pod.key, withCondition(pod.value, "Ready", "False"));
        }
      }
    }
  };
  look();
}

/** The status of a condition; undefined if there is none. */
export function conditionOf(value: Value, wanted: string): unknown {
  return listAt(fieldsAt(value, "status"), "conditions").find(({ type }) => type === wanted)?.["status"];
}

function withCondition(value: Value, wanted: string, to: string): Value {
  const status = fieldsAt(value, "status");
  const conditions = listAt(status, "conditions").map((condition) =>
    condition["type"] === wanted ? { ...condition, status: to, reason: "NodeStatusUnknown" } : condition,
  );
  return { ...value, status: { ...status, conditions } };
}
