import { errorMessage } from "../base/errors.ts";
import type { PodCondition } from "../api/status.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { ServiceManager } from "../ports/service-manager.ts";
import type { Health } from "../server/local-api.ts";

/** Longest interval between checks for a changed status. */
const statusPeriodMs = 10_000;
/** Delays before the two retries of a failed notification, as upstream. */
const retriesMs = [1000, 2000];

interface CountedPod {
  readonly ended: boolean;
  readonly status: { readonly conditions?: readonly Pick<PodCondition, "type" | "status">[] } | undefined;
}

interface Supervised {
  readonly health: () => Health["checks"];
  readonly nodePods: () => readonly CountedPod[];
}

interface SupervisionDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined: no service manager expects notifications. */
  readonly manager: ServiceManager | undefined;
}

/**
 * Notifies the service manager that the node is ready, of its number of pods, and that it stops. While the node is healthy it also
 * sends two pings per watchdog period; without them the service manager restarts it. Ends with the signal.
 */
export async function supervise(deps: SupervisionDependencies, node: Supervised, signal: AbortSignal): Promise<void> {
  const { clock, log, manager } = deps;
  if (manager === undefined) return;
  const { watchdogMs } = manager;
  const periodMs = Math.min(watchdogMs === undefined ? statusPeriodMs : watchdogMs / 2, statusPeriodMs);
  if (watchdogMs !== undefined) log.info("systemd watchdog started", { periodMs });
  let told = statusOf(node, failingOf(node));
  await tell(deps, ["READY=1", told], signal);
  for (;;) {
    await clock.sleep("next notification of the service manager", periodMs, signal).catch(() => {});
    if (signal.aborted) break;
    const failing = failingOf(node);
    const status = statusOf(node, failing);
    if (failing !== undefined && watchdogMs !== undefined) {
      log.error("systemd watchdog not notified, node is unhealthy", { check: failing.name, detail: failing.detail });
    }
    const alive = failing === undefined && watchdogMs !== undefined ? ["WATCHDOG=1"] : [];
    const news = [...alive, ...(status === told ? [] : [status])];
    if (news.length > 0 && (await tell(deps, news, signal))) told = status;
  }
  await tell(deps, ["STOPPING=1"], signal);
}

type Failing = Health["checks"][number] | undefined;

function failingOf(node: Supervised): Failing {
  return node.health().find(({ ok }) => !ok);
}

function statusOf(node: Supervised, failing: Failing): string {
  if (failing !== undefined) return `STATUS=unhealthy: ${failing.name}: ${failing.detail}`.replaceAll("\n", " ");
  const pods = node.nodePods().filter(({ ended }) => !ended);
  const ready = pods.filter(({ status }) => {
    return status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") === true;
  });
  return `STATUS=${pods.length} ${pods.length === 1 ? "pod" : "pods"}, ${ready.length} ready`;
}

/** Notifies the service manager, if there is one, with retries. @returns false when all failed */
export async function tell(
  { clock, log, manager }: SupervisionDependencies,
  assignments: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const delayMs of [...retriesMs, undefined]) {
    try {
      await manager?.notify(assignments);
      return true;
    } catch (error) {
      if (delayMs === undefined || signal.aborted) {
        log.error("cannot notify the service manager", { assignments, error: errorMessage(error) });
        return false;
      }
      await clock.sleep("retry of a notification of the service manager", delayMs, signal).catch(() => {});
    }
  }
  return false;
}
