import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import type { JournalInput } from "../journal/entry.ts";
import type { ProcessInfo } from "../ports/processes.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { KubeletPlaceGuard } from "./kubelet-place-guard.ts";

class FakePlace {
  kubeletThere: ProcessInfo | undefined;
  /** Why the place cannot be taken. */
  obstacle: string | undefined;
  /** Why it cannot be left. */
  sticks: string | undefined;
  left = 0;
  isTaken = true;
  holds = true;
  looks = 0;
  readonly first = Promise.withResolvers<void>();
  readonly needed = this.first.promise;

  async isHeld(): Promise<boolean> {
    return this.holds;
  }

  async take(): Promise<boolean> {
    if (this.obstacle !== undefined) throw new Error(this.obstacle);
    this.isTaken = true;
    this.holds = true;
    return true;
  }

  async leave(): Promise<void> {
    this.isTaken = false;
    if (this.sticks !== undefined) throw new Error(this.sticks);
    this.holds = false;
    this.left++;
  }

  async kubelet(): Promise<ProcessInfo | undefined> {
    this.looks++;
    return this.kubeletThere;
  }
}

class Fixture {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly entries: JournalInput[] = [];
  readonly place = new FakePlace();
  readonly guard = new KubeletPlaceGuard({
    clock: this.clock,
    files: this.files,
    log: silentLog,
    journal: { record: (entry) => this.entries.push(entry) },
    place: this.place,
  });

  async begin(place = "/var/lib/kubelet"): Promise<AbortController> {
    const stop = new AbortController();
    await this.files.makeDirectory(`${place}/device-plugins`, 0o755);
    await this.files.makeDirectory("/var/lib", 0o755);
    if (place !== "/var/lib/kubelet") await this.files.symlink(place, "/var/lib/kubelet");
    void this.guard.run(stop.signal);
    await this.clock.advance(60_000);
    assert.equal(this.place.looks, 0, "nobody looks before the place is needed");
    this.place.first.resolve();
    await this.clock.advance(1000);
    return stop;
  }

  get notes(): string[] {
    return this.entries.map(({ what, message }) => `${what}: ${message}`);
  }
}

const started = "another node agent has started at /var/lib/kubelet (pid 7: /usr/bin/kubelet --v=2)";
const kubelet: ProcessInfo = { pid: 7, name: "kubelet", arguments: ["/usr/bin/kubelet", "--v=2"] };

test("a kubelet that starts is noticed by what it creates, gets the place, and is named", async () => {
  for (const path of ["/var/lib/kubelet/pki", "/var/lib/kubelet/device-plugins/kubelet.sock"]) {
    const fixture = new Fixture();
    const stop = await fixture.begin();
    fixture.place.kubeletThere = kubelet;
    await fixture.clock.advance(100);
    assert.equal(fixture.place.left, 0);
    await fixture.files.write(path, "", 0o600);
    await fixture.clock.advance(500);
    assert.equal(fixture.place.left, 1, path);
    assert.equal(fixture.guard.problem, `${started}: CSI drivers cannot start here`);
    assert.deepEqual(fixture.notes, [`KubeletPlaceLeft: ${started}: CSI drivers cannot start here`]);
    stop.abort();
    await fixture.clock.advance(60_000);
    assert.deepEqual(fixture.clock.waits, []);
  }
});

test("one that creates nothing is noticed within half a minute, and the place is taken again after its end", async () => {
  const fixture = new Fixture();
  const stop = await fixture.begin();
  fixture.place.kubeletThere = kubelet;
  await fixture.clock.advance(31_000);
  assert.equal(fixture.place.left, 1);
  fixture.place.obstacle = "/var/lib/kubelet belongs to another node agent";
  await fixture.clock.advance(31_000);
  assert.equal(fixture.guard.problem, fixture.place.obstacle);
  fixture.place.obstacle = undefined;
  fixture.place.kubeletThere = undefined;
  await fixture.clock.advance(31_000);
  assert.equal(fixture.guard.problem, undefined);
  assert.deepEqual(fixture.notes.slice(1), [
    "KubeletPlaceTaken: CSI drivers find the directories of pods and plugins below /var/lib/kubelet again",
  ]);
  assert.equal(fixture.place.left, 1);
  stop.abort();
});

