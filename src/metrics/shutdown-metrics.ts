import type { Registry } from "./registry.ts";

/** When the node last ended its pods for a shutdown; 0: not yet. */
export class ShutdownMetrics {
  readonly #start;
  readonly #end;

  constructor(registry: Registry) {
    const gauge = (which: "start" | "end") =>
      registry.gauge(
        `kubelet_graceful_shutdown_${which}_time_seconds`,
        `Last graceful shutdown ${which} time since unix epoch in seconds`,
        [],
      );
    this.#start = gauge("start");
    this.#end = gauge("end");
  }

  /** Milliseconds since the epoch. */
  set({ startMs, endMs }: { readonly startMs: number; readonly endMs: number }): void {
    this.#start.set([], Math.trunc(startMs / 1000));
    this.#end.set([], Math.trunc(endMs / 1000));
  }
}
