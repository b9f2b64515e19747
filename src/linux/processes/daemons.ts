import { spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import type { Daemons } from "../../ports/daemons.ts";

/** Daemons by setsid(2): `detached` makes the child the leader of its own session. */
export const systemDaemons: Daemons = {
  async start(daemon) {
    const log = await open(daemon.logPath, "a", 0o600);
    try {
      const child = spawn(daemon.program, daemon.arguments, {
        cwd: daemon.workingDirectory,
        detached: true,
        env: { ...process.env, ...daemon.environment },
        stdio: ["ignore", log.fd, log.fd],
      });
      await once(child, "spawn");
      // The child is not awaited: podwright may exit before it. Its later errors are in its log.
      child.on("error", () => {});
      child.unref();
      if (child.pid === undefined) throw new Error(`${daemon.program} has no process ID`);
      return { pid: child.pid };
    } finally {
      await log.close();
    }
  },
};
