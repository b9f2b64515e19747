import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import type { TestApiServer } from "../apiserver/server.ts";
import { boundPod } from "../support/bound-pod.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { until } from "../support/podwright.ts";

/** A claim of namespace default and the volume that it is bound to, of that source. */
function bind(server: TestApiServer, name: string, source: Fields): void {
  const accessModes = ["ReadWriteOnce"];
  const resources = { requests: { storage: "1Mi" } };
  const metadata = { name, namespace: "default" };
  const kind = "PersistentVolumeClaim";
  const spec = { accessModes, resources, volumeName: `pv-${name}` };
  const claim = server.admin.create({ apiVersion: "v1", kind, metadata, spec });
  const claimRef = { ...metadata, uid: claim.metadata.uid ?? "" };
  server.admin.create({
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: `pv-${name}`, annotations: { "pv.beta.kubernetes.io/gid": "4711" } },
    spec: { capacity: { storage: "1Mi" }, accessModes, claimRef, ...source },
  });
  const bound = { status: { phase: "Bound" } };
  server.admin.patch("persistentvolumeclaims", `default/${name}`, bound, { subresource: "status" });
}

test("a pod waits for its claim, reports it, writes to its volume, and its data remains", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    const [disk, shared] = [node.podwright.path("disk"), node.podwright.path("shared")];
    mkdirSync(disk);
    const volumeMounts = [{ name: "data", mountPath: "/data" }];
    const command = ["sh", "-c", "id -G >/data/groups; exec sleep 36000"];
    for (const claimName of ["local", "path"]) {
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName } }];
      server.admin.create(boundPod(claimName, { command, volumeMounts }, { volumes }));
    }
    const waits = JSON.stringify('failed to fetch PVC from API server: persistentvolumeclaims "local" not found').slice(
      1,
      -1,
    );
    const isTold = async (): Promise<boolean> =>
      server.admin.list("events").some((event) => JSON.stringify(event).includes(waits));
    await until("the event", isTold, 20_000);

    bind(server, "local", { local: { path: disk } });
    bind(server, "path", { hostPath: { path: shared, type: "DirectoryOrCreate" } });
    for (const name of ["local", "path"]) await cluster.ready(name);
    for (const directory of [disk, shared]) {
      const groups = `${directory}/groups`;
      await until("the groups", async () => existsSync(groups) && readFileSync(groups, "utf8").endsWith("\n"));
      assert.match(readFileSync(groups, "utf8"), /\b4711\b/u);
    }
    const isMounted = (): boolean => readFileSync("/proc/self/mountinfo", "utf8").includes("~local-volume/pv-local ");
    assert.equal(isMounted(), true);
    for (const name of ["local", "path"]) server.admin.delete("pods", `default/${name}`);
    for (const name of ["local", "path"]) await cluster.gone(name);
    assert.equal(isMounted(), false);
    for (const directory of [disk, shared]) assert.ok(existsSync(`${directory}/groups`));
  }, DEMO_IMAGE);
});
