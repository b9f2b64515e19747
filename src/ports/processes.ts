/** One process of the machine, as /proc shows it. */
export interface ProcessInfo {
  readonly pid: number;
  /** The kernel's name of it, at most 15 characters. */
  readonly name: string;
  readonly arguments: readonly string[];
}

export interface CommandResult {
  /** Exit code; undefined when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly stdin?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Called with the program's process. It may outlive its time limit: the kernel kills nothing that waits in it. */
  readonly onStart?: (pid: number) => void;
}

/** Processes of this machine. */
export interface Processes {
  readonly ownPid: number;
  /** Runs a program to its end, no shell; rejects when it can't be started or passes its time. Output is cut at 1 MiB. */
  run(program: string, arguments_: readonly string[], options: CommandOptions): Promise<CommandResult>;
  /** All present processes that can be read. */
  list(): Promise<ProcessInfo[]>;
  /**
   * Whether the process sees the same root directory: in another container the same path names something else. True if
   * this user may not know.
   */
  sharesRoot(pid: number): boolean;
  isAlive(pid: number): boolean;
  /** Sends a signal; false when the process is gone. */
  kill(pid: number, signal: "SIGTERM" | "SIGKILL" | "SIGINT"): boolean;
}
