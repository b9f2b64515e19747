import type { Pod } from "../../api/pod.ts";
import { nameOf, type SimContainer } from "../world-model.ts";
import type { Rule, RuleMaker } from "./rule.ts";

/**
 * Before any container starts, every earlier init container has succeeded in the same sandbox, or, if it is a sidecar,
 * has started, by its startup probe if it has one (design invariant 3).
 */
export const init: RuleMaker = ({ pods }, broken): Rule => {
  /** `<sandbox>/<container>` of succeeded init containers and started sidecars. */
  const done = new Set<string>();
  /** Pods whose containers were removed by others: whether these ran is unknown. */
  const tampered = new Set<string>();
  /** Pods with containers that may restart all of them. */
  const startsOver = ({ spec }: Pod): boolean =>
    spec.containers.some(({ restartPolicyRules }) =>
      restartPolicyRules?.some(({ action }) => action === "RestartAllContainers"),
    );

  function started(pod: Pod, container: SimContainer, name: string, index: number): void {
    const { initContainers = [], containers } = pod.spec;
    const ahead = index >= 0 ? initContainers.slice(0, index) : initContainers;
    // A sidecar that is restarted beside running containers had its turn before.
    if (index >= 0 && done.has(`${container.sandboxId}/${name}`)) {
      if (initContainers[index]?.restartPolicy === "Always") return;
      if (startsOver(pod) || tampered.has(pod.metadata.uid)) return;
      broken("init containers run once", `${pod.metadata.uid}/${name} ran again after it had ended well`);
    }
    const missing = ahead.find((other) => !done.has(`${container.sandboxId}/${other.name}`));
    if (missing !== undefined && (index >= 0 || containers.some((own) => own.name === name))) {
      broken("init order", `${pod.metadata.uid}/${name} started before ${missing.name} had done its part`);
    }
  }

  return {
    tampered: (uid) => void tampered.add(uid),
    change: ({ type, container, podUid, probe }) => {
      const pod = pods.get(podUid);
      if (container === undefined || pod === undefined) return;
      const name = nameOf(container);
      const index = pod.spec.initContainers?.findIndex((own) => own.name === name) ?? -1;
      const own = pod.spec.initContainers?.[index];
      const isSidecar = own?.restartPolicy === "Always";
      if (type === "started") {
        started(pod, container, name, index);
        if (isSidecar && own.startupProbe === undefined) done.add(`${container.sandboxId}/${name}`);
      }
      if (type === "probed" && isSidecar && probe?.type === "startup" && probe.ok) {
        done.add(`${container.sandboxId}/${name}`);
      }
      if (type === "exited" && container.startedAt !== 0n && container.exitCode === 0 && index >= 0) {
        done.add(`${container.sandboxId}/${name}`);
      }
    },
  };
};
