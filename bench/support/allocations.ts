/**
 * Loaded into a process by `--import`: samples allocations, including collected ones, and writes a V8 heap profile into
 * the directory of ALLOCATION_PROFILE at the end.
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";

/** Bytes between two samples. */
const samplingInterval = 16 * 1024;

const session = new Session();
session.connect();
session.post("HeapProfiler.startSampling", {
  samplingInterval,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
});
process.on("exit", () => {
  session.post("HeapProfiler.stopSampling", (error, result) => {
    if (error !== null) throw error;
    const directory = process.env["ALLOCATION_PROFILE"] ?? ".";
    writeFileSync(join(directory, `allocations-${process.pid}.heapprofile`), JSON.stringify(result.profile));
  });
});
