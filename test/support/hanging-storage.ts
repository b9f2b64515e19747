import { spawnSync } from "node:child_process";
import { closeSync, constants, existsSync, mkdirSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

/** Why no file system can hang here; undefined: one can. */
export const noHangingStorage: string | undefined =
  process.getuid?.() !== 0 ? "needs root" : existsSync("/dev/fuse") ? undefined : "needs /dev/fuse";

/** A FUSE file system whose server never responds: accesses hang until it is ended, then it is dead. */
export class HangingStorage implements Disposable {
  readonly path: string;
  #server: number | undefined;

  /** @param flags of the server's file, beyond those for reading and writing */
  constructor(path: string, flags = 0) {
    this.path = path;
    mkdirSync(path, { recursive: true });
    this.#server = openSync("/dev/fuse", constants.O_RDWR | flags);
    const options = "fd=3,rootmode=40000,user_id=0,group_id=0,allow_other";
    const mounted = spawnSync("mount", ["-i", "-t", "fuse", "-o", options, "hanging", path], {
      stdio: ["ignore", "ignore", "pipe", this.#server],
    });
    if (mounted.status !== 0) throw new Error(`cannot mount: ${String(mounted.stderr)}`);
  }

  /** The server's file. */
  protected get server(): number {
    return this.#server ?? -1;
  }

  /** The server dies: what hangs ends with ENOTCONN. */
  end(): void {
    if (this.#server !== undefined) closeSync(this.#server);
    this.#server = undefined;
  }

  [Symbol.dispose](): void {
    this.end();
    const isMounted = (): boolean => readFileSync("/proc/self/mountinfo", "utf8").includes(` ${this.path} `);
    for (let tries = 0; tries < 10 && isMounted(); tries++) spawnSync("umount", ["--lazy", this.path]);
  }
}

const [initOpcode, statfsOpcode] = [26, 17];
const [inHeaderBytes, outHeaderBytes] = [40, 16];
const lookEveryMs = 10;

/** A FUSE file system whose server says how large it is and nothing else: what looks at a file in it hangs. */
export class HalfHangingStorage extends HangingStorage {
  readonly #loop: NodeJS.Timeout;

  constructor(path: string) {
    super(path, constants.O_NONBLOCK);
    this.#loop = setInterval(() => this.#answer(), lookEveryMs);
  }

  override end(): void {
    clearInterval(this.#loop);
    super.end();
  }

  #answer(): void {
    const request = Buffer.alloc(1 << 17);
    for (let length = this.#read(request); length >= inHeaderBytes; length = this.#read(request)) {
      const body = answerTo(request.readUInt32LE(4));
      if (body === undefined) continue;
      const header = Buffer.alloc(outHeaderBytes);
      header.writeUInt32LE(outHeaderBytes + body.length, 0);
      header.writeBigUInt64LE(request.readBigUInt64LE(8), 8);
      writeSync(this.server, Buffer.concat([header, body]));
    }
  }

  #read(into: Buffer): number {
    try {
      return readSync(this.server, into);
    } catch {
      // EAGAIN: no request.
      return 0;
    }
  }
}

/** `fuse_init_out` of version 7.31 and `fuse_kstatfs` of <linux/fuse.h>; undefined: never. */
function answerTo(opcode: number): Buffer | undefined {
  if (opcode === initOpcode) {
    const body = Buffer.alloc(64);
    body.writeUInt32LE(7, 0);
    body.writeUInt32LE(31, 4);
    // The largest write.
    body.writeUInt32LE(4096, 20);
    return body;
  }
  if (opcode !== statfsOpcode) return undefined;
  const body = Buffer.alloc(80);
  for (const [index, value] of [1000n, 600n, 500n, 50n, 20n].entries()) body.writeBigUInt64LE(value, 8 * index);
  for (const [index, value] of [4096, 255, 4096].entries()) body.writeUInt32LE(value, 40 + 4 * index);
  return body;
}
