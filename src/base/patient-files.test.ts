import assert from "node:assert/strict";
import { test } from "node:test";
import { FileError } from "../ports/files.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { PatientFiles } from "./patient-files.ts";

const path = "/root/record";

class Disk {
  readonly clock = new SimClock(1_700_000_000_000);
  /** Reads fail until then, with that code. */
  untilMs = 0;
  code = "EIO";
  reads = 0;
  hasRecord = true;
  readonly patient = new PatientFiles(
    Object.assign(new MemoryFiles(this.clock.incarnation()), {
      read: async (): Promise<Uint8Array> => {
        this.reads++;
        if (this.clock.nowMs < this.untilMs) throw new FileError(this.code, path, "i/o error");
        if (!this.hasRecord) throw new FileError("ENOENT", path, "no such file");
        return new TextEncoder().encode("text");
      },
    }),
    this.clock.incarnation(),
  );

  /** The text, or the code of the error, and after how many ms. */
  async read(): Promise<string> {
    const beganMs = this.clock.nowMs;
    const ended = this.patient.read(path, 100).then(
      (bytes) => `${new TextDecoder().decode(bytes)} ${this.clock.nowMs - beganMs}`,
      (error: unknown) => `${error instanceof FileError ? error.code : String(error)} ${this.clock.nowMs - beganMs}`,
    );
    await this.clock.run(beganMs + 5000);
    return await ended;
  }
}

test("a read that fails because of the disk is repeated until it succeeds", async () => {
  const disk = new Disk();
  disk.untilMs = disk.clock.nowMs + 1000;
  assert.equal(await disk.read(), "text 1000");
  assert.equal(disk.reads, 11);
});

test("other errors are reported at once", async () => {
  const disk = new Disk();
  disk.hasRecord = false;
  assert.equal(await disk.read(), "ENOENT 0");
  disk.untilMs = Number.POSITIVE_INFINITY;
  disk.code = "EACCES";
  assert.equal(await disk.read(), "EACCES 0");
});

test("a broken disk is waited for once a minute", async () => {
  const disk = new Disk();
  disk.untilMs = Number.POSITIVE_INFINITY;
  assert.equal(await disk.read(), "EIO 3000");
  assert.equal(await disk.read(), "EIO 0");
  await disk.clock.run(disk.clock.nowMs + 60_000);
  assert.equal(await disk.read(), "EIO 3000");
});
