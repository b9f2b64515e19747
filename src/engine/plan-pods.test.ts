import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { testContainer, testPod } from "../../test/support/observed.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { unwanted } from "../pods/ending.ts";
import type { WorkerPlan } from "../pods/worker-plan.ts";
import { nothingToDo } from "../runtime/actions/pod-actions.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PodPlan } from "../server/local-api.ts";
import { planPods } from "./plan-pods.ts";

const pod = testPod();
const ref = podRef(pod);
const cause: Cause = { code: "Resync", message: "near", because: { code: "Resync", message: "far" } };
const wallOffsetMs = 1_000_000;

const running: WorkerPlan = {
  ref,
  state: { kind: "syncing" },
  forgotten: false,
  behind: undefined,
  overdue: undefined,
  pendingResize: undefined,
  setUpFailure: undefined,
  underWay: [],
  stale: undefined,
  actions: nothingToDo,
};

function only(plan: Partial<WorkerPlan>): PodPlan {
  const plans = planPods([{ ...running, ...plan }], { pods: [] }, [], wallOffsetMs);
  assert.equal(plans.length, 1);
  return plans[0] as PodPlan;
}

const another = (uid: string): Pod => ({ ...pod, metadata: { ...pod.metadata, uid: podUid(uid) } });

test("nothing is planned for a pod that runs as specified", () => {
  const none = { change: undefined, steps: [], waits: [], underWay: [], note: "" };
  assert.deepEqual(only({}), { ...ref, ...none });
});

test("a decision is shown step by step with its whole chain of causes, and waits with their end", () => {
  const container = pod.spec.containers[0];
  assert.ok(container);
  const observed = testContainer({ name: container.name });
  const { steps, waits } = only({
    actions: {
      ...nothingToDo,
      containersToKill: [{ container: observed, cause, eventMessage: "killed" }],
      waits: [{ container, exited: observed, untilMs: 500, cause }],
      sandboxWaitUntilMs: 700,
    },
  });
  assert.deepEqual(
    steps.map(({ because }) => because),
    [["near", "far"]],
  );
  assert.match(steps[0]?.text ?? "", /^stop container /u);
  assert.deepEqual(
    waits.map(({ text, until }) => [text, until]),
    [
      [`container ${container.name} waits for its next restart`, 1_000_500],
      ["wait before setting up the pod and its sandbox", 1_000_700],
    ],
  );
});

test("a wait shows the actual reason that prevents a pod's setup", () => {
  const actions = { ...nothingToDo, sandboxWaitUntilMs: 700 };
  const because = (plan: Partial<WorkerPlan>): unknown => only({ actions, ...plan }).waits.map((wait) => wait.because);
  assert.deepEqual(because({ setUpFailure: 'ConfigMap "default/settings" not found' }), [
    ['ConfigMap "default/settings" not found'],
  ]);
  assert.deepEqual(because({}), [["the last sandbox died soon after its creation"]]);
});

test("a resize that is not granted is shown with its reason", () => {
  const message = "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 2000";
  const waits = (reason: "Infeasible" | "Deferred"): unknown => only({ pendingResize: { reason, message } }).waits;
  const wait = { because: [message], until: undefined };
  assert.deepEqual(waits("Infeasible"), [{ ...wait, text: "its resize is infeasible" }]);
  assert.deepEqual(waits("Deferred"), [{ ...wait, text: "its resize is deferred" }]);
});

test("pods that are terminating, ended, overdue or waiting for their name are shown as such", () => {
  const ending = unwanted(cause, 3);
  const stopping = only({ state: { kind: "terminating", ending, killAtMs: 3000 }, actions: undefined });
  const because = ["near", "far"];
  assert.deepEqual(stopping.waits, [{ text: "it is being stopped; SIGKILL", because, until: 1_003_000 }]);
  const state = { kind: "terminated", ending, killAtMs: 3000, released: false, recorded: false } as const;
  assert.equal(only({ state }).note, "the pod has ended: near");
  assert.deepEqual(only({ state, forgotten: true }).steps, [{ text: "remove the pod", because }]);
  assert.deepEqual(only({ overdue: cause, actions: undefined }).steps, [{ text: "stop the pod", because }]);
  assert.match(
    only({ behind: podUid("u0"), actions: undefined }).waits[0]?.text ?? "",
    /wait for the removal of pod u0 of the same name/u,
  );
  assert.match(only({ stale: "no answer" }).note, /no answer/u);
});

test("an added pod starts; a replaced one is stopped first; an unchanged one stays", () => {
  const added = planPods([], { pods: [{ pod, change: "added", replaces: undefined, waits: [] }] }, [], 0);
  assert.deepEqual(
    added.map(({ change, steps }) => [
      change,
      steps.map(({ text }) => text.replace(/container \S+,/u, "container x,")),
    ]),
    [["added", ["create sandbox, attempt 0", "start container x, attempt 0"]]],
  );
  const replaced = planPods(
    [running],
    { pods: [{ pod: another("new"), change: "replaced", replaces: ref.uid, waits: [] }] },
    [],
    0,
  );
  assert.deepEqual(
    replaced.map(({ uid, change, steps }) => [uid, change, steps[0]?.text]),
    [
      [ref.uid, undefined, "stop the pod"],
      ["new", "replaced", "create sandbox, attempt 0"],
    ],
  );
  assert.match(
    replaced[1]?.waits[0]?.text ?? "",
    new RegExp(`wait for the removal of pod ${ref.uid} of the same name`, "u"),
  );
  const wait = "claim default/data does not exist";
  const [waiting] = planPods([], { pods: [{ pod, change: "added", replaces: undefined, waits: [wait] }] }, [], 0);
  assert.deepEqual(
    waiting?.waits.map(({ text }) => text),
    [`wait: ${wait}`],
  );
  const unchanged = planPods([running], { pods: [{ pod, change: "unchanged", replaces: ref.uid, waits: [] }] }, [], 0);
  assert.deepEqual(unchanged, [{ ...only({}), change: "unchanged" }]);
});

test("a manifest that names the UID of the running pod changes it in place", () => {
  const [plan, ...others] = planPods(
    [running],
    { pods: [{ pod, change: "updated", replaces: ref.uid, waits: [] }] },
    [],
    0,
  );
  assert.deepEqual(others, []);
  assert.deepEqual([plan?.change, plan?.steps], ["updated", []]);
  assert.match(plan?.note ?? "", /changes in place: cpu and memory are resized/u);
});

test("a pod whose name another source has taken does not run", () => {
  const wanted = [{ source: "file", pod: another("static"), place: "/etc/manifests/web.yaml" }] as const;
  const [plan] = planPods([], { pods: [{ pod, change: "added", replaces: undefined, waits: [] }] }, wanted, 0);
  assert.deepEqual(plan?.steps, []);
  assert.match(plan?.note ?? "", /while \/etc\/manifests\/web\.yaml has a pod of this name/u);
});
