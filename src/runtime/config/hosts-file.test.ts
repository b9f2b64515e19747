import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import { recordedPod, vectorText } from "../../../test/support/vectors.ts";
import type { Pod } from "../../api/pod.ts";
import { hostsFile, mountsHostsFile } from "./hosts-file.ts";

const pod: Pod = { metadata: { name: "web", namespace: "ns", uid: podUid("u") }, spec: { containers: [] } };
const nodeHosts = "127.0.0.1 localhost\n127.0.0.1 runsc\n127.0.0.1 vm\n";

/** Each recorded file follows a line with its path. */
const recorded = vectorText("etc-hosts.txt").matchAll(/^== root\/pods\/(.+)\/etc-hosts\n((?:(?!== ).*\n)*)/gm);

for (const [, uid = "", text = ""] of recorded) {
  test(`the hosts file of pod ${uid} is the Go kubelet's, byte for byte`, () => {
    const owner = recordedPod(uid);
    const podIPs = (owner.status.podIPs ?? []).map(({ ip }) => ip);
    assert.equal(hostsFile(owner, podIPs, "", nodeHosts), text);
  });
}

test("a pod with a subdomain also has its full name, for each of its addresses", () => {
  const named: Pod = { ...pod, spec: { containers: [], hostname: "h", subdomain: "s" } };
  const lines = hostsFile(named, ["10.0.0.1", "fd00::1"], "cluster.local", "").trimEnd().split("\n");
  assert.deepEqual(lines.slice(-2), ["10.0.0.1\th.s.ns.svc.cluster.local\th", "fd00::1\th.s.ns.svc.cluster.local\th"]);
});

test("host aliases come last, one line each, also after the node's own file", () => {
  const hostAliases = [{ ip: "1.2.3.4", hostnames: ["a", "b"] }, { ip: "5.6.7.8" }];
  const tail = "\n# Entries added by HostAliases.\n1.2.3.4\ta\tb\n5.6.7.8\t\n";
  assert.ok(
    hostsFile({ ...pod, spec: { containers: [], hostAliases } }, ["10.0.0.1"], "", "").endsWith(
      `10.0.0.1\tweb\n${tail}`,
    ),
  );
  const onHost: Pod = { ...pod, spec: { containers: [], hostNetwork: true, hostAliases } };
  assert.equal(
    hostsFile(onHost, [], "", nodeHosts),
    `# Kubernetes-managed hosts file (host network).\n${nodeHosts}${tail}`,
  );
});

test("the hosts file is mounted unless the container mounts its own or the pod has no address yet", () => {
  const onHost: Pod = { ...pod, spec: { containers: [], hostNetwork: true } };
  const own = { name: "c", volumeMounts: [{ name: "v", mountPath: "/etc/hosts" }] };
  assert.equal(mountsHostsFile(pod, { name: "c" }, ["10.0.0.1"]), true);
  assert.equal(mountsHostsFile(pod, { name: "c" }, []), false);
  assert.equal(mountsHostsFile(onHost, { name: "c" }, []), true);
  assert.equal(mountsHostsFile(onHost, own, []), false);
});
