import assert from "node:assert/strict";
import { PodwrightError } from "../../src/base/errors.ts";
import type { FileInfo } from "../../src/ports/files.ts";
import type { MountPoint } from "../../src/ports/mounts.ts";
import type { ProcessInfo, Processes } from "../../src/ports/processes.ts";
import { KubeletPlace } from "../../src/private-runtime/kubelet-place.ts";
import { MemoryFiles } from "../../src/sim/files.ts";
import { SimMounts } from "../../src/sim/machine.ts";
import { ManualClock } from "./manual-clock.ts";

export const own = "/state/kubelet";

/** A directory that is mounted elsewhere is the same there. */
class BoundFiles extends MemoryFiles {
  readonly #mounts: SimMounts;

  constructor(mounts: SimMounts) {
    super(new ManualClock());
    this.#mounts = mounts;
  }

  override async stat(path: string): Promise<FileInfo | undefined> {
    const real = await this.realPath(path).catch(() => path);
    const bound = (await this.#mounts.list()).findLast(({ target }) => target === real)?.source ?? "";
    return await super.stat(bound.startsWith("/state") ? bound : path);
  }
}

/** A machine with the place of a kubelet, and an engine. */
export class KubeletPlaceScene {
  readonly mounts = new SimMounts();
  readonly files = new BoundFiles(this.mounts);
  isHeld = false;
  released = 0;
  canShare = true;
  /** Of programs. */
  exitCode = 0;
  readonly running: ProcessInfo[] = [];
  readonly commands: string[] = [];
  readonly locks = {
    tryOwnLock: async (): Promise<Disposable | undefined> => {
      return this.isHeld ? undefined : { [Symbol.dispose]: () => void this.released++ };
    },
    holder: async (): Promise<number> => 7,
  };
  readonly processes: Processes = {
    ownPid: 1,
    list: async () => this.running,
    run: async (program, words) => {
      this.commands.push([program, ...words].join(" "));
      return { exitCode: this.exitCode, signal: undefined, stdout: "", stderr: "" };
    },
    sharesRoot: () => true,
    isAlive: () => true,
    kill: () => true,
  };
  place = this.engine();

  /** The next one on the state directory. */
  engine(): KubeletPlace {
    return new KubeletPlace(
      {
        files: this.files,
        mounts: this.mounts,
        locks: this.locks,
        processes: this.processes,
        share: async (directory) => {
          const target = directory;
          const isShared = (await this.mounts.list()).some((mount) => mount.target === target);
          const bind = { source: target, target, fileSystem: "", options: ["bind"] };
          if (this.canShare && !isShared) await this.mounts.mount(bind);
          return this.canShare;
        },
      },
      own,
    );
  }

  /** An engine that took the place has ended otherwise than for want of pods. */
  async restart(): Promise<void> {
    await this.files.makeDirectory(own, 0o750);
    await this.place.take();
    this.place = this.engine();
  }

  async refusal(): Promise<string> {
    const error = await this.place.take().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof PodwrightError, String(error));
    return `${error.message} -> ${error.remedy ?? ""}`;
  }

  async shown(): Promise<string[]> {
    return (await this.mounts.list()).map(({ source, target }: MountPoint) => `${source} at ${target}`);
  }
}

export const kubelet = (pid: number, ...flags: string[]): ProcessInfo => {
  return { pid, name: "kubelet", arguments: ["/usr/bin/kubelet", ...flags] };
};
