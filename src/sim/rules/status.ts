import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { nameOf, type SimContainer } from "../world-model.ts";
import { idOf } from "./probes.ts";
import type { Rule, RuleMaker } from "./rule.ts";

const order: Readonly<Record<string, number>> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** What has changed for so long is known. */
const noticedMs = 15_000;

/** What podwright says of pods is true, and goes forwards (design invariants 4 and 6). */
export const status: RuleMaker = ({ clock, world, node }, broken): Rule => {
  const phases = new Map<string, { readonly to: string; readonly reason: unknown }>();
  const counts = new Map<string, number>();
  const ever = new Map<string, SimContainer>();
  /** Simulated ms of each container's last change, by `uid/name`. */
  const changed = new Map<string, number>();
  /** Pods whose containers others took away: those that have ended for good may run again. */
  const forgotten = new Set<string>();

  function phase(uid: string, to: string, reason: unknown): void {
    const from = phases.get(uid)?.to;
    phases.set(uid, { to, reason });
    if (from === undefined) return;
    const isBack = (order[to] ?? 0) < (order[from] ?? 0);
    if (isBack || (order[from] === 2 && to !== from)) broken("phases go forwards", `${uid} went from ${from} to ${to}`);
  }

  function container(entry: SimEntry): void {
    const { data = {} } = entry;
    const where = `${entry.pod?.uid}/${entry.container}`;
    const count = Number(data["restartCount"]);
    if (count < (counts.get(where) ?? 0)) broken("restart counts grow", `${where} is said to have ${count} again`);
    counts.set(where, count);
    const truth = ever.get(idOf(entry));
    if (data["state"] === "running" && truth?.startedAt === 0n) broken("status is true", `${where} never ran`);
    if (data["state"] === "running" && truth === undefined) broken("status is true", `${where} runs as nothing known`);
    if (data["state"] !== "terminated" || truth?.state !== "exited") return;
    if (data["exitCode"] !== truth.exitCode) {
      broken("status is true", `${where} ended with ${truth.exitCode}, not ${String(data["exitCode"])}`);
    }
  }

  return {
    change: ({ type, container: about, podUid }) => {
      if (about === undefined) return;
      if (type === "created") ever.set(about.id, about);
      changed.set(`${podUid}/${nameOf(about)}`, clock.nowMs);
    },
    entry: (entry) => {
      const uid = entry.pod?.uid ?? "";
      if (forgotten.has(uid)) return;
      if (entry.what === lifeStarted) {
        // What the node itself decided, and what the runtime has no instance of, podwright keeps in memory alone.
        counts.clear();
        for (const [pod, { to, reason }] of phases) if (order[to] !== 2 || reason !== undefined) phases.delete(pod);
      }
      if (entry.what === "PodPhaseChanged") phase(uid, String(entry.data?.["to"]), entry.data?.["reason"]);
      if (entry.what === "ContainerStateChanged") container(entry);
      if (entry.what === "StatusRefused") broken("phases go forwards", entry.message);
    },
    reborn: (uid) => {
      forgotten.delete(uid);
      phases.delete(uid);
      for (const key of [...counts.keys()]) if (key.startsWith(`${uid}/`)) counts.delete(key);
    },
    tampered: (uid) => void forgotten.add(uid),
    disagreements: () => node.pods().flatMap((known) => statusProblems(known)),
  };

  /** What the status does not show as the runtime has it. */
  function statusProblems({ view, status: shown }: ReturnType<typeof node.pods>[number]): string[] {
    const { uid } = view.ref;
    if (view.pod === undefined || !node.desired.has(uid) || forgotten.has(uid)) return [];
    const all = view.pod.spec.containers;
    const isComplete = all.every(({ name }) => world.running(uid, name) !== undefined);
    return all.flatMap(({ name }) => {
      if (clock.nowMs - (changed.get(`${uid}/${name}`) ?? 0) < noticedMs) return [];
      const running = world.running(uid, name);
      const said = shown?.containerStatuses?.find((own) => own.name === name);
      const saysRunning = said?.state.running !== undefined;
      if (saysRunning !== (running !== undefined)) {
        return [`${uid}/${name} ${running ? "runs" : "does not run"} and its status says otherwise`];
      }
      if (running === undefined) return [];
      if (!(said?.containerID ?? "").endsWith(running.id)) return [`${uid}/${name} runs as ${running.id}, not as said`];
      // One that never ran keeps the whole pod pending.
      return !isComplete || shown?.phase === "Running"
        ? []
        : [`${uid} runs and is said to be ${shown?.phase ?? "nothing"}`];
    });
  }
};
