import { lifeStarted } from "../../journal/entry.ts";
import type { KnownPod } from "../../kubelet/known-pods.ts";
import { isByNode } from "../../pods/ending.ts";
import type { SimEntry } from "../life/node.ts";
import { attemptOf, nameOf, type SimContainer, type WorldChange } from "../world-model.ts";
import { Beginnings } from "./beginnings.ts";
import { endingOf } from "./endings.ts";
import { dataText, forgetPod, idOf, whereOf } from "./entry-data.ts";
import type { Break, Rule, Scene } from "./rule.ts";

const order: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** Older changes are known. */
const noticedMs = 15_000;

interface Phase {
  readonly to: string;
  /** podwright decided that the pod ends. */
  readonly isDecision: boolean;
  /**
   * The pod became undesired at the time, or before the evidence was removed: a later run in which it is desired again
   * has seen nothing of it.
   */
  readonly isUnwanted: boolean;
}

/** podwright's statuses of pods are true, and make progress (design invariants 4 and 6). */
export class StatusRules implements Rule {
  readonly #scene: Scene;
  readonly #broken: Break;
  readonly #phases = new Map<string, Phase>();
  /** Last reported restart counts, by `uid/name`. */
  readonly #counts = new Map<string, number>();
  /** Every container ever created, by ID. */
  readonly #ever = new Map<string, SimContainer>();
  /** Simulated ms of each container's last change, by `uid/name`. */
  readonly #changed = new Map<string, number>();
  /** Started containers not yet reported as running, by `uid/name`: the state of their postStart hook. */
  readonly #hooks = new Map<string, "runs" | "failed">();
  /** Pods whose containers were removed by others: ended ones may run again. */
  readonly #tampered = new Set<string>();
  readonly #beginnings: Beginnings;

  constructor(scene: Scene, broken: Break) {
    this.#scene = scene;
    this.#broken = broken;
    this.#beginnings = new Beginnings(scene);
  }

  change(change: WorldChange): void {
    this.#beginnings.change(change);
    const { type, container, podUid } = change;
    if (container === undefined) return;
    if (type === "created") this.#ever.set(container.id, container);
    const where = `${podUid}/${nameOf(container)}`;
    if (type !== "probed") this.#changed.set(where, this.#scene.clock.nowMs);
    if (type === "exited") this.#hooks.delete(where);
    const phase = this.#phases.get(podUid);
    if (type !== "removed" || phase === undefined || !this.#scene.unwanted.has(podUid)) return;
    this.#phases.set(podUid, { ...phase, isUnwanted: true });
  }

  entry(entry: SimEntry): void {
    const uid = entry.pod?.uid ?? "";
    if (this.#tampered.has(uid)) return;
    if (entry.what === lifeStarted) this.#begin();
    if (entry.what === "PodPhaseChanged") this.#phase(uid, entry);
    // A later pod under its UID is another one.
    if (entry.what === "PodFinished") this.#phases.delete(uid);
    if (entry.what === "ContainerStateChanged") this.#container(entry);
    if (entry.what === "PostStartHook") this.#hook(entry);
    if (entry.what === "StatusRefused") this.#broken("phases only advance", entry.message);
  }

  reborn(uid: string): void {
    this.#tampered.delete(uid);
    this.#phases.delete(uid);
    forgetPod(uid, this.#counts);
  }

  tampered(uid: string): void {
    this.#tampered.add(uid);
  }

  disagreements(): string[] {
    return this.#scene.node.pods().flatMap((known) => this.#problemsOf(known));
  }

  /** podwright keeps its own decisions, and exits without an instance in the runtime, in memory only. */
  #begin(): void {
    this.#counts.clear();
    for (const where of this.#hooks.keys()) this.#hookEnded(where);
    const { desired } = this.#scene.node;
    for (const [uid, { to, isDecision, isUnwanted }] of this.#phases) {
      if (order[to] !== 2 || isDecision || isUnwanted || !desired.has(uid)) this.#phases.delete(uid);
    }
  }

  #phase(uid: string, entry: SimEntry): void {
    const from = this.#phases.get(uid)?.to;
    const to = dataText(entry, "to");
    // It may be desired again when it has ended.
    const isUnwanted = this.#scene.unwanted.has(uid) || entry.cause?.code === "ManifestRemoved";
    this.#phases.set(uid, { to, isDecision: dataText(entry, "reason") !== "" || this.#isEndedByNode(uid), isUnwanted });
    if (from === undefined) return;
    const isAnew = from === "Running" && to === "Pending" && this.#beginnings.take(uid);
    const isBack = (order[to] ?? 0) < (order[from] ?? 0) && !isAnew;
    const isRevived = order[from] === 2 && to !== from;
    if (isBack || isRevived) this.#broken("phases only advance", `${uid} went from ${from} to ${to}`);
    if (to === "Running" && !this.#beginnings.isInitialised(uid)) {
      this.#broken("pods run only after their initialization", `${uid} went from ${from} to ${to}`);
    }
  }

  /** Of a pod that succeeded when it was cut short only podwright knows that. */
  #isEndedByNode(uid: string): boolean {
    const known = this.#scene.node.pods().find(({ view }) => view.ref.uid === uid);
    const ending = known && endingOf(known);
    return ending !== undefined && isByNode(ending);
  }

  /** The phase is recorded before the containers. */
  #judgeInit({ pod, container }: SimEntry): void {
    const uid = pod?.uid ?? "";
    const init = this.#scene.pods.get(uid)?.spec.initContainers ?? [];
    const isPlain = init.some(({ name, restartPolicy }) => name === container && restartPolicy === undefined);
    if (!isPlain || this.#phases.get(uid)?.to !== "Running") return;
    this.#broken(
      "pods run only after their initialization",
      `${uid} is Running, and its init container ${container} runs`,
    );
  }

