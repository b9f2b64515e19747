import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { unixTransport } from "../../src/linux/http/unix-client.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { parseExposition, valueOf } from "../support/exposition.ts";
import { sleep, until } from "../support/podwright.ts";

const image = "docker.io/library/busybox:latest";

const staticManifest = `apiVersion: v1
kind: Pod
metadata: { name: static }
spec:
  terminationGracePeriodSeconds: 1
  containers: [{ name: c, image: "${image}", imagePullPolicy: Never, command: [sleep, "3600"] }]
`;

test("a node registers, runs the pods bound to it, reports their status, and releases deleted ones", async () => {
  await withClusterNode(async (cluster) => {
    const { server } = cluster;
    await cluster.nodeReady();
    const node = server.admin.get("nodes", "node1");
    assert.equal(node.metadata.labels?.["kubernetes.io/hostname"], "node1");
    await until("the lease", async () => server.admin.find("leases", "kube-node-lease/node1") !== undefined);

    server.admin.create(boundPod("web"));
    await cluster.ready("web");
    const status = cluster.status("web");
    assert.equal(status.phase, "Running");
    assert.match(status.podIP ?? "", /^\d+\./);
    assert.equal(status.hostIP, status.hostIPs?.[0]?.ip);
    assert.equal(status.containerStatuses?.[0]?.ready, true);

    server.admin.delete("pods", "default/web");
    await server.admin.until("pods", "default/web", (object) => object === undefined, 20_000);
    await cluster.gone("web");

    const reasons = (name: string): string[] =>
      server.admin.list("events").flatMap((event) => {
        const { involvedObject, reason } = event as unknown as { involvedObject: { name: string }; reason: string };
        return involvedObject.name === name ? [reason] : [];
      });
    await until("the events", async () => reasons("web").includes("Killing"));
    // Its configuration names no DNS of the cluster.
    assert.deepEqual(reasons("web"), ["MissingClusterDNS", "Pulled", "Created", "Started", "Killing"]);
    assert.equal(reasons("node1")[0], "Starting");
    const isV1 = !existsSync("/sys/fs/cgroup/cgroup.controllers");
    assert.equal(reasons("node1").includes("CgroupV1"), isV1);

    const { body } = await unixTransport(cluster.node.podwright.layout.engineSocket).request("GET", "/metrics");
    const seconds = (stage: string): number =>
      valueOf(parseExposition(body), `kubelet_node_startup_${stage}duration_seconds`) ?? NaN;
    const stages = ["pre_kubelet_", "pre_registration_", "registration_", "post_registration_"].map(seconds);
    const told = stages.join(" + ");
    assert.ok(
      stages.slice(0, 3).every((each) => each > 0),
      told,
    );
    assert.ok(Math.abs(seconds("") - stages.reduce((sum, each) => sum + each, 0)) < 0.001, told);
  }, image);
});

test("a readiness gate that is set at the API server makes the pod ready", async () => {
  await withClusterNode(async (cluster) => {
    const { server } = cluster;
    server.admin.create(boundPod("gated", {}, { readinessGates: [{ conditionType: "example.org/gate" }] }));
    const waits = (object: unknown): boolean => JSON.stringify(object ?? {}).includes("ReadinessGatesNotReady");
    await server.admin.until("pods", "default/gated", waits, 20_000);
    const conditions = [{ type: "example.org/gate", status: "True" }];
    server.admin.patch("pods", "default/gated", { status: { conditions } }, { subresource: "status" });
    await cluster.ready("gated");
  }, image);
});

test("a static pod has a mirror pod that is recreated after a deletion, shows its status, and is removed with it", async () => {
  await withClusterNode(async ({ server, node }) => {
    await node.write("static.yaml", staticManifest);
    const key = "default/static-node1";
    const isRunning = (object: unknown): boolean => JSON.stringify(object ?? {}).includes('"phase":"Running"');
    const mirror = await server.admin.until("pods", key, isRunning, 30_000);
    assert.equal(mirror?.metadata.ownerReferences?.[0]?.name, "node1");
    const [container] = (await node.podwright.pod("static-node1")).containers;

    server.admin.delete("pods", key, { gracePeriodSeconds: 30 });
    const other = (object: unknown): boolean =>
      isRunning(object) && !JSON.stringify(object).includes(`"uid":"${mirror?.metadata.uid}"`);
    await server.admin.until("pods", key, other, 20_000);
    assert.equal((await node.podwright.pod("static-node1")).containers[0]?.id, container?.id, "it ran on");

    await node.write("static.yaml", staticManifest.replace("metadata: {", "metadata: { labels: { v: two },"));
    const second = (object: unknown): boolean => isRunning(object) && JSON.stringify(object).includes('"v":"two"');
    await server.admin.until("pods", key, second, 20_000);

    await node.remove("static.yaml");
    await server.admin.until("pods", key, (object) => object === undefined, 20_000);
  }, image);
});

