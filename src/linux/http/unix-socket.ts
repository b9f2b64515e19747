import { once } from "node:events";
import { chmod, lstat, mkdtemp, readdir, rename, rm, unlink } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { dirname, join } from "node:path";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import { errnoOf, fileError } from "../file-error.ts";

/** `sockaddr_un` has room for 108 bytes with the final NUL (unix(7)). */
const longestPathBytes = 107;

/**
 * Makes `server` listen on a Unix socket of mode 0600 that atomically replaces `path`; at no moment can anyone but the
 * owner connect. Returns the removal of the socket.
 *
 * A dead server's socket at `path` is replaced. Rejects with a {@link PodwrightError} when a server answers there, when
 * it is not a socket, or when the path is too long. The lock of the state directory keeps two servers from starting at
 * the same moment.
 */
export async function listenPrivately(server: Server, path: string): Promise<() => Promise<void>> {
  const directory = dirname(path);
  // The temporary directory has six random characters; names in it are no longer than `podwright.sock`.
  if (Math.max(Buffer.byteLength(path), Buffer.byteLength(join(directory, ".123456/s"))) > longestPathBytes) {
    throw new PodwrightError(
      ExitCode.environment,
      `the socket's path is longer than ${longestPathBytes} bytes: ${path}`,
      {
        remedy: "use a state directory with a shorter path",
      },
    );
  }
  await refuseOccupied(path);
  await removeAbandoned(directory);
  // Only its owner can enter the directory (mode 0700), so the umask does not matter.
  const hidden = await mkdtemp(`${directory}/.`);
  try {
    const hiddenPath = join(hidden, "s");
    server.listen(hiddenPath);
    await once(server, "listening");
    await chmod(hiddenPath, 0o600);
    const { ino } = await lstat(hiddenPath);
    await rename(hiddenPath, path);
    return () => removeSocket(path, ino);
  } catch (error) {
    server.close();
    throw fileError(error, path);
  } finally {
    await rm(hidden, { recursive: true, force: true });
  }
}

/** Removes temporary directories of servers that were killed before they had moved their socket out. */
async function removeAbandoned(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    if (!entry.isDirectory() || !/^\.[0-9A-Za-z]{6}$/.test(entry.name)) continue;
    await rm(join(directory, entry.name), { recursive: true, force: true });
  }
}

async function refuseOccupied(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isSocket()) {
      throw new PodwrightError(ExitCode.environment, `${path} exists and is not a socket`, {
        remedy: "move it away, or use another state directory",
      });
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    throw error;
  }
  if (await isAnswered(path)) {
    throw new PodwrightError(ExitCode.environment, `another process listens at ${path}`, {
      remedy: "stop it first, or use another state directory",
    });
  }
}

/** False only when the kernel reports no listener: a server too busy to accept counts as one. */
async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path);
  try {
    await once(socket, "connect");
    return true;
  } catch (error) {
    return !["ECONNREFUSED", "ENOENT"].includes(errnoOf(error) ?? "");
  } finally {
    socket.destroy();
  }
}

/** Removes the socket unless another server has replaced it. */
async function removeSocket(path: string, inode: number): Promise<void> {
  try {
    if ((await lstat(path)).ino === inode) await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw fileError(error, path);
  }
}
