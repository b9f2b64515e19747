import { spawn } from "node:child_process";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../ports/clock.ts";

const program = "systemd-inhibit";
const limitMs = 5000;

/**
 * A lock that a child process holds, for a Node.js that cannot take logind's descriptor: systemd-inhibit(1) runs `cat`,
 * which returns a line once the lock is held, and ends when this process closes the pipe to it, or ends.
 * @param address of the system bus; empty: the default
 * @param onLost called if the child ends before the lock is released
 * @throws Error with the program's message, or when it is missing
 */
export async function inhibitByProgram(
  clock: Clock,
  address: string,
  [who, why]: readonly [who: string, why: string],
  onLost: () => void,
  signal: AbortSignal,
): Promise<Disposable> {
  signal.throwIfAborted();
  const child = spawn(program, ["--what=shutdown", `--who=${who}`, `--why=${why}`, "--mode=delay", "cat"], {
    env: { ...process.env, ...(address !== "" && { DBUS_SYSTEM_BUS_ADDRESS: address }) },
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let said = "";
  child.stderr.on("data", (bytes: Buffer) => (said = `${said}${bytes.toString()}`.slice(-1000)));
  child.stdout.once("data", () => resolve());
  // It may have ended before it reads.
  child.stdin.on("error", () => {});
  child.on("error", (error) => reject(new Error(`Node.js older than 26.1 needs ${program}`, { cause: error })));
  child.on("close", () => reject(new Error(`${program}: ${said.trim() || "ended"}`)));
  child.stdin.write("held\n");
  using _limit = clock.timer("systemd-inhibit to hold a lock", limitMs, () =>
    reject(new Error(`${program} holds no lock within ${limitMs / 1000} s`)),
  );
  using _abort = onAbort(signal, () => reject(signal.reason as Error));
  const lock = {
    [Symbol.dispose]: () => {
      child.off("close", onLost);
      child.stdin.end();
      child.kill();
    },
  };
  try {
    await promise;
    child.on("close", onLost);
    return lock;
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
}
