import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../../test/support/sources.ts";
import { MemoryFiles } from "../sim/files.ts";
import { ImageUses } from "./image-uses.ts";

const path = "/kubelet/podwright/image-uses.json";
const minute = 60_000;

/** A clock whose wall time can be set. */
class JumpingClock extends ManualClock {
  offsetMs = 0;

  override now(): number {
    return super.now() + this.offsetMs;
  }
}

class Scene {
  readonly clock = new JumpingClock();
  readonly files = new MemoryFiles(this.clock);
  uses = this.life();

  life(): ImageUses {
    return new ImageUses({ clock: this.clock, files: this.files, log: silentLog }, path);
  }

  async restart(): Promise<void> {
    this.uses = this.life();
    await this.uses.load();
  }

  ages(id: string): readonly (number | undefined)[] {
    const { detectedMs, lastUsedMs } = this.uses.of(id);
    const now = this.clock.monotonic();
    return [now - detectedMs, lastUsedMs === undefined ? undefined : now - lastUsedMs];
  }
}

test("the next run knows when images were first seen and last used", async () => {
  const scene = new Scene();
  await scene.uses.load();
  scene.uses.observe(["a", "b"], new Set(["a"]));
  await scene.uses.save();
  await scene.clock.advance(5 * minute);
  scene.uses.observe(["a", "b"], new Set());
  await scene.uses.save();
  await scene.clock.advance(10 * minute);
  await scene.restart();
  assert.deepEqual(scene.ages("a"), [15 * minute, 15 * minute]);
  assert.deepEqual(scene.ages("b"), [15 * minute, undefined]);
  assert.equal((await scene.files.stat(path))?.mode, 0o600);
});

test("a use between two observations counts, also in the next run", async () => {
  const scene = new Scene();
  await scene.uses.load();
  scene.uses.observe(["a"], new Set(["a"]));
  await scene.uses.save();
  await scene.clock.advance(60 * minute);
  scene.uses.observe(["a"], new Set());
  await scene.uses.save();
  await scene.clock.advance(2 * minute);
  scene.uses.note("a");
  scene.uses.note("new");
  await scene.clock.advance(3 * minute);
  scene.uses.observe(["a", "new"], new Set());
  await scene.uses.save();
  assert.deepEqual(
    [scene.ages("a"), scene.ages("new")],
    [
      [65 * minute, 3 * minute],
      [3 * minute, 3 * minute],
    ],
  );
  await scene.restart();
  assert.deepEqual(scene.ages("a"), [65 * minute, 3 * minute]);
});

test("a removed image is forgotten and reported", async () => {
  const scene = new Scene();
  assert.equal(scene.uses.observe(["a", "b"], new Set()), false);
  await scene.clock.advance(minute);
  assert.equal(scene.uses.observe(["b"], new Set()), true);
  await scene.clock.advance(minute);
  assert.equal(scene.uses.observe(["a", "b"], new Set()), false);
  assert.deepEqual(scene.ages("a"), [0, undefined]);
  assert.deepEqual(scene.ages("b"), [2 * minute, undefined]);
});

test("the file is written when images or their use change, otherwise once an hour, and at the end", async () => {
  const scene = new Scene();
  const written: string[] = [];
  const { files } = scene;
  const write = files.writeAtomic.bind(files);
  files.writeAtomic = async (...given) => {
    written.push(String(given[1]));
    await write(...given);
  };
  const look = async (...used: string[]): Promise<number> => {
    await scene.clock.advance(5 * minute);
    scene.uses.observe(["a", "b"], new Set(used));
    await scene.uses.save();
    return written.splice(0).length;
  };
  assert.deepEqual([await look("a"), await look("a"), await look("b"), await look("b")], [1, 0, 1, 0]);
  let writes = 0;
  for (let looks = 0; looks < 24; looks++) writes += await look("b");
  assert.equal(writes, 2);
  await scene.uses.close();
  assert.equal(written.length, 1);
});

test("a wall clock jump makes no image old in this run", async () => {
  const scene = new Scene();
  scene.uses.observe(["a"], new Set(["a"]));
  scene.clock.offsetMs = 24 * 60 * minute;
  assert.deepEqual(scene.ages("a"), [0, 0]);
});

test("an unreadable file is kept aside, and loses only its contents", async () => {
  const scene = new Scene();
  await scene.files.makeDirectory("/kubelet/podwright", 0o700);
  await scene.files.write(path, "{ torn", 0o600);
  await scene.restart();
  scene.uses.observe(["a"], new Set());
  assert.deepEqual(scene.ages("a"), [0, undefined]);
  await scene.uses.save();
  assert.equal(new TextDecoder().decode(await scene.files.read(`${path}.bad`, 100)), "{ torn");
});
