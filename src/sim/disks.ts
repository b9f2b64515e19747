import type { CommandResult, Processes } from "../ports/processes.ts";
import type { SimClock } from "./clock.ts";
import type { MemoryFiles } from "./files.ts";
import { SimRandom } from "./random.ts";

/** The longest that a look at a disk, and a new file system, take, ms. */
const longestLookMs = 50;
const longestFormatMs = 3000;

interface Disk {
  /** Undefined: it is empty. */
  fileSystem: string | undefined;
  /** The time at which the running mkfs began. */
  formattingSinceMs: number | undefined;
}

/** The disks of the simulated machine, and the programs that look at them and make file systems. */
export class SimDisks {
  readonly programs: Pick<Processes, "run"> = { run: (program, words) => this.#run(program, words) };
  /** Reads fail, so that blkid(8) finds nothing. */
  isUnreadable = false;
  /** mkfs(8) fails after a while. */
  failsToFormat = false;
  /** Called when a program that changes a disk begins. */
  onWork: (device: string, work: "format" | "check") => void = () => {};
  readonly #clock: SimClock;
  readonly #files: MemoryFiles;
  readonly #disks = new Map<string, Disk>();
  #random = new SimRandom(0);

  constructor(clock: SimClock, files: MemoryFiles) {
    this.#clock = clock;
    this.#files = files;
  }

  install(random: SimRandom, devices: readonly string[]): void {
    this.#random = random;
    for (const device of devices) {
      this.#disks.set(device, { fileSystem: undefined, formattingSinceMs: undefined });
      void this.#files.makeDirectory("/dev", 0o755);
      void this.#files.write(device, "", 0o600);
    }
  }

  /** What is on it; undefined: nothing. */
  fileSystemOn(device: string): string | undefined {
    return this.#disks.get(device)?.fileSystem;
  }

  /** It is exchanged for an empty one, unless a program works on it. */
  exchange(device: string): void {
    const disk = this.#disks.get(device);
    if (disk !== undefined && disk.formattingSinceMs === undefined) disk.fileSystem = undefined;
  }

  powerOff(): void {
    for (const disk of this.#disks.values()) disk.formattingSinceMs = undefined;
  }

  /** Ends all faults. */
  calm(): void {
    this.isUnreadable = false;
    this.failsToFormat = false;
  }

  async #run(program: string, words: readonly string[]): Promise<CommandResult> {
    const device = (program === "dd" ? words[0]?.slice("if=".length) : words.at(-1)) ?? "";
    const disk = this.#disks.get(device);
    if (disk === undefined) throw new Error("the simulated machine runs no programs");
    if (program.startsWith("mkfs.")) return await this.#format(disk, device, program.slice("mkfs.".length));
    if (program === "fsck") this.onWork(device, "check");
    await this.#pass(longestLookMs);
    const isEmpty = this.isUnreadable || disk.fileSystem === undefined;
    if (program === "blkid") return isEmpty ? ended(2) : ended(0, `TYPE=${disk.fileSystem}\n`);
    return this.isUnreadable ? ended(1, `${program}: ${device}: Input/output error`) : ended(0);
  }

  /** It goes on although its caller ends. */
  async #format(disk: Disk, device: string, fileSystem: string): Promise<CommandResult> {
    // It opens the device for itself alone.
    if (disk.formattingSinceMs !== undefined) return ended(1, `${device} is apparently in use by the system`);
    this.onWork(device, "format");
    const sinceMs = this.#clock.nowMs;
    disk.formattingSinceMs = sinceMs;
    await this.#pass(longestFormatMs);
    // The machine was switched off.
    if (disk.formattingSinceMs !== sinceMs) return ended(1, "interrupted");
    disk.formattingSinceMs = undefined;
    if (this.failsToFormat || this.isUnreadable) return ended(1, `${device}: Input/output error`);
    disk.fileSystem = fileSystem;
    return ended(0);
  }

  async #pass(longestMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#clock.schedule("a program to end", this.#random.uniform() * longestMs, resolve);
    await promise;
  }
}

function ended(exitCode: number, stdout = ""): CommandResult {
  return { exitCode, signal: undefined, stdout, stderr: "" };
}
