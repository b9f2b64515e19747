import { containersOf, isSidecar } from "../../api/all-containers.ts";
import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import { invariant } from "../../base/invariant.ts";
import type { Cause } from "../../journal/entry.ts";
import { type ContainerStatus, findContainer, type PodStatus, type SandboxStatus } from "../status/pod-status.ts";
import type { ContainerToKill, ContainerToStart } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";
import type { PodResize } from "./resize-actions.ts";

/** The parts of a decision that are checked. */
export interface CheckedActions {
  readonly killPod: Cause | undefined;
  readonly createSandbox: object | undefined;
  readonly sandbox: SandboxStatus | undefined;
  readonly containersToKill: readonly ContainerToKill[];
  readonly containersToStart: readonly ContainerToStart[];
  readonly resize: Pick<PodResize, "restarts"> | undefined;
}

/** Checks what holds for every decision, whatever the pod is and the runtime shows. */
export function checkActions(
  pod: Pod,
  status: PodStatus,
  { busy }: Pick<PodActionsContext, "busy">,
  actions: CheckedActions,
): void {
  const { killPod, createSandbox, containersToKill, containersToStart, resize, sandbox } = actions;
  const { uid } = pod.metadata;
  const restarts = resize?.restarts.map(({ start }) => start) ?? [];
  const starts = [...containersToStart, ...restarts];
  const names = starts.map(({ container }) => container.name);
  const isOnce = new Set(names).size === names.length;
  // Each is an operation of its own: two would run the container twice.
  invariant("a container is started once a decision", isOnce, () => `${uid}: ${names.join()}`);
  // Two sandboxes of a pod would each have its containers.
  const replaces = createSandbox === undefined || killPod !== undefined || !status.sandboxes.some(({ ready }) => ready);
  invariant("a sandbox replaces those that it stops", replaces, () => uid);
  if (createSandbox !== undefined) return;
  const killed = new Set(containersToKill.map(({ container }) => container.id));
  for (const { kill } of resize?.restarts ?? []) killed.add(kill.container.id);
  for (const start of starts) checkStart(uid, start, { status, sandbox, busy, killed });
  for (const { container } of containersToKill) {
    // What works on it decides about it.
    invariant(
      "a container in an operation is not stopped",
      !busy.has(container.name),
      () => `${uid}/${container.name}`,
    );
    const isAlive = container.state === "running" || container.state === "unknown";
    invariant(
      "a container that is stopped may still run",
      isAlive,
      () => `${uid}/${container.name} is ${container.state}`,
    );
  }
  checkOrder(pod, status, busy, actions);
}

/** A start is checked against these. */
interface Beside {
  readonly status: PodStatus;
  readonly sandbox: SandboxStatus | undefined;
  readonly busy: ReadonlySet<string>;
  /** Ids of instances that the same decision stops. */
  readonly killed: ReadonlySet<string>;
}

function checkStart(
  uid: string,
  { container: { name }, attempt, leftover }: ContainerToStart,
  { status, sandbox, busy, killed }: Beside,
): void {
  const current = findContainer(status, name);
  invariant("a container in an operation is not started", !busy.has(name), () => `${uid}/${name}`);
  // What a sandbox had is stopped before the next one is made.
  const isBeside = current?.state === "running" && current.sandboxId === sandbox?.id;
  const isAlone = !isBeside || killed.has(current.id);
  const beside = (): string => `${uid}/${name} beside ${current?.id}`;
  invariant("an instance starts after the previous one has stopped", isAlone, beside);
  // Logs, statuses and back-offs distinguish instances by it.
  const least = current === undefined ? 0 : current.restartCount + (leftover === undefined ? 1 : 0);
  invariant("attempts continue from the previous instance", attempt >= least, () => `${uid}/${name}: ${attempt}`);
}

/** First starts keep the order of the spec, and wait for the init containers. */
function checkOrder(pod: Pod, status: PodStatus, busy: ReadonlySet<string>, actions: CheckedActions): void {
  const { uid } = pod.metadata;
  const order = containersOf(pod.spec).map(({ name }) => name);
  const first = actions.containersToStart.filter(({ restart, kind }) => !restart && kind !== "ephemeral");
  const places = first.map(({ container }) => order.indexOf(container.name));
  const isInOrder = places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  invariant("first starts keep the order of the spec", isInOrder, () => `${uid}: ${places.join()} of ${order.join()}`);
  const { initContainers = [], containers } = pod.spec;
  const inSandbox = (name: string): ContainerStatus | undefined => {
    const current = findContainer(status, name);
    return current?.sandboxId === actions.sandbox?.id ? current : undefined;
  };
  // Where one was made here before, the runtime may have forgotten those before it.
  const isFurther = containers.some(({ name }) => busy.has(name) || inSandbox(name) !== undefined);
  if (isFurther || !first.some(({ kind }) => kind === "regular")) return;
  const last = initContainers.at(-1);
  const isUndone = (container: Container): boolean => {
    const current = inSandbox(container.name);
    if (isSidecar(container)) return container === last && current?.state !== "running";
    return current?.state === "running" || (container === last && current?.exitCode !== 0);
  };
  const undone = initContainers.find(isUndone);
  invariant("regular containers wait for init containers", undone === undefined, () => `${uid}/${undone?.name}`);
}
