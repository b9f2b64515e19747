import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../../test/support/manifest-problems.ts";

const key = "container.apparmor.security.beta.kubernetes.io/c";
const annotated = (value: string, field = "", name = key): string[] =>
  problems(`{containers: [{name: c, image: b, ${field}}]}`, `{name: a, annotations: {"${name}": "${value}"}}`);

test("an AppArmor annotation names a profile and a container of the pod", () => {
  for (const value of ["runtime/default", "unconfined", "localhost/mine"]) assert.deepEqual(annotated(value), []);
  assert.deepEqual(annotated("mine"), [
    `metadata.annotations[${key}]: Invalid value: "mine": invalid AppArmor profile name`,
  ]);
  assert.deepEqual(annotated("unconfined", "", `${key}x`), [
    `metadata.annotations[${key}x]: Invalid value: "cx": container not found`,
  ]);
});

test("an AppArmor annotation must match the field", () => {
  const field = (profile: string): string => `securityContext: {appArmorProfile: ${profile}}`;
  assert.deepEqual(annotated("localhost/mine", field("{type: Localhost, localhostProfile: mine}")), []);
  assert.deepEqual(annotated("runtime/default", field("{type: RuntimeDefault}")), []);
  assert.deepEqual(annotated("unconfined", field("{type: RuntimeDefault}")), [
    'spec.containers[0].securityContext.appArmorProfile: Forbidden: apparmor profile in annotation ("unconfined") and field must match',
  ]);
});
