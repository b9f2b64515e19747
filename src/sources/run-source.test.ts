import assert from "node:assert/strict";
import { test } from "node:test";
import { configMap, directory, nothing, pod, secret, started } from "../../test/support/run-fixture.ts";
import { noStorage } from "../../test/support/sources.ts";
import type { PodManifest } from "../api/pod.ts";
import type { ClaimManifest } from "../api/storage-manifest.ts";
import { FileError } from "../ports/files.ts";
import { ManifestError } from "../yaml/manifest-error.ts";

test("partially written files of a killed run are removed", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [pod("web")] });
  await fixture.files.write(`${directory}/.0123456789abcdef01234567.tmp`, "{", 0o600);
  await fixture.restart();
  assert.deepEqual(
    (await fixture.files.list(directory)).map(({ name }) => name.slice(0, 4)),
    ["pod_"],
  );
  assert.equal(fixture.uids?.length, 1);
});

test("pods keep their names, get a UID, defaults and the node's name, and are in files that only root reads", async () => {
  const fixture = await started();
  assert.deepEqual(fixture.pods, []);
  const applied = await fixture.source.apply({ ...nothing, pods: [pod("web")] });
  const uid = "01010101-0101-4101-8101-010101010101";
  assert.deepEqual(applied, [{ namespace: "default", name: "web", uid, change: "added" }]);
  const sourced = fixture.delivered.at(-1)?.pods[0];
  assert.equal(sourced?.pod.metadata.uid, uid);
  assert.equal(sourced.pod.spec.nodeName, "node1");
  assert.equal(sourced.pod.spec.restartPolicy, "Always");
  const [entry] = await fixture.files.list(directory);
  assert.match(entry?.name ?? "", /^pod_default_web_[0-9a-f]{16}\.json$/u);
  assert.equal((await fixture.files.stat(`${directory}/${entry?.name ?? ""}`))?.mode, 0o600);
});

test("the next run has the same pods with the same UIDs, and their ConfigMaps and Secrets", async () => {
  const fixture = await started();
  await fixture.source.apply({ pods: [pod("a"), pod("b")], configMaps: [configMap], secrets: [secret] });
  const before = fixture.delivered.at(-1);
  await fixture.restart();
  assert.deepEqual(fixture.delivered.at(-1), before);
  assert.equal(fixture.source.objects.configMap("default", "m")?.data.get("k"), "v");
  const decoder = new TextDecoder();
  const data = fixture.source.objects.secret("default", "s")?.data;
  assert.deepEqual([decoder.decode(data?.get("a")), decoder.decode(data?.get("b"))], ["hunter2", "text"]);
});

test("a preview shows what an application would change, and changes nothing", async () => {
  const fixture = await started();
  await fixture.source.apply({ pods: [pod("a"), pod("b")], configMaps: [configMap], secrets: [secret] });
  const [kept = "", other = ""] = fixture.uids ?? [];
  const deliveries = fixture.delivered.length;
  const { pods, objects } = fixture.source.preview({
    pods: [pod("a"), pod("b", "nginx"), pod("c")],
    configMaps: [
      { ...configMap, data: { k: "w" } },
      { ...configMap, metadata: { name: "new" } },
    ],
    secrets: [secret],
  });
  assert.deepEqual(
    pods.map(({ pod: { metadata }, change, replaces }) => [metadata.name, change, replaces]),
    [
      ["a", "unchanged", kept],
      ["b", "replaced", other],
      ["c", "added", undefined],
    ],
  );
  assert.notEqual(pods[1]?.pod.metadata.uid, other);
  assert.equal(pods[2]?.pod.spec.restartPolicy, "Always", "with defaults, as it would run");
  assert.deepEqual(
    objects.map(({ kind, name, change }) => `${kind} ${name} ${change}`),
    ["ConfigMap m replaced", "ConfigMap new added", "Secret s unchanged"],
  );
  assert.equal(fixture.delivered.length, deliveries);
  assert.equal(fixture.source.objects.configMap("default", "m")?.data.get("k"), "v");
  assert.throws(() => fixture.source.preview({ ...nothing, pods: [pod("Bad_Name")] }), /metadata\.name/u);
});

