import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../../test/support/pods.ts";
import type { RuntimeHandlerInfo } from "../../runtime-service/features.ts";
import { dependsOnHandler, podFeatures, requireUserNamespaces } from "./pod-features.ts";

const handlers: readonly RuntimeHandlerInfo[] = [
  { name: "", recursiveReadOnlyMounts: true, userNamespaces: true },
  { name: "old", recursiveReadOnlyMounts: false, userNamespaces: false },
  { name: "half", recursiveReadOnlyMounts: true, userNamespaces: false },
];
/** The RuntimeClasses of a cluster. */
const classes = new Map(["old", "half", "gone"].map((name) => [`class-${name}`, name]));
const objects = { runtimeHandler: (name: string): string | undefined => classes.get(name) };

test("a pod has the features of its RuntimeClass's handler, else of the default one", () => {
  for (const [runtimeClassName, handler, recursiveReadOnlyMounts, userNamespaces] of [
    [undefined, "", true, true],
    ["", "", true, true],
    ["class-old", "old", false, false],
    ["class-half", "half", true, false],
  ] as const) {
    const found = podFeatures(podWith({ runtimeClassName }), objects, handlers);
    assert.deepEqual(found, { handler, isKnown: true, recursiveReadOnlyMounts, userNamespaces });
  }
});

test("a handler that the runtime does not list has no features, nor has a RuntimeClass that is not found", () => {
  const none = { recursiveReadOnlyMounts: false, userNamespaces: false };
  const pod = podWith({ runtimeClassName: "class-gone" });
  assert.deepEqual(podFeatures(pod, objects, handlers), { handler: "gone", isKnown: false, ...none });
  assert.deepEqual(
    podFeatures(pod, objects, []),
    { handler: "gone", isKnown: true, ...none },
    "a runtime without lists",
  );
  assert.equal(podFeatures(podWith({}), objects, []).userNamespaces, false);
  const unknown = { handler: undefined, isKnown: false, ...none };
  assert.deepEqual(podFeatures(podWith({ runtimeClassName: "none" }), objects, handlers), unknown);
  assert.deepEqual(podFeatures(pod, {}, handlers), unknown, "a node without a cluster knows no RuntimeClasses");
});

test("a pod whose handler lacks user namespaces is told so in upstream's words", () => {
  const problem = "can't set `spec.hostUsers: false`,";
  const check = (runtimeClassName: string | undefined, listed = handlers) => {
    const pod = podWith({ hostUsers: false, runtimeClassName });
    return (): void => requireUserNamespaces(pod, podFeatures(pod, objects, listed));
  };
  assert.doesNotThrow(check(undefined));
  const name = "ContainerConfigError";
  const lacks = `${problem} RuntimeClass handler "old" does not support user namespaces`;
  assert.throws(check("class-old"), { name, message: lacks });
  assert.throws(check("class-old", []), { name, message: lacks });
  assert.throws(check(undefined, []), { name, message: `${problem} runtime does not support user namespaces` });
  assert.throws(check("class-gone"), {
    name,
    message: `${problem} RuntimeClass handler "gone" does not support user namespaces: the handler "gone" is not known`,
  });
  assert.throws(check("none"), { name, message: 'runtimeclass.node.k8s.io "none" not found' });
});

test("a start waits for the pod's RuntimeClass if it depends on what the handler can do", () => {
  const depends = (hostUsers: boolean | undefined, recursiveReadOnly?: string): boolean => {
    const volumeMounts = [
      { name: "v", mountPath: "/v", ...(recursiveReadOnly !== undefined && { recursiveReadOnly }) },
    ];
    return dependsOnHandler(podWith({ hostUsers }), { name: "c", volumeMounts });
  };
  assert.deepEqual([depends(undefined), depends(true), depends(undefined, "Disabled")], [false, false, false]);
  assert.deepEqual([depends(false), depends(true, "IfPossible"), depends(true, "Enabled")], [true, true, true]);
});
