import type { CommandResult, Processes } from "../ports/processes.ts";
import type { Chain, Family, WantedRule } from "./chains.ts";

/** How long to wait for the lock of the tables, seconds. */
const lockSeconds = "5";
const limitMs = 60_000;
/** Exit code for a missing rule or chain, and for one that exists already. */
const otherwise = 1;
/** Another program holds the lock. */
const locked = 4;

/** The machine's iptables program for one family. Each method rejects with the program's message. */
export class Iptables {
  readonly program: "iptables" | "ip6tables";
  readonly #processes: Pick<Processes, "run">;

  constructor(processes: Pick<Processes, "run">, family: Family) {
    this.program = family === 4 ? "iptables" : "ip6tables";
    this.#processes = processes;
  }

  /** Whether the program exists and the kernel has such tables. */
  async isPresent(signal: AbortSignal): Promise<boolean> {
    try {
      const { exitCode } = await this.#run("nat", ["-S", "POSTROUTING"], signal);
      return exitCode === 0 || exitCode === locked;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  async has({ table, chain }: Chain, signal: AbortSignal): Promise<boolean> {
    return await this.#ask(table, ["-S", chain], signal);
  }

  /** Keeps an existing chain. */
  async ensureChain(chain: Chain, signal: AbortSignal): Promise<void> {
    if (await this.#ask(chain.table, ["-N", chain.chain], signal)) return;
    if (!(await this.has(chain, signal))) throw new Error(`${this.program} did not create chain ${chain.chain}`);
  }

  /** Keeps an existing rule in its position. */
  async ensureRule({ table, chain, first, rule }: WantedRule, signal: AbortSignal): Promise<void> {
    if (await this.#ask(table, ["-C", chain, ...rule], signal)) return;
    const { exitCode, stderr } = await this.#run(table, [first ? "-I" : "-A", chain, ...rule], signal);
    if (exitCode !== 0) throw new Error(`${this.program}: ${stderr.trim()}`);
  }

  /** False when the program answers with {@link otherwise}. */
  async #ask(table: string, words: readonly string[], signal: AbortSignal): Promise<boolean> {
    const { exitCode, stderr } = await this.#run(table, words, signal);
    if (exitCode === 0 || exitCode === otherwise) return exitCode === 0;
    throw new Error(`${this.program}: ${stderr.trim()}`);
  }

  async #run(table: string, words: readonly string[], signal: AbortSignal): Promise<CommandResult> {
    return await this.#processes.run(this.program, ["-w", lockSeconds, "-t", table, ...words], {
      timeoutMs: limitMs,
      signal,
    });
  }
}
