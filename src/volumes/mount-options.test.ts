import assert from "node:assert/strict";
import { test } from "node:test";
import { MountPropagation } from "../ports/gen/runtime/v1/api_pb.js";
import { isRecursivelyReadOnly, mountPropagation } from "./mount-options.ts";

const mount = { name: "v", mountPath: "/m" };

test("mounts propagate as requested, and by default not at all", () => {
  const of = (mode: string | undefined): MountPropagation =>
    mountPropagation(mode === undefined ? mount : { ...mount, mountPropagation: mode });
  assert.equal(of(undefined), MountPropagation.PROPAGATION_PRIVATE);
  assert.equal(of("None"), MountPropagation.PROPAGATION_PRIVATE);
  assert.equal(of("HostToContainer"), MountPropagation.PROPAGATION_HOST_TO_CONTAINER);
  assert.equal(of("Bidirectional"), MountPropagation.PROPAGATION_BIDIRECTIONAL);
  assert.throws(() => of("Both"), /invalid MountPropagation mode: "Both"/);
});

test("recursive read-only is used if the runtime supports it, else omitted or rejected by name", () => {
  const readOnly = { ...mount, readOnly: true };
  assert.equal(isRecursivelyReadOnly(readOnly, true), false);
  assert.equal(isRecursivelyReadOnly({ ...readOnly, recursiveReadOnly: "IfPossible" }, true), true);
  assert.equal(isRecursivelyReadOnly({ ...readOnly, recursiveReadOnly: "IfPossible" }, false), false);
  assert.equal(isRecursivelyReadOnly({ ...readOnly, recursiveReadOnly: "Enabled" }, true), true);
  const enabled = { ...mount, recursiveReadOnly: "Enabled" };
  assert.throws(() => isRecursivelyReadOnly({ ...enabled, readOnly: true }, false), /not supported by the runtime/);
  assert.throws(() => isRecursivelyReadOnly(enabled, true), /it is not read-only/);
  const propagating = { ...enabled, readOnly: true, mountPropagation: "HostToContainer" };
  assert.throws(() => isRecursivelyReadOnly(propagating, true), /not compatible with propagation "HostToContainer"/);
});
