import * as z from "zod";
import { withDeadline } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import type { CriRuntimeService } from "../ports/cri.ts";

export interface SandboxImagesDependencies {
  readonly clock: Clock;
  readonly runtime: Pick<CriRuntimeService, "podSandboxStatus">;
}

/** Of what containerd and CRI-O say of a sandbox on request. */
const Info = z.object({ image: z.string().optional() });
/** For all together: metrics are late by this if the runtime does not answer. */
const limitMs = 1_000;

/**
 * The images that sandboxes run. The runtime's configuration does not tell: it may have changed since, and containerd 2
 * does not show it. Each sandbox is asked for once.
 */
export class SandboxImages {
  readonly #deps: SandboxImagesDependencies;
  readonly #signal: AbortSignal;
  /** By sandbox ID; empty: the runtime does not say. */
  readonly #known = new Map<string, string>();

  /** @param signal cancels questions */
  constructor(deps: SandboxImagesDependencies, signal: AbortSignal) {
    this.#deps = deps;
    this.#signal = signal;
  }

  /** By sandbox ID; those that the runtime has not said in time are missing. Forgets other sandboxes. Never rejects. */
  async of(sandboxes: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const wanted = new Set(sandboxes);
    for (const id of this.#known.keys()) if (!wanted.has(id)) this.#known.delete(id);
    const unknown = [...wanted].filter((id) => !this.#known.has(id));
    if (unknown.length > 0) {
      const ask = async (signal: AbortSignal): Promise<void> => await this.#ask(unknown, signal);
      await withDeadline(this.#deps.clock, "the images of sandboxes", limitMs, this.#signal, ask).catch(() => {});
    }
    return new Map(this.#known);
  }

  /** One that is gone says nothing about the others. */
  async #ask(sandboxes: readonly string[], signal: AbortSignal): Promise<void> {
    for (const podSandboxId of sandboxes) {
      if (signal.aborted) return;
      const request = { podSandboxId, verbose: true };
      const answer = await this.#deps.runtime.podSandboxStatus(request, { signal }).catch(() => undefined);
      if (answer !== undefined) this.#known.set(podSandboxId, imageOf(answer.info["info"]));
    }
  }
}

function imageOf(info: string | undefined): string {
  try {
    return Info.parse(JSON.parse(info ?? "{}")).image ?? "";
  } catch {
    return "";
  }
}
