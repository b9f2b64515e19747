import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, readSync, writeFileSync, writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { addressOf, openCLibrary } from "../../src/linux/processes/c-library.ts";
import { DescriptorSocket } from "../../src/linux/dbus/descriptor-socket.ts";
import {
  type BusMessage,
  type BusValue,
  decodeMessage,
  encodeCall,
  encodeMessage,
} from "../../src/linux/dbus/message.ts";

/** Why there is no bus here; false: there is one. */
export function needsBus(): string | false {
  if (process.getBuiltinModule("node:ffi") === undefined) return `Node.js ${process.version} has no node:ffi`;
  return spawnSync("dbus-daemon", ["--version"]).status === 0 ? false : "needs dbus-daemon";
}

/** Why nobody but logind can announce a shutdown here; false: everybody can. */
export function needsSender(): string | false {
  return spawnSync("dbus-send", ["--help"]).error === undefined ? needsBus() : "needs dbus-send";
}

const manager = "org.freedesktop.login1.Manager";
const object = "/org/freedesktop/login1";
const [pollMs, answer, error, signal] = [5, 2, 3, 4];
/** O_NONBLOCK, for pipes that are polled. */
const nonBlocking = 0o4000;

/** A private D-Bus daemon with a fake systemd-logind. */
export class SystemBus implements AsyncDisposable {
  readonly address: string;
  /** The requested locks in order: what, who, why and mode. */
  readonly inhibitors: (readonly string[])[] = [];
  /** Signals sent to units. */
  readonly kills: (readonly BusValue[])[] = [];
  delayMaxMs = 60_000;
  isPreparing = false;
  readonly #daemon: ChildProcess;
  readonly #descriptor: number;
  readonly #library = openCLibrary();
  /** Pipe ends whose other ends are locks. */
  readonly #locks: number[] = [];
  #rest: Buffer = Buffer.alloc(0);
  #serial = 100;
  #isOpen = true;

  private constructor(daemon: ChildProcess, path: string, descriptor: number) {
    this.#daemon = daemon;
    this.address = `unix:path=${path}`;
    this.#descriptor = descriptor;
  }

