import { errorMessage } from "../base/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Processes } from "../ports/processes.ts";
import { canaries, type Family, wantedChains, wantedRules } from "./chains.ts";
import { Iptables } from "./iptables.ts";

export interface UtilityChainsDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, "run">;
}

/** As upstream. */
const periodMs = 60_000;
const families: readonly Family[] = [4, 6];

/**
 * Maintains the chains that other programs of a node expect of its kubelet (upstream's initNetworkUtil, once
 * syncNetworkUtil): each minute it checks whether the tables were flushed, and if so recreates all.
 */
export class UtilityChains {
  readonly #deps: UtilityChainsDependencies;

  constructor(deps: UtilityChainsDependencies) {
    this.#deps = deps;
  }

  /** Runs until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, processes } = this.#deps;
    const all = families.map((family) => ({ family, iptables: new Iptables(processes, family) }));
    try {
      const present = await Promise.all(all.map(async ({ iptables }) => await iptables.isPresent(signal)));
      const usable = all.filter((_, index) => present[index]);
      // As upstream: on a machine with nftables only, no program looks for them.
      if (usable.length === 0) {
        log.info("no iptables support on this system; not creating the KUBE-IPTABLES-HINT chain");
      }
      await Promise.all(usable.map(async ({ family, iptables }) => await this.#keep(family, iptables, signal)));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #keep(family: Family, iptables: Iptables, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const fields = { program: iptables.program };
    let wereMade = false;
    let isFailing = false;
    while (!signal.aborted) {
      try {
        const stand = wereMade && (await stands(iptables, signal));
        if (!stand) {
          await make(family, iptables, signal);
          log.info(wereMade ? "recreated missing iptables rules" : "initialized iptables rules", fields);
        }
        [wereMade, isFailing] = [true, false];
      } catch (error) {
        signal.throwIfAborted();
        if (!isFailing) log.warn("cannot create iptables rules", { ...fields, error: errorMessage(error) });
        isFailing = true;
      }
      await clock.sleep("next check of iptables rules", periodMs, signal);
    }
  }
}

/** Upstream looks at the first one only: another program that empties a single table would go unnoticed. */
async function stands(iptables: Iptables, signal: AbortSignal): Promise<boolean> {
  for (const canary of canaries) if (!(await iptables.has(canary, signal))) return false;
  return true;
}

/** The canaries come last: they imply that the rest was created. */
async function make(family: Family, iptables: Iptables, signal: AbortSignal): Promise<void> {
  for (const chain of wantedChains(family)) await iptables.ensureChain(chain, signal);
  for (const rule of wantedRules(family)) await iptables.ensureRule(rule, signal);
  for (const chain of canaries.toReversed()) await iptables.ensureChain(chain, signal);
}
