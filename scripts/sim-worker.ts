/** A thread that plays simulated lives one at a time; for a mutant, on modified sources. */
import { createHash } from "node:crypto";
import { registerHooks } from "node:module";
import { setImmediate as setImmediatePromise } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { Happening } from "../src/sim/life/happening.ts";
import type { LifeOptions, LifeResult } from "../src/sim/life/life.ts";
import { errorText, type Problem } from "../src/sim/life/problem.ts";
import type { Mutant } from "./sim-mutant-list.ts";

/** The part of a life to play. */
export type LifeParts = Pick<LifeOptions, "steps" | "without">;

export interface Order {
  readonly seed: number;
  readonly parts: LifeParts;
  /** Send each happening as it occurs. */
  readonly isTold: boolean;
}

/** The result of a life, with a digest instead of the entries. */
export interface Report extends Omit<LifeResult, "entries"> {
  readonly digest: string;
}

/** Messages of the thread: ready, a happening, a result. */
export type Message = "ready" | { readonly happening: Happening } | { readonly report: Report };

/** A life with more happenings runs in circles. */
const manyHappenings = 200_000;

/** Enough rejections to see what is wrong. */
const manyUnhandled = 20;

const { mutant } = workerData as { readonly mutant?: Mutant };
if (mutant !== undefined) applyAtLoad(mutant);
const { runLife } = await import("../src/sim/life/life.ts");

/** Simulated time of the last happening of the current life, if happenings are sent. */
let lastMs = 0;
/** Unhandled rejections, which would end a production process. */
const unhandled: Problem[] = [];
process.on("unhandledRejection", (reason) => {
  if (unhandled.length >= manyUnhandled) return;
  unhandled.push({ rule: "no unhandled rejection", detail: errorText(reason), atMs: lastMs });
});

parentPort?.on("message", ({ seed, parts, isTold }: Order) => {
  // Errors here are errors of the thread.
  play(seed, parts, isTold).catch((error: unknown) => {
    setImmediate(() => {
      throw error;
    });
  });
});
tell("ready");

async function play(seed: number, parts: LifeParts, isTold: boolean): Promise<void> {
  unhandled.length = 0;
  lastMs = 0;
  let told = 0;
  const onHappening = (happening: Happening): void => {
    lastMs = happening.atMs;
    if (++told <= manyHappenings) tell({ happening });
  };
  const { entries, ...rest } = await runLife(seed, { ...parts, ...(isTold && { onHappening }) });
  // Rejections caused by the end of the life.
  await setImmediatePromise();
  const hash = createHash("sha256");
  for (const entry of entries) hash.update(`${JSON.stringify(entry)}\n`);
  tell({ report: { ...rest, problems: [...rest.problems, ...unhandled], digest: hash.digest("hex") } });
}

function tell(message: Message): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
  parentPort?.postMessage(message);
}

/** Replaces a text of a source file when it is loaded; it must occur exactly once. */
function applyAtLoad({ file, from, to }: Mutant): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      if (!url.endsWith(`/${file}`)) return loaded;
      const source = loaded.source;
      const text = typeof source === "string" ? source : new TextDecoder().decode(source ?? new Uint8Array());
      const parts = text.split(from);
      if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places that read ${from}`);
      return { ...loaded, source: parts.join(to) };
    },
  });
}
