import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apiPods } from "./api-pod.ts";

const metadata = { name: "web", namespace: "default", uid: "0b5e0a52-7d0a-4a4c-a5d6-3f1b3c1a9a55" };
const spec = { containers: [{ name: "app", image: "busybox" }] };
const running = {
  phase: "Running",
  conditions: [{ type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: null }],
  containerStatuses: [{ name: "app", state: { running: { startedAt: null } }, lastState: {}, restartCount: 2 }],
};

describe("a pod of the API server", () => {
  test("is read without fields that this version does not know", () => {
    const pod = apiPods.decode({ metadata, spec: { ...spec, brandNew: { a: 1 } }, status: running });
    assert.equal(pod.metadata.uid, metadata.uid);
    assert.equal("brandNew" in pod.spec, false);
    assert.deepEqual(pod.status, running);
  });

  test("is read again if more than its status has changed, and otherwise keeps its object", () => {
    const before = apiPods.decode({ metadata: { ...metadata, resourceVersion: "1" }, spec });
    const managedFields = [{ manager: "kubelet" }];
    const changed = { metadata: { ...metadata, resourceVersion: "2", managedFields }, spec, status: running };
    const after = apiPods.decode(structuredClone(changed), before);
    assert.equal(after.spec, before.spec);
    assert.deepEqual([after.metadata.resourceVersion, after.status], ["2", running]);
    assert.deepEqual({ ...after, definition: "" }, { ...apiPods.decode(structuredClone(changed)), definition: "" });
    for (const other of [
      { metadata: { ...metadata, labels: { a: "b" } }, spec },
      { metadata: { ...metadata, deletionTimestamp: "2026-11-20T14:02:00Z" }, spec },
      { metadata, spec: { containers: [{ name: "app", image: "busybox:2" }] } },
    ]) {
      const { definition: _of, ...anew } = apiPods.decode(structuredClone(other), before);
      const { definition: _alone, ...alone } = apiPods.decode(structuredClone(other));
      assert.deepEqual(anew, alone);
    }
  });

  test("is invalid if its name, namespace or UID is not a single path component", () => {
    const bad = [
      { uid: "../../etc" },
      { uid: ".." },
      { uid: "" },
      { name: "a/b" },
      { name: ".." },
      { namespace: "../x" },
    ];
    for (const wrong of bad) {
      const decode = (): unknown => apiPods.decode({ metadata: { ...metadata, ...wrong }, spec });
      assert.throws(decode, /^ApiDecodeError: Pod: /u, JSON.stringify(wrong));
    }
  });

  test("is rejected if its containers or volumes have such names", () => {
    const containers = [...spec.containers, { name: "../../x", image: "busybox" }];
    const { unsupported } = apiPods.decode({
      metadata,
      spec: { containers, volumes: [{ name: "a/b", emptyDir: {} }] },
    });
    assert.match(
      unsupported,
      /^spec\.containers\.1\.name: must consist of .*; spec\.volumes\.0\.name: must consist of /,
    );
  });

  test("is rejected if a claim gives it its extended resources, as soon as its status names it", () => {
    const requestMappings = [{ containerName: "app", resourceName: "example.org/gpu", requestName: "container-0" }];
    const claim = { resourceClaimName: "web-extended-resources-x7k2p", requestMappings };
    const limits = { "example.org/gpu": 1 };
    const sent = (status: object): object => {
      return { metadata, spec: { containers: [{ ...spec.containers[0], resources: { limits } }] }, status };
    };
    const text = "status.extendedResourceClaimStatus: not supported: podwright does not allocate devices yet";
    const bound = sent({ ...running, extendedResourceClaimStatus: claim });
    assert.equal(apiPods.decode(structuredClone(bound)).unsupported, text);
    // What is wrong with the rest of the status does not matter.
    assert.equal(apiPods.decode(sent({ extendedResourceClaimStatus: claim })).unsupported, text);
    const before = apiPods.decode(sent({ ...running, extendedResourceClaimStatus: null }));
    assert.equal(before.unsupported, "");
    const after = apiPods.decode(structuredClone(bound), before);
    assert.equal(after.unsupported, text);
    assert.equal(apiPods.decode(sent(running), after).unsupported, "");
  });

  test("starts without a status if its status is invalid", () => {
    const broken = [
      5,
      {},
      { ...running, conditions: "Ready" },
      { ...running, containerStatuses: [{ name: "app" }] },
      { ...running, podIPs: ["10.0.0.1"] },
      { ...running, containerStatuses: [{ ...running.containerStatuses[0], state: { terminated: {} } }] },
    ];
    for (const status of broken) {
      assert.equal(apiPods.decode({ metadata, spec, status }).status, undefined, JSON.stringify(status));
    }
  });
});
