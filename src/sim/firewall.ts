import type { CommandResult, Processes } from "../ports/processes.ts";

type Table = Map<string, Set<string>>;

const builtIn: Readonly<Record<string, readonly string[]>> = {
  mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
  filter: ["INPUT", "FORWARD", "OUTPUT"],
};
export const tableNames = ["mangle", "nat", "filter"] as const;
const programs = ["iptables", "ip6tables"];

/** The simulated machine's tables of rules, as its `iptables` shows and changes them. */
export class SimFirewall {
  readonly #now: () => number;
  readonly #tables = new Map<string, Map<string, Table>>();
  #fails = false;
  /** Simulated ms of the last flush of the tables, or of the last failure of the program. */
  #disturbedMs = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.flush();
  }

  get disturbedMs(): number {
    return this.#fails ? this.#now() : this.#disturbedMs;
  }

  /** Whether the program fails from now on: another one holds the tables' lock. */
  set fails(fails: boolean) {
    this.#fails = fails;
    this.#disturbedMs = this.#now();
  }

  /** Removes everything but the kernel's own from these tables. */
  flush(names: readonly string[] = tableNames): void {
    this.#disturbedMs = this.#now();
    for (const program of programs) {
      const tables = this.#tables.get(program) ?? new Map<string, Table>();
      for (const table of names) {
        tables.set(table, new Map((builtIn[table] ?? []).map((chain) => [chain, new Set<string>()])));
      }
      this.#tables.set(program, tables);
    }
  }

  /** The rules of a chain; undefined: there is none. */
  rules(program: string, table: string, chain: string): ReadonlySet<string> | undefined {
    return this.#tables.get(program)?.get(table)?.get(chain);
  }

  /** The program for one run of podwright; calls after that run never end. */
  port(isAlive: () => boolean): Pick<Processes, "run"> {
    return {
      run: async (program, [, , , table = "", flag = "", chain = "", ...rule]) => {
        await Promise.resolve();
        if (!isAlive()) return await new Promise<never>(() => {});
        if (this.#fails) return ended(4, "Another app is currently holding the xtables lock");
        return ended(this.#do(this.#tables.get(program)?.get(table), flag, chain, rule.join(" ")) ? 0 : 1);
      },
    };
  }

  #do(table: Table | undefined, flag: string, chain: string, rule: string): boolean {
    const rules = table?.get(chain);
    switch (flag) {
      case "-S":
        return rules !== undefined;
      case "-N":
        if (rules === undefined) table?.set(chain, new Set());
        return rules === undefined;
      case "-C":
        return rules?.has(rule) === true;
      default:
        return rules?.add(rule) !== undefined;
    }
  }
}

function ended(exitCode: number, stderr = ""): CommandResult {
  return { exitCode, signal: undefined, stdout: "", stderr };
}
