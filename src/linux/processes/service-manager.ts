import { closeSync } from "node:fs";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { Processes } from "../../ports/processes.ts";
import type { ServiceManager } from "../../ports/service-manager.ts";
import { addressOf, openCLibrary } from "./c-library.ts";
import { closeOnExec, familyUnix, nonBlocking, unixAddress } from "./unix-address.ts";

type Environment = Record<string, string | undefined>;

/** As upstream, the period must exceed a second. */
const shortestWatchdogMs = 1000;
const programLimitMs = 5000;
// <sys/socket.h>
const datagram = 2;
const noSignal = 0x4000;

/**
 * The service manager of the environment (NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID); undefined: none. Removes the
 * variables, so that no child process notifies in place of this one.
 *
 * Node.js has no Unix datagram sockets, so this calls the C library (`node:ffi`, Node.js 26.1 or newer), or else
 * systemd-notify(1).
 * @param modules access to Node.js' built-in modules
 * @throws PodwrightError for invalid watchdog settings, or a period that is too short
 */
export function serviceManager(
  environment: Environment,
  processes: Processes,
  modules?: (name: string) => unknown,
): ServiceManager | undefined {
  const watchdogMs = watchdogOf(environment, processes.ownPid);
  const socket = environment["NOTIFY_SOCKET"] ?? "";
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete environment[name];
  if (socket === "") return undefined;
  return {
    watchdogMs,
    // libuv reads CLOCK_MONOTONIC; performance.now() counts from the start of this process.
    monotonicMicroseconds: () => process.hrtime.bigint() / 1000n,
    notify: async (assignments) => {
      if (!sendDatagram(socket, assignments.join("\n"), modules)) await runNotify(processes, socket, assignments);
    },
  };
}

/** sd_watchdog_enabled(3); undefined: no watchdog, or one for another process. */
function watchdogOf(environment: Environment, ownPid: number): number | undefined {
  const { WATCHDOG_USEC: period = "", WATCHDOG_PID: pid = "" } = environment;
  if (period === "") return undefined;
  const microseconds = positive("WATCHDOG_USEC", period);
  if (pid !== "" && positive("WATCHDOG_PID", pid) !== ownPid) return undefined;
  const milliseconds = microseconds / 1000;
  if (milliseconds > shortestWatchdogMs) return milliseconds;
  throw new PodwrightError(ExitCode.badInput, `the watchdog's timeout is too small: ${milliseconds} ms`, {
    remedy: "set WatchdogSec= of the service to more than a second",
  });
}

function positive(name: string, text: string): number {
  const value = /^\d+$/u.test(text) ? Number(text) : 0;
  if (value > 0 && Number.isSafeInteger(value)) return value;
  throw new PodwrightError(ExitCode.badInput, `${name} is not a positive number: ${JSON.stringify(text)}`);
}

/**
 * @returns false if Node.js cannot call the C library
 * @throws Error if the kernel does not accept it
 */
function sendDatagram(name: string, text: string, modules?: (name: string) => unknown): boolean {
  const library = cLibrary(modules);
  if (library === undefined) return false;
  const address = unixAddress(name);
  const message = Buffer.from(text);
  const types = datagram | closeOnExec | nonBlocking;
  const descriptor = library("socket", ["int32", "int32", "int32"], "int32")(familyUnix, types, 0);
  if (descriptor < 0) throw new Error("cannot make a socket");
  try {
    const send = library("sendto", ["int32", "pointer", "uint64", "int32", "pointer", "uint32"], "int32");
    const to = [addressOf(address), address.length] as const;
    const sent = send(descriptor, addressOf(message), BigInt(message.length), noSignal, ...to);
    if (sent !== message.length) throw new Error(`the socket ${name} does not accept it`);
  } finally {
    closeSync(descriptor);
  }
  return true;
}

function cLibrary(modules?: (name: string) => unknown): ReturnType<typeof openCLibrary> | undefined {
  try {
    return openCLibrary(modules);
  } catch {
    return undefined;
  }
}

async function runNotify(processes: Processes, socket: string, assignments: readonly string[]): Promise<void> {
  // The message carries this process's credentials: a manager may ignore other senders.
  const words = [`--pid=${processes.ownPid}`, ...assignments];
  const options = { timeoutMs: programLimitMs, environment: { NOTIFY_SOCKET: socket } };
  const { exitCode, stderr } = await processes.run("systemd-notify", words, options);
  if (exitCode !== 0) throw new Error(`systemd-notify: ${stderr.trim() || `exit code ${exitCode}`}`);
}
