import { Emitter } from "../../base/emitter.ts";
import type { SimClock } from "../clock.ts";
import type { MemoryFiles } from "../files.ts";
import { SimLoginManager } from "../login-manager.ts";
import type { RuntimeWorld } from "../runtime-world.ts";

const bootIdFile = "/proc/sys/kernel/random/boot_id";

/** Why the machine was switched off: by the login manager, or by a power failure. */
export type OffReason = "locks gone" | "time over" | "power lost";

/** The node's part of it. */
interface PoweredNode {
  start(): void;
  kill(): void;
}

/**
 * Switches the simulated machine on and off. Switching it off ends everything that runs on it; its disk keeps what was
 * written.
 */
export class MachinePower {
  readonly login: SimLoginManager;
  readonly #clock: SimClock;
  readonly #world: RuntimeWorld;
  readonly #files: MemoryFiles;
  readonly #node: PoweredNode;
  readonly #offs = new Emitter<OffReason>();
  #isOff = false;
  #boots = 0;

  constructor(clock: SimClock, world: RuntimeWorld, files: MemoryFiles, node: PoweredNode) {
    this.login = new SimLoginManager(clock, files);
    this.#clock = clock;
    this.#world = world;
    this.#files = files;
    this.#node = node;
    this.login.onPowerOff((why) => this.off(why));
  }

  get isOff(): boolean {
    return this.#isOff;
  }

  /** The number of starts of the machine, including the first. */
  get boots(): number {
    return this.#boots;
  }

  /** The listener is called before anything ends. */
  onOff(listener: (why: OffReason) => void): void {
    this.#offs.on(listener);
  }

  off(why: OffReason): void {
    if (this.#isOff) return;
    this.#offs.emit(why);
    this.#isOff = true;
    this.#node.kill();
    this.#world.goDown();
    for (const container of this.#world.containers.values()) {
      if (container.state === "running") this.#world.exit(container, 255, "Unknown");
    }
    for (const id of this.#world.sandboxes.keys()) this.#world.stopSandbox(id);
  }

  /** Starts the machine, and podwright with it. */
  async boot(): Promise<void> {
    await this.#files.makeDirectory("/proc/sys/kernel/random", 0o755);
    await this.#files.write(bootIdFile, `boot-${this.#boots++}\n`, 0o444);
    this.#isOff = false;
    this.login.started();
    if (this.#world.down) this.#world.comeUp(() => false);
    this.#node.start();
  }

  /** Restarts the machine a while after it was switched off. */
  bootAfter(forMs: number): void {
    this.#clock.schedule("the machine to be started again", forMs, () => {
      if (this.#isOff) void this.boot();
    });
  }
}
