import { isStaticPod } from "../../api/pod-kind.ts";
import type { PodStatus } from "../../api/status.ts";
import { podUid } from "../../base/ids.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { CauseCode } from "../../journal/vocabulary.ts";
import type { Served } from "../api-server/server.ts";
import type { StoreChange, Stored } from "../api-server/store.ts";
import { fieldsAt, listAt, type Fields } from "../api-server/values.ts";
import { isDeleted, isMirror, type SimCluster } from "../life/cluster.ts";
import { conditionOf } from "../life/node-controller.ts";
import type { SimEntry } from "../life/node.ts";
import { secretMark } from "../life/objects.ts";
import { mayRun, type WorldChange } from "../world-model.ts";
import { Beginnings } from "./beginnings.ts";
import type { Break, Rule, RuleMaker, Scene } from "./rule.ts";

const order: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };
/** Causes of a stop for orphaned pods. */
const unwantedCodes: ReadonlySet<CauseCode> = new Set(["ManifestRemoved", "PodDeleted", "OrphanedPod"]);
/** Validity of a lease. */
const leaseMs = 40_000;
/** Maximum interval of renewals without faults: 10 s, and a little. */
const renewalMs = 15_000;
/** Reasons of conditions that others than podwright write at the server. */
const othersReasons: ReadonlySet<string> = new Set(["NodeStatusUnknown", "SomebodyElse"]);
/** Status codes that well-formed requests of a kubelet never get. */
const badCodes: ReadonlySet<number> = new Set([400, 403, 405, 415, 422]);

/** A node's requests to its API server are true, in order, and do no harm (design invariants 4, 6, 7 and 8). */
export const inCluster: RuleMaker = (scene, broken): Rule =>
  scene.node.cluster === undefined ? {} : new ClusterRules(scene, scene.node.cluster, broken);

class ClusterRules implements Rule {
  readonly #scene: Scene;
  readonly #cluster: SimCluster;
  readonly #broken: Break;
  /** podwright's statuses of each pod in its current run, oldest first, and the last one sent. */
  readonly #known = new Map<string, { readonly all: string[]; latest: number }>();
  readonly #tampered = new Set<string>();
  /** Pods that podwright has recorded as removed. */
  readonly #removed = new Set<string>();
  #renewed: { readonly atMs: number; readonly life: number } | undefined;
  #isCalm = false;
  readonly #beginnings: Beginnings;

  constructor(scene: Scene, cluster: SimCluster, broken: Break) {
    this.#scene = scene;
    this.#beginnings = new Beginnings(scene);
    this.#cluster = cluster;
    this.#broken = broken;
    const { server } = cluster;
    server.onHaste((what) => this.#broken("Retry-After is respected", what));
    server.onServed((served) => this.#served(served));
    server.registry.store.onChange((change) => this.#stored(change));
  }

  entry({ what, pod, cause }: SimEntry): void {
    if (what === lifeStarted) this.#begin();
    if (what === "PodRemoved" && pod !== undefined) this.#removed.add(pod.uid);
    if (what !== "PodTerminating" || pod === undefined || cause === undefined || !unwantedCodes.has(cause.code)) return;
    const stored = this.#cluster.pod(pod.uid);
    // A static pod may have returned before its removal is handled.
    const isStatic = this.#cluster.isStatic(pod.uid) && !this.#removed.delete(pod.uid);
    const isWanted = stored === undefined ? isStatic : !isDeleted(stored);
    if (isWanted) this.#broken("desired pods are not stopped", `${pod.uid}: ${cause?.message}`);
  }

  change(change: WorldChange): void {
    this.#beginnings.change(change);
    const { type, podUid: uid } = change;
    if (type !== "started" || this.#tampered.has(uid)) return;
    const stored = this.#cluster.pod(uid);
    const phase = stored && phaseOf(stored);
    if (order[phase ?? ""] === 2) this.#broken("ended pods stay ended", `${uid} is ${phase} and starts a container`);
  }

  tampered(uid: string): void {
    this.#tampered.add(uid);
  }

  calm(isCalm: boolean): void {
    this.#isCalm = isCalm;
  }

  disagreements(): string[] {
    const waiting = this.#cluster.waiting().map((uid) => `${uid} waits for its name`);
    return [...waiting, ...this.#podProblems(), ...this.#mirrorProblems(), ...this.#nodeProblems()];
  }

  #begin(): void {
    this.#known.clear();
    this.#scene.node.statuses?.onChange(({ pod, status }) => {
      const known = this.#known.get(pod.uid) ?? { all: [], latest: 0 };
      this.#known.set(pod.uid, known);
      known.all.push(signature(status));
    });
  }

  #served({ call, body, code, before, message }: Served): void {
    const { method, resource, subresource, name } = call;
    const what = `${method} ${resource}/${name ?? ""}${subresource === undefined ? "" : `/${subresource}`}`;
    // A mirror pod may show an earlier instance of its pod, which has ended; pods with removed containers may run
    // again.
    const mayComeBack = before !== undefined && (isMirror(before) || this.#tampered.has(before.value.metadata.uid));
    // As the real server reports that another pod has the name.
    const isReplaced = message?.includes("metadata.uid") ?? false;
    if (badCodes.has(code) && !(code === 422 && (mayComeBack || isReplaced))) {
      this.#broken("requests are valid", `${what}: ${message}`);
    }
    if (JSON.stringify(body ?? {}).includes(secretMark)) this.#broken("secrets stay secret", `${what} shows one`);
    if (method === "DELETE") this.#deletes(what, resource, body ?? {}, before);
    if (code >= 300 || before === undefined) return;
    if (method === "PATCH" && resource === "pods" && subresource === "status") this.#reported(before);
    if (resource === "leases") this.#renews();
  }

  /**
   * podwright deletes from the server only pods that others have deleted there and that have ended here, and its own
   * mirror pods.
   */
  #deletes(what: string, resource: string, options: Fields, before: Stored | undefined): void {
    const rule = "podwright deletes only what is deleted and gone";
    if (resource !== "pods") return this.#broken(rule, what);
    const { uid } = fieldsAt(options, "preconditions");
    if (uid === undefined || options["gracePeriodSeconds"] !== 0) this.#broken(rule, `${what} without UID or grace 0`);
    const isThatOne = before !== undefined && before.value.metadata.uid === uid;
    if (!isThatOne || isMirror(before)) return;
    if (!isDeleted(before)) this.#broken(rule, `${what}, which nobody has deleted`);
    const running = [...this.#scene.world.containers.values()].find((container) => {
      return mayRun(container) && container.config.labels["io.kubernetes.pod.uid"] === uid;
    });
    if (running !== undefined) this.#broken(rule, `${what} while ${running.config.metadata?.name} of it runs`);
  }

