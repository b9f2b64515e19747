/** A thread that plays simulated lives, one at a time; with a mutant, on sources that have a fault. */
import { createHash } from "node:crypto";
import { registerHooks } from "node:module";
import { setImmediate as setImmediatePromise } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import type { Happening } from "../src/sim/life/happening.ts";
import type { LifeOptions, LifeResult } from "../src/sim/life/life.ts";
import { errorText, type Problem } from "../src/sim/life/problem.ts";
import type { Mutant } from "./sim-mutant-list.ts";

/** What of a life is played. */
export type LifeParts = Pick<LifeOptions, "steps" | "without">;

/** A life to be played. */
export interface Order {
  readonly seed: number;
  readonly parts: LifeParts;
  /** Each happening of it is told as soon as it has happened. */
  readonly isTold: boolean;
}

/** How it went: everything of its result but the entries, of which only a digest is told. */
export interface Report extends Omit<LifeResult, "entries"> {
  readonly digest: string;
}

/** What the thread says: that it can begin, what happens in a life, how it went. */
export type Message = "ready" | { readonly happening: Happening } | { readonly report: Report };

/** A life that tells of more than these goes round in circles. */
const manyHappenings = 200_000;

/** So many rejections are enough to see what is wrong. */
const manyUnhandled = 20;

const { mutant } = workerData as { readonly mutant?: Mutant };
if (mutant !== undefined) applyAtLoad(mutant);
const { runLife } = await import("../src/sim/life/life.ts");

/** Simulated time of the last happening of the life that is played, where they are told. */
let lastMs = 0;
/** What no life waits for, since production would end by it. */
const unhandled: Problem[] = [];
process.on("unhandledRejection", (reason) => {
  if (unhandled.length >= manyUnhandled) return;
  unhandled.push({ rule: "no unhandled rejection", detail: errorText(reason), atMs: lastMs });
});

parentPort?.on("message", ({ seed, parts, isTold }: Order) => {
  // What goes wrong here is an error of the thread.
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
  // Promises that its end rejected.
  await setImmediatePromise();
  const hash = createHash("sha256");
  for (const entry of entries) hash.update(`${JSON.stringify(entry)}\n`);
  tell({ report: { ...rest, problems: [...rest.problems, ...unhandled], digest: hash.digest("hex") } });
}

function tell(message: Message): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- to a thread, not to a window
  parentPort?.postMessage(message);
}

/** Replaces a text of a source file when it is loaded; it has to be there exactly once. */
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
