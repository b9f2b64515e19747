import { createReadStream, fstatSync, type Stats } from "node:fs";
import { Socket } from "node:net";
import type { Readable } from "node:stream";

/** A file that this process was started with, by its descriptor. @throws Error if no such file is open */
export function openedFile(descriptor: number): Readable {
  let info: Stats;
  try {
    info = fstatSync(descriptor);
  } catch (error) {
    throw new Error("is not an open file", { cause: error });
  }
  // A read of a pipe in a thread would go on after an abort.
  const isStream = info.isFIFO() || info.isSocket();
  return isStream ? new Socket({ fd: descriptor, writable: false }) : createReadStream("", { fd: descriptor });
}