test("equal content keeps its UID, other content gets another", async () => {
  const fixture = await started();
  const change = async (manifest: PodManifest): Promise<string[]> =>
    (await fixture.source.apply({ ...nothing, pods: [manifest] })).map((applied) => applied.change);
  assert.deepEqual(await change(pod("web")), ["added"]);
  const [uid] = fixture.uids ?? [];
  await fixture.restart();
  assert.deepEqual(await change(pod("web")), ["unchanged"]);
  assert.deepEqual(await change({ ...pod("web"), metadata: { namespace: "default", name: "web" } }), ["unchanged"]);
  assert.deepEqual(fixture.uids, [uid]);
  assert.deepEqual(await change(pod("web", "alpine")), ["replaced"]);
  assert.notDeepEqual(fixture.uids, [uid]);
  assert.deepEqual(await change({ ...pod("web"), metadata: { name: "web", uid: "mine" } }), ["replaced"]);
  assert.deepEqual(fixture.uids, ["mine"]);
});

const debugged = (...names: readonly string[]): PodManifest => ({
  ...pod("web"),
  spec: { ...pod("web").spec, ephemeralContainers: names.map((name) => ({ name, image: "busybox" })) },
});

test("ephemeral containers are added to the running pod, under its UID", async () => {
  const fixture = await started();
  const apply = async (manifest: PodManifest): Promise<string | undefined> =>
    (await fixture.source.apply({ ...nothing, pods: [manifest] }))[0]?.change;
  await apply(pod("web"));
  const { uids } = fixture;
  assert.equal(fixture.source.preview({ ...nothing, pods: [debugged("a")] }).pods[0]?.change, "updated");
  assert.equal(await apply(debugged("a")), "updated");
  assert.equal(await apply(debugged("a", "b")), "updated");
  assert.equal(await apply(debugged("a", "b")), "unchanged");
  assert.equal(await apply(pod("web")), "unchanged", "a manifest that says nothing of them leaves them");
  const names = (): string[] | undefined =>
    fixture.delivered.at(-1)?.pods[0]?.pod.spec.ephemeralContainers?.map(({ name }) => name);
  assert.deepEqual([fixture.uids, names()], [uids, ["a", "b"]]);
  await fixture.restart();
  assert.deepEqual([fixture.uids, names()], [uids, ["a", "b"]]);
  assert.equal(await apply({ ...debugged("a"), metadata: { name: "web", labels: { more: "changed" } } }), "replaced");
  assert.notDeepEqual(fixture.uids, uids);
});

test("an added ephemeral container is neither changed nor removed, and a request that tries has no effect", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [debugged("a")] });
  const other = { ...debugged("a"), spec: { ...debugged("a").spec, ephemeralContainers: [{ name: "a", image: "x" }] } };
  await assert.rejects(
    fixture.source.apply({ pods: [other], configMaps: [configMap], secrets: [] }),
    /spec\.ephemeralContainers\[0\]: Forbidden: existing ephemeral container "a" may not be changed/u,
  );
  await assert.rejects(
    fixture.source.apply({ ...nothing, pods: [debugged("b")] }),
    /spec\.ephemeralContainers: Forbidden: existing ephemeral container "a" may not be removed/u,
  );
  assert.equal(fixture.source.objects.configMap("default", "m"), undefined);
});

test("a manifest that names the UID of its pod changes that pod", async () => {
  const fixture = await started();
  const named = (image: string): PodManifest => ({ ...pod("web", image), metadata: { name: "web", uid: "mine" } });
  await fixture.source.apply({ ...nothing, pods: [named("busybox")] });
  const [applied] = await fixture.source.apply({ ...nothing, pods: [named("alpine")] });
  assert.deepEqual([applied?.uid, applied?.change], ["mine", "updated"]);
});

test("new and changed ConfigMaps and Secrets are reported, unchanged ones are not", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, configMaps: [configMap], secrets: [secret] });
  assert.deepEqual(fixture.objectChanges, ["ConfigMap default/m", "Secret default/s"]);
  const before = fixture.source.objects.configMap("default", "m");
  await fixture.source.apply({ ...nothing, configMaps: [configMap], secrets: [secret] });
  assert.equal(fixture.objectChanges.length, 2);
  assert.equal(fixture.source.objects.configMap("default", "m"), before, "an unchanged object stays the same one");
  await fixture.source.apply({ ...nothing, configMaps: [{ ...configMap, data: { k: "w" } }], secrets: [secret] });
  assert.deepEqual(fixture.objectChanges.slice(2), ["ConfigMap default/m"]);
});

