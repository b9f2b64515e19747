import type { JournalInput } from "../journal/entry.ts";
import type { Registry } from "./registry.ts";

/**
 * The time from a machine's boot until its Node was ready, in phases. Only of a new Node: one that exists already says
 * nothing about its machine. All are 0 until then.
 */
export class NodeStartMetrics {
  readonly #clock: { now(): number; monotonic(): number };
  /** When podwright began, by either clock. */
  readonly #wallMs: number;
  readonly #beganMs: number;
  readonly #seconds;
  #bootedMs: number | undefined;
  #registeredMs: number | undefined;
  #wasReady = false;

  constructor(registry: Registry, clock: { now(): number; monotonic(): number }) {
    this.#clock = clock;
    this.#wallMs = clock.now();
    this.#beganMs = clock.monotonic();
    const gauge = (stage: string, help: string) =>
      registry.gauge(
        `kubelet_node_startup_${stage}duration_seconds`,
        `Duration in seconds of node startup ${help}.`,
        [],
      );
    this.#seconds = {
      preKubelet: gauge("pre_kubelet_", "before kubelet starts"),
      preRegistration: gauge("pre_registration_", "before registration"),
      registration: gauge("registration_", "during registration"),
      postRegistration: gauge("post_registration_", "after registration"),
      total: gauge("", "in total"),
    };
  }

  /** @param bootedMs wall clock; undefined: unknown, and what counts from then stays 0 */
  booted(bootedMs: number | undefined): void {
    this.#bootedMs = bootedMs;
  }

  recorded({ what, kind, durationMs = 0, data = {} }: JournalInput): void {
    if (kind !== "note") return;
    if (what === "NodeRegistered" && data["isNew"] === true) this.#registered(durationMs);
    else if (what === "NodeReady") this.#ready();
  }

  /** @param tookMs since the first try */
  #registered(tookMs: number): void {
    if (this.#registeredMs !== undefined) return;
    const nowMs = this.#clock.monotonic();
    this.#registeredMs = nowMs;
    const { preKubelet, preRegistration, registration } = this.#seconds;
    preKubelet.set([], this.#bootSeconds ?? 0);
    preRegistration.set([], (nowMs - tookMs - this.#beganMs) / 1000);
    registration.set([], tookMs / 1000);
  }

  #ready(): void {
    if (this.#registeredMs === undefined || this.#wasReady) return;
    this.#wasReady = true;
    const nowMs = this.#clock.monotonic();
    this.#seconds.postRegistration.set([], (nowMs - this.#registeredMs) / 1000);
    const bootSeconds = this.#bootSeconds;
    if (bootSeconds !== undefined) this.#seconds.total.set([], bootSeconds + (nowMs - this.#beganMs) / 1000);
  }

  /** From the machine's boot until podwright began. */
  get #bootSeconds(): number | undefined {
    return this.#bootedMs === undefined ? undefined : (this.#wallMs - this.#bootedMs) / 1000;
  }
}
