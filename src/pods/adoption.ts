import type { StartUp } from "../base/start-up.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { PodWorkers } from "./pod-workers.ts";

/** One line after a start: which desired pods were already running. */
export async function reportAdoption(deps: {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly startUp: Pick<StartUp, "when">;
  readonly pleg: Pick<Pleg, "podsNamed">;
  readonly workers: Pick<PodWorkers, "list">;
}): Promise<void> {
  const { clock, journal, log, startUp, pleg, workers } = deps;
  const began = clock.monotonic();
  await startUp.when("listed");
  const wanted = workers.list();
  const running = wanted.filter(({ ref, uid }) => pleg.podsNamed(ref.namespace, ref.name).includes(uid));
  if (running.length === 0) return;
  const seconds = ((clock.monotonic() - began) / 1000).toFixed(1);
  const message = `found ${running.length} of ${wanted.length} desired pods in the runtime, ${seconds} s after the start`;
  journal.record({ kind: "note", what: "PodsFound", message });
  log.info("found pods in the runtime", { running: running.length, desired: wanted.length });
}