test("a removed pod stays removed, with the requested grace period and the objects that only it referred to", async () => {
  const fixture = await started();
  const reference = { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "a" } } };
  const both = { name: "B", valueFrom: { configMapKeyRef: { name: "m", key: "k" } } };
  const pods = [pod("a", "busybox", [reference, both]), pod("b", "busybox", [both])];
  await fixture.source.apply({ pods, configMaps: [configMap], secrets: [secret] });
  const [uid = ""] = fixture.uids ?? [];
  const a = fixture.ref("a");
  assert.equal(await fixture.source.remove(a, 3), true);
  assert.deepEqual(fixture.delivered.at(-1)?.graceSeconds, new Map([[uid, 3]]));
  assert.equal(await fixture.source.remove(a), false);
  assert.equal(fixture.source.objects.secret("default", "s"), undefined);
  assert.notEqual(fixture.source.objects.configMap("default", "m"), undefined);
  await fixture.restart();
  assert.deepEqual(fixture.pods, ["b busybox"]);
  assert.equal((await fixture.files.list(directory)).length, 2);
});

test("a request with one error is rejected as a whole, naming every problem", async () => {
  const fixture = await started();
  const elsewhere = pod("c");
  const bad = { ...elsewhere, spec: { ...elsewhere.spec, nodeName: "node2" } };
  await assert.rejects(
    fixture.source.apply({ ...nothing, pods: [pod("a"), pod("a"), pod("b", "x y"), bad], configMaps: [configMap] }),
    /spec\.containers\[0\]\.image[^]*Duplicate value: the Pod default\/a[^]*this node is "node1"/u,
  );
  assert.deepEqual(await fixture.files.list(directory), []);
  assert.equal(fixture.delivered.length, 1);
});

test("problems of a request's objects are reported by object and field, for callers that have the files", async () => {
  const fixture = await started();
  const bad = { ...pod("c"), spec: { ...pod("c").spec, nodeName: "node2" } };
  const detail = 'Invalid value: this node is "node1"; omit the field';
  await assert.rejects(fixture.source.apply({ ...nothing, pods: [bad] }), {
    message: `Pod default/c: spec.nodeName: ${detail}`,
    problems: [{ object: "Pod default/c", path: ["spec", "nodeName"], detail }],
  });
});

test("warnings about a pod are delivered with it", async () => {
  const fixture = await started();
  const { spec } = pod("a");
  const [container] = spec.containers;
  assert.ok(container);
  const resources = { limits: { memory: "128m" } };
  await fixture.source.apply({
    ...nothing,
    pods: [{ ...pod("a"), spec: { ...spec, containers: [{ ...container, resources }] } }],
  });
  assert.match(
    String(fixture.delivered.at(-1)?.pods[0]?.warnings),
    /^spec\.containers\[0\]\.resources\.limits\.memory: fractional byte value/u,
  );
});

test("a pod of a built-in priority class gets its priority, also in the next run, and another one is rejected", async () => {
  const fixture = await started();
  const spec = { ...pod("a").spec, priorityClassName: "system-node-critical" };
  await fixture.source.apply({ ...nothing, pods: [{ ...pod("a"), spec }] });
  const priority = (): number | undefined => fixture.delivered.at(-1)?.pods[0]?.pod.spec.priority;
  assert.equal(priority(), 2_000_001_000);
  await fixture.restart();
  assert.equal(priority(), 2_000_001_000);
  await assert.rejects(fixture.source.apply({ ...nothing, pods: [{ ...pod("a"), spec: { ...spec, priority: 1 } }] }), {
    message: /^Pod default\/a: spec\.priority: Invalid value: 1/u,
  });
  const other = { ...pod("b"), spec: { ...spec, priorityClassName: "high" } };
  await fixture.source.apply({ ...nothing, pods: [other] });
  assert.match(String(fixture.delivered.at(-1)?.pods[1]?.warnings), /^spec\.priorityClassName: has no meaning/u);
});

test("an unreadable file affects no pod: the source does not claim to know all", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [pod("a")] });
  await fixture.files.write(`${directory}/pod_x.json`, '{"apiVersion": "v1", "kind": "Po', 0o600);
  await fixture.restart();
  assert.deepEqual([fixture.pods, fixture.delivered.at(-1)?.complete], [["a busybox"], false]);
  assert.equal(fixture.journal.messages("ManifestRejected").length, 1);
  assert.deepEqual(fixture.source.unreadable, fixture.journal.messages("ManifestRejected"));
});

