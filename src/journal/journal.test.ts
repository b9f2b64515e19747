import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { MemoryFiles } from "../../test/support/memory-files.ts";
import { podUid } from "../base/ids.ts";
import type { EntryDetails, JournalEntry, JournalInput, PodRef } from "./entry.ts";
import { Journal, type JournalLimits } from "./journal.ts";

const directory = "/state/journal";
const web: PodRef = { namespace: "default", name: "web", uid: podUid("uid-web") };
const db: PodRef = { namespace: "default", name: "db", uid: podUid("uid-db") };

function world(limits: Partial<JournalLimits> = {}) {
  const clock = new ManualClock();
  const files = new MemoryFiles();
  const open = (): Promise<Journal> => Journal.open({ clock, files, directory, limits });
  return { clock, files, open };
}

function observed(message: string, pod: PodRef | undefined = web): JournalInput {
  return { kind: "observation", what: "PodPhaseChanged", message, ...(pod !== undefined && { pod }) };
}

function action(message: string, pod = web): JournalInput {
  return {
    kind: "action",
    what: "StartContainer",
    message,
    pod,
    cause: { code: "ContainerExited", message: "it is down" },
  };
}

const messages = (entries: readonly JournalEntry[]): string[] => entries.map((entry) => entry.message);

test("entries are numbered, written soon, and read by the next run, which continues the numbers", async () => {
  const { clock, files, open } = world();
  const journal = await open();
  assert.equal(journal.record(observed("one")), 2);
  assert.equal(journal.record(action("two")), 3);
  assert.deepEqual([...files.contents.keys()], [], "nothing is written in the recorder's way");
  await clock.advance(50);
  assert.deepEqual([...files.contents.keys()], [`${directory}/journal-1.jsonl`]);
  assert.equal(files.modes.get(`${directory}/journal-1.jsonl`), 0o600);

  assert.equal(journal.lastSeq, 3);

  const next = await open();
  assert.equal(next.lastSeq, 4);
  assert.deepEqual(messages(next.entries({ pod: { uid: podUid("uid-web") } })), ["one", "two"]);
  assert.equal(next.record(observed("three")), 5, "4 is the note that opens this life");
  assert.equal(next.entries({ kinds: ["note"] }).at(-1)?.message, "podwright started; the last entry before is 3");
});

test("closing writes queued entries, and later ones stay in memory", async () => {
  const { files, open } = world();
  const journal = await open();
  journal.record(observed("last words"));
  await journal.close();
  journal.record(observed("after the end"));
  assert.equal(messages(journal.entries()).at(-1), "after the end");
  const text = files.contents.get(`${directory}/journal-1.jsonl`) ?? "";
  assert.ok(text.includes("last words") && !text.includes("after the end"));
});

test("closing does not wait for a hanging disk forever", async () => {
  const { clock, files, open } = world();
  const journal = await open();
  files.append = () => new Promise(() => {});
  await clock.advance(50);
  let closed = false;
  const closing = journal.close().then(() => (closed = true));
  await clock.advance(4_999);
  assert.equal(closed, false);
  await clock.advance(1);
  await closing;
  assert.deepEqual(clock.waits, []);
});

test("torn and foreign lines are skipped and counted, and entries after them are read", async () => {
  const { clock, files, open } = world();
  const entry = (seq: number): string =>
    JSON.stringify({ seq, time: 1, kind: "observation", what: "PodPhaseChanged", message: `m${seq}` });
  files.contents.set(`${directory}/journal-20.jsonl`, `${entry(21)}\n${entry(20)}\n{"seq":22,"time`);
  files.contents.set(
    `${directory}/journal-3.jsonl`,
    ["not json", "[]", "null", '{"seq":-1}', '{"seq":4,"time":1,"kind":"x","what":"","message":""}', entry(5), ""].join(
      "\n",
    ),
  );
  files.contents.set(`${directory}/other.txt`, "not ours");
  const journal = await open();
  assert.deepEqual(messages(journal.entries({ kinds: ["observation"] })), ["m5", "m20", "m21"]);
  assert.equal(
    messages(journal.entries()).at(-1),
    "the journal is incomplete: 6 lines are truncated or not journal entries",
  );
  journal.record(observed("new"));
  await clock.advance(50);
  assert.equal(messages((await open()).entries({ kinds: ["observation"] })).at(-1), "new");
});