test("without the API server pods keep running, static ones start, and decisions are carried out on its return", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    server.admin.create(boundPod("stays"));
    server.admin.create(boundPod("goes"));
    await cluster.ready("stays");
    await cluster.ready("goes");
    const before = await node.podwright.container("stays", "c");

    await server.wire.down();
    server.admin.delete("pods", "default/goes");
    await node.write("static.yaml", staticManifest);
    await node.podwright.waitFor("the static pod", (pods) =>
      pods.some(({ name, ready }) => name === "static-node1" && ready),
    );
    const pid = await node.podwright.firstProcess(before.id);
    process.kill(pid, "SIGKILL");
    const restarted = async (): Promise<boolean> => (await node.podwright.container("stays", "c")).restartCount === 1;
    await until("a restart without the API server", restarted, 20_000);
    assert.ok(
      (await node.podwright.pods()).some(({ name }) => name === "goes"),
      "nothing is deleted",
    );

    await server.wire.up();
    await server.admin.until("pods", "default/goes", (object) => object === undefined, 40_000);
    await server.admin.until("pods", "default/static-node1", (object) => object !== undefined, 20_000);
    await until(
      "the restart to be told",
      async () => cluster.status("stays").containerStatuses?.[0]?.restartCount === 1,
      20_000,
    );
    await cluster.ready("stays");
  }, image);
});

test("a node without its API server runs its static pods, and registers once the server is available", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
    server.admin.delete("nodes", "node1");
    await server.wire.down();
    await node.write("static.yaml", staticManifest);
    await cluster.start("--node-labels", "zone=a");
    await node.answers();
    const runs = (pods: readonly { readonly name: string; readonly ready: boolean }[]): boolean =>
      pods.some(({ name, ready }) => name === "static-node1" && ready);
    await node.podwright.waitFor("the static pod", runs);
    await server.wire.up();
    await cluster.nodeReady();
    assert.equal(server.admin.get("nodes", "node1").metadata.labels?.["zone"], "a");
    await server.admin.until("pods", "default/static-node1", (object) => object !== undefined, 20_000);
  }, image);
});

test("a restart changes no status and restarts nothing", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    server.admin.create(boundPod("web"));
    await cluster.ready("web");
    await cluster.nodeReady();
    const before = cluster.status("web");
    const version = server.admin.get("pods", "default/web").metadata.resourceVersion;
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
    const flips: string[] = [];
    using _watch = cluster.onStatus("web", (status) => {
      const ready = status.conditions?.find(({ type }) => type === "Ready")?.status;
      if (ready !== "True") flips.push(JSON.stringify(status));
    });
    await cluster.start();
    await node.answers();
    await until("the pod to be taken up", async () => (await node.podwright.pod("web")).ready, 20_000);
    await sleep(3000);
    assert.deepEqual(flips, []);
    assert.deepEqual(cluster.status("web"), before);
    assert.equal(server.admin.get("pods", "default/web").metadata.resourceVersion, version);
  }, image);
});

