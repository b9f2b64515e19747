import { EventChannel } from "../base/event-channel.ts";
import type { KernelLine, KernelLog } from "../ports/kernel-log.ts";

/** Older lines are overwritten, as in the kernel's ring buffer. */
const maxLines = 1000;

/** The simulated kernel's log, in Linux's words. */
export class SimKernelLog implements KernelLog {
  readonly #followers = new Set<EventChannel<KernelLine>>();
  readonly #ring: KernelLine[] = [];
  #last = 0;

  /** A process of a cgroup was OOM-killed. @param machine the whole machine was out of memory */
  killed({ pid, name, cgroup, machine }: { pid: number; name: string; cgroup: string; machine: boolean }): void {
    const [constraint, of] = machine ? ["NONE", "global_oom"] : ["MEMCG", `oom_memcg=${cgroup}`];
    const where = `cpuset=/,mems_allowed=0,${of},task_memcg=${cgroup}`;
    this.#say(`oom-kill:constraint=CONSTRAINT_${constraint},nodemask=(null),${where},task=${name},pid=${pid},uid=0`);
    const reason = machine ? "Out of memory" : "Memory cgroup out of memory";
    const sizes = "total-vm:10548kB, anon-rss:7680kB, file-rss:1560kB, shmem-rss:0kB, UID:0 pgtables:56kB";
    this.#say(`${reason}: Killed process ${pid} (${name}) ${sizes} oom_score_adj:0`);
  }

  async *follow(after: number | undefined, signal: AbortSignal): AsyncGenerator<KernelLine> {
    const lines = new EventChannel<KernelLine>(maxLines);
    const passed = after ?? this.#last;
    lines.offer({ sequence: passed, text: "" });
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
    const line = { sequence: ++this.#last, text };
    this.#ring.push(line);
    if (this.#ring.length >= maxLines) this.#ring.shift();
    for (const lines of this.#followers) lines.offer(line);
  }
}
