import assert from "node:assert/strict";
import { test } from "node:test";
import { withDefaults } from "./defaults.ts";
import { shownConfiguration, shownFlags } from "./shown-flags.ts";

test("flags are shown with their effective values, and without secrets", () => {
  const configuration = withDefaults({
    staticPodURL: "https://me:s3cret@host/pods",
    staticPodURLHeader: { Authorization: ["Bearer s3cret"] },
    clusterDNS: ["10.0.0.10", "fd00::a"],
    featureGates: { ComponentFlagz: true },
    maxPods: 7,
  });
  const flags = shownFlags(configuration, { rootDir: "/var/lib/other" });
  assert.equal(flags.get("manifest-url"), "https://<masked>@host/pods");
  assert.equal(flags.get("manifest-url-header"), "Authorization=<masked>");
  assert.equal(flags.get("cluster-dns"), "10.0.0.10,fd00::a");
  assert.equal(flags.get("feature-gates"), "ComponentFlagz=true");
  assert.equal(flags.get("max-pods"), "7");
  assert.equal(flags.get("port"), "10250");
  assert.equal(flags.get("root-dir"), "/var/lib/other");
  assert.equal(flags.get("node-ip"), "");
  assert.doesNotMatch(JSON.stringify([...flags, shownConfiguration(configuration)]), /s3cret/);
});