test("containers get ConfigMaps, Secrets, their account's token and services, and receive changes", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    const metadata = { name: "settings", namespace: "default" };
    server.admin.create({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { colour: "red" } });
    server.admin.create({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "data-base", namespace: "default" },
      spec: { clusterIP: "10.96.0.7", ports: [{ port: 5432 }] },
    });
    const script =
      "echo $COLOUR $KEY $DATA_BASE_SERVICE_HOST; cat /s/token /s/ca.crt | wc -l; while :; do cat /c/colour; echo; sleep 0.3; done";
    const from = (kind: string, name: string, key: string): Fields => ({ [`${kind}KeyRef`]: { name, key } });
    server.admin.create(
      boundPod(
        "reads",
        {},
        {
          automountServiceAccountToken: true,
          containers: [
            {
              name: "c",
              image,
              imagePullPolicy: "Never",
              command: ["sh", "-c", script.replaceAll("/s/", "/var/run/secrets/kubernetes.io/serviceaccount/")],
              env: [
                { name: "COLOUR", valueFrom: from("configMap", "settings", "colour") },
                { name: "KEY", valueFrom: from("secret", "hidden", "key") },
              ],
              volumeMounts: [{ name: "v", mountPath: "/c" }],
            },
          ],
          volumes: [{ name: "v", configMap: { name: "settings" } }],
        },
      ),
    );
    const waitsFor = (text: string) => (object: unknown) => JSON.stringify(object ?? {}).includes(text);
    await server.admin.until("pods", "default/reads", waitsFor('secret \\"hidden\\" not found'), 20_000);
    server.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "hidden", namespace: "default" },
      data: { key: Buffer.from("s3cret").toString("base64") },
    });
    await cluster.ready("reads");
    const logs = async (): Promise<string> => node.podwright.succeed("logs", "reads");
    await until("the first lines", async () => (await logs()).includes("red"));
    assert.match(await logs(), /^red s3cret 10\.96\.0\.7\n[1-9]/);
    server.admin.patch("configmaps", "default/settings", { data: { colour: "blue" } });
    await until("the change to be seen", async () => (await logs()).includes("blue"), 10_000);

    const journal = JSON.stringify(await node.podwright.journal());
    assert.doesNotMatch(journal, /s3cret|eyJ/, "no secret is written down");
    const watched = [...server.watches].filter(({ scope }) => scope.resource.plural === "secrets").length;
    assert.equal(watched, 1);
    server.admin.delete("pods", "default/reads");
    await server.admin.until("pods", "default/reads", (object) => object === undefined, 20_000);
    await until("the Secret to be let go", async () =>
      [...server.watches].every(({ scope }) => scope.resource.plural !== "secrets"),
    );
  }, image);
});

test("a pod runs with the handler of its runtime class; one with unsupported features is rejected by name", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    server.admin.create({
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name: "fast" },
      handler: "runc",
    });
    server.admin.create(boundPod("classy", {}, { runtimeClassName: "fast" }));
    await cluster.ready("classy");
    using cri = node.podwright.connect();
    const { items } = await cri.runtime.listPodSandbox({});
    assert.equal(items.find(({ metadata }) => metadata?.name === "classy")?.runtimeHandler, "runc");

    server.admin.create(
      boundPod("needy", {}, { volumes: [{ name: "v", iscsi: { targetPortal: "192.0.2.1", iqn: "iqn.a", lun: 0 } }] }),
    );
    const failed = (object: unknown): boolean => JSON.stringify(object ?? {}).includes('"phase":"Failed"');
    await server.admin.until("pods", "default/needy", failed, 20_000);
    const { reason, message } = cluster.status("needy");
    assert.equal(reason, "PodFeatureUnsupported");
    assert.match(message ?? "", /spec\.volumes\.0\.iscsi: not supported: podwright does not mount/);
  }, image);
});

test("half-dead connections, interrupted watches and a server that rejects requests only delay pods", async () => {
  await withClusterNode(async (cluster) => {
    const { server } = cluster;
    await cluster.nodeReady();
    server.wire.freeze();
    server.admin.create(boundPod("one"));
    await cluster.ready("one");

    server.cutWatches({ resource: "pods" }, { abruptly: true });
    server.faults.add({ verb: "patch", resource: "pods" }, { code: 429, retryAfterSeconds: 1 }, 2);
    server.faults.add({ verb: "patch", resource: "pods" }, { code: 500 }, 2);
    server.admin.create(boundPod("two"));
    await cluster.ready("two");

    // The connection may have frozen before the lease was made.
    const lease = ["leases", "kube-node-lease/node1"] as const;
    const renewTime = (object: unknown): unknown => (object as { spec?: Fields } | undefined)?.spec?.["renewTime"];
    const first = renewTime(await server.admin.until(...lease, (object) => renewTime(object) !== undefined, 15_000));
    await server.admin.until(...lease, (object) => renewTime(object) !== first, 15_000);
  }, image);
});

