import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodDetail } from "../src/page/view.ts";
import { EventParser } from "./events.ts";
import { chosen, type Filter } from "./filter.ts";
import * as format from "./format.ts";

describe("the parser of server-sent events", () => {
  const text =
    'event: hello\ndata: {"a":1}\n\nevent: change\r\ndata: {}\r\n\r\n: a comment\n\ndata: one\ndata: two\n\n';
  const expected = [
    { event: "hello", data: '{"a":1}' },
    { event: "change", data: "{}" },
    { event: "message", data: "one\ntwo" },
  ];

  test("takes events apart", () => assert.deepEqual(new EventParser().push(text), expected));

  test("takes text in any pieces", () => {
    // A carriage return at the end of a piece can't be told from a line end of its own; this server writes none.
    const unix = text.replaceAll("\r", "");
    for (let size = 1; size < 9; size++) {
      const parser = new EventParser();
      const found = [];
      for (let at = 0; at < unix.length; at += size) found.push(...parser.push(unix.slice(at, at + size)));
      assert.deepEqual(found, expected, `pieces of ${size}`);
    }
  });
});

function pod(name: string, more: Partial<PodDetail> = {}): PodDetail {
  return {
    ...{ uid: name, namespace: "default", name, source: "run", word: "Running", mood: "good", phase: "Running" },
    ...{
      reason: "",
      message: "",
      readyContainers: 1,
      lastingContainers: 1,
      restarts: 0,
      createdAt: 0,
      ips: ["10.88.0.2"],
    },
    ...{ hostNetwork: false, qos: "BestEffort", conditions: [], containers: [], entries: 0 },
    ...more,
  };
}

describe("the filter", () => {
  const everything: Filter = { text: "", namespace: "", mood: "all" };
  const pods = [
    pod("web"),
    pod("db", { namespace: "tools" }),
    pod("crash", { mood: "trouble", word: "CrashLoopBackOff" }),
    pod("job", { mood: "ended", word: "Completed" }),
  ];
  const names = (filter: Partial<Filter>): string[] =>
    chosen(pods, { ...everything, ...filter }).map(({ name }) => name);

  test("shows all by namespace and name", () => assert.deepEqual(names({}), ["crash", "job", "web", "db"]));
  test("requires every word, in any field of the pod", () => {
    assert.deepEqual(names({ text: "tools/" }), ["db"]);
    assert.deepEqual(names({ text: " BackOff  CRASH" }), ["crash"]);
    assert.deepEqual(names({ text: "10.88.0.2 default" }), ["crash", "job", "web"]);
    assert.deepEqual(names({ text: "nothing" }), []);
  });
  test("chooses by namespace and state", () => {
    assert.deepEqual(names({ namespace: "tools" }), ["db"]);
    assert.deepEqual(names({ mood: "trouble" }), ["crash"]);
    assert.deepEqual(names({ mood: "good", namespace: "default" }), ["web"]);
  });
});

describe("amounts", () => {
  test("are shown in two units, with three digits or whole seconds", () => {
    assert.deepEqual([7, 2345, 125_000, 3_600_000, 90_061_000].map(format.duration), [
      "7 ms",
      "2.3 s",
      "2 min 5 s",
      "1 h",
      "1 d 1 h",
    ]);
    assert.deepEqual([0, 999, 61_500].map(format.elapsed), ["0 s", "0 s", "1 min 1 s"]);
    assert.deepEqual([42_000, 300_000, 10_000_000, 1_000_000_000].map(format.age), ["42 s", "5 min", "2 h", "11 d"]);
    assert.deepEqual([0, 512, 1024, 1536, 1_340_000_000, 5e12].map(format.bytes), [
      "0 B",
      "512 B",
      "1.00 KiB",
      "1.50 KiB",
      "1.25 GiB",
      "4.55 TiB",
    ]);
    assert.deepEqual([0.0042, 0.5, 12].map(format.cores), ["0.004", "0.50", "12.00"]);
    assert.deepEqual([format.percent(1, 3), format.percent(1, 300), format.percent(0, 5)], ["33 %", "0.3 %", "0 %"]);
    assert.deepEqual([format.plural(1, "pod"), format.plural(0, "pod")], ["1 pod", "0 pods"]);
  });
});
