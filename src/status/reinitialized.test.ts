import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readySandbox, runtimeContainer, runtimeStatus, statusInputs } from "../../test/support/runtime-status.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import type { PodStatus } from "../api/status.ts";
import { containerId, sandboxId } from "../base/ids.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import { generateAPIPodStatus } from "./generate.ts";

const pod = podWith({ containers: [{ name: "c" }] });

describe("a pod with init containers whose sandbox is recreated", () => {
  const sidecar = { name: "s", restartPolicy: "Always" } as const;
  const withInit: Pod = {
    ...pod,
    spec: { ...pod.spec, restartPolicy: "Always", initContainers: [{ name: "i" }, sidecar, { name: "j" }] },
  };
  const [first, second] = [sandboxId("first"), sandboxId("second")];
  const exited = { state: "exited", sandboxId: first } as const;
  /** Containers of the first sandbox. */
  const old = [
    runtimeContainer("c", { ...exited, exitCode: 137 }),
    runtimeContainer("j", exited),
    runtimeContainer("s", { ...exited, exitCode: 137 }),
    runtimeContainer("i", exited),
  ];
  const dead = readySandbox({ id: first, ready: false, ips: [] });
  const anew = [readySandbox({ id: second, attempt: 1 }), dead];
  const done = ["i", "j"].map((name) => runtimeContainer(name, { state: "exited" }));
  const podStatus = runtimeStatus(withInit, [...done, runtimeContainer("s"), runtimeContainer("c")]);
  const before = generateAPIPodStatus(statusInputs(withInit, { podStatus }));
  const statusWith = (made: readonly RuntimeContainerStatus[], sandboxes = anew, previous = before): PodStatus => {
    const here = made.map((each) => ({
      ...each,
      id: containerId(`${each.name}-1`),
      sandboxId: second,
      restartCount: 1,
    }));
    const seen = runtimeStatus(withInit, [...here, ...old], sandboxes);
    return generateAPIPodStatus(statusInputs(withInit, { podStatus: seen, previous }));
  };

  test("is Running as long as there is no new sandbox", () => {
    assert.equal(before.phase, "Running");
    assert.equal(statusWith([], [dead]).phase, "Running");
  });

  test("is Pending from then on until a regular container is created in it, without flapping", () => {
    const made: RuntimeContainerStatus[] = [];
    const shown = [statusWith(made)];
    const show = (...containers: readonly RuntimeContainerStatus[]): void => {
      shown.push(statusWith(containers, anew, shown.at(-1)));
    };
    for (const [name, end] of [
      ["i", 0],
      ["s", undefined],
      ["j", 0],
    ] as const) {
      for (const state of ["created", "running", ...(end === undefined ? [] : (["exited"] as const))] as const) {
        show(...made, runtimeContainer(name, { state }));
      }
      made.push(runtimeContainer(name, { state: end === undefined ? "running" : "exited" }));
    }
    assert.deepEqual(new Set(shown.map(({ phase }) => phase)), new Set(["Pending"]));
    show(...made, runtimeContainer("c", { state: "created" }));
    assert.equal(shown.at(-1)?.phase, "Running");
    // It could not be started, and is made once more.
    show(...made);
    assert.equal(shown.at(-1)?.phase, "Running");
    show(...made.slice(0, -1));
    assert.equal(shown.at(-1)?.phase, "Pending");
  });

  test("stays Running while a container runs its postStart hook and its previous instance is removed", () => {
    const sandboxes = [readySandbox({ id: second, attempt: 1 }), dead];
    const here = [runtimeContainer("s", { sandboxId: second, restartCount: 1 })];
    const running = runtimeStatus(withInit, [
      ...here,
      runtimeContainer("c", { sandboxId: second, restartCount: 1 }),
      ...old,
    ]);
    const previous = generateAPIPodStatus(statusInputs(withInit, { podStatus: { ...running, sandboxes } }));
    // The one in its hook is excluded from the view.
    const shown = runtimeStatus(withInit, [...here, ...old.slice(1)], sandboxes);
    const phase = (isInitialized?: boolean): string => {
      const seen = { podStatus: shown, previous, ...(isInitialized !== undefined && { isInitialized }) };
      return generateAPIPodStatus(statusInputs(withInit, seen)).phase;
    };
    assert.equal(phase(), "Pending");
    assert.equal(phase(true), "Running");
  });

  test("stays Pending while an init container fails in it", () => {
    assert.equal(statusWith([runtimeContainer("i", { state: "exited", exitCode: 1 })]).phase, "Pending");
  });
});

test("a pod without init containers stays Running in a new sandbox", () => {
  const before = generateAPIPodStatus(statusInputs(pod, { podStatus: runtimeStatus(pod, [runtimeContainer("c")]) }));
  const sandboxes = [readySandbox({ id: sandboxId("second"), attempt: 1 }), readySandbox({ ready: false })];
  const podStatus = runtimeStatus(pod, [runtimeContainer("c", { state: "exited", exitCode: 137 })], sandboxes);
  assert.equal(generateAPIPodStatus(statusInputs(pod, { podStatus, previous: before })).phase, "Running");
});
