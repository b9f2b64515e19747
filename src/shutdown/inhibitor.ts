import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";
import type { LoginSession } from "../ports/login-manager.ts";

/** As upstream: the login manager reads its configuration with a delay. */
const firstLookMs = 100;
const looks = 5;
const directory = "/etc/systemd/logind.conf.d";
const who = "kubelet";
const why = "Kubelet needs time to handle node shutdown";

export interface InhibitorDependencies {
  readonly clock: Clock;
  readonly files: Files;
  readonly log: Logger;
}

/**
 * Takes an inhibitor lock that delays a shutdown for the requested time. If the login manager's maximum delay is lower,
 * overrides it first, in the Go kubelet's file.
 * @throws Error if the maximum stays too low, or the lock is denied
 */
export async function inhibitShutdown(
  deps: InhibitorDependencies,
  session: LoginSession,
  wantedMs: number,
  signal: AbortSignal,
): Promise<Disposable> {
  const allowedMs = await session.inhibitDelayMaxMs(signal);
  if (allowedMs < wantedMs) await raiseDelay(deps, session, wantedMs, signal);
  return await session.delayShutdown(who, why, signal);
}

async function raiseDelay(
  { clock, files, log }: InhibitorDependencies,
  session: LoginSession,
  wantedMs: number,
  signal: AbortSignal,
): Promise<void> {
  const text = `# Written by podwright: a shutdown waits for pods this long.\n[Login]\nInhibitDelayMaxSec=${wantedMs / 1000}\n`;
  await files.makeDirectory(directory, 0o755);
  await files.writeAtomic(`${directory}/99-kubelet.conf`, text, 0o644);
  await session.reloadConfiguration(signal);
  let allowedMs = 0;
  for (let look = 0; look < looks; look++) {
    allowedMs = await session.inhibitDelayMaxMs(signal);
    if (allowedMs >= wantedMs) return log.info("raised logind's InhibitDelayMaxSec", { seconds: wantedMs / 1000 });
    await clock.sleep("logind to read its configuration", firstLookMs * 2 ** look, signal);
  }
  const kept = `logind limits InhibitDelayMaxSec to ${allowedMs / 1000} s`;
  throw new Error(`${kept}: too short for the ${wantedMs / 1000} s that pods get at a shutdown`);
}
