import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import { CriError } from "../ports/cri.ts";
import type { ContainerEventResponse } from "../ports/gen/runtime/v1/api_pb.js";
import { eventOf } from "./cri-messages.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld } from "./runtime-world.ts";
import type { WorldChange } from "./world-model.ts";

/** Probabilities of lost and duplicate events, and their maximum delay. */
interface StreamFaults {
  readonly eventLost: number;
  readonly eventTwice: number;
  readonly eventDelayMaxMs: number;
}

/** Settings that change while a stream is open. */
interface StreamSettings {
  readonly alive: () => boolean;
  readonly faults: () => StreamFaults;
  readonly onFault: (kind: string) => void;
}

/** Changes that a runtime does not report. */
const silent: ReadonlySet<WorldChange["type"]> = new Set(["hook", "probed", "resized", "stopping"]);
/** Events delayed by more than this overtake their subject. */
const lateMs = 100;

/**
 * GetContainerEvents of the simulated runtime: events are delayed, duplicated, reordered or lost according to the
 * faults.
 */
export async function* eventStream(
  world: RuntimeWorld,
  clock: Clock,
  random: SimRandom,
  { alive, faults, onFault }: StreamSettings,
  signal: AbortSignal | undefined,
): AsyncGenerator<ContainerEventResponse> {
  if (world.down) throw new CriError("Unavailable", "getContainerEvents", "connection refused");
  const queue: WorldChange[] = [];
  let wake: (() => void) | undefined;
  using _subscription = world.onChange((change) => {
    if (silent.has(change.type) || !alive()) return;
    const { eventLost, eventTwice, eventDelayMaxMs } = faults();
    if (random.chance(eventLost)) return onFault("event lost");
    const copies = random.chance(eventTwice) ? 2 : 1;
    if (copies > 1) onFault("event twice");
    if (eventDelayMaxMs > lateMs) onFault("events late and out of order");
    for (let copy = 0; copy < copies; copy++) {
      clock.timer("runtime event", random.uniform() * eventDelayMaxMs, () => {
        queue.push(change);
        wake?.();
      });
    }
  });
  let cut = false;
  using _cut = world.onCut(() => {
    cut = true;
    wake?.();
  });
  for (;;) {
    if (cut) throw new CriError("Unavailable", "getContainerEvents", "the stream was cut");
    const change = queue.shift();
    if (change !== undefined) {
      yield eventOf(change);
      continue;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    wake = resolve;
    using _abort = onAbort(signal, () => reject(new CriError("Canceled", "getContainerEvents", "canceled")));
    await promise;
  }
}
