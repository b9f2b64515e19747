import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { systemProcesses } from "../../src/linux/processes/processes.ts";
import type { CommandOptions, CommandResult, Processes } from "../../src/ports/processes.ts";
import { DatagramSocket } from "./datagram-socket.ts";
import { ownEnvironment, ownProgram } from "./program.ts";

const startLimitMs = 60_000;

/**
 * The part of systemd that podwright's services use: starts a unit's command, waits for `READY=1`, and ends its main
 * process. Other programs run normally.
 */
export class FakeSystemd implements AsyncDisposable {
  readonly #units: string;
  readonly #launcher: string;
  readonly #socket: string;
  readonly #listener: DatagramSocket;
  readonly #enabled = new Set<string>();
  #main: ChildProcess | undefined;
  /** How much the service's earlier processes had said. */
  #startedAt = 0;
  /** What the service said, in order. */
  readonly said: string[] = [];
  /** The service's errors, for the test's report. */
  log = "";

  /** @param launcher the program in units' commands */
  constructor(directory: string, units: string, launcher: string) {
    this.#units = units;
    this.#launcher = launcher;
    this.#socket = join(directory, "notify");
    this.#listener = new DatagramSocket(this.#socket);
  }

  get processes(): Processes {
    const run = async (program: string, words: readonly string[], options: CommandOptions): Promise<CommandResult> => {
      if (program !== "systemctl") return await systemProcesses.run(program, words, options);
      const failure = await this.#systemctl(words);
      return { exitCode: failure === "" ? 0 : 3, signal: undefined, stdout: "", stderr: failure };
    };
    return { ...systemProcesses, run };
  }

  isEnabled(service: string): boolean {
    return this.#enabled.has(service);
  }

  get isActive(): boolean {
    return this.#main?.exitCode === null && this.#main.signalCode === null;
  }

  async restart(service: string): Promise<void> {
    await this.stop();
    this.#spawn(service);
    await this.#untilReady(service);
  }

  async #systemctl(words: readonly string[]): Promise<string> {
    const [command, service = ""] = words.filter((word) => !word.startsWith("--"));
    if (command === "daemon-reload") return "";
    if (!existsSync(join(this.#units, service))) return `Unit ${service} not found.`;
    switch (command) {
      case "is-active":
        return this.isActive ? "" : "inactive";
      case "enable":
        this.#enabled.add(service);
        return "";
      case "start":
        if (!this.isActive) this.#spawn(service);
        return words.includes("--no-block") ? "" : await this.#untilReady(service);
      case "disable":
        this.#enabled.delete(service);
        await this.stop();
        return "";
      case "reload":
        this.#main?.kill("SIGHUP");
        return "";
      default:
        throw new Error(`systemctl ${words.join(" ")} is not known here`);
    }
  }

  #spawn(service: string): void {
    const unit = readFileSync(join(this.#units, service), "utf8");
    const [program = "", ...words] = /^ExecStart=(.*)$/mu.exec(unit)?.[1]?.split(" ") ?? [];
    const [first = "", ...rest] = program === this.#launcher ? ownProgram : [program];
    const environment = { ...ownEnvironment(), NOTIFY_SOCKET: this.#socket };
    const main = spawn(first, [...rest, ...words], { env: environment, stdio: ["ignore", "ignore", "pipe"] });
    main.stderr.setEncoding("utf8").on("data", (text: string) => (this.log += text));
    this.#main = main;
    this.#startedAt = this.said.length;
  }

  /** @returns why it is not ready; empty when it is */
  async #untilReady(service: string): Promise<string> {
    for (let waited = 0; waited < startLimitMs; waited += 50) {
      this.listen();
      if (this.said.slice(this.#startedAt).some((message) => message.startsWith("READY=1"))) return "";
      if (!this.isActive) return `Job for ${service} failed: ${this.log}`;
      await sleep(50);
    }
    return `Job for ${service} timed out: ${this.log}`;
  }

  /** Receives new notifications of the service. */
  listen(): void {
    this.said.push(...this.#listener.read());
  }

  async stop(): Promise<void> {
    const main = this.#main;
    if (main === undefined || !this.isActive) return;
    const ended = once(main, "exit");
    main.kill("SIGTERM");
    await ended;
    this.listen();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#listener[Symbol.dispose]();
  }
}