test("directories that an earlier engine has left in a kubelet's place go, and the place is taken after its end", async () => {
  const fixture = new Fixture();
  fixture.place.isTaken = false;
  fixture.place.kubeletThere = kubelet;
  fixture.place.obstacle = "/var/lib/kubelet belongs to another node agent";
  const stop = await fixture.begin();
  assert.equal(fixture.place.left, 1);
  assert.equal(fixture.guard.problem, `${started}: CSI drivers cannot start here`);
  assert.deepEqual(fixture.notes, [`KubeletPlaceLeft: ${started}: CSI drivers cannot start here`]);
  fixture.place.kubeletThere = undefined;
  fixture.place.obstacle = undefined;
  await fixture.clock.advance(31_000);
  assert.deepEqual([fixture.place.isTaken, fixture.guard.problem], [true, undefined]);
  stop.abort();
});

test("a place that is needed and cannot be taken is a problem, also if nothing of the engine is there", async () => {
  const fixture = new Fixture();
  fixture.place.isTaken = false;
  fixture.place.holds = false;
  fixture.place.obstacle = "/var/lib/kubelet/pods is not empty";
  const stop = await fixture.begin();
  assert.equal(fixture.guard.problem, fixture.place.obstacle);
  assert.deepEqual(fixture.notes, []);
  stop.abort();
});

test("what a kubelet creates is noticed also if the place is a link", async () => {
  const fixture = new Fixture();
  const stop = await fixture.begin("/data/kubelet");
  fixture.place.kubeletThere = kubelet;
  await fixture.files.write("/data/kubelet/pki", "", 0o600);
  await fixture.clock.advance(500);
  assert.equal(fixture.place.left, 1);
  stop.abort();
});

test("a place that cannot be left is a problem until it can be, or the kubelet has ended", async () => {
  for (const ending of ["left", "taken"]) {
    const fixture = new Fixture();
    const stop = await fixture.begin();
    fixture.place.kubeletThere = kubelet;
    fixture.place.sticks = "no memory";
    await fixture.clock.advance(31_000);
    assert.equal(fixture.guard.problem, `${started}, and podwright's directories are still there: no memory`);
    assert.deepEqual(fixture.notes, []);
    if (ending === "left") fixture.place.sticks = undefined;
    else fixture.place.kubeletThere = undefined;
    await fixture.clock.advance(31_000);
    const isLeft = ending === "left";
    assert.equal(fixture.guard.problem, isLeft ? `${started}: CSI drivers cannot start here` : undefined);
    assert.deepEqual([fixture.place.left, fixture.place.isTaken], isLeft ? [1, false] : [0, true]);
    stop.abort();
  }
});

test("a kubelet may have been there since the last look that saw none", async () => {
  const fixture = new Fixture();
  const stop = await fixture.begin();
  const before = fixture.guard.freeAtMs;
  await fixture.clock.advance(31_000);
  assert.ok(fixture.guard.freeAtMs >= before + 30_000);
  await fixture.clock.advance(3000);
  const asked = fixture.clock.monotonic();
  fixture.guard.lookSoon();
  await fixture.clock.advance(500);
  assert.ok(fixture.guard.freeAtMs >= asked);
  fixture.place.kubeletThere = kubelet;
  fixture.place.obstacle = "/var/lib/kubelet belongs to another node agent";
  const last = fixture.guard.freeAtMs;
  await fixture.clock.advance(120_000);
  assert.equal(fixture.guard.freeAtMs, last);
  stop.abort();
});

test("many changes are few looks", async () => {
  const fixture = new Fixture();
  const stop = await fixture.begin();
  const before = fixture.place.looks;
  for (let index = 0; index < 100; index++) {
    await fixture.files.write(`/var/lib/kubelet/file-${index}`, "", 0o600);
    await fixture.clock.advance(10);
  }
  assert.ok(fixture.place.looks - before <= 6, `${fixture.place.looks - before} looks`);
  stop.abort();
});
