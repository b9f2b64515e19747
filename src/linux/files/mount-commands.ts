import { FileError } from "../../ports/files.ts";
import type { CommandOptions, Processes } from "../../ports/processes.ts";

/** Network file systems are slow; after this time the helper is killed and the outcome is checked. */
const commandTimeoutMs = 120_000;

export interface MountCommand {
  readonly program: "mount" | "umount";
  readonly target: string;
  readonly arguments: readonly string[];
  /** For messages. */
  readonly what: string;
  /** It ends a command that hangs, so it runs concurrently. */
  readonly isForced?: boolean;
}

/** Runs mount(8) and umount(8). If one still hangs after it was killed, no other is started for its target. */
export class MountCommands {
  readonly #processes: Pick<Processes, "run" | "isAlive">;
  /** Commands that have exceeded their time, by target. */
  readonly #held = new Map<string, number>();

  constructor(processes: Pick<Processes, "run" | "isAlive">) {
    this.#processes = processes;
  }

  async run({ program, target, arguments: words, what, isForced = false }: MountCommand): Promise<void> {
    const held = this.#held.get(target);
    if (!isForced && held !== undefined && this.#processes.isAlive(held)) {
      throw new FileError("ETIMEDOUT", target, `cannot ${what}: an earlier attempt, process ${held}, is still running`);
    }
    if (!isForced) this.#held.delete(target);
    let own: number | undefined;
    const options: CommandOptions = {
      timeoutMs: commandTimeoutMs,
      environment: { LC_ALL: "C" },
      onStart: (pid) => (own = pid),
    };
    const result = await this.#processes.run(program, words, options).catch((error: unknown) => {
      if (own !== undefined) this.#held.set(target, own);
      throw error;
    });
    if (result.exitCode === 0) return;
    const outcome = result.exitCode === undefined ? `ended by ${result.signal}` : `exit code ${result.exitCode}`;
    throw new Error(`cannot ${what}: ${result.stderr.trim().replaceAll("\n", "; ") || outcome}`);
  }
}
