import type { Pleg } from "../pleg/pleg.ts";
import type { ProbeManager } from "../prober/probe-manager.ts";
import type { TrackedCri } from "../runtime-service/deadlines.ts";

/** PLEG is unhealthy without a successful relist for this long (genericPlegRelistThreshold). */
const plegUnhealthyMs = 3 * 60_000;

/** The last success of each subsystem and what it waits for, at `now` (monotonic ms). */
export function kubeletHealth(
  now: number,
  pleg: Pick<Pleg, "beganMs" | "lastRelistMs" | "evented" | "discarded">,
  outstanding: ReturnType<TrackedCri["outstanding"]>,
  probes: ProbeManager["activity"],
): { readonly name: string; readonly ok: boolean; readonly detail: string }[] {
  const last = pleg.lastRelistMs;
  const oldest = outstanding[0];
  const listed = last === undefined ? "never relisted" : `last relist ${seconds(now - last)} ago`;
  const call = oldest && `${oldest.method} ${oldest.detail} for ${seconds(now - oldest.sinceMonotonicMs)}`;
  return [
    {
      name: "pleg",
      // The first relist has as much time as any other: a restart of podwright makes no node NotReady.
      ok: now - (last ?? pleg.beganMs) < plegUnhealthyMs,
      detail: `${listed}, ${pleg.evented ? "runtime events" : "no runtime events"}, ${pleg.discarded} events discarded`,
    },
    {
      name: "runtime",
      ok: oldest === undefined || now - oldest.sinceMonotonicMs < plegUnhealthyMs,
      detail: call ?? "no call under way",
    },
    { name: "probes", ok: true, detail: `${probes.workers} probes, ${probes.probing} under way` },
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
