import assert from "node:assert/strict";
import { test } from "node:test";
import { FileError, type Files } from "../ports/files.ts";
import { SimClock } from "../sim/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimRandom } from "../sim/random.ts";
import { AtomicWriter, type Payload } from "./atomic-writer.ts";

const directory = "/v";
const nothing = async (): Promise<void> => {};

function payload(files: Record<string, string>): Payload {
  const encoder = new TextEncoder();
  return new Map(Object.entries(files).map(([path, text]) => [path, { data: encoder.encode(text), mode: 0o640 }]));
}

class Fixture {
  readonly clock = new SimClock(Date.UTC(2026, 0, 2, 3, 4, 5)).incarnation();
  readonly files = new MemoryFiles(this.clock);
  readonly random = new SimRandom(1);

  static async make(): Promise<Fixture> {
    const fixture = new Fixture();
    await fixture.files.makeDirectory(directory, 0o777);
    return fixture;
  }

  writer(files: Files = this.files): AtomicWriter {
    return new AtomicWriter({ files, clock: this.clock, random: this.random }, directory);
  }

  async names(path = directory): Promise<string[]> {
    return (await this.files.list(path)).map(({ name }) => name).toSorted();
  }

  async text(path: string): Promise<string> {
    return new TextDecoder().decode(await this.files.read(`${directory}/${path}`, 1000));
  }

  /** Leftover names: neither for the pod nor of the visible generation. */
  async leftovers(): Promise<string[]> {
    const current = await this.files.readLink(`${directory}/..data`);
    return (await this.names()).filter((name) => name.startsWith("..") && name !== "..data" && name !== current);
  }
}

test("files are visible through ..data in a directory named after the time, with their permissions", async () => {
  const fixture = await Fixture.make();
  await fixture.writer().write(payload({ a: "1", "b/c": "2", "b/d/e": "3" }), nothing);
  const generation = await fixture.files.readLink("/v/..data");
  assert.match(generation, /^\.\.2026_01_02_03_04_05\.[0-9a-f]{10}$/);
  assert.deepEqual(await fixture.names(), ["..data", generation, "a", "b"].toSorted());
  assert.equal(await fixture.files.readLink("/v/b"), "..data/b");
  assert.deepEqual([await fixture.text("a"), await fixture.text("b/c"), await fixture.text("b/d/e")], ["1", "2", "3"]);
  assert.equal((await fixture.files.stat(`/v/${generation}/a`))?.mode, 0o640);
  assert.equal((await fixture.files.stat(`/v/${generation}`))?.mode, 0o755);
});

test("an update replaces, adds and removes names, and leaves nothing of the old files", async () => {
  const fixture = await Fixture.make();
  await fixture.writer().write(payload({ a: "1", b: "2", "c/d": "3" }), nothing);
  const next = payload({ a: "10", e: "5" });
  assert.equal(await fixture.writer().isCurrent(next), false);
  await fixture.writer().write(next, nothing);
  assert.equal(await fixture.writer().isCurrent(next), true);
  const visible = (await fixture.names()).filter((name) => !name.startsWith(".."));
  assert.deepEqual(visible, ["a", "e"]);
  assert.equal(await fixture.text("a"), "10");
  assert.deepEqual(await fixture.leftovers(), []);
});

test("existing files are current only with equal names, contents and links", async () => {
  const fixture = await Fixture.make();
  const files = payload({ a: "1", "b/c": "2" });
  assert.equal(await fixture.writer().isCurrent(files), false, "an empty volume");
  await fixture.writer().write(files, nothing);
  assert.equal(await fixture.writer().isCurrent(files), true);
  assert.equal(await fixture.writer().isCurrent(payload({ a: "1" })), false, "a file too many");
  assert.equal(await fixture.writer().isCurrent(payload({ a: "1", "b/c": "2", d: "" })), false, "a file too few");
  assert.equal(await fixture.writer().isCurrent(payload({ a: "2", "b/c": "2" })), false, "another content");
  await fixture.files.remove("/v/a");
  assert.equal(await fixture.writer().isCurrent(files), false, "a name too few");
});

test("new files get their owner before they become visible", async () => {
  const fixture = await Fixture.make();
  await fixture.writer().write(payload({ a: "old" }), nothing);
  let seen = "";
  await fixture.writer().write(payload({ a: "new" }), async () => {
    seen = await fixture.text("a");
    assert.equal((await fixture.leftovers()).length, 1, "the new files are there already");
  });
  assert.equal(seen, "old");
});

test("a directory for a mount in the volume is not one of its files", async () => {
  const fixture = await Fixture.make();
  await fixture.files.makeDirectory("/v/nested", 0o755);
  await fixture.writer().write(payload({ a: "1" }), nothing);
  await fixture.writer().write(payload({ a: "2" }), nothing);
  assert.equal(await fixture.writer().isCurrent(payload({ a: "2" })), true);
  assert.equal((await fixture.files.stat("/v/nested"))?.type, "directory");
});

