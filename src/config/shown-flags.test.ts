import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { servedConfiguration, shownFlags } from "./shown-flags.ts";

const withSecrets = {
  staticPodURL: "https://me:s3cret@host/pods?token=s3cret",
  staticPodURLHeader: { Authorization: ["Bearer s3cret"] },
};

test("the configuration is served with everything in it, so that a kubelet can start with it", () => {
  const served = servedConfiguration(withDefaults(withSecrets));
  const head = { kind: "KubeletConfiguration", apiVersion: "kubelet.config.k8s.io/v1beta1" };
  assert.deepEqual(served, { ...head, ...withDefaults(withSecrets) });
});

test("flags are shown with their effective values, and without secrets", () => {
  const configuration = withDefaults({
    ...withSecrets,
    clusterDNS: ["10.0.0.10", "fd00::a"],
    featureGates: { ComponentFlagz: true },
    maxPods: 7,
  });
  const flags = shownFlags(configuration, { rootDir: "/var/lib/other" });
  assert.equal(flags.get("manifest-url"), "https://<masked>@host/pods?<masked>");
  assert.equal(flags.get("manifest-url-header"), "Authorization=<masked>");
  assert.equal(flags.get("cluster-dns"), "10.0.0.10,fd00::a");
  assert.equal(flags.get("feature-gates"), "ComponentFlagz=true");
  assert.equal(flags.get("max-pods"), "7");
  assert.equal(flags.get("port"), "10250");
  assert.equal(flags.get("root-dir"), "/var/lib/other");
  assert.equal(flags.get("node-ip"), "");
  assert.doesNotMatch(JSON.stringify([...flags]), /s3cret/);
});