  #hook(entry: SimEntry): void {
    const where = whereOf(entry);
    if (entry.kind === "action") this.#hooks.set(where, "runs");
    else if (entry.result === "done") this.#hookEnded(where);
    else if (this.#hooks.has(where)) this.#hooks.set(where, "failed");
  }

  #hookEnded(where: string): void {
    this.#hooks.delete(where);
    this.#changed.set(where, this.#scene.clock.nowMs);
  }

  #container(entry: SimEntry): void {
    const where = whereOf(entry);
    const count = Number(dataText(entry, "restartCount"));
    const before = this.#counts.get(where) ?? 0;
    this.#counts.set(where, count);
    if (count < before) this.#broken("restart counts grow", `${where} is said to have ${count} again`);
    const truth = this.#ever.get(idOf(entry));
    const state = dataText(entry, "state");
    if (state === "running" && (truth === undefined || truth.startedAt === 0n)) {
      this.#broken("statuses match the runtime", `${where} is said to run, and never did`);
    }
    if (state === "running") this.#judgeInit(entry);
    if (state !== "terminated" || truth?.state !== "exited") return;
    const exitCode = dataText(entry, "exitCode");
    if (exitCode === String(truth.exitCode)) return;
    this.#broken("statuses match the runtime", `${where} ended with ${truth.exitCode}, not ${exitCode}`);
  }

  /** The status says that all containers restart, and none has ended or was created lately. */
  #isRestartingAll(uid: string, shown: KnownPod["status"]): boolean {
    const isQuiet = [...this.#changed].every(([where, atMs]) => {
      return !where.startsWith(`${uid}/`) || this.#scene.clock.nowMs - atMs >= noticedMs;
    });
    const { status } = shown?.conditions?.find(({ type }) => type === "AllContainersRestarting") ?? {};
    return isQuiet && status === "True";
  }

  /** Differences between the status and the runtime. */
  #problemsOf({ view, status: shown }: KnownPod): string[] {
    const { clock, world, node } = this.#scene;
    const { uid } = view.ref;
    // While a pod is being stopped, its status is delayed until the end.
    const isSteady = view.state.kind === "syncing" && node.desired.has(uid);
    if (view.pod === undefined || !isSteady || this.#tampered.has(uid)) return [];
    const all = view.pod.spec.containers;
    const { generation } = view.pod.metadata;
    if (shown !== undefined && shown.observedGeneration !== generation) {
      return [`${uid} is of generation ${generation} and its status of ${shown.observedGeneration}`];
    }
    // Until its postStart hook has ended, a container does not run for the API.
    const runningOf = (name: string): SimContainer | undefined =>
      this.#hooks.has(`${uid}/${name}`) ? undefined : world.running(uid, name);
    // A container that never ran keeps the whole pod Pending.
    const isComplete = all.every(({ name }) => runningOf(name) !== undefined);
    if (isComplete && this.#isRestartingAll(uid, shown)) return [`${uid} runs and is said to restart all containers`];
    return all.flatMap(({ name }) => {
      const where = `${uid}/${name}`;
      if (clock.nowMs - (this.#changed.get(where) ?? 0) < noticedMs) return [];
      // It is being stopped, or stopping failed.
      if (this.#hooks.get(where) === "failed") return [];
      const running = runningOf(name);
      const said = shown?.containerStatuses?.find((own) => own.name === name);
      if ((said?.state.running !== undefined) !== (running !== undefined)) {
        return [`${where} ${running ? "runs" : "does not run"} and its status says otherwise`];
      }
      if (running === undefined) return [];
      if (said?.containerID?.endsWith(running.id) !== true) return [`${where} runs as ${running.id}, not as said`];
      if (said.restartCount < attemptOf(running)) return [`${where} was restarted more often than is said`];
      const isSaid = !isComplete || shown?.phase === "Running";
      return isSaid ? [] : [`${uid} runs and is said to be ${shown?.phase ?? "nothing"}`];
    });
  }
}
