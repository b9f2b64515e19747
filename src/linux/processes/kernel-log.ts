import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Clock } from "../../ports/clock.ts";
import type { KernelLine, KernelLog } from "../../ports/kernel-log.ts";
import { errnoOf, fileError } from "../file-error.ts";
import { polled, pollEvents } from "./poll.ts";

const periodMs = 1000;
/** The kernel's maximum record (CONSOLE_EXT_LOG_MAX). */
const recordBytes = 8192;
/** This many records are read before the event loop gets a turn. */
const atOnce = 100;

/**
 * /dev/kmsg (the kernel's Documentation/ABI/testing/dev-kmsg), polled each second, because Node.js cannot wait for a
 * device. Each read returns one record and never blocks.
 */
export function systemKernelLog(clock: Clock, path = "/dev/kmsg"): KernelLog {
  return { follow: (after, signal) => follow({ clock, path, after }, signal) };
}

interface Following {
  readonly clock: Clock;
  readonly path: string;
  readonly after: number | undefined;
}

async function* follow({ clock, path, after }: Following, signal: AbortSignal): AsyncGenerator<KernelLine> {
  const buffer = Buffer.alloc(recordBytes);
  let device: number | undefined;
  try {
    device = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // A read of nothing costs an exception; the poll, microseconds.
    const hasMore = polled(device, pollEvents.readable) ?? ((): boolean => true);
    let [passed, isPassing] = [after ?? -1, true];
    while (!signal.aborted) {
      const records = hasMore() ? readRecords(device, buffer) : [];
      const isAll = records.length < atOnce;
      for (const record of records) {
        const line = kernelLine(record);
        // Existing records may be hours old.
        const isOld = isPassing && (after === undefined || line.sequence <= after);
        if (isOld) {
          passed = Math.max(passed, line.sequence);
          continue;
        }
        if (isPassing) yield { sequence: passed, atMs: 0, text: "" };
        isPassing = false;
        const { sequence, atMs, text } = line;
        if (text !== undefined) yield { sequence, atMs, text };
      }
      if (isAll && isPassing) yield { sequence: passed, atMs: 0, text: "" };
      if (isAll) isPassing = false;
      await clock.sleep("the kernel's next messages", isAll ? periodMs : 0, signal).catch(() => {});
    }
  } catch (error) {
    throw fileError(error, path);
  } finally {
    if (device !== undefined) closeSync(device);
  }
}

function readRecords(device: number, buffer: Buffer): string[] {
  const records: string[] = [];
  while (records.length < atOnce) {
    try {
      records.push(buffer.toString("utf8", 0, readSync(device, buffer)));
    } catch (error) {
      if (errnoOf(error) === "EAGAIN") break;
      // Records were overwritten before they were read; the next read returns the oldest remaining one.
      if (errnoOf(error) !== "EPIPE") throw error;
    }
  }
  return records;
}

/**
 * @param record `level and facility,sequence,microseconds,flags[,…];message`, then lines of other facts
 * @returns no text for messages of programs
 */
function kernelLine(record: string): Omit<KernelLine, "text"> & { readonly text: string | undefined } {
  const [, priority, sequence, microseconds, message] = /^(\d+),(\d+),(\d+)[^;\n]*;([^\n]*)/u.exec(record) ?? [];
  return {
    sequence: Number(sequence ?? -1),
    atMs: Number(microseconds ?? 0) / 1000,
    // Facility 0 is the kernel; programs cannot use it.
    text: Number(priority) >> 3 === 0 ? message : undefined,
  };
}