  /** The server's new status is one of podwright's, not older than the previous. */
  #reported(before: Stored): void {
    const stored = this.#cluster.server.registry.store.get("pods", before.key);
    const { uid } = before.value.metadata;
    const known = this.#known.get(uid);
    if (stored === undefined || known === undefined || isMirror(stored)) return;
    const now = statusOf(stored);
    const readings = new Set(withoutOthers(now).map(signature));
    const latest = known.all.findIndex((each, index) => index >= known.latest && readings.has(each));
    if (latest >= 0) known.latest = latest;
    else {
      this.#broken("statuses are sent in order", `${uid}: ${signature(now)} is older than what was sent`);
    }
  }

  #renews(): void {
    const { clock, node } = this.#scene;
    const last = this.#renewed;
    this.#renewed = { atMs: clock.nowMs, life: node.lives };
    if (last === undefined || last.life !== node.lives || node.apiTroubleMs >= last.atMs - leaseMs) return;
    const gapMs = clock.nowMs - last.atMs;
    if (gapMs > renewalMs) this.#broken("leases are renewed in time", `nothing was wrong, and it took ${gapMs} ms`);
  }

  #stored({ resource, before, after }: StoreChange): void {
    if (resource === "nodes" && after !== undefined && this.#isCalm) {
      const ready = conditionOf(after.value, "Ready");
      if (ready !== "True") this.#broken("a restart leaves the node ready", `its Node says ${String(ready)}`);
    }
    // A static pod may return under its UID with its manifest, while its mirror pod still exists.
    if (resource !== "pods" || before === undefined || after === undefined || isMirror(after)) return;
    const [from, to] = [phaseOf(before), phaseOf(after)];
    const { uid } = after.value.metadata;
    const isAnew = from === "Running" && to === "Pending" && this.#beginnings.take(uid);
    const isBack = (!isAnew && (order[to] ?? 0) < (order[from] ?? 0)) || (order[from] === 2 && to !== from);
    // A waiting resize is judged again, by what others use now.
    const waitsForResize = conditionOf(before.value, "PodResizePending") === "True";
    if (this.#isCalm && conditionOf(before.value, "Ready") === "True" && isSteady(after) && !waitsForResize) {
      const isOther = JSON.stringify(statusOf(before)) !== JSON.stringify(statusOf(after));
      if (isOther) this.#broken("a restart reports nothing new", `${uid} has another status at the server`);
    }
    if (order[to] === 2 && from !== to) this.#ends(uid, to);
    if (isBack && !this.#tampered.has(uid)) {
      this.#broken("phases only advance", `${uid} went from ${from} to ${to} at the server`);
    }
    const [why, stillWhy] = [before, after].map((stored) => statusOf(stored)["reason"]);
    if (order[from] === 2 && why !== stillWhy) {
      this.#broken(
        "the reason of an end stays reported",
        `${uid}: ${String(why)} became ${String(stillWhy)} at the server`,
      );
    }
  }

  /** The end of a pod must not be reported early to those waiting for it. */
  #ends(uid: string, phase: string): void {
    const running = [...this.#scene.world.containers.values()].find(({ state, config }) => {
      return state === "running" && config.labels["io.kubernetes.pod.uid"] === uid;
    });
    if (running === undefined) return;
    this.#broken(
      "a pod is over when nothing of it runs",
      `${uid} is ${phase}, and ${running.config.metadata?.name} runs`,
    );
  }

  #podProblems(): string[] {
    const { store } = this.#cluster.server.registry;
    return store.list("pods").flatMap((stored) => {
      const { uid } = stored.value.metadata;
      if (isMirror(stored)) return [];
      if (isDeleted(stored)) return [`${uid} is deleted and still at the server`];
      const known = this.#scene.node.statuses?.get(podUid(uid));
      if (known === undefined) return [`podwright knows nothing of ${uid}`];
      return difference(uid, known, stored);
    });
  }

  #mirrorProblems(): string[] {
    const statics = [...this.#scene.node.desired.values()].filter(isStaticPod);
    const mirrors = new Map(this.#cluster.mirrors().map((stored) => [stored.key, stored]));
    const problems = statics.flatMap(({ metadata: { namespace, name, uid } }) => {
      const key = `${namespace}/${name}`;
      const mirror = mirrors.get(key);
      mirrors.delete(key);
      if (mirror === undefined) return [`static pod ${uid} has no mirror pod`];
      const isRight = mirror.value.metadata.annotations?.["kubernetes.io/config.mirror"] === uid;
      if (!isRight || isDeleted(mirror)) return [`the mirror pod of ${uid} is not its own`];
      const known = this.#scene.node.statuses?.get(podUid(uid));
      return known === undefined ? [`podwright knows nothing of ${uid}`] : difference(uid, known, mirror);
    });
    return [...problems, ...[...mirrors.keys()].map((key) => `mirror pod ${key} has no static pod`)];
  }

  #nodeProblems(): string[] {
    const { clock } = this.#scene;
    const [node] = this.#cluster.server.registry.store.list("nodes");
    if (node === undefined) return ["the node is not registered"];
    const ready = conditionOf(node.value, "Ready");
    const agoMs = clock.nowMs - (this.#renewed?.atMs ?? 0);
    return [
      ...(ready === "True" ? [] : [`the node's Ready is ${String(ready)}`]),
      ...(agoMs <= renewalMs ? [] : [`the lease was renewed ${agoMs} ms ago`]),
    ];
  }
}

