import { onAbort } from "../base/abort.ts";
import type { KernelLog } from "../ports/kernel-log.ts";

/** What the simulated kernel says, as Linux words it. */
export class SimKernelLog implements KernelLog {
  readonly #followers = new Set<(line: string) => void>();

  /** A process of a cgroup was killed for want of memory. @param machine it was the machine that had none left */
  killed({ pid, name, cgroup, machine }: { pid: number; name: string; cgroup: string; machine: boolean }): void {
    const [constraint, of] = machine ? ["NONE", "global_oom"] : ["MEMCG", `oom_memcg=${cgroup}`];
    const where = `cpuset=/,mems_allowed=0,${of},task_memcg=${cgroup}`;
    this.#say(`oom-kill:constraint=CONSTRAINT_${constraint},nodemask=(null),${where},task=${name},pid=${pid},uid=0`);
    const reason = machine ? "Out of memory" : "Memory cgroup out of memory";
    const sizes = "total-vm:10548kB, anon-rss:7680kB, file-rss:1560kB, shmem-rss:0kB, UID:0 pgtables:56kB";
    this.#say(`${reason}: Killed process ${pid} (${name}) ${sizes} oom_score_adj:0`);
  }

  async *follow(signal: AbortSignal): AsyncGenerator<string> {
    const lines: string[] = [];
    let wake = (): void => {};
    const hear = (line: string): void => {
      lines.push(line);
      wake();
    };
    this.#followers.add(hear);
    using _abort = onAbort(signal, () => wake());
    try {
      while (!signal.aborted) {
        yield* lines.splice(0);
        if (lines.length > 0 || signal.aborted) continue;
        const said = Promise.withResolvers<void>();
        wake = said.resolve;
        await said.promise;
      }
    } finally {
      this.#followers.delete(hear);
    }
  }

  #say(line: string): void {
    for (const hear of this.#followers) hear(line);
  }
}
