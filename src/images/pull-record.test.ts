import assert from "node:assert/strict";
import { test } from "node:test";
import {
  allowlistProblem,
  decodePulledRecord,
  encodePulledRecord,
  encodePullIntent,
  mustVerify,
  provenAccess,
  type SecretCredential,
  type VerificationPolicy,
  withAccess,
  withoutTag,
} from "./pull-record.ts";

const secret = (name: string, credentialHash: string): SecretCredential => {
  return { uid: `uid-${name}`, namespace: "default", name, credentialHash };
};
const image = "r.io/app:1";
const imageRef = "sha256:1";

test("policies decide which images a pod may use without a registry check", () => {
  const cases: readonly (readonly [VerificationPolicy["policy"], string, boolean, boolean])[] = [
    ["NeverVerify", image, true, false],
    ["NeverVerifyPreloadedImages", image, true, true],
    ["NeverVerifyPreloadedImages", image, false, false],
    ["AlwaysVerify", image, false, true],
    ["NeverVerifyAllowlistedImages", image, false, true],
    ["NeverVerifyAllowlistedImages", "r.io/open/app:1", true, false],
    ["NeverVerifyAllowlistedImages", "r.io/openly/app:1", true, true],
    ["NeverVerifyAllowlistedImages", "busybox@sha256:1", true, false],
    ["NeverVerifyAllowlistedImages", "docker.io/library/busybox", true, true],
  ];
  for (const [policy, name, byKubelet, verified] of cases) {
    const allowlist = ["r.io/open/*", "busybox"];
    assert.equal(mustVerify({ policy, allowlist }, name, byKubelet), verified, `${policy} ${name} ${byKubelet}`);
  }
});

test("names lose tag and digest, and keep the registry's port", () => {
  assert.deepEqual(["a", "a:1", "r:5000/a", "r:5000/a:1", "a:1@sha256:2", "r:5000/a@sha256:2"].map(withoutTag), [
    "a",
    "a",
    "r:5000/a",
    "r:5000/a",
    "a",
    "r:5000/a",
  ]);
});

test("a record grants access by Secret or by content, for the name that was pulled", () => {
  const record = withAccess(undefined, { image, imageRef, with: secret("a", "h1") }, "t");
  assert.equal(provenAccess(record, image, []), undefined);
  assert.equal(provenAccess(record, image, [secret("b", "h2")]), undefined);
  assert.deepEqual(provenAccess(record, "r.io/app:2", [secret("b", "h2"), secret("a", "h3")]), secret("a", "h3"));
  assert.deepEqual(provenAccess(record, image, [secret("b", "h1")]), secret("b", "h1"));
  assert.equal(provenAccess(record, "mirror.io/app:1", [secret("a", "h1")]), undefined);
  assert.equal(provenAccess({ ...record, credentialMapping: {} }, "constructor", []), undefined);
  const unhashed = withAccess(undefined, { image, imageRef, with: secret("a", "") }, "t");
  assert.equal(provenAccess(unhashed, image, [secret("b", "")]), undefined);
});

test("a record gains new credentials, and becomes the node's once one is the node's", () => {
  const first = withAccess(undefined, { image, imageRef, with: secret("b", "h1") }, "t1");
  assert.equal(withAccess(first, { image, imageRef, with: secret("b", "h1") }, "t2"), first);
  const second = withAccess(first, { image, imageRef, with: secret("a", "h2") }, "t2");
  const rotated = withAccess(second, { image, imageRef, with: secret("b", "h3") }, "t3");
  assert.deepEqual(rotated.credentialMapping?.["r.io/app"]?.kubernetesSecrets, [secret("a", "h2"), secret("b", "h3")]);
  const open = withAccess(rotated, { image, imageRef, with: "node" }, "t4");
  assert.deepEqual(open.credentialMapping, { "r.io/app": { nodePodsAccessible: true } });
  assert.equal(provenAccess(open, image, []), "node");
  assert.equal(withAccess(open, { image, imageRef, with: secret("c", "h") }, "t5"), open);
});

test("lookups extend an image's record up to a limit", () => {
  let record = withAccess(undefined, { image, imageRef, with: secret("0", "h") }, "t");
  for (let index = 1; index < 200; index++) {
    record = withAccess(record, { image, imageRef, with: secret(String(index), "h"), looked: true }, "t");
  }
  assert.equal(record.credentialMapping?.["r.io/app"]?.kubernetesSecrets?.length, 100);
});

test("records are the Go kubelet's, byte for byte", () => {
  const text =
    '{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","lastUpdatedTime":"2024-10-21T12:26:40Z",' +
    '"imageRef":"test-brokenhash","credentialMapping":{"docker.io/testing/test":{"kubernetesSecrets":' +
    '[{"uid":"testsecretuid","namespace":"default","name":"pull-secret","credentialHash":""}]}}}\n';
  assert.equal(encodePulledRecord(decodePulledRecord(text)), text);
  const made = withAccess(
    undefined,
    {
      image: "docker.io/testing/test",
      imageRef: "test-brokenhash",
      with: { ...secret("", ""), uid: "testsecretuid", name: "pull-secret" },
    },
    "2024-10-21T12:26:40Z",
  );
  assert.equal(encodePulledRecord(made), text);
  const intent = '{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"a:b"}\n';
  assert.equal(encodePullIntent("a:b"), intent);
});

test("an account that was granted access may use the image again, and no other one", () => {
  const robot = { account: { uid: "u", namespace: "ns", name: "robot" } };
  const record = withAccess(undefined, { image, imageRef, with: robot }, "t1");
  const { account } = robot;
  assert.deepEqual(record.credentialMapping, { "r.io/app": { kubernetesServiceAccounts: [account] } });
  assert.equal(withAccess(record, { image, imageRef, with: robot }, "t2"), record);
  assert.deepEqual(provenAccess(record, image, [secret("a", "1"), robot]), robot);
  assert.equal(provenAccess(record, image, [{ account: { ...account, uid: "other" } }]), undefined);
  const both = withAccess(record, { image, imageRef, with: secret("a", "1") }, "t2");
  assert.deepEqual(Object.keys(both.credentialMapping?.["r.io/app"] ?? {}), [
    "kubernetesServiceAccounts",
    "kubernetesSecrets",
  ]);
});

test("an allowlist pattern is a name without tag and digest, or its prefix followed by /*", () => {
  for (const good of ["busybox", "docker.io/library/*", "localhost:5000/a/b", "a/*"]) {
    assert.equal(allowlistProblem(good), undefined, good);
  }
  const bad: Readonly<Record<string, RegExp>> = {
    "": /^the supplied pattern is too short: $/,
    " a": /^leading\/trailing spaces are not allowed:  a$/,
    "*": /^not a valid wildcard pattern, only patterns ending with '\/\*' are allowed: \*$/,
    "docker.io/*/x": /^not a valid wildcard pattern/,
    "/*": /^at least registry hostname is required$/,
    "a:1": /^neither tag nor digest is accepted in an image reference: a:1$/,
    "a:latest": /^neither tag nor digest/,
    [`a@sha256:${"0".repeat(64)}`]: /^neither tag nor digest/,
    "http://x": /^failed to parse as an image name: .*invalid reference format$/,
    "a b": /^failed to parse as an image name: /,
  };
  for (const [pattern, problem] of Object.entries(bad)) assert.match(allowlistProblem(pattern) ?? "", problem, pattern);
});
