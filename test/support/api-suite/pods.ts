import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { podNamed } from "../../apiserver/testing.ts";
import type { Steps } from "./scene.ts";

export const pods = "/api/v1/namespaces/default/pods";
export const onNode1 = { nodeName: "node1" };

/** A pod with something of everything that has defaults. */
const rich = podNamed("rich", {
  ...onNode1,
  containers: [
    {
      name: "app",
      image: "podwright.local/demo",
      resources: { limits: { cpu: "1", memory: "64Mi" } },
      ports: [{ containerPort: 80 }],
      env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
      livenessProbe: { httpGet: { port: 80 } },
      readinessProbe: { exec: { command: ["true"] } },
      lifecycle: { preStop: { httpGet: { port: "http" } } },
      volumeMounts: [{ name: "config", mountPath: "/c" }],
    },
  ],
  volumes: [
    { name: "config", configMap: { name: "wanted" } },
    { name: "secret", secret: { secretName: "wanted" } },
    { name: "empty", emptyDir: {} },
    { name: "host", hostPath: { path: "/tmp" } },
  ],
});

async function comesToBe({ step, ask }: Steps): Promise<void> {
  await step("a pod gets its defaults", "admin", `POST ${pods}`, rich);
  const exact = podNamed("bad", { containers: [{ name: "a", image: "i", resources: { limits: { cpu: "1000m" } } }] });
  await step("a quantity", "admin", `POST ${pods}?dryRun=All`, exact, {
    view: (body) => (fieldsAt(body, "spec")["containers"] as readonly Fields[])[0]?.["resources"] ?? null,
  });
  await step("a pod exists already", "admin", `POST ${pods}`, rich);
  await step("a pod of no containers", "admin", `POST ${pods}`, podNamed("bad", { containers: [] }));
  await step("a pod without an image", "admin", `POST ${pods}`, podNamed("bad", { containers: [{ name: "a" }] }));
  await step("a pod of a bad name", "admin", `POST ${pods}`, podNamed("Bad_Name"));
  await step("a pod without a name", "admin", `POST ${pods}`, podNamed(""));
  await step("a pod of another account", "admin", `POST ${pods}`, podNamed("bad", { serviceAccountName: "none" }));
  await step("a pod in no namespace", "admin", "POST /api/v1/namespaces/none/pods", podNamed("bad"));
  await step(
    "a pod in another namespace than it says",
    "admin",
    `POST ${pods}`,
    podNamed("bad", {}, { namespace: "x" }),
  );
  await step("a pod of another kind", "admin", `POST ${pods}`, { ...podNamed("bad"), kind: "Node" });
  await step("a pod with a revision", "admin", `POST ${pods}`, podNamed("bad", {}, { resourceVersion: "5" }));
  await step("a pod with unknown fields", "admin", `POST ${pods}`, podNamed("odd", { color: "red", ...onNode1 }), {
    view: ({ spec }) => ({ color: (spec as Fields)["color"] ?? null }),
  });
  await step(
    "a pod with unknown fields, strictly",
    "admin",
    `POST ${pods}?fieldValidation=Strict`,
    podNamed("bad", { color: "red" }),
  );
  await step("a pod of bad types", "admin", `POST ${pods}`, podNamed("bad", { hostNetwork: "yes" }));
  await step("a pod that is only asked for", "admin", `POST ${pods}?dryRun=All`, podNamed("dry"), {
    view: ({ metadata }) =>
      Object.keys(metadata as Fields)
        .filter((name) => name !== "managedFields")
        .toSorted(),
  });
  await step("a pod that was only asked for is not there", "admin", `GET ${pods}/dry`);
  await step("a pod of a priority class", "admin", `POST ${pods}`, podNamed("bad", { priorityClassName: "none" }));
  await step("a pod of a runtime class", "admin", `POST ${pods}`, podNamed("bad", { runtimeClassName: "none" }));
  await ask("admin", `POST ${pods}`, podNamed("free", {}, { labels: { app: "free" } }));
  await step("a pod that is not here", "admin", `GET ${pods}/none`);
}

async function isSeen({ step }: Steps): Promise<void> {
  const names = ({ kind, apiVersion, metadata, items }: Fields): Fields => ({
    ...{ kind: kind ?? null, apiVersion: apiVersion ?? null, metadata: metadata ?? null },
    names: (items as readonly Fields[]).map((each) => textAt(each, "metadata.name")),
    bare: (items as readonly Fields[]).every((each) => each["kind"] === undefined),
  });
  const mine = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode1";
  await step("a node lists its pods", "node1", `GET ${mine}`, undefined, { view: names });
  await step("a node lists its pods from a cache", "node1", `GET ${mine}&resourceVersion=0&limit=1`, undefined, {
    view: names,
  });
  await step("a node lists pods by page", "node1", `GET ${mine}&limit=1`, undefined, { view: names });
  await step("a node lists all pods", "node1", "GET /api/v1/pods");
  await step("a node lists another's pods", "node1", "GET /api/v1/pods?fieldSelector=spec.nodeName%3Dnode2");
  await step("a node reads its pod", "node1", `GET ${pods}/rich`, undefined, { view: ({ kind }) => kind ?? null });
  await step("a node reads a pod that is not its own", "node2", `GET ${pods}/rich`);
  await step("a node reads a pod that is not there", "node1", `GET ${pods}/none`);
  await step("pods by a field that there is not", "admin", `GET ${pods}?fieldSelector=spec.color%3Dred`);
  await step("pods by a bad selector", "admin", `GET ${pods}?labelSelector=a%3D%3D%3Db`);
  await step("pods by label", "admin", `GET ${pods}?labelSelector=app%20in%20(free)`, undefined, { view: names });
  await step("pods of a bad revision", "admin", `GET ${pods}?resourceVersion=x`);
  await step("pods of a revision to come", "admin", `GET ${pods}?resourceVersion=99999999`);
  await step("a pod of a revision to come", "admin", `GET ${pods}/rich?resourceVersion=99999999`);
  await step("pods by a bad token", "admin", `GET ${pods}?continue=x`);
  await step("exactly no revision", "admin", `GET ${pods}?resourceVersionMatch=Exact`);
  const table = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" };
  await step("pods as a table", "admin", `GET ${pods}?labelSelector=app`, undefined, {
    ...table,
    view: ({ kind, apiVersion, columnDefinitions, rows }) => ({
      ...{
        kind,
        apiVersion,
        columns: (columnDefinitions as readonly Fields[]).map(({ description: _description, ...column }) => column),
      },
      rows: (rows as readonly Fields[]).map(({ cells, object }) => [
        (cells as readonly string[]).map((cell, i) => (i === 4 ? "<age>" : cell)),
        object as Fields,
      ]),
    }),
  });
  await step("a pod as what there is not", "admin", `GET ${pods}/rich`, undefined, { accept: "text/html" });
  const partial = { accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io" };
  await step("only a pod's metadata", "admin", `GET ${pods}/rich`, undefined, partial);
}

export async function playPods(steps: Steps): Promise<void> {
  await comesToBe(steps);
  await isSeen(steps);
}
