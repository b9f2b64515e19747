/** A program that is to outlive podwright. */
export interface DaemonStart {
  /** Absolute path of the program. */
  readonly program: string;
  readonly arguments: readonly string[];
  /** Where standard output and error go, appended; created with mode 0600. */
  readonly logPath: string;
  /** Added to podwright's own environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string;
}

/** Starts programs in a session of their own. */
export interface Daemons {
  /**
   * Starts the program without a terminal in a new session and process group: neither Ctrl-C nor the end of podwright,
   * however sudden, reaches it. Resolves once it runs; rejects when it can't be started.
   */
  start(daemon: DaemonStart): Promise<{ readonly pid: number }>;
}
