import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";
import { CriError } from "../ports/cri.ts";
import type { ContainerEventResponse } from "../ports/gen/runtime/v1/api_pb.js";
import { eventOf } from "./cri-messages.ts";
import type { CriFaults } from "./cri.ts";
import type { SimRandom } from "./random.ts";
import type { RuntimeWorld, WorldChange } from "./runtime-world.ts";

/** What changes while a stream is open. */
interface StreamSettings {
  readonly alive: () => boolean;
  readonly faults: () => CriFaults;
}

/** GetContainerEvents of the simulated runtime: events come late, twice, out of order or not at all, as the faults say. */
export async function* eventStream(
  world: RuntimeWorld,
  clock: Clock,
  random: SimRandom,
  { alive, faults }: StreamSettings,
  signal: AbortSignal | undefined,
): AsyncGenerator<ContainerEventResponse> {
  const queue: WorldChange[] = [];
  let wake: (() => void) | undefined;
  using _subscription = world.onChange((change) => {
    if (change.type === "hook" || change.type === "stopping") return;
    const { eventLost, eventTwice, eventDelayMaxMs } = faults();
    if (!alive() || random.chance(eventLost)) return;
    const copies = random.chance(eventTwice) ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      clock.timer("runtime event", random.uniform() * eventDelayMaxMs, () => {
        queue.push(change);
        wake?.();
      });
    }
  });
  for (;;) {
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
