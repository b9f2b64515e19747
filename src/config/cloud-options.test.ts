import assert from "node:assert/strict";
import { test } from "node:test";
import { cloudOptions } from "./cloud-options.ts";

test("a node has no cloud, an external cloud provider, or a metadata service", () => {
  assert.equal(cloudOptions({}), undefined);
  assert.deepEqual(cloudOptions({ cloudProvider: "external" }), { kind: "external" });
  const url = "http://169.254.169.254";
  assert.deepEqual(cloudOptions({ cloudMetadata: "gce" }), { kind: "metadata", service: "gce", url });
  const own = cloudOptions({ cloudMetadata: "ec2", cloudMetadataUrl: "http://127.0.0.1:81/" });
  assert.deepEqual(own, { kind: "metadata", service: "ec2", url: "http://127.0.0.1:81" });
});

test("invalid and conflicting cloud flags are errors", () => {
  assert.throws(() => cloudOptions({ cloudProvider: "aws" }), /cloud provider "aws" was specified, but built-in/u);
  assert.throws(() => cloudOptions({ cloudMetadata: "mine" }), /bad --cloud-metadata "mine"/u);
  assert.throws(() => cloudOptions({ cloudMetadataUrl: "http://a" }), /requires --cloud-metadata/u);
  assert.throws(() => cloudOptions({ cloudProvider: "external", cloudMetadata: "gce" }), /conflict/u);
  for (const url of ["https://a", "http://a/b", "http://u:p@a", "a"]) {
    assert.throws(() => cloudOptions({ cloudMetadata: "gce", cloudMetadataUrl: url }), /bad --cloud-metadata-url/u);
  }
});
