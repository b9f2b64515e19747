import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import { onNode1, pods } from "./pods.ts";
import { merge, type Steps, strategic } from "./scene.ts";

async function goes({ step, ask }: Steps): Promise<void> {
  const path = `${pods}/rich`;
  const { body: pod } = await ask("admin", `GET ${path}`);
  const view = (body: Fields): Fields => ({
    kind: body["kind"] ?? null,
    metadata: { ...fieldsAt(body, "metadata"), annotations: null },
  });
  await step("a pod of another UID is deleted", "admin", `DELETE ${path}`, { preconditions: { uid: "other" } });
  await step("a pod of another revision is deleted", "admin", `DELETE ${path}`, {
    preconditions: { resourceVersion: "1" },
  });
  await step("another's pod is deleted", "node2", `DELETE ${path}`, { gracePeriodSeconds: 0 });
  await step("a pod's deletion is only asked for", "admin", `DELETE ${path}?dryRun=All`, undefined, { view });
  await step("a pod is deleted", "admin", `DELETE ${path}`, undefined, { view });
  await step("a pod is deleted again", "admin", `DELETE ${path}`, undefined, { view });
  await step("a pod is deleted sooner", "admin", `DELETE ${path}?gracePeriodSeconds=5`, undefined, { view });
  await step("a pod is deleted later", "admin", `DELETE ${path}`, { gracePeriodSeconds: 60 }, { view });
  await step(
    "a pod that goes is labelled",
    "admin",
    `PATCH ${path}`,
    { metadata: { labels: { a: "2" } } },
    { type: merge, view },
  );
  await step(
    "a pod that goes gets a finalizer",
    "admin",
    `PATCH ${path}`,
    { metadata: { finalizers: ["example.com/f"] } },
    { type: merge },
  );
  const confirmed = { gracePeriodSeconds: 0, preconditions: { uid: textAt(pod, "metadata.uid") } };
  await step("a node's deletion of another UID", "node1", `DELETE ${path}`, {
    ...confirmed,
    preconditions: { uid: "other" },
  });
  await step("a node confirms that its pod is gone", "node1", `DELETE ${path}`, confirmed, { view });
  await step("a pod that is gone", "node1", `DELETE ${path}`, confirmed);
  await step("a pod that is over is deleted", "admin", `DELETE ${pods}/never`, undefined, { view });
  await step("a pod that is over is gone", "admin", `GET ${pods}/never`);
  await step("a pod on no node is deleted", "admin", `DELETE ${pods}/free`, undefined, { view });
  await step("a pod on no node is gone", "admin", `GET ${pods}/free`);
  await ask("admin", `POST ${pods}`, podNamed("held", onNode1, { finalizers: ["example.com/f"] }));
  await step("a held pod is deleted at once", "admin", `DELETE ${pods}/held?gracePeriodSeconds=0`, undefined, { view });
  await step(
    "a held pod is let go",
    "admin",
    `PATCH ${pods}/held`,
    { metadata: { finalizers: null } },
    { type: merge, view },
  );
  await step("a held pod is gone", "admin", `GET ${pods}/held`);
  await step("a bad grace", "admin", `DELETE ${pods}/odd`, { gracePeriodSeconds: "soon" });
  await ask("admin", `DELETE ${pods}/onfailure?gracePeriodSeconds=0`);
}