test("an unreadable segment is reported, and numbers continue above all that it may contain", async () => {
  const { files, open } = world();
  files.contents.set(`${directory}/journal-100.jsonl`, "x".repeat(400));
  files.unreadable.add(`${directory}/journal-100.jsonl`);
  const journal = await open();
  assert.ok(journal.record(observed("new")) > 110);
  assert.match(messages(journal.entries({ kinds: ["note"] })).at(-1) ?? "", /cannot read .*journal-100\.jsonl/);
});

test("with an unusable directory the journal is in memory only", async () => {
  const { clock, files, open } = world();
  files.unreadable.add(directory);
  const journal = await open();
  journal.record(observed("one"));
  await clock.advance(1_000);
  assert.equal(files.contents.size, 0);
  assert.equal(journal.diskHealth, undefined);
  assert.match(messages(journal.entries({ kinds: ["note"] })).at(-1) ?? "", /in memory only.*permission denied/);
  await journal.close();
});

test("segments rotate at their size and the oldest are removed", async () => {
  const { clock, files, open } = world({ maxSegmentBytes: 1_000, maxSegments: 3 });
  const journal = await open();
  for (let index = 0; index < 60; index++) {
    journal.record(observed(`entry ${index}`));
    await clock.advance(50);
  }
  const sizes = [...files.contents.values()].map((text) => text.length);
  assert.equal(sizes.length, 3);
  assert.ok(
    sizes.every((size) => size <= 1_000),
    String(sizes),
  );
  const next = await open();
  const kept = next.entries({ kinds: ["observation"] });
  assert.equal(kept.at(-1)?.message, "entry 59");
  assert.ok(kept.length < 30);
});

test("a full disk blocks nothing; afterwards one note has the number of lost lines, and no line is broken", async () => {
  const { clock, files, open } = world({ maxPendingCharacters: 2_000 });
  const journal = await open();
  await clock.advance(50);
  files.broken = { code: "ENOSPC", writtenPart: 0.5 };
  for (let index = 0; index < 100; index++) {
    journal.record(observed(`entry ${index}`));
    await clock.advance(100);
  }
  assert.match(journal.diskHealth?.error ?? "", /no space left/);
  assert.equal(journal.entries({ kinds: ["observation"] }).length, 100, "memory has them all");
  files.broken = undefined;
  await clock.advance(10_000);
  assert.equal(journal.diskHealth?.error, undefined);
  const notes = journal.entries({ kinds: ["note"] }).filter((entry) => entry.what === "JournalWritable");
  assert.equal(notes.length, 1);
  assert.match(notes[0]?.message ?? "", /again after 1\d s, up to \d+ entries are missing on disk/);
  const read = (await open()).entries({ kinds: ["observation"] });
  assert.equal(read.at(-1)?.message, "entry 99");
  assert.ok(read.length >= 100 - Number(notes[0]?.data?.lostLines), "what was not given up is there");
});

test("memory is bounded, and a noisy pod loses its own entries before those of others", async () => {
  const { open } = world({ maxEntries: 100, maxEntriesPerPod: 40 });
  const journal = await open();
  for (let index = 0; index < 10; index++) journal.record(observed(`db ${index}`, db));
  for (let index = 0; index < 1_000; index++) journal.record(observed(`web ${index}`));
  assert.equal(journal.entries({ pod: { uid: db.uid } }).length, 10);
  assert.deepEqual(messages(journal.entries({ pod: { name: "web" }, limit: 2 })), ["web 998", "web 999"]);
  assert.equal(journal.entries({ pod: { uid: web.uid } }).length, 40);
  assert.deepEqual(journal.pods(), [db, web]);
});