test("pods that do not fit are rejected with reasons, those that can fit soon wait, critical ones preempt others", async () => {
  await withClusterNode(async (cluster) => {
    const { server } = cluster;
    await cluster.nodeReady();
    const node = server.admin.get("nodes", "node1") as { status?: { allocatable?: Record<string, string> } };
    const cpus = Number(node.status?.allocatable?.["cpu"]);
    const asking = (cpu: number, more: Fields = {}): Fields => {
      const resources = { requests: { cpu: String(cpu) } };
      const script = "trap 'sleep 2; exit 0' TERM; sleep 3600 & wait";
      const container = { name: "c", image, imagePullPolicy: "Never", command: ["sh", "-c", script], resources };
      return { terminationGracePeriodSeconds: 5, containers: [container], ...more };
    };
    server.admin.create(boundPod("large", {}, asking(cpus * 0.75)));
    await cluster.ready("large");

    server.admin.create(boundPod("refused", {}, asking(cpus)));
    server.admin.create(boundPod("elsewhere", {}, { nodeSelector: { zone: "far" } }));
    const failed = (object: unknown): boolean => JSON.stringify(object ?? {}).includes('"phase":"Failed"');
    for (const name of ["refused", "elsewhere"]) await server.admin.until("pods", `default/${name}`, failed, 20_000);
    const [used, capacity] = [cpus * 750, cpus * 1000];
    assert.equal(cluster.status("refused").reason, "OutOfcpu");
    assert.equal(
      cluster.status("refused").message,
      `Pod was rejected: Node didn't have enough resource: cpu, requested: ${capacity}, used: ${used}, capacity: ${capacity}`,
    );
    assert.equal(cluster.status("elsewhere").reason, "NodeAffinity");

    server.admin.delete("pods", "default/large");
    server.admin.create(boundPod("patient", {}, asking(cpus * 0.75)));
    await cluster.ready("patient");

    server.admin.create(boundPod("critical", {}, asking(cpus / 2, { priorityClassName: "system-node-critical" })));
    // Its container exits with 0.
    const succeeded = (object: unknown): boolean => JSON.stringify(object ?? {}).includes('"phase":"Succeeded"');
    await server.admin.until("pods", "default/patient", succeeded, 20_000);
    const { reason, message, conditions = [] } = cluster.status("patient");
    assert.deepEqual([reason, message], [undefined, undefined]);
    const disruption = conditions.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual([disruption?.status, disruption?.reason], ["True", "TerminationByKubelet"]);
    await cluster.ready("critical");
    const names = ["refused", "elsewhere", "patient", "critical"];
    for (const name of names) server.admin.delete("pods", `default/${name}`);
    for (const name of names) await cluster.gone(name);
  }, image);
});

test("after a restart without the API server running pods are managed, and its changes are applied on its return", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    const data = { key: Buffer.from("s3cret").toString("base64") };
    server.admin.create({ apiVersion: "v1", kind: "Secret", metadata: { name: "files", namespace: "default" }, data });
    const script = "cat /s/key; sleep 3600";
    const container = { name: "c", image, imagePullPolicy: "Never", command: ["sh", "-c", script] };
    const volumeMounts = [{ name: "v", mountPath: "/s" }];
    const volumes = [{ name: "v", secret: { secretName: "files" } }];
    const own = { automountServiceAccountToken: true, containers: [{ ...container, volumeMounts }], volumes };
    server.admin.create(boundPod("stays", {}, own));
    for (const name of ["goes", "ends"]) server.admin.create(boundPod(name));
    for (const name of ["stays", "goes", "ends"]) await cluster.ready(name);
    const readySince = cluster.status("stays").conditions?.find(({ type }) => type === "Ready")?.lastTransitionTime;
    const before = await node.podwright.container("stays", "c");

    await server.wire.down();
    kubelet.child.kill("SIGKILL");
    await kubelet.ended;
    server.admin.delete("pods", "default/goes");
    const again = await cluster.start();
    await node.answers();
    await node.podwright.waitFor(
      "the pods",
      (pods) => ["stays", "goes", "ends"].every((name) => pods.some((each) => each.name === name)),
      40_000,
    );
    process.kill(await node.podwright.firstProcess(before.id), "SIGKILL");
    const restarted = async (): Promise<boolean> => (await node.podwright.container("stays", "c")).restartCount === 1;
    await until("a restart without the API server", restarted, 60_000);

    await server.wire.up();
    await server.admin.until("pods", "default/goes", (object) => object === undefined, 60_000);
    const count = (): number | undefined => cluster.status("stays").containerStatuses?.[0]?.restartCount;
    await until("the restart to be told", async () => count() === 1, 30_000);
    await cluster.ready("stays");
    const { restartCount } = await node.podwright.container("ends", "c");
    assert.equal(restartCount, 0);
    const endsSince = cluster.status("ends").conditions?.find(({ type }) => type === "Ready");
    assert.equal(endsSince?.status, "True");
    assert.ok(
      Date.parse(endsSince?.lastTransitionTime ?? "") <= Date.parse(readySince ?? "") + 5000,
      "its readiness is as old as before",
    );
    assert.doesNotMatch(JSON.stringify(await node.podwright.journal()), /s3cret|czNjcmV0/);
    for (const name of ["stays", "ends"]) server.admin.delete("pods", `default/${name}`);
    for (const name of ["stays", "ends"]) await cluster.gone(name);
    again.child.kill("SIGTERM");
    await again.ended;
  }, image);
});
