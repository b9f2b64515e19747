import type { SELinuxOutcome } from "../journal/observer.ts";
import type { Registry } from "./registry.ts";

/** Upstream's short form of ReadWriteOncePod: other volumes are not mounted with labels. */
const accessMode = "RWOP";

/** Volumes that are to be mounted with SELinux labels. Upstream counts them in gauges. */
export class SELinuxMetrics {
  readonly #admitted;
  readonly #errors;

  constructor(registry: Registry) {
    const gauge = (name: string, help: string) =>
      registry.gauge(`volume_manager_selinux_${name}_errors_total`, help, ["access_mode"]);
    this.#admitted = registry.gauge(
      "volume_manager_selinux_volumes_admitted_total",
      "Number of volumes that were mounted with the mount option context",
      ["volume_plugin", "access_mode"],
    );
    this.#errors = {
      containerError: gauge(
        "container",
        "Number of attempts to start a pod with a container that can have no SELinux label",
      ),
      podMismatch: gauge(
        "pod_context_mismatch",
        "Number of attempts to start a pod whose containers have different SELinux labels and the same volume",
      ),
    };
  }

  counted(outcome: SELinuxOutcome, driver = ""): void {
    if (outcome === "admitted") this.#admitted.add([`kubernetes.io/csi/${driver}`, accessMode], 1);
    else this.#errors[outcome].add([accessMode], 1);
  }
}
