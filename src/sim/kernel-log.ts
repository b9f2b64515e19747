import { EventChannel } from "../base/event-channel.ts";
import type { KernelLine, KernelLog } from "../ports/kernel-log.ts";

/** Older lines are overwritten, as in the kernel's ring buffer. */
const maxLines = 1000;
/** As in mm/oom_kill.c: of so many kills within so long a report says more than the line of the kill itself. */
const [maxSummaries, summariesMs] = [10, 5000];

interface SimKill {
  readonly pid: number;
  readonly name: string;
  readonly cgroup: string;
  /** The whole machine was out of memory. */
  readonly machine: boolean;
  /** Other processes of the cgroup, killed with it (memory.oom.group). */
  readonly others?: readonly { readonly pid: number; readonly name: string }[];
}

/** The simulated kernel's log, in Linux's words. */
export class SimKernelLog implements KernelLog {
  readonly #followers = new Set<EventChannel<KernelLine>>();
  readonly #ring: KernelLine[] = [];
  readonly #nowMs: () => number;
  #last = 0;
  #summaries = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };

  constructor(nowMs: () => number = () => 0) {
    this.#nowMs = nowMs;
  }

  /** A process of a cgroup was OOM-killed. */
  killed({ pid, name, cgroup, machine, others = [] }: SimKill): void {
    const [constraint, origin] = machine ? ["NONE", "global_oom"] : ["MEMCG", `oom_memcg=${cgroup}`];
    const where = `cpuset=/,mems_allowed=0,${origin},task_memcg=${cgroup}`;
    const task = `task=${name},pid=${pid},uid=0`;
    const summary = `oom-kill:constraint=CONSTRAINT_${constraint},nodemask=(null),${where},${task}`;
    if (this.#maySummarize()) this.#say(summary);
    const reason = machine ? "Out of memory" : "Memory cgroup out of memory";
    const sizes = "total-vm:10548kB, anon-rss:7680kB, file-rss:1560kB, shmem-rss:0kB, UID:0 pgtables:56kB";
    const say = (of: { readonly pid: number; readonly name: string }): void =>
      this.#say(`${reason}: Killed process ${of.pid} (${of.name}) ${sizes} oom_score_adj:0`);
    say({ pid, name });
    if (others.length > 0) this.#say(`Tasks in ${cgroup} are going to be killed due to memory.oom.group set`);
    for (const other of others) say(other);
  }

  #maySummarize(): boolean {
    const nowMs = this.#nowMs();
    if (nowMs - this.#summaries.sinceMs > summariesMs) this.#summaries = { sinceMs: nowMs, count: 0 };
    return this.#summaries.count++ < maxSummaries;
  }

  async *follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<KernelLine> {
    const lines = new EventChannel<KernelLine>(maxLines);
    const passed = after ?? this.#last;
    lines.offer({ sequence: passed, atMs: 0, text: "" });
    for (const line of this.#ring) if (line.sequence > passed) lines.offer(line);
    this.#followers.add(lines);
    try {
      for (;;) yield* await lines.take(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#followers.delete(lines);
    }
  }

  #say(text: string): void {
    const line = { sequence: ++this.#last, atMs: this.#nowMs(), text };
    this.#ring.push(line);
    if (this.#ring.length >= maxLines) this.#ring.shift();
    for (const lines of this.#followers) lines.offer(line);
  }
}
