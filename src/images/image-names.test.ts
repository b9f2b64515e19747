import assert from "node:assert/strict";
import { test } from "node:test";
import { isNamed } from "./image-names.ts";

const digest = `sha256:${"a".repeat(64)}`;
const names = (...of: string[]) => ({ id: "sha256:1", names: of });

test("an image is matched by tag and by digest, however short the name is", () => {
  const busybox = names("docker.io/library/busybox:latest", `docker.io/library/busybox@${digest}`);
  for (const wanted of [
    "busybox",
    "busybox:latest",
    "docker.io/library/busybox",
    `busybox@${digest}`,
    `busybox:2@${digest}`,
  ]) {
    assert.equal(isNamed(wanted, busybox), true, wanted);
  }
  for (const wanted of ["busybox:1", "quay.io/busybox", `busybox@sha256:${"b".repeat(64)}`, "box", ""]) {
    assert.equal(isNamed(wanted, busybox), false, wanted);
  }
});

test("a name without a registry may be completed by the runtime's own rules", () => {
  assert.equal(isNamed("team/app:1", names("quay.io/team/app:1")), true);
  assert.equal(isNamed("app:1", names("quay.io/team/app:1")), true);
  assert.equal(isNamed("docker.io/team/app:1", names("quay.io/team/app:1")), false);
  assert.equal(isNamed("localhost:5000/app:1", names("quay.io/app:1")), false);
});

test("an invalid reference only matches itself", () => {
  assert.equal(isNamed("sha256:1", names("a:1")), true);
  assert.equal(isNamed("UPPER", names("UPPER")), true);
  assert.equal(isNamed("UPPER", names("not a name")), false);
});
