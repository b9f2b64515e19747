import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { FileError } from "../ports/files.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { ProbeMemory } from "./probe-memory.ts";

const path = "/var/lib/podwright/probes.json";

test("a result that could not be stored on a full disk is stored later, for the next run", async () => {
  const clock = new SimClock(1_700_000_000_000);
  const files = new MemoryFiles(clock.incarnation());
  let full = true;
  const narrow = Object.assign(Object.create(files) as MemoryFiles, {
    writeAtomic: async (...written: Parameters<MemoryFiles["writeAtomic"]>): Promise<void> => {
      if (full) throw new FileError("ENOSPC", path, "no space left on device");
      await files.writeAtomic(...written);
    },
  });
  await files.makeDirectory("/var/lib/podwright", 0o700);
  const memory = new ProbeMemory(narrow, clock.incarnation(), silentLog, path);
  await memory.load();
  memory.met(podUid("uid-1"), ["c1"]);
  memory.note(podUid("uid-1"), "c1", { ready: true });
  await clock.run(5000);
  full = false;
  await clock.run(30_000);
  const next = new ProbeMemory(files, clock.incarnation(), silentLog, path);
  await next.load();
  assert.deepEqual(next.get(podUid("uid-1"), "c1"), { ready: true });
});
