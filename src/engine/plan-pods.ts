import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { awaited, describeActions } from "../pods/describe-actions.ts";
import type { WorkerPlan } from "../pods/worker-plan.ts";
import { computePodActions, type PodActions } from "../runtime/actions/pod-actions.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PlanStep, PodPlan } from "../server/local-api.ts";
import type { RunPreview } from "../sources/run-source.ts";
import type { SourceName } from "../sources/source.ts";
import { noVolumes, type VolumePlans } from "./plan-volumes.ts";
import { firstStart } from "../runtime/actions/pod-actions-context.ts";

type PreviewedPod = RunPreview["pods"][number];

/** A pod that a source wants. */
interface Wanted {
  readonly source: SourceName;
  readonly pod: Pod;
  readonly place: string;
}

/**
 * What would be done next with the pods that there are and with those of a preview, by namespace and name. Pure.
 * @param wallOffsetMs wall clock minus monotonic clock
 * @param volumes as of the pods and the preview
 */
export function planPods(
  plans: readonly WorkerPlan[],
  preview: Pick<RunPreview, "pods">,
  wanted: readonly Wanted[],
  wallOffsetMs: number,
  volumes: VolumePlans = noVolumes,
): PodPlan[] {
  const previewed = new Map(preview.pods.map((planned) => [planned.replaces, planned]));
  const present = plans.map((plan): PodPlan => {
    const planned = previewed.get(plan.ref.uid);
    if (planned?.change === "updated") return updatedPlan(plan);
    return planned?.change === "replaced" ? replacedPlan(plan) : planOf(plan, planned?.change, wallOffsetMs, volumes);
  });
  const coming = preview.pods.filter((planned) => planned.change === "added" || planned.change === "replaced");
  return [...present, ...coming.map((planned) => newPlan(planned, plans, wanted, volumes))].toSorted(
    (a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name),
  );
}

function planOf(plan: WorkerPlan, change: PodPlan["change"], wallOffsetMs: number, volumes: VolumePlans): PodPlan {
  const { ref, state, behind, overdue, underWay, actions, stale } = plan;
  const none: PodPlan = { ...ref, change, steps: [], waits: [], underWay, note: "" };
  switch (state.kind) {
    case "terminating": {
      const until = Math.round(state.killAtMs + wallOffsetMs);
      return { ...none, waits: [{ text: "it is being stopped; SIGKILL", because: chain(state.ending.cause), until }] };
    }
    case "terminated": {
      const waits = volumes.held(ref.uid);
      const removal = { text: "remove the pod", because: chain(state.ending.cause) };
      if (plan.forgotten) return { ...none, waits, steps: [removal] };
      return { ...none, waits, note: `the pod has ended: ${state.ending.cause.message}` };
    }
    case "finished":
      return { ...none, note: "it is gone" };
    case "syncing":
      if (behind !== undefined) return { ...none, waits: [rivalWait(behind)] };
      if (overdue !== undefined) return { ...none, steps: [{ text: "stop the pod", because: chain(overdue) }] };
      const left = isSetUp(plan) ? noVolumes.progress(ref.uid) : volumes.progress(ref.uid);
      const waits = actions === undefined ? [] : waitsOf(actions, plan, wallOffsetMs);
      return {
        ...none,
        steps: [...left.steps, ...(actions === undefined ? [] : stepsOf(actions))],
        waits: [...resizeWaits(plan), ...left.waits, ...waits],
        note: stale === undefined ? "" : `based on an old observation of the runtime: ${stale}`,
      };
  }
}

/**
 * Its sandbox is made after its volumes. Without a decision an operation works on the whole pod, which sets it up, unless
 * it restarts the containers in the sandbox that there is.
 */
function isSetUp({ actions, underWay }: WorkerPlan): boolean {
  if (actions === undefined) return underWay.length === 0 || underWay.includes("restart all containers");
  return actions.createSandbox === undefined && actions.sandboxWaitUntilMs === undefined;
}

function updatedPlan({ ref, underWay }: WorkerPlan): PodPlan {
  const note =
    "it changes in place: cpu and memory are resized by resizePolicy, otherwise changed containers are " +
    "restarted, new ephemeral ones started";
  return { ...ref, change: "updated", steps: [], waits: [], underWay, note };
}

/** The pod that has the name now goes. */
function replacedPlan({ ref, underWay }: WorkerPlan): PodPlan {
  const because = ["its manifest now defines another pod of this name"];
  return { ...ref, change: undefined, steps: [{ text: "stop the pod", because }], waits: [], underWay, note: "" };
}

function newPlan(
  { pod, change, replaces, waits: awaitedClaims }: PreviewedPod,
  plans: readonly WorkerPlan[],
  wanted: readonly Wanted[],
  volumes: VolumePlans,
): PodPlan {
  const ref = podRef(pod);
  const none: PodPlan = { ...ref, change, steps: [], waits: [], underWay: [], note: "" };
  const isSame = ({ namespace, name }: WorkerPlan["ref"]): boolean => namespace === ref.namespace && name === ref.name;
  const winner = wanted.find((other) => other.source !== "run" && isSame(podRef(other.pod)));
  if (winner !== undefined) {
    return { ...none, note: `it does not run while ${winner.place} has a pod of this name` };
  }
  const status = { uid: ref.uid, namespace: ref.namespace, name: ref.name, sandboxes: [], containers: [] };
  const steps = [...volumes.steps(pod), ...stepsOf(computePodActions(pod, status, firstStart))];
  const claims = awaitedClaims.map((text) => ({ text: `wait: ${text}`, because: [], until: undefined }));
  const rival = replaces ?? plans.find((plan) => isSame(plan.ref))?.ref.uid;
  return { ...none, steps, waits: [...(rival === undefined ? [] : [rivalWait(rival)]), ...claims] };
}

function rivalWait(uid: PodUid): PodPlan["waits"][number] {
  return { text: `wait for the removal of pod ${uid} of the same name`, because: [], until: undefined };
}

function stepsOf(actions: PodActions): PlanStep[] {
  return describeActions(actions).map(({ text, cause }) => ({ text, because: chain(cause) }));
}

function resizeWaits({ pendingResize }: WorkerPlan): PodPlan["waits"] {
  if (pendingResize === undefined) return [];
  const { reason, message } = pendingResize;
  const text = reason === "Infeasible" ? "its resize is infeasible" : "its resize is deferred";
  return [{ text, because: [message], until: undefined }];
}

function waitsOf(
  { waits, sandboxWaitUntilMs }: PodActions,
  { setUpFailure }: WorkerPlan,
  wallOffsetMs: number,
): PodPlan["waits"] {
  const containers = waits.map((wait) => ({
    text: `container ${wait.container.name} waits for its ${awaited(wait)}`,
    because: chain(wait.cause),
    until: Math.round(wait.untilMs + wallOffsetMs),
  }));
  if (sandboxWaitUntilMs === undefined) return containers;
  const because = [setUpFailure ?? "the last sandbox died soon after its creation"];
  return [
    ...containers,
    {
      text: "wait before setting up the pod and its sandbox",
      because,
      until: Math.round(sandboxWaitUntilMs + wallOffsetMs),
    },
  ];
}

function chain(cause: Cause): string[] {
  return [cause.message, ...(cause.because === undefined ? [] : chain(cause.because))];
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
