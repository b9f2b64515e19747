/** A process that the kernel killed for want of memory. */
export interface OomVictim {
  readonly pid: number;
  /** As the process calls itself: at most 15 characters, of whatever kind. */
  readonly name: string;
  /** Whether the whole machine was out of memory, and not just a cgroup at its limit. */
  readonly ofMachine: boolean;
  /** The process's cgroup, from the root of its hierarchy; undefined where the kernel does not tell. */
  readonly cgroup: string | undefined;
}

/** Which process, and whose (dump_oom_summary of mm/oom_kill.c, since Linux 5.0). */
const summary = /^oom-kill:constraint=CONSTRAINT_.*,task_memcg=(\/.*),task=.*,pid=\d+,uid=\d+$/u;
/** What was done (oom_kill_process of mm/oom_kill.c); the name may have anything in it. */
const killed = /^(Memory cgroup out of memory|Out of memory)[^:]*: Killed process (\d+) \((.*?)\),? (?:UID|total-vm)/u;

/** Reads the kernel's reports of processes that it killed for want of memory. A report has several lines. */
export class OomReader {
  #cgroup: string | undefined;

  /** @returns the process that this line of the kernel's says was killed */
  read(line: string): OomVictim | undefined {
    const [, cgroup] = summary.exec(line) ?? [];
    if (cgroup !== undefined) this.#cgroup = cgroup;
    const [, reason, pid, name] = killed.exec(line) ?? [];
    if (reason === undefined || pid === undefined || name === undefined) return undefined;
    // With memory.oom.group all processes of the cgroup follow, each with a line of its own.
    return { pid: Number(pid), name, ofMachine: reason === "Out of memory", cgroup: this.#cgroup };
  }
}
