import { closeSync, constants, openSync, readSync } from "node:fs";
import type { Clock } from "../../ports/clock.ts";
import type { KernelLog } from "../../ports/kernel-log.ts";
import { errnoOf, fileError } from "../file-error.ts";

const periodMs = 1000;
/** No record is larger (the kernel's CONSOLE_EXT_LOG_MAX). */
const recordBytes = 8192;
/** So many records are read without giving others a turn. */
const atOnce = 100;

/**
 * /dev/kmsg (the kernel's Documentation/ABI/testing/dev-kmsg), looked at each second: nothing that Node.js offers waits for
 * a device. Each read gives one record and never waits.
 */
export function systemKernelLog(clock: Clock, path = "/dev/kmsg"): KernelLog {
  return { follow: (signal) => follow(clock, path, signal) };
}

async function* follow(clock: Clock, path: string, signal: AbortSignal): AsyncGenerator<string> {
  const buffer = Buffer.alloc(recordBytes);
  let device: number | undefined;
  try {
    device = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // What is there already may be hours old.
    for (let isOld = true; !signal.aborted;) {
      const records = readRecords(device, buffer);
      for (const record of isOld ? [] : records) {
        const message = kernelMessage(record);
        if (message !== undefined) yield message;
      }
      const isAll = records.length < atOnce;
      if (isAll) isOld = false;
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
      // Records were overwritten before they were read; the next read gives the oldest one that is left.
      if (errnoOf(error) !== "EPIPE") throw error;
    }
  }
  return records;
}

/** @param record `level and facility,sequence,microseconds,flags[,…];message`, then lines of other facts */
function kernelMessage(record: string): string | undefined {
  const [, priority, message] = /^(\d+),[^;\n]*;([^\n]*)/u.exec(record) ?? [];
  // Facility 0 is the kernel: programs can't write in its name.
  return Number(priority) >> 3 === 0 ? message : undefined;
}
