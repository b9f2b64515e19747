import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { awayDrivers, awayText } from "./away-drivers.ts";
import { nodeHoldout, volumeHoldout } from "./holdout.ts";
import { verdict } from "./verdict.ts";

const now = 1_000_000;
const [name, other] = ["d.example.org", "e.example.org"];

function entry(change: Partial<JournalEntry>): JournalEntry {
  return { kind: "observation", what: "VolumeHeld", message: "", seq: 1, time: now - 12_000, ...change };
}

function missing(driver: string): string {
  const missed = `driver name ${driver} not found in the list of registered CSI drivers`;
  return `volume disk (${driver}) cannot be unpublished: ${missed}`;
}

const silent = `volume disk (${name}) does not answer: its teardown has not returned within 30 s`;
const unavailable = "cannot be unstaged: rpc error: code = Unavailable desc = connection refused";
const gone = entry({ kind: "note", what: "PluginGone", data: { type: "CSIPlugin", name }, time: now - 150_000 });
const back = entry({ kind: "note", what: "PluginRegistered", data: { name }, seq: 2, time: now - 140_000 });
const meanwhile = "until then the pod stays, and podwright keeps trying";

test("a missing driver is away since it went, or since that is known, and one without an answer is named too", () => {
  const away = (message: string, ...node: readonly JournalEntry[]): unknown => awayDrivers([entry({ message })], node);
  const reported = { name, since: now - 12_000, isRegistered: false };
  assert.deepEqual(away(missing(name)), [reported]);
  assert.deepEqual(away(missing(name), gone), [{ ...reported, since: now - 150_000 }]);
  assert.deepEqual(away(missing(name), gone, back), [reported]);
  const again = { ...gone, repeated: { count: 2, lastTime: now - 130_000 } };
  assert.deepEqual(away(missing(name), again, back), [{ ...reported, since: now - 130_000 }]);
  assert.deepEqual(away(missing(other), gone), [{ ...reported, name: other }]);
  assert.deepEqual(away(silent), [{ ...reported, isRegistered: true }]);
  assert.deepEqual(away(`volume disk (${name}) ${unavailable}`), [{ ...reported, isRegistered: true }]);
  assert.deepEqual(away("volume disk (nfs) does not answer: its teardown has not returned within 30 s"), []);
  assert.deepEqual(away(`volume disk (${name}) cannot be unpublished: target is busy`), [], "the driver has answered");
});

test("each driver that is away has its remedy once", () => {
  const held = [missing(name), missing(name), missing(other)].map((message) => entry({ message }));
  assert.equal(
    awayText(awayDrivers(held, [gone]), now),
    `driver ${name} has been away for 2 min: start it again; driver ${other} has been away for 12 s: start it again; ${meanwhile}`,
  );
  assert.equal(
    awayText([{ name, since: now - 60_000, isRegistered: true }], now),
    `driver ${name} has not answered for 1 min: see its log, and restart it; ${meanwhile}`,
  );
  assert.match(awayText([{ name, since: now, isRegistered: false }], now), /^driver d\.example\.org is away: /u);
  assert.equal(awayText([], now), "");
});

test("a pod that waits for a driver that is away has the remedy in its verdict, whole", () => {
  const entries = [entry({ message: missing(name) })];
  const inputs = { entries, startSeq: 0, nodeEntries: [gone], now };
  const told = `${missing(name)}, reported 12 s ago; driver ${name} has been away for 2 min: start it again; ${meanwhile}`;
  assert.equal(nodeHoldout(inputs), told);
  const pod = podView({ state: "terminated", ...volumeHoldout(inputs, () => [gone]) });
  assert.deepEqual(pod.awayDrivers, [{ name, since: now - 150_000, isRegistered: false }]);
  assert.equal(verdict({ ...inputs, pod }), `Terminating: it has stopped: ${told}`);
  const deleted = podView({ state: "terminated", finalizers: [] });
  assert.equal(verdict({ ...inputs, pod: deleted }), `Terminating: it has stopped: ${told}`);
});

test("a driver that hangs has not answered since its first silence, also once its call has timed out", () => {
  const late = "cannot be unpublished: rpc error: code = DeadlineExceeded desc = context deadline exceeded";
  const quiet = entry({ what: "VolumeSilent", message: silent, time: now - 300_000 });
  const held = entry({ message: `volume disk (${name}) ${late}`, seq: 2 });
  const holdout = (...entries: readonly JournalEntry[]): unknown =>
    volumeHoldout({ entries, startSeq: 0 }, () => [])?.awayDrivers;
  const away = { name, since: now - 300_000, isRegistered: true };
  assert.deepEqual([holdout(quiet), holdout(quiet, held)], [[away], [away]]);
  assert.match(
    nodeHoldout({ entries: [quiet, held], startSeq: 0, now }) ?? "",
    /, reported 12 s ago; driver d\.example\.org has not answered for 5 min: /u,
  );
  const answered = entry({ what: "VolumeSilenceOver", message: silent, seq: 3 });
  assert.deepEqual(holdout(quiet, held, answered), [{ ...away, since: now - 12_000 }]);
  const far = entry({ message: `volume far (${name}) ${late}`, time: now - 200_000, seq: 2 });
  assert.deepEqual(holdout({ ...held, seq: 1 }, far), [{ ...away, since: now - 200_000 }], "of any of its volumes");
  const another = entry({ what: "VolumeSilent", message: silent.replace(name, other), time: now - 400_000 });
  assert.deepEqual(holdout(another, held), [{ ...away, since: now - 12_000 }], "each driver by itself");
  const busy = entry({ message: `volume far (${name}) cannot be unpublished: target is busy`, time: now - 200_000 });
  assert.deepEqual(holdout(busy, held), [{ ...away, since: now - 12_000 }], "it has answered that");
});
