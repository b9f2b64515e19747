import assert from "node:assert/strict";
import { test } from "node:test";
import { withRemedy } from "./create-remedy.ts";

test("the error for mount propagation on a private mount has the command that shares it", () => {
  for (const [problem, mount] of [
    ['failed to generate spec: path "/srv" is mounted on "/" but it is not a shared mount', "/"],
    ['path "/data/x" is mounted on "/data" but it is not a shared or slave mount', "/data"],
  ] as const) {
    assert.equal(
      withRemedy(problem),
      `${problem}; mountPropagation requires a shared mount: mount --make-rshared ${mount}`,
    );
  }
  assert.equal(withRemedy("no such image"), "no such image");
});

test("the errors of runtimes without image volumes say so", () => {
  for (const problem of [
    'failed to generate container "x" spec: failed to generate spec: failed to mkdir "": mkdir : no such file or directory',
    "mount.HostPath is empty",
  ]) {
    assert.match(
      withRemedy(problem),
      /; the container runtime does not support image volumes: containerd does from 2\.1/,
    );
  }
  const other = 'failed to mkdir "/x": read-only file system';
  assert.equal(withRemedy(other), other);
});
