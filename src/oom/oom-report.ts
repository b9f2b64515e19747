import type { KernelLine } from "../ports/kernel-log.ts";

/** A process killed by the kernel's OOM killer. */
export interface OomVictim {
  readonly pid: number;
  /** The process's name: at most 15 arbitrary characters. */
  readonly name: string;
  /** Whether the whole machine was out of memory, and not only a cgroup at its limit. */
  readonly ofMachine: boolean;
  /** The process's cgroup, from the root of its hierarchy; undefined if the kernel does not surely report it. */
  readonly cgroup: string | undefined;
}

/** The process and its cgroup (dump_oom_summary of mm/oom_kill.c, since Linux 5.0). */
const summary = /^oom-kill:constraint=CONSTRAINT_.*,task_memcg=(\/.*),task=.*,pid=(\d+),uid=\d+$/u;
/** All processes of a cgroup follow, each with its own line (mem_cgroup_print_oom_group of mm/memcontrol.c). */
const whole = /^Tasks in (\/.*) are going to be killed due to memory\.oom\.group set$/u;
/** The kill (oom_kill_process of mm/oom_kill.c); the name may contain anything. */
const killed = /^(Memory cgroup out of memory|Out of memory)[^:]*: Killed process (\d+) \((.*?)\),? (?:UID|total-vm)/u;

/** Of so many kills within so long, ms, the kernel summarizes no further ones (oom_rs of mm/oom_kill.c: 5 s). */
const summariesLimit = { count: 10, withinMs: 6000 };

/** Parses the kernel's OOM kill reports. A report has several lines, and under many kills only that of the kill itself. */
export class OomReader {
  /** The last one: of one process alone. */
  #summary: { readonly pid: string; readonly cgroup: string } | undefined;
  /** Whose processes are being killed as a whole. */
  #whole: string | undefined;
  /** When the last summaries came, oldest first. */
  readonly #summarizedMs: number[] = [];

  /** @returns the process that this kernel line reports as killed */
  read({ text, atMs }: Pick<KernelLine, "text" | "atMs">): OomVictim | undefined {
    const [, summarized, of] = summary.exec(text) ?? [];
    if (summarized !== undefined && of !== undefined) {
      this.#summary = { pid: of, cgroup: summarized };
      this.#whole = undefined;
      this.#summarizedMs.push(atMs);
      if (this.#summarizedMs.length > summariesLimit.count) this.#summarizedMs.shift();
    }
    // One that cannot be read, because another line came between its parts, ends an earlier one, too.
    if (text.startsWith("Tasks in ")) this.#whole = whole.exec(text)?.[1];
    const [, reason, pid, name] = killed.exec(text) ?? [];
    if (reason === undefined || pid === undefined || name === undefined) return undefined;
    return { pid: Number(pid), name, ofMachine: reason === "Out of memory", cgroup: this.#cgroupOf(pid, atMs) };
  }

  #cgroupOf(pid: string, atMs: number): string | undefined {
    if (this.#summary?.pid === pid) return this.#summary.cgroup;
    // A kill without a summary may be the next one, in another cgroup, if the kernel may have left that summary out.
    const [oldestMs] = this.#summarizedMs;
    const isComplete =
      this.#summarizedMs.length < summariesLimit.count || atMs - (oldestMs ?? 0) > summariesLimit.withinMs;
    return isComplete ? this.#whole : undefined;
  }
}