test("a flood of equal entries becomes one with a count, on disk too", async () => {
  const { clock, open } = world();
  const journal = await open();
  const first = journal.record(observed("the registry does not answer"));
  for (let index = 0; index < 50; index++) {
    await clock.advance(1_000);
    assert.equal(journal.record(observed("the registry does not answer")), first);
  }
  assert.equal(journal.record(observed("the registry does not answer", db)), first + 1, "another pod's is its own");
  const lastTime = clock.now();
  await clock.advance(60_000);
  const again = journal.record(observed("the registry does not answer"));
  assert.equal(again, first + 2, "the window has passed");
  const folded = { count: 51, lastTime };
  assert.deepEqual(
    journal.entries({ pod: web }).map((entry) => entry.repeated),
    [folded, undefined],
  );
  await clock.advance(50);
  assert.deepEqual(
    (await open()).entries({ pod: web }).map((entry) => entry.repeated),
    [folded, undefined],
  );
});

test("actions and outcomes are never folded, nor anything across them", async () => {
  const { open } = world();
  const journal = await open();
  const died = observed("container app exited with code 1");
  const sequence = [died, action("start"), died, action("start")].map((input) => journal.record(input));
  assert.deepEqual(sequence, [2, 3, 4, 5]);
});

test("alternating entries are not folded: the newest entry is the current state", async () => {
  const { open } = world();
  const journal = await open();
  const ready = observed("container app is ready");
  const unready = observed("container app is not ready");
  const lost = { kind: "note", what: "RuntimeEventsLost", message: "no runtime events" } as const;
  const found = { kind: "note", what: "RuntimeEventsConnected", message: "the event stream works" } as const;
  const sequence = [ready, unready, observed("elsewhere", db), unready, ready, found, lost, found];
  assert.deepEqual(
    sequence.map((input) => journal.record(input)),
    [2, 3, 4, 3, 5, 6, 7, 8],
  );
});

test("an action without a cause is recorded with a note about the defect", async () => {
  const { open } = world();
  const journal = await open();
  const seq = journal.record({ kind: "action", what: "StopContainer", message: "stop app", pod: web });
  const [stop, note] = journal.entries({ pod: web });
  assert.equal(stop?.seq, seq);
  assert.equal(stop?.cause?.code, "MissingCause");
  assert.equal(note?.what, "MissingCause");
});

test("record never throws and never loses the entry, whatever its input", async () => {
  const { clock, open } = world();
  const journal = await open();
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const bad = [{ data: cycle }, { data: { n: 1n } }, { message: "x".repeat(100_000) }, { cause: cycle }];
  for (const [index, fields] of bad.entries()) {
    journal.record({ ...observed(`bad ${index}`), ...(fields as Partial<EntryDetails>) });
  }
  await clock.advance(50);
  assert.equal((await open()).entries({ pod: web }).length, bad.length);
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), fc.string(), (data, message) => {
      journal.record({
        kind: "observation",
        what: "Unhealthy",
        message,
        data: data as NonNullable<JournalInput["data"]>,
      });
    }),
    { numRuns: 200 },
  );
});

test("a follower gets existing entries, then new ones, until its signal aborts", async () => {
  const { open } = world();
  const journal = await open();
  journal.record(observed("one"));
  const two = journal.record(observed("two"));
  const abort = new AbortController();
  const seen: string[] = [];
  const following = journal.follow({ sinceSeq: two, pod: web }, abort.signal);
  journal.record(observed("three"));
  journal.record(observed("not mine", db));
  const reading = (async () => {
    for await (const entry of following) seen.push(entry.message);
  })();
  await settle();
  journal.record(observed("four"));
  await settle();
  abort.abort();
  await reading;
  journal.record(observed("five"));
  assert.deepEqual(seen, ["two", "three", "four"]);
});

test("a slow follower gets a gap note instead of delaying the journal", async () => {
  const { open } = world({ maxFollowerEntries: 10 });
  const journal = await open();
  const following = journal.follow({}, new AbortController().signal);
  for (let index = 0; index < 25; index++) journal.record(observed(`entry ${index}`));
  await journal.close();
  const seen: string[] = [];
  for await (const entry of following) {
    seen.push(entry.what === "JournalGap" ? `gap ${JSON.stringify(entry.data)}` : entry.message);
  }
  assert.deepEqual(seen, ['gap {"skipped":20}', "entry 20", "entry 21", "entry 22", "entry 23", "entry 24"]);
});
