import { type Fields, fieldsAt, itemsAt, listAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import { onNode1, pods } from "./pods.ts";
import { merge, type Steps, strategic } from "./scene.ts";

const steady = `${pods}/steady`;

async function changes({ step, ask }: Steps): Promise<void> {
  const mount = { name: "none", mountPath: "/m" };
  const image = "podwright.local/demo:1";
  await step(
    "a pod of no restart policy that there is",
    "admin",
    `POST ${pods}`,
    podNamed("bad", { restartPolicy: "No" }),
  );
  await step(
    "a pod mounts what it does not have",
    "admin",
    `POST ${pods}`,
    podNamed("bad", {
      volumes: [{ name: "there", emptyDir: {} }],
      initContainers: [{ name: "init", image, volumeMounts: [mount] }],
      containers: [{ name: "app", image, volumeMounts: [{ name: "there", mountPath: "/t" }, mount] }],
    }),
  );
  const own = { key: "own", operator: "Exists" };
  await ask("admin", `POST ${pods}`, podNamed("steady", { ...onNode1, tolerations: [own] }));
  const change = async (name: string, spec: Fields): Promise<void> => {
    await step(
      name,
      "admin",
      `PATCH ${steady}`,
      { spec },
      {
        type: merge,
        view: (body) => ({
          tolerations: fieldsAt(body, "spec")["tolerations"] ?? null,
          deadline: fieldsAt(body, "spec")["activeDeadlineSeconds"] ?? null,
        }),
      },
    );
  };
  await change("a pod's grace is cut", { terminationGracePeriodSeconds: 5 });
  await change("a pod's tolerations are removed", { tolerations: null });
  await change("a pod tolerates more, and less is put back", {
    tolerations: [own, { key: "more", operator: "Exists" }],
  });
  await change("a pod's deadline is negative", { activeDeadlineSeconds: -1 });
  await change("a pod gets a deadline", { activeDeadlineSeconds: 100 });
  await change("a pod's deadline comes later", { activeDeadlineSeconds: 200 });
  await change("a pod's deadline goes", { activeDeadlineSeconds: null });
  await change("a pod's deadline comes sooner", { activeDeadlineSeconds: 50 });
  await change("a pod gets a gate", { schedulingGates: [{ name: "example.com/gate" }] });
}

async function isPrinted({ step, ask }: Steps): Promise<void> {
  const container = (name: string, more: Fields = {}): Fields => ({ name, image: "podwright.local/demo:1", ...more });
  const spec = {
    ...onNode1,
    initContainers: [container("proxy", { restartPolicy: "Always" }), container("init")],
    containers: [container("app"), container("job")],
  };
  await ask("admin", `POST ${pods}`, podNamed("printed", spec));
  const started = "2026-01-02T03:04:05Z";
  const said = (name: string, state: Fields, more: Fields = {}): Fields => ({
    ...{ name, image: "podwright.local/demo:1", imageID: "i", restartCount: 0, ready: false, state, ...more },
  });
  const runs = { running: { startedAt: started } };
  const up = (name: string): Fields => said(name, runs, { ready: true, started: true });
  const over = (exitCode: number, more: Fields = {}): Fields => ({
    terminated: { exitCode, startedAt: started, finishedAt: started, ...more },
  });
  const waiting = said("app", { waiting: { reason: "PodInitializing" } });
  const scenes: Readonly<Record<string, Fields>> = {
    "begins behind a sidecar": {
      initContainerStatuses: [up("proxy"), said("init", runs, { started: true })],
      containerStatuses: [waiting],
    },
    "failed to begin": { initContainerStatuses: [up("proxy"), said("init", over(3))], containerStatuses: [waiting] },
    "runs beside a job that is done": {
      initContainerStatuses: [up("proxy"), said("init", over(0, { reason: "Completed" }))],
      containerStatuses: [up("app"), said("job", over(0, { reason: "Completed" }))],
    },
    "was killed": {
      initContainerStatuses: [up("proxy"), said("init", over(0, { reason: "Completed" }))],
      containerStatuses: [said("app", over(137, { signal: 9 })), up("job")],
    },
  };
  for (const [name, status] of Object.entries(scenes)) {
    const shown = { type: merge };
    await ask("admin", `PATCH ${pods}/printed/status`, { status: { phase: "Running", ...status } }, shown);
    await step(`a table of a pod that ${name}`, "admin", `GET ${pods}/printed`, undefined, {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
      view: (body) => listAt(itemsAt(body, "rows")[0], "cells").slice(0, 4),
    });
  }
  await step("a table with whole objects", "admin", `GET ${pods}?includeObject=Object`, undefined, {
    accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    view: (body) => itemsAt(body, "rows").map((row) => [fieldsAt(row, "object")["kind"] ?? null]),
  });
}

async function hasTwoBudgets({ step, ask }: Steps): Promise<void> {
  for (const name of ["first", "second"]) {
    await ask("admin", "POST /apis/policy/v1/namespaces/default/poddisruptionbudgets", {
      ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name } },
      spec: { minAvailable: 1, selector: { matchLabels: { app: "twice" } } },
    });
  }
  await ask("admin", `POST ${pods}`, podNamed("twice", onNode1, { labels: { app: "twice" } }));
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "twice" } };
  const running = { status: { phase: "Running" } };
  await ask("admin", `PATCH ${pods}/twice/status`, running, { type: strategic });
  await step("a pod of two budgets is evicted", "admin", `POST ${pods}/twice/eviction`, eviction);
  await ask("admin", `PATCH ${pods}/twice/status`, { status: { phase: "Pending" } }, { type: strategic });
  await step("a pod of two budgets is evicted that does not run", "admin", `POST ${pods}/twice/eviction`, eviction);
}

async function isSomebodyElse({ step }: Steps): Promise<void> {
  const itself = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  const as = { "Impersonate-User": "ann" };
  const whole = {
    ...as,
    "Impersonate-Group": ["a,b", "c"],
    "Impersonate-Uid": "7",
    "Impersonate-Extra-example.com%2Fscope": ["read", "write"],
  };
  await step("an administrator acts as somebody", "admin", itself, review, { headers: as });
  await step("an administrator acts as somebody of groups", "admin", itself, review, { headers: whole });
  const account = { "Impersonate-User": "system:serviceaccount:team:robot" };
  await step("an administrator acts as an account", "admin", itself, review, { headers: account });
  await step("an administrator acts as a group alone", "admin", itself, review, {
    headers: { "Impersonate-Group": "a" },
  });
  await step("a node acts as somebody", "node1", itself, review, { headers: as });
  await step("a node acts as an account", "node1", itself, review, { headers: account });
  await step("somebody lists nodes", "admin", "GET /api/v1/nodes", undefined, { headers: as });
  await step(
    "an administrator asks what they may do",
    "admin",
    "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectRulesReview",
      spec: { namespace: "default" },
    },
    { view: (body) => itemsAt(body, "status.resourceRules").some((rule) => listAt(rule, "verbs").includes("*")) },
  );
}

/** Valid and invalid pods, their table output, and impersonation. */
export async function playPodSpecs(steps: Steps): Promise<void> {
  await changes(steps);
  await isPrinted(steps);
  await hasTwoBudgets(steps);
  await isSomebodyElse(steps);
}