async function isBound({ step, ask }: Steps): Promise<void> {
  await ask("admin", `POST ${pods}`, podNamed("bound"));
  const binding = {
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: "bound" },
    target: { kind: "Node", name: "node1" },
  };
  await step("a pod is bound", "admin", `POST ${pods}/bound/binding`, binding);
  await step("a pod is bound again", "admin", `POST ${pods}/bound/binding`, binding);
  await step("no pod is bound", "admin", `POST ${pods}/none/binding`, { ...binding, metadata: { name: "none" } });
  await step("a bound pod", "admin", `GET ${pods}/bound`, undefined, {
    view: (body) => ({
      node: textAt(body, "spec.nodeName"),
      status: fieldsAt(body, "status"),
      generation: fieldsAt(body, "metadata")["generation"] ?? null,
    }),
  });
  const eviction = (name: string, more: Fields = {}): Fields => ({
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { name },
    ...more,
  });
  await step("another's pod is evicted", "node2", `POST ${pods}/bound/eviction`, eviction("bound"));
  await step("no pod is evicted", "admin", `POST ${pods}/none/eviction`, eviction("none"));
  await ask("admin", `POST /apis/policy/v1/namespaces/default/poddisruptionbudgets`, {
    ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "keep" } },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "kept" } } },
  });
  await ask("admin", `POST ${pods}`, podNamed("kept", onNode1, { labels: { app: "kept" } }));
  await ask(
    "admin",
    `PATCH ${pods}/kept/status`,
    { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
    { type: strategic },
  );
  await step("a pod is evicted against a budget", "admin", `POST ${pods}/kept/eviction`, eviction("kept"), {
    until: ({ body }) => !textAt(body, "message").includes("still being processed"),
  });
  await step(
    "a pod is evicted",
    "node1",
    `POST ${pods}/bound/eviction`,
    eviction("bound", { deleteOptions: { gracePeriodSeconds: 3 } }),
  );
  await step("an evicted pod", "admin", `GET ${pods}/bound`, undefined, {
    view: (body) => ({
      metadata: fieldsAt(body, "metadata"),
      conditions: fieldsAt(body, "status")["conditions"] ?? null,
    }),
  });
}

async function mirrors({ step, ask }: Steps): Promise<void> {
  const { body: node } = await ask("admin", "GET /api/v1/nodes/node1");
  const owner = { apiVersion: "v1", kind: "Node", name: "node1", uid: textAt(node, "metadata.uid"), controller: true };
  const annotations = {
    "kubernetes.io/config.mirror": "h",
    "kubernetes.io/config.hash": "h",
    "kubernetes.io/config.source": "file",
  };
  const mirror = (metadata: Fields, spec: Fields = onNode1): Fields =>
    podNamed(
      "static-node1",
      { tolerations: [{ operator: "Exists", effect: "NoExecute" }], ...spec },
      { annotations, ownerReferences: [owner], ...metadata },
    );
  const wrong: Readonly<Record<string, Fields>> = {
    "no mirror": mirror({ annotations: {} }),
    "without owner": mirror({ ownerReferences: [] }),
    "of another owner": mirror({ ownerReferences: [{ ...owner, name: "node2" }] }),
    "of another UID": mirror({ ownerReferences: [{ ...owner, uid: "other" }] }),
    "of an owner that is no controller": mirror({ ownerReferences: [{ ...owner, controller: false }] }),
    "that blocks its owner": mirror({ ownerReferences: [{ ...owner, blockOwnerDeletion: true }] }),
    "on another node": mirror({}, { nodeName: "node2" }),
    "with a secret": mirror({}, { ...onNode1, volumes: [{ name: "s", secret: { secretName: "wanted" } }] }),
    "with an account": mirror({}, { ...onNode1, serviceAccountName: "default" }),
  };
  for (const [name, pod] of Object.entries(wrong)) await step(`a mirror pod ${name}`, "node1", `POST ${pods}`, pod);
  const { body: made } = await step("a mirror pod", "node1", `POST ${pods}`, mirror({}));
  await step(
    "a mirror pod's hash is changed",
    "admin",
    `PATCH ${pods}/static-node1`,
    { metadata: { annotations: { "kubernetes.io/config.mirror": "x" } } },
    { type: merge },
  );
  await step(
    "a mirror pod's status",
    "node1",
    `PATCH ${pods}/static-node1/status`,
    { metadata: { uid: textAt(made, "metadata.uid") }, status: { phase: "Running" } },
    { type: strategic, view: (body) => fieldsAt(body, "status") },
  );
  await step(
    "a mirror pod is deleted",
    "node1",
    `DELETE ${pods}/static-node1`,
    { gracePeriodSeconds: 0, preconditions: { uid: textAt(made, "metadata.uid") } },
    { view: (body) => body["kind"] ?? null },
  );
}

export async function playPodEnds(steps: Steps): Promise<void> {
  await goes(steps);
  await isBound(steps);
  await mirrors(steps);
}
