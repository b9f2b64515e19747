/** A thread that plays simulated lives, one at a time; with a mutant, on sources that have a fault. */
import { createHash } from "node:crypto";
import { registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { LifeOptions, LifeResult } from "../src/sim/life/life.ts";
import type { Mutant } from "./sim-mutant-list.ts";

/** A life to be played. */
export interface Order {
  readonly seed: number;
  readonly options: LifeOptions;
}

/** How it went: everything of its result but the entries, of which only a digest is told. */
export interface Report extends Omit<LifeResult, "entries"> {
  readonly digest: string;
}

const { mutant } = workerData as { readonly mutant?: Mutant };
if (mutant !== undefined) applyAtLoad(mutant);
const { runLife } = await import("../src/sim/life/life.ts");

/** What no life waits for, since production would end by it. */
const unhandled: string[] = [];
process.on("unhandledRejection", (reason) => unhandled.push(String(reason)));

parentPort?.on("message", ({ seed, options }: Order) => {
  // What goes wrong here is an error of the thread.
  play(seed, options).catch((error: unknown) => {
    setImmediate(() => {
      throw error;
    });
  });
});
tell("ready");

async function play(seed: number, options: LifeOptions): Promise<void> {
  unhandled.length = 0;
  let result: LifeResult;
  try {
    result = await runLife(seed, options);
  } catch (error) {
    const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const problems = [{ rule: "the simulation goes on", detail, atMs: 0 }];
    const coverage = { steps: new Map(), faults: new Map(), actions: new Map() };
    result = { seed, problems, plan: [], entries: [], simulatedMs: 0, coverage };
  }
  const { entries, ...rest } = result;
  const hash = createHash("sha256");
  for (const entry of entries) hash.update(`${JSON.stringify(entry)}\n`);
  const rejections = unhandled.map((detail) => ({ rule: "no unhandled rejection", detail, atMs: 0 }));
  const report: Report = { ...rest, problems: [...rest.problems, ...rejections], digest: hash.digest("hex") };
  tell(report);
}

function tell(message: Report | "ready"): void {
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
