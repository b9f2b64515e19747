import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import { onNode1, pods } from "./pods.ts";
import { json, merge, type Steps, strategic } from "./scene.ts";

const running = { name: "app", image: "podwright.local/demo:1", imageID: "i", restartCount: 0 };
const started = "2026-01-02T03:04:05Z";

const shownStatus = (body: Fields): Fields => ({
  status: fieldsAt(body, "status"),
  generation: fieldsAt(body, "metadata")["generation"] ?? null,
});
const rich = `${pods}/rich`;
const patch = { type: strategic, view: shownStatus };

function status(phase: string, state: Fields, more: Fields = {}): Fields {
  return { status: { phase, containerStatuses: [{ ...running, ready: false, started: false, state }], ...more } };
}

async function saysHowItIs({ step, ask }: Steps): Promise<void> {
  const { body: pod } = await ask("admin", `GET ${rich}`);
  const uid = textAt(pod, "metadata.uid");
  const conditions = ["Initialized", "Ready", "ContainersReady", "PodScheduled"];
  const ready = {
    metadata: { uid },
    status: {
      ...fieldsAt(status("Running", { running: { startedAt: started } }), "status"),
      "$setElementOrder/conditions": conditions.map((type) => ({ type })),
      conditions: conditions.map((type) => ({
        type,
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: started,
        observedGeneration: 1,
      })),
      "$setElementOrder/podIPs": [{ ip: "192.0.2.7" }],
      ...{
        podIPs: [{ ip: "192.0.2.7" }],
        podIP: "192.0.2.7",
        hostIP: "192.0.2.1",
        startTime: started,
        observedGeneration: 1,
      },
    },
  };
  await step("a node says how its pod is", "node1", `PATCH ${rich}/status`, ready, patch);
  await step("a node says how another's pod is", "node2", `PATCH ${rich}/status`, ready, patch);
  await step(
    "a node says how a pod of another UID is",
    "node1",
    `PATCH ${rich}/status`,
    { ...ready, metadata: { uid: "other" } },
    patch,
  );
  await step("a node says how a pod is that is not there", "node1", `PATCH ${pods}/none/status`, ready, patch);
  const moved = {
    metadata: { uid },
    status: {
      $retainKeys: null,
      "$setElementOrder/conditions": [{ type: "Ready" }, { type: "Initialized" }],
      conditions: [
        { type: "Ready", status: "False" },
        { $patch: "delete", type: "ContainersReady" },
      ],
    },
  };
  const { $retainKeys: _, ...movedStatus } = moved.status;
  await step("conditions move and go", "node1", `PATCH ${rich}/status`, { ...moved, status: movedStatus }, patch);
}

async function keepsApart({ step }: Steps): Promise<void> {
  const sneaky = { metadata: { labels: { a: "1" } }, spec: { activeDeadlineSeconds: 9 } };
  await step("a node labels its pod through its status", "node1", `PATCH ${rich}/status`, sneaky, patch);
  await step(
    "a status patch changes a pod's spec",
    "admin",
    `PATCH ${rich}/status`,
    { ...sneaky, metadata: { annotations: { a: "1" }, ownerReferences: [] } },
    {
      type: strategic,
      view: (body) => ({
        deadline: fieldsAt(body, "spec")["activeDeadlineSeconds"] ?? null,
        notes: fieldsAt(body, "metadata.annotations"),
      }),
    },
  );
  await step(
    "a patch changes a pod's status",
    "admin",
    `PATCH ${rich}`,
    { status: { phase: "Failed" } },
    { type: merge, view: (body) => textAt(body, "status.phase") },
  );
  await step("a node patches its pod", "node1", `PATCH ${rich}`, { metadata: { labels: { a: "1" } } }, { type: merge });
  await step(
    "a pod's command is changed",
    "admin",
    `PATCH ${rich}`,
    { spec: { containers: [{ name: "app", command: ["x"] }] } },
    { type: strategic },
  );
  await step(
    "a pod's image is changed",
    "admin",
    `PATCH ${rich}`,
    { spec: { containers: [{ name: "app", image: "other:1" }] } },
    {
      type: strategic,
      view: (body) => ({
        spec: (fieldsAt(body, "spec")["containers"] as readonly Fields[])[0]?.["image"] ?? null,
        generation: fieldsAt(body, "metadata")["generation"] ?? null,
      }),
    },
  );
  await step("a pod's node is changed", "admin", `PATCH ${rich}`, { spec: { nodeName: "node2" } }, { type: merge });
}