test("a directory for a mount takes the place of the files of its name, also of those that come later", async () => {
  const fixture = await Fixture.make();
  await fixture.files.makeDirectory("/v/dashboards", 0o755);
  for (const files of [{ "dashboards/a": "1" }, { "dashboards/a": "1", b: "2" }, { dashboards: "3" }, { b: "4" }]) {
    assert.equal(await fixture.writer().isCurrent(payload(files)), false);
    await fixture.writer().write(payload(files), nothing);
    assert.equal(await fixture.writer().isCurrent(payload(files)), true);
    assert.equal((await fixture.files.stat("/v/dashboards"))?.type, "directory");
    const visible = (await fixture.names()).filter((name) => !name.startsWith(".."));
    assert.deepEqual(visible, "b" in files ? ["b", "dashboards"] : ["dashboards"]);
  }
});

test("an interrupted write shows the old or the new files, and the next one repairs it", async () => {
  const before = payload({ a: "old", gone: "old" });
  const after = payload({ a: "new", more: "new" });
  let completed = false;
  for (let steps = 0; !completed; steps++) {
    const fixture = await Fixture.make();
    await fixture.writer().write(before, nothing);
    try {
      await fixture.writer(failingAfter(fixture.files, steps)).write(after, nothing);
      completed = true;
    } catch (error) {
      assert.ok(error instanceof FileError, String(error));
    }
    assert.match(await fixture.text("a"), /^(?:old|new)$/);
    const whole = await fixture.names(`/v/${await fixture.files.readLink("/v/..data")}`);
    assert.ok(
      [
        ["a", "gone"],
        ["a", "more"],
      ].some((names) => names.join() === whole.join()),
      whole.join(),
    );
    await fixture.writer().write(after, nothing);
    assert.equal(await fixture.writer().isCurrent(after), true);
    assert.deepEqual(await fixture.leftovers(), []);
  }
});

test("foreign files with the writer's names are removed and never followed", async () => {
  const outside = { "/etc/passwd": "root", "/etc/shadow/x": "secret" };
  for (const target of ["/etc", "../etc", "..data", "..2026_01_01_00_00_00.abc"]) {
    const fixture = await Fixture.make();
    await fixture.files.makeDirectory("/etc/shadow", 0o755);
    for (const [path, text] of Object.entries(outside)) await fixture.files.write(path, text, 0o600);
    await fixture.writer().write(payload({ a: "1" }), nothing);
    await fixture.files.remove("/v/..data");
    await fixture.files.symlink(target, "/v/..data");
    await fixture.files.symlink("/etc", "/v/..2026_01_01_00_00_00.abc");
    await fixture.files.symlink("/etc", "/v/..data_tmp");
    await fixture.files.remove("/v/a");
    await fixture.files.symlink("/etc/passwd", "/v/a");
    await fixture.writer().write(payload({ a: "2" }), nothing);
    assert.equal(await fixture.text("a"), "2");
    assert.deepEqual(await fixture.leftovers(), []);
    for (const [path, text] of Object.entries(outside)) {
      assert.equal(new TextDecoder().decode(await fixture.files.read(path, 100)), text, `${target}: ${path}`);
    }
  }
});

test("paths that lead out of the volume or use the writer's names are rejected before anything is written", async () => {
  const fixture = await Fixture.make();
  const long = "x".repeat(256);
  for (const path of [
    "",
    "/a",
    "..",
    "a/../b",
    "../a",
    "..data",
    "..x/a",
    ".",
    "./..data",
    "a\0b",
    long,
    `a/${long}`,
  ]) {
    await assert.rejects(
      fixture.writer().write(payload({ [path]: "x" }), nothing),
      /invalid path/,
      JSON.stringify(path),
    );
  }
  await assert.rejects(fixture.writer().write(payload({ a: "x", "a/b": "y" }), nothing), /a is a file/);
  assert.deepEqual(await fixture.names(), []);
});

/** The files, until so many changes were made: then every further one fails. */
function failingAfter(files: MemoryFiles, changes: number): Files {
  let left = changes;
  const changing = new Set<PropertyKey>(["write", "makeDirectory", "symlink", "rename", "remove", "removeTree"]);
  return new Proxy(files, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      if (!changing.has(name)) return method.bind(target);
      return async (...arguments_: unknown[]): Promise<unknown> => {
        if (left-- <= 0) throw new FileError("EIO", "", "the power failed");
        return await method.apply(target, arguments_);
      };
    },
  });
}

test("a file mode with more than permission bits breaks an invariant, before the file is written", async () => {
  const fixture = await Fixture.make();
  const files: Payload = new Map([["sh", { data: new Uint8Array(), mode: 0o4755 }]]);
  await assert.rejects(fixture.writer().write(files, nothing), /a projected file has permission bits only/);
});
