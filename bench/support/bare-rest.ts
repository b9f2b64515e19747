/** `bare-rest.ts ENDPOINT`: the floor of a kubelet at rest. Notifies its parent when ready; SIGTERM ends it. */
import { setTimeout as sleep } from "node:timers/promises";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";

/** podwright's relist interval with events (eventedRelistPeriodMs). */
const listPeriodMs = 10_000;

const { runtime } = connectCri(process.argv[2] ?? "", systemClock);

/** Drains the events. */
async function events(): Promise<void> {
  for await (const _event of runtime.getContainerEvents({}));
  throw new Error("the runtime ended its events");
}

async function listings(): Promise<never> {
  for (;;) {
    await Promise.all([runtime.listPodSandbox({}), runtime.listContainers({})]);
    process.send?.("ready");
    await sleep(listPeriodMs);
  }
}

await Promise.all([events(), listings()]);