  /** @param more the text of another configuration file, which the main one includes at its end */
  static async start(directory: string, more = "<busconfig/>"): Promise<SystemBus> {
    const [path, configuration, included] = [`${directory}/bus`, `${directory}/bus.conf`, `${directory}/more.conf`];
    const allowed = '<allow user="*"/><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/>';
    const policy = `<policy context="default">${allowed}</policy><include>${included}</include>`;
    const listen = `<listen>unix:path=${path}</listen><auth>EXTERNAL</auth>`;
    writeFileSync(included, more);
    writeFileSync(configuration, `<busconfig><type>custom</type>${listen}${policy}</busconfig>`);
    const daemon = spawn("dbus-daemon", ["--nofork", "--print-address=1", `--config-file=${configuration}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(daemon.stdout, "data");
    const bus = new SystemBus(daemon, path, new DescriptorSocket(path, openCLibrary()).detach());
    await bus.#join();
    void bus.#serve();
    return bus;
  }

  /** The number of held locks. */
  get locks(): number {
    return this.#locks.filter((pipe) => isHeld(pipe)).length;
  }

  /** PrepareForShutdown of another sender, of which logind knows nothing. It leaves the bus at once. */
  forge(begins: boolean, user = 0): void {
    const words = [`--bus=${this.address}`, "--type=signal", object, `${manager}.PrepareForShutdown`];
    const { status, stderr } = spawnSync("dbus-send", [...words, `boolean:${begins}`], {
      uid: user,
      gid: user,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`dbus-send: ${stderr}`);
  }

  /** PrepareForShutdown. */
  announce(begins: boolean): void {
    this.isPreparing = begins;
    const fields = [
      [1, "o", object],
      [2, "s", manager],
      [3, "s", "PrepareForShutdown"],
      [8, "g", "b"],
    ] as const;
    writeSync(this.#descriptor, encodeMessage(signal, ++this.#serial, fields, ["b", [begins]]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOpen = false;
    closeSync(this.#descriptor);
    for (const pipe of this.#locks) closeSync(pipe);
    this.#daemon.kill();
    if (this.#daemon.exitCode === null && this.#daemon.signalCode === null) await once(this.#daemon, "exit");
  }

  async #join(): Promise<void> {
    const user = Buffer.from(String(process.getuid?.())).toString("hex");
    for (const line of [`\0AUTH EXTERNAL ${user}\r\n`, "NEGOTIATE_UNIX_FD\r\n"]) {
      writeSync(this.#descriptor, line);
      while (!this.#rest.includes("\r\n")) await this.#read();
      this.#rest = Buffer.alloc(0);
    }
    const bus = {
      destination: "org.freedesktop.DBus",
      path: "/org/freedesktop/DBus",
      interface: "org.freedesktop.DBus",
    };
    const call = (member: string, signature: string, ...values: BusValue[]): Buffer =>
      encodeCall(++this.#serial, { ...bus, member, signature, values });
    writeSync(this.#descriptor, Buffer.concat([Buffer.from("BEGIN\r\n"), call("Hello", "")]));
    for (const name of ["org.freedesktop.login1", "org.freedesktop.systemd1"]) {
      writeSync(this.#descriptor, call("RequestName", "su", name, 0));
    }
    // Both names have been acquired.
    for (let answers = 0; answers < 3;) if ((await this.#next()).kind === "answer") answers++;
  }

  async #serve(): Promise<void> {
    while (this.#isOpen) {
      const message = await this.#next().catch(() => undefined);
      if (message?.kind === "call") this.#take(message);
    }
  }

  #take({ sender, serial, member, values = [] }: BusMessage): void {
    // A variant consists of its type's letter and its value.
    const reply = (signature: string, given: readonly BusValue[], descriptor?: number): void => {
      const body = signature === "v" ? `g${String(given[0])}` : signature;
      const fields = [
        [5, "u", serial],
        [6, "s", sender],
        ...(signature === "" ? [] : ([[8, "g", signature]] as const)),
        ...(descriptor === undefined ? [] : ([[9, "u", 1]] as const)),
      ] as const;
      this.#send(encodeMessage(answer, ++this.#serial, fields, [body, given]), descriptor);
    };
    if (member === "Get" && values[1] === "InhibitDelayMaxUSec") reply("v", ["t", this.delayMaxMs * 1000]);
    else if (member === "Get") reply("v", ["b", this.isPreparing]);
    else if (member === "KillUnit") {
      this.kills.push(values);
      reply("", []);
    } else if (member === "Inhibit" && !this.isPreparing) {
      this.inhibitors.push(values.map(String));
      const lock = this.#newLock();
      reply("h", [0], lock);
      closeSync(lock);
    } else {
      const fields = [
        [4, "s", "org.freedesktop.login1.OperationInProgress"],
        [5, "u", serial],
        [6, "s", sender],
        [8, "g", "s"],
      ] as const;
      this.#send(encodeMessage(error, ++this.#serial, fields, ["s", ["The operation is already running"]]));
    }
  }

  /** The end that is passed to the client. */
  #newLock(): number {
    const ends = new Int32Array(2);
    this.#library("pipe2", ["pointer", "int32"], "int32")(addressOf(ends), nonBlocking);
    const [kept = -1, given = -1] = ends;
    this.#locks.push(kept);
    return given;
  }

  #send(bytes: Buffer, descriptor?: number): void {
    if (descriptor === undefined) return void writeSync(this.#descriptor, bytes);
    const vector = new BigUint64Array([addressOf(bytes), BigInt(bytes.length)]);
    // One control message: its length, SOL_SOCKET, SCM_RIGHTS, the descriptor.
    const control = new Int32Array([20, 0, 1, 1, descriptor, 0]);
    const head = new BigUint64Array([0n, 0n, addressOf(vector), 1n, addressOf(control), 24n, 0n]);
    this.#library("sendmsg", ["int32", "pointer", "int32"], "int32")(this.#descriptor, addressOf(head), 0);
  }

  async #next(): Promise<BusMessage> {
    for (;;) {
      const decoded = decodeMessage(this.#rest);
      if (decoded === undefined) {
        await this.#read();
        continue;
      }
      this.#rest = this.#rest.subarray(decoded.length);
      return decoded.message;
    }
  }

  async #read(): Promise<void> {
    const into = Buffer.alloc(65_536);
    for (;;) {
      try {
        const length = readSync(this.#descriptor, into);
        this.#rest = Buffer.concat([this.#rest, into.subarray(0, length)]);
        return;
      } catch (failed) {
        if (!this.#isOpen || (failed as NodeJS.ErrnoException).code !== "EAGAIN") throw failed;
        await setTimeout(pollMs);
      }
    }
  }
}

/** An empty pipe is held; at end-of-file its other end is closed. */
function isHeld(pipe: number): boolean {
  try {
    readSync(pipe, Buffer.alloc(1));
    return false;
  } catch {
    return true;
  }
}
