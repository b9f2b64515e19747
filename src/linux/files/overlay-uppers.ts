import { parseMountInfo } from "./mountinfo.ts";

/**
 * Where the overlay that a process has as its root keeps what is written to it; undefined: its root is no overlay of
 * this machine's mount namespace. A process controls what its own table says, so that only names the device: the
 * directory is from the machine's table. Pure.
 * @param own the machine's mount table, latin1
 * @param ofProcess that of the process; undefined: it is gone
 */
export function upperDirectory(own: ReadonlyMap<string, string>, ofProcess: string | undefined): string | undefined {
  if (ofProcess === undefined) return undefined;
  const lines = ofProcess.split("\n").filter((line) => line.includes(" / ") && line.includes(" - overlay "));
  const root = parseMountInfo(lines.join("\n")).findLast(({ target }) => target === "/");
  return root && own.get(root.device);
}

/** The writable directories of a mount table's overlays, by device. Pure. */
export function upperDirectories(latin1Table: string): Map<string, string> {
  const lines = latin1Table.split("\n").filter((line) => line.includes(" - overlay "));
  return new Map(
    parseMountInfo(lines.join("\n")).flatMap(({ device, superOptions }) => {
      const upper = superOptions.find((option) => option.startsWith("upperdir="))?.slice("upperdir=".length);
      // A relative one belongs to a working directory that nobody knows any more.
      return upper?.startsWith("/") === true ? [[device, upper]] : [];
    }),
  );
}
