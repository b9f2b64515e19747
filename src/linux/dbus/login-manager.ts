import { closeSync } from "node:fs";
import { eitherSignal } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LoginManager, LoginSession } from "../../ports/login-manager.ts";
import { BusConnection } from "./bus-connection.ts";
import { inhibitByProgram } from "./inhibitor-program.ts";
import type { BusValue } from "./message.ts";
import { openBusSocket } from "./open-socket.ts";

const logind = {
  destination: "org.freedesktop.login1",
  path: "/org/freedesktop/login1",
  interface: "org.freedesktop.login1.Manager",
} as const;
const systemd = {
  destination: "org.freedesktop.systemd1",
  path: "/org/freedesktop/systemd1",
  interface: "org.freedesktop.systemd1.Manager",
} as const;
const announcement = "PrepareForShutdown";
const hangUp = 1;
const defaultSocket = "/run/dbus/system_bus_socket";

/**
 * systemd-logind over D-Bus (org.freedesktop.login1(5)). A lock is a file descriptor from logind, held while that is
 * open; without `node:ffi` a child process holds it.
 * @param address of the system bus, as in DBUS_SYSTEM_BUS_ADDRESS; empty: the default
 * @param modules access to Node.js' built-in modules
 */
export function systemLoginManager(clock: Clock, address = "", modules?: (name: string) => unknown): LoginManager {
  return {
    connect: async (signal) => {
      const connection = await BusConnection.open(clock, openBusSocket(socketOf(address), modules), signal);
      try {
        // Subscribes before any call, so that no announcement is missed. As upstream those of every sender count:
        // people try out a shutdown with `busctl emit`.
        const rule = `type='signal',path='${logind.path}',interface='${logind.interface}',member='${announcement}'`;
        await connection.match(rule, signal);
        return new LogindSession(
          connection,
          async (names, onLost, until) => await inhibitByProgram(clock, address, names, onLost, until),
        );
      } catch (error) {
        connection[Symbol.dispose]();
        throw error;
      }
    },
  };
}

function socketOf(address: string): string {
  if (address === "") return defaultSocket;
  const path = /(?:^|;)unix:path=([^,;]+)/u.exec(address)?.[1];
  if (path !== undefined) return path;
  throw new Error(`system bus address ${address} is not a unix:path=`);
}

/** By a child process. */
type Inhibit = (
  names: readonly [who: string, why: string],
  onLost: () => void,
  signal: AbortSignal,
) => Promise<Disposable>;

class LogindSession implements LoginSession {
  readonly #bus: BusConnection;
  readonly #inhibit: Inhibit;
  /** Aborts when the lock is lost. */
  readonly #lost = new AbortController();

  constructor(bus: BusConnection, inhibit: Inhibit) {
    this.#bus = bus;
    this.#inhibit = inhibit;
  }

  async inhibitDelayMaxMs(signal: AbortSignal): Promise<number> {
    return Number(await propertyOf(this.#bus, "InhibitDelayMaxUSec", signal)) / 1000;
  }

  async isPreparingForShutdown(signal: AbortSignal): Promise<boolean> {
    return (await propertyOf(this.#bus, "PreparingForShutdown", signal)) === true;
  }

  async reloadConfiguration(signal: AbortSignal): Promise<void> {
    const values = ["systemd-logind.service", "all", hangUp];
    await this.#bus.call({ ...systemd, member: "KillUnit", signature: "ssi", values }, signal);
  }

  async delayShutdown(who: string, why: string, signal: AbortSignal): Promise<Disposable> {
    if (!this.#bus.takesDescriptors) return await this.#inhibit([who, why], () => this.#lost.abort(), signal);
    const values = ["shutdown", who, why, "delay"];
    const { descriptors } = await this.#bus.call({ ...logind, member: "Inhibit", signature: "ssss", values }, signal);
    const [lock] = descriptors;
    if (lock === undefined) throw new Error("logind returned no lock");
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) closeSync(lock);
        isHeld = false;
      },
    };
  }

  async *shutdowns(signal: AbortSignal): AsyncIterable<boolean> {
    // Whoever watches takes another lock in another session.
    using either = eitherSignal(signal, this.#lost.signal);
    let last: boolean | undefined;
    for await (const { member, path, interface: of, values } of this.#bus.signals(either.signal)) {
      if (member !== announcement || path !== logind.path || of !== logind.interface) continue;
      // Whose it is cannot be verified: the bus forgets the user of a sender that has left, as most have by now.
      const [begins] = values ?? [];
      if (typeof begins !== "boolean" || begins === last) continue;
      last = begins;
      yield last;
    }
  }

  [Symbol.dispose](): void {
    this.#bus[Symbol.dispose]();
  }
}

async function propertyOf(bus: BusConnection, name: string, signal: AbortSignal): Promise<BusValue | undefined> {
  const { destination, path } = logind;
  const call = { destination, path, interface: "org.freedesktop.DBus.Properties", member: "Get", signature: "ss" };
  const { values } = await bus.call({ ...call, values: [logind.interface, name] }, signal);
  return values[0];
}