/** No container of the pod exits by itself or has unhealthy times. */
function isSteady(stored: Stored): boolean {
  const spec = fieldsAt(stored.value, "spec");
  if (spec["activeDeadlineSeconds"] !== undefined || isDeleted(stored)) return false;
  return [...listAt(spec, "initContainers"), ...listAt(spec, "containers")].every((container) => {
    const { command, livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
    const runsOn = Array.isArray(command) && command[1] === "run";
    return runsOn && [livenessProbe, readinessProbe, startupProbe, lifecycle].every((each) => each === undefined);
  });
}

function difference(uid: string, known: PodStatus, stored: Stored): string[] {
  const [here, there] = [signature(known), signature(statusOf(stored))];
  return here === there ? [] : [`the server's status of ${uid} is ${there}, not ${here}`];
}

function phaseOf(stored: Stored): string {
  return String(statusOf(stored)["phase"]);
}

/** A patch leaves Ready conditions set by others in between; podwright's own value was either. */
function withoutOthers(status: Fields): Fields[] {
  const conditions = listAt(status, "conditions");
  if (!conditions.some(({ type, reason }) => type === "Ready" && othersReasons.has(String(reason)))) return [status];
  return ["True", "False"].map((ready) => ({
    ...status,
    conditions: conditions.map((each) => (each["type"] === "Ready" ? { ...each, status: ready } : each)),
  }));
}

function statusOf({ value }: Stored): Fields {
  return fieldsAt(value, "status");
}

/** The part of a status that must arrive, as comparable text. */
function signature(status: PodStatus | Fields): string {
  const fields: Fields = { ...status };
  const containers = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"].flatMap((list) =>
    listAt(fields, list).map((container) => {
      const [state = "waiting"] = Object.keys(fieldsAt(container, "state"));
      const { exitCode = "", reason = "" } = fieldsAt(fieldsAt(container, "state"), state);
      const { name, restartCount, ready, containerID = "" } = container;
      return [name, state, exitCode, state === "waiting" ? reason : "", restartCount, ready, containerID].join(" ");
    }),
  );
  const conditions = ["Initialized", "ContainersReady", "Ready"].map(
    (type) => listAt(fields, "conditions").find((condition) => condition["type"] === type)?.["status"] ?? "none",
  );
  return [fields["phase"], fields["reason"] ?? "", ...conditions, ...containers].join("; ");
}