async function runsAgain({ step, ask }: Steps): Promise<void> {
  const over = status("Running", { terminated: { exitCode: 1, startedAt: started, finishedAt: started } });
  await step("a container that restarts ends", "node1", `PATCH ${rich}/status`, over, patch);
  await step(
    "a container that restarts runs again",
    "node1",
    `PATCH ${rich}/status`,
    status("Running", { running: { startedAt: started } }),
    patch,
  );
  await step(
    "a JSON patch of a pod",
    "node1",
    `PATCH ${rich}/status`,
    [{ op: "add", path: "/status/message", value: "m" }],
    { type: json, view: shownStatus },
  );
  const { body: now } = await ask("admin", `GET ${rich}`);
  const put = {
    ...now,
    status: { ...fieldsAt(now, "status"), reason: "R" },
    metadata: { ...fieldsAt(now, "metadata"), resourceVersion: "1" },
  };
  await step("a status is put from an old revision", "node1", `PUT ${rich}/status`, put);
  await step(
    "a status is put",
    "node1",
    `PUT ${rich}/status`,
    { ...put, metadata: fieldsAt(now, "metadata") },
    { view: shownStatus },
  );
  await step(
    "a phase that there is not",
    "node1",
    `PATCH ${rich}/status`,
    { status: { phase: "Dreaming" } },
    { ...patch },
  );
  await step("a status without a QoS class", "node1", `PATCH ${rich}/status`, { status: { qosClass: null } }, patch);
}

async function grows({ step, ask }: Steps): Promise<void> {
  const resized = {
    spec: { containers: [{ name: "app", resources: { requests: { memory: "128Mi" }, limits: { memory: "128Mi" } } }] },
  };
  await step("a pod is resized whose node does not tell what it has", "admin", `PATCH ${rich}/resize`, resized, {
    type: strategic,
  });
  const told = {
    status: { containerStatuses: [{ name: "app", resources: { limits: { cpu: "1", memory: "64Mi" } } }] },
  };
  await ask("node1", `PATCH ${rich}/status`, told, { type: strategic });
  await step("a pod is resized", "admin", `PATCH ${rich}/resize`, resized, {
    type: strategic,
    view: (body) => (fieldsAt(body, "spec")["containers"] as readonly Fields[])[0]?.["resources"] ?? null,
  });
  const burst = { spec: { containers: [{ name: "app", resources: { requests: { memory: "64Mi" } } }] } };
  await step("a pod is resized to another QoS class", "admin", `PATCH ${rich}/resize`, burst, { type: strategic });
  const ephemeral = { spec: { ephemeralContainers: [{ name: "debug", image: "x:1", targetContainerName: "app" }] } };
  await step("a pod gets an ephemeral container", "admin", `PATCH ${rich}/ephemeralcontainers`, ephemeral, {
    type: strategic,
    view: (body) => fieldsAt(body, "spec")["ephemeralContainers"] ?? null,
  });
}

async function ends({ step, ask }: Steps): Promise<void> {
  for (const policy of ["Never", "OnFailure"]) {
    const path = `${pods}/${policy.toLowerCase()}`;
    await ask("admin", `POST ${pods}`, podNamed(policy.toLowerCase(), { ...onNode1, restartPolicy: policy }));
    const over = (exitCode: number, phase = "Running"): Fields =>
      status(phase, { terminated: { exitCode, startedAt: started, finishedAt: started } });
    const options = { type: strategic, view: (body: Fields) => fieldsAt(body, "status") };
    await step(`${policy}: it fails`, "node1", `PATCH ${path}/status`, over(1), options);
    const again = status("Running", { running: { startedAt: started } });
    await step(`${policy}: it runs again after it failed`, "node1", `PATCH ${path}/status`, again, options);
    await step(`${policy}: it succeeds`, "node1", `PATCH ${path}/status`, over(0), options);
    await step(`${policy}: it runs again after it succeeded`, "node1", `PATCH ${path}/status`, again, options);
    await step(`${policy}: its pod is over`, "node1", `PATCH ${path}/status`, over(0, "Succeeded"), options);
    await step(
      `${policy}: its pod goes back`,
      "node1",
      `PATCH ${path}/status`,
      { status: { phase: "Running" } },
      options,
    );
  }
}

export async function playPodChanges(steps: Steps): Promise<void> {
  await saysHowItIs(steps);
  await keepsApart(steps);
  await runsAgain(steps);
  await grows(steps);
  await ends(steps);
}
