/** A process killed by the kernel's OOM killer. */
export interface OomVictim {
  readonly pid: number;
  /** The process's name: at most 15 arbitrary characters. */
  readonly name: string;
  /** Whether the whole machine was out of memory, and not only a cgroup at its limit. */
  readonly ofMachine: boolean;
  /** The process's cgroup, from the root of its hierarchy; undefined if the kernel does not report it. */
  readonly cgroup: string | undefined;
}

/** The process and its cgroup (dump_oom_summary of mm/oom_kill.c, since Linux 5.0). */
const summary = /^oom-kill:constraint=CONSTRAINT_.*,task_memcg=(\/.*),task=.*,pid=\d+,uid=\d+$/u;
/** The kill (oom_kill_process of mm/oom_kill.c); the name may contain anything. */
const killed = /^(Memory cgroup out of memory|Out of memory)[^:]*: Killed process (\d+) \((.*?)\),? (?:UID|total-vm)/u;

/** Parses the kernel's OOM kill reports. A report has several lines. */
export class OomReader {
  #cgroup: string | undefined;

  /** @returns the process that this kernel line reports as killed */
  read(line: string): OomVictim | undefined {
    const [, cgroup] = summary.exec(line) ?? [];
    if (cgroup !== undefined) this.#cgroup = cgroup;
    const [, reason, pid, name] = killed.exec(line) ?? [];
    if (reason === undefined || pid === undefined || name === undefined) return undefined;
    // With memory.oom.group all processes of the cgroup follow, each with its own line.
    return { pid: Number(pid), name, ofMachine: reason === "Out of memory", cgroup: this.#cgroup };
  }
}
