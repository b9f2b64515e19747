import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { patience } from "./patience.ts";

/** Runs a command on its own terminal: lines of JSON on its input type or resize, its output is the terminal's. */
const program = `
import fcntl, json, os, pty, select, struct, sys, termios
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
held, watched = b"", [0, master]
while True:
    ready, _, _ = select.select(watched, [], [])
    if master in ready:
        try:
            data = os.read(master, 65536)
        except OSError:
            data = b""
        if not data:
            break
        os.write(1, data)
    if 0 in ready:
        data = os.read(0, 65536)
        if not data:
            watched = [master]
        held += data
        *lines, held = held.split(b"\\n")
        for line in lines:
            asked = json.loads(line)
            if "size" in asked:
                resize(*asked["size"])
            else:
                os.write(master, asked["keys"].encode())
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
`;

/** Why there are no pseudo terminals, for `skip`; false when there are. */
export const noPty =
  spawnSync("python3", ["-c", "import pty, termios"]).status === 0 ? false : "there is no python3 to open a terminal";

/** A command on a pseudo terminal, as for a person. */
export class PtyCommand implements Disposable {
  /** The terminal's output so far. */
  shown = "";
  readonly ended: Promise<number>;
  readonly #child: ChildProcess;

  constructor(command: readonly string[], environment: NodeJS.ProcessEnv) {
    this.#child = spawn("python3", ["-c", program, ...command], {
      env: { ...environment, TERM: "xterm" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.shown += text));
    this.#child.stdin?.on("error", () => {});
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#child.once("close", (code) => resolve(code ?? -1));
    this.ended = promise;
  }

  type(keys: string): void {
    this.#child.stdin?.write(`${JSON.stringify({ keys })}\n`);
  }

  resize(rows: number, columns: number): void {
    this.#child.stdin?.write(`${JSON.stringify({ size: [rows, columns] })}\n`);
  }

  /** Waits until the terminal shows it. */
  async shows(pattern: RegExp, limitMs = 60_000): Promise<void> {
    const limit = Date.now() + limitMs * patience;
    while (!pattern.test(this.shown)) {
      if (Date.now() > limit) throw new Error(`never showed ${String(pattern)}; showed:\n${this.shown}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
  }
}