test("what the pod of an unreadable file may need stays when others are removed", async () => {
  const fixture = await started();
  const user = pod("a", "busybox", [{ name: "K", valueFrom: { configMapKeyRef: { name: "m", key: "k" } } }]);
  await fixture.source.apply({ ...nothing, pods: [user, pod("b")], configMaps: [configMap] });
  const [file] = (await fixture.files.list(directory)).filter(({ name }) => name.startsWith("pod_default_a"));
  await fixture.files.write(`${directory}/${file?.name ?? ""}`, "{", 0o600);
  let forgotten = 0;
  fixture.storage = { ...noStorage, forgetUnused: async () => void forgotten++ };
  await fixture.restart();
  await fixture.source.remove(fixture.ref("b"));
  const value = (): string | undefined => fixture.source.objects.configMap("default", "m")?.data.get("k");
  assert.deepEqual([value(), forgotten], ["v", 0]);
  await fixture.source.apply({ ...nothing, pods: [pod("a")] });
  await fixture.source.remove(fixture.ref("a"));
  assert.deepEqual([value(), forgotten], [undefined, 1]);
});

test("a pod that takes the name of an unreadable file makes the source complete again", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [pod("a"), pod("b")], configMaps: [configMap] });
  for (const name of ["pod_default_a", "configmap_default_m"]) {
    const [entry] = (await fixture.files.list(directory)).filter((each) => each.name.startsWith(name));
    await fixture.files.write(`${directory}/${entry?.name ?? ""}`, "{", 0o600);
  }
  await fixture.restart();
  assert.deepEqual([fixture.pods, fixture.delivered.at(-1)?.complete], [["b busybox"], false]);
  await fixture.source.apply({ ...nothing, pods: [pod("a")] });
  assert.deepEqual([fixture.delivered.at(-1)?.complete, fixture.source.unreadable.length], [false, 1]);
  await fixture.source.apply({ ...nothing, configMaps: [configMap] });
  assert.deepEqual([fixture.delivered.at(-1)?.complete, fixture.source.unreadable], [true, []]);
});

test("a full disk rejects the pod and keeps the others", async () => {
  const fixture = await started();
  await fixture.source.apply({ ...nothing, pods: [pod("a")] });
  fixture.files.writeAtomic = async (path) => {
    throw new FileError("ENOSPC", path, "ENOSPC: no space left on device");
  };
  await assert.rejects(fixture.source.apply({ ...nothing, pods: [pod("b")] }), FileError);
  assert.deepEqual(fixture.pods, ["a busybox"]);
});

test("names of the maximum length have files too", async () => {
  const fixture = await started();
  const name = "a".repeat(154);
  const long = { ...pod(name), metadata: { name, namespace: "n".repeat(63) } };
  await fixture.source.apply({ ...nothing, pods: [long] });
  const [entry] = await fixture.files.list(directory);
  assert.ok((entry?.name.length ?? 999) <= 255);
});

const claim: ClaimManifest = {
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: "data" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};

test("claims are stored before the pods that use them, and an invalid one rejects the whole request", async () => {
  const fixture = await started();
  const taken: string[] = [];
  const origin = { file: "f", locate: () => undefined };
  let refused: readonly ManifestError[] = [];
  fixture.storage = {
    ...noStorage,
    problems: () => refused,
    take: async (objects) =>
      void taken.push(...objects.map(({ metadata }) => metadata.name ?? ""), ...(fixture.pods ?? [])),
  };
  await fixture.restart();
  await fixture.source.apply({ ...nothing, pods: [pod("web")], storage: [claim] });
  assert.deepEqual(taken, ["data"]);
  assert.deepEqual(fixture.pods, ["web busybox"]);
  refused = [ManifestError.at(origin, ["spec"], "Forbidden: not so")];
  await assert.rejects(
    fixture.source.apply({ ...nothing, pods: [pod("db")], storage: [claim] }),
    /spec: Forbidden: not so/u,
  );
  assert.deepEqual(fixture.pods, ["web busybox"]);
  await assert.rejects(
    fixture.source.apply({ ...nothing, storage: [claim, claim] }),
    /Duplicate value: the PersistentVolumeClaim default\/data/u,
  );
});

test("an unreadable claim is reported, and the source still knows all its pods", async () => {
  const fixture = await started();
  fixture.storage = { ...noStorage, load: async () => ["claims/a.json: damaged"] };
  await fixture.restart();
  assert.deepEqual(fixture.journal.messages("ManifestRejected"), ["claims/a.json: damaged"]);
  assert.equal(fixture.delivered.at(-1)?.complete, true);
});

test("with the last pod, unneeded claims are removed", async () => {
  const fixture = await started();
  let forgotten = 0;
  fixture.storage = { ...noStorage, forgetUnused: async () => void forgotten++ };
  await fixture.restart();
  await fixture.source.apply({ ...nothing, pods: [pod("a"), pod("b")] });
  await fixture.source.remove(fixture.ref("a"));
  assert.equal(forgotten, 0);
  await fixture.source.remove(fixture.ref("b"));
  assert.equal(forgotten, 1);
});
