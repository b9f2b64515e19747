import type { Family } from "./family.ts";
import { Registry } from "./registry.ts";

/** A check of the node's health. */
export interface CheckedHealth {
  readonly name: string;
  readonly ok: boolean;
}

/** `/metrics/slis` (KEP-3466): results of health checks at each scrape. */
export class SliMetrics {
  readonly #checks: () => readonly CheckedHealth[];
  #counts = new Counts();

  constructor(checks: () => readonly CheckedHealth[]) {
    this.#checks = checks;
  }

  families(): Family[] {
    this.#counts.take(this.#checks());
    return this.#counts.registry.families();
  }

  reset(): void {
    this.#counts = new Counts();
  }
}

class Counts {
  readonly registry = new Registry();
  readonly #health = this.registry.gauge(
    "kubernetes_healthcheck",
    "1 while the health check passes, 0 otherwise",
    ["name", "type"],
    "STABLE",
  );
  readonly #total = this.registry.counter(
    "kubernetes_healthchecks_total",
    "Runs of the health check, by result",
    ["name", "status", "type"],
    "STABLE",
  );

  take(checks: readonly CheckedHealth[]): void {
    for (const { name, ok } of checks) {
      this.#health.set([name, "healthz"], ok ? 1 : 0);
      this.#total.add([name, ok ? "success" : "error", "healthz"]);
    }
  }
}
