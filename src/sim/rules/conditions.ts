import { parseTime } from "../../base/time.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { StatusChange } from "../../status/status-manager.ts";
import type { Served } from "../api-server/server.ts";
import type { Stored } from "../api-server/store.ts";
import { fieldsAt, listAt, type Fields } from "../api-server/values.ts";
import { isMirror } from "../life/cluster.ts";
import type { Break, Rule, Scene } from "./rule.ts";

/** Conditions whose transition time is that of their status; for resize conditions that of their reason. */
const dated: ReadonlySet<unknown> = new Set([
  "PodReadyToStartContainers",
  "Initialized",
  "Ready",
  "ContainersReady",
  "PodScheduled",
  "AllContainersRestarting",
]);
/** Times have a precision of seconds. */
const roundingMs = 2000;

/** A condition's transition time is that of the change of its status, across restarts, and as at the API server. */
export class Conditions implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  /** Times of condition changes that podwright observed, as `uid type time`. */
  readonly #changes = new Set<string>();
  /** Times at the server since podwright's first status, as `uid type time`. */
  readonly #reported = new Set<string>();

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    scene.node.cluster?.server.onServed((served) => this.#served(served));
  }

  entry({ what }: { readonly what: string }): void {
    if (what === lifeStarted) this.#scene.node.statuses?.onChange((change) => this.#changed(change));
  }

  #changed({ pod: { uid }, previous, status }: StatusChange): void {
    const { clock, node } = this.#scene;
    const stored = node.cluster?.pod(uid);
    for (const condition of status.conditions ?? []) {
      const { type, lastTransitionTime: time } = condition;
      if (!dated.has(type)) continue;
      const before = previous?.conditions?.find((other) => other.type === type);
      const where = `${type} of ${uid}`;
      if (before?.status === condition.status) {
        if (before.lastTransitionTime === time) continue;
        this.#broken(
          "conditions are dated",
          `${where} is as it was, and since ${time}, not ${before.lastTransitionTime}`,
        );
      } else if (Math.abs((parseTime(time ?? "") ?? 0) - clock.wallMs) > roundingMs) {
        this.#broken("conditions are dated", `${where} became ${condition.status} just now, and not at ${time}`);
      }
      const isNews = before !== undefined || stored === undefined || conditionIn(stored, type) === undefined;
      if (isNews) this.#changes.add(`${uid} ${type} ${time}`);
    }
  }

  /** podwright's updates change no transition time without an observed change. */
  #served({ call: { method, resource, subresource }, code, before }: Served): void {
    const isStatus = method === "PATCH" && resource === "pods" && subresource === "status" && code < 300;
    if (!isStatus || before === undefined || isMirror(before)) return;
    const after = this.#scene.node.cluster?.server.registry.store.get("pods", before.key);
    const { uid } = before.value.metadata;
    for (const { type, status, lastTransitionTime: time } of after === undefined ? [] : conditionsOf(after)) {
      const known = conditionIn(before, type);
      this.#reported.add(`${uid} ${String(type)} ${String(time)}`);
      if (!dated.has(type) || known === undefined || known["status"] !== status) continue;
      const was = known["lastTransitionTime"];
      // A recent change by others may not have arrived here yet.
      if (was === time || !this.#reported.has(`${uid} ${String(type)} ${String(was)}`)) continue;
      if (this.#changes.has(`${uid} ${String(type)} ${String(time)}`)) continue;
      const change = `${String(was)} became ${String(time)}`;
      this.#broken("conditions are dated", `at the server ${String(type)} of ${uid} is as it was, and ${change}`);
    }
  }
}

function conditionsOf({ value }: Stored): readonly Fields[] {
  return listAt(fieldsAt(value, "status"), "conditions");
}

function conditionIn(stored: Stored, wanted: unknown): Fields | undefined {
  return conditionsOf(stored).find(({ type }) => type === wanted);
}
