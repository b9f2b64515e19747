import type { Container } from "../api/container.ts";
import type { PodSpec } from "../api/pod.ts";
import { Signal } from "../ports/gen/runtime/v1/api_pb.js";
import { forbidden, notSupported, type FieldError } from "./field-errors.ts";
import type { FieldPath } from "../yaml/manifest-error.ts";
import { validateHandler } from "./validate-handler.ts";

/** Where in a pod a container stands. */
export type ContainerKind = "containers" | "initContainers" | "ephemeralContainers";

/** Checks a container's hooks and stop signal (upstream: validateLifecycle). */
export function* validateLifecycle(
  container: Container,
  kind: ContainerKind,
  path: FieldPath,
  spec: PodSpec,
): Iterable<FieldError> {
  const { lifecycle } = container;
  if (lifecycle === undefined) return;
  if (kind === "ephemeralContainers") {
    yield forbidden(path, "cannot be set for an Ephemeral Container");
    return;
  }
  if (kind === "initContainers" && container.restartPolicy !== "Always") {
    yield forbidden(path, "may not be set for init containers without restartPolicy=Always");
    return;
  }
  for (const hook of ["postStart", "preStop"] as const) {
    const handler = lifecycle[hook];
    if (handler === undefined) continue;
    yield* validateHandler(handler, [...path, hook], spec.terminationGracePeriodSeconds);
    // The API server takes it and every kubelet then fails to run it.
    if (handler.tcpSocket) yield forbidden([...path, hook, "tcpSocket"], "hooks are exec, httpGet or sleep");
  }
  if (lifecycle.stopSignal !== undefined) yield* validateStopSignal(lifecycle.stopSignal, path, spec);
}

/** As the API writes them: CRI's `SIGRTMINPLUS1` is `SIGRTMIN+1`. */
const signals = Object.keys(Signal)
  .filter((name) => name.startsWith("SIG"))
  .map((name) => name.replace(/PLUS(?=\d)/u, "+").replace(/MINUS(?=\d)/u, "-"));

function* validateStopSignal(signal: string, path: FieldPath, spec: PodSpec): Iterable<FieldError> {
  const here = [...path, "stopSignal"];
  if (spec.os === undefined) yield forbidden(here, "may not be set for containers with empty `spec.os.name`");
  else if (!signals.includes(signal)) yield notSupported(here, signal, signals.toSorted());
}
