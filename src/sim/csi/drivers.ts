import type { SimClock } from "../clock.ts";
import type { MemoryFiles } from "../files.ts";
import type { ForeignVolumes } from "../foreign-volumes.ts";
import type { SimDisks } from "../disks.ts";
import type { SimLoopDevices, SimMounts } from "../machine.ts";
import type { SimRandom } from "../random.ts";
import { driverKinds } from "./claimed-volumes.ts";
import type { DriverKind } from "./driver-kind.ts";
import { SimDriver } from "./driver.ts";
import { drawUsualFaults, soundDriver } from "./driver-faults.ts";
import { SimSockets } from "./sockets.ts";
import { DriverVolumes } from "./volumes.ts";

/** The CSI drivers of the simulated machine, with their mounts; none until they are installed. */
export class SimDrivers {
  readonly sockets: SimSockets;
  readonly volumes: DriverVolumes;
  readonly #clock: SimClock;
  #all: readonly SimDriver[] = [];

  constructor(clock: SimClock, files: MemoryFiles, mounts: SimMounts) {
    this.#clock = clock;
    this.sockets = new SimSockets(files);
    this.volumes = new DriverVolumes(files, mounts);
  }

  get all(): readonly SimDriver[] {
    return this.#all;
  }

  /**
   * @param areSound nothing is permanently wrong with them
   * @param ways of all of them
   */
  install(random: SimRandom, areSound: boolean, ways: Omit<DriverKind, "name" | "stages"> = {}): void {
    const parts = { clock: this.#clock, sockets: this.sockets, volumes: this.volumes };
    this.#all = driverKinds.map((kind) => new SimDriver({ ...kind, ...ways }, { ...parts, random: random.fork() }));
    for (const driver of this.#all) {
      if (!areSound) driver.usual = drawUsualFaults(random);
      driver.faults = driver.usual;
      driver.start();
    }
  }

  named(name: string): SimDriver | undefined {
    return this.#all.find(({ kind }) => kind.name === name);
  }

  /** The machine is switched off. */
  powerOff(): void {
    for (const driver of this.#all) driver.stop(true);
    this.volumes.powerOff();
  }

  /** Ends all faults, and operations that hang. One driver comes back as another version. */
  calm(): void {
    this.#all[0]?.upgrade();
    for (const driver of this.#all) {
      driver.usual = soundDriver;
      driver.faults = soundDriver;
      driver.stop(false);
      driver.start();
    }
  }
}

/** Removes all mounts when the machine is switched off. */
export function loseMounts(machine: {
  readonly foreignVolumes: ForeignVolumes;
  readonly drivers: SimDrivers;
  readonly mounts: SimMounts;
  readonly loopDevices: SimLoopDevices;
  readonly disks: SimDisks;
}): void {
  machine.foreignVolumes.powerOff();
  machine.drivers.powerOff();
  machine.mounts.clear();
  machine.loopDevices.held.clear();
  machine.disks.powerOff();
}
