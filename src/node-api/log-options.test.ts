import assert from "node:assert/strict";
import { test } from "node:test";
import { logOptions, LogOptionsError } from "./log-options.ts";

const nowMs = Date.UTC(2026, 0, 1);

function read(query: string): Partial<ReturnType<typeof logOptions>> {
  return logOptions(new URLSearchParams(query), nowMs);
}

function refusal(query: string): string {
  try {
    read(query);
  } catch (error) {
    assert.ok(error instanceof LogOptionsError);
    return `${error.status} ${error.message}`;
  }
  return "taken";
}

test("without options the log is whole", () => {
  assert.deepEqual(read(""), {
    follow: false,
    previous: false,
    timestamps: false,
    sinceMs: undefined,
    tailLines: undefined,
    limitBytes: undefined,
    stream: undefined,
  });
});

test("flags, numbers and times are parsed as Kubernetes does", () => {
  assert.deepEqual([read("follow=true").follow, read("follow=1").follow, read("follow").follow], [true, true, true]);
  assert.deepEqual([read("follow=false").follow, read("follow=0").follow], [false, false]);
  assert.deepEqual(
    [read("tailLines=0").tailLines, read("tail=5").tailLines, read("tail=all").tailLines],
    [0, 5, undefined],
  );
  assert.equal(read("sinceSeconds=60").sinceMs, nowMs - 60_000);
  assert.equal(read("sinceTime=2026-01-01T01:00:00.5%2B01:00").sinceMs, nowMs + 500);
  assert.deepEqual([read("stream=Stderr").stream, read("stream=All").stream], ["stderr", undefined]);
});

test("numbers have Kubernetes' range", () => {
  const largest = "9223372036854775807";
  assert.equal(read(`tailLines=${largest}`).tailLines, Number.MAX_SAFE_INTEGER);
  assert.ok((read(`sinceSeconds=${largest}`).sinceMs ?? 0) < 0);
  assert.equal(read(`limitBytes=${largest}`).limitBytes, Number.MAX_SAFE_INTEGER);
  assert.equal(refusal("tailLines=9223372036854775808"), "400 tailLines must be an integer");
  assert.match(refusal("tailLines=-9223372036854775808"), /^422 /);
});

test("unparsable options are 400, contradictory ones 422", () => {
  assert.equal(refusal("tailLines=x"), "400 tailLines must be an integer");
  assert.equal(refusal("sinceTime=yesterday"), "400 sinceTime must be an RFC 3339 time");
  assert.equal(refusal("tailLines=-1"), "422 tailLines must be greater than or equal to 0");
  assert.equal(refusal("sinceSeconds=0"), "422 sinceSeconds must be greater than 0");
  assert.equal(refusal("limitBytes=0"), "422 limitBytes must be greater than 0");
  assert.match(refusal("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z"), /^422 at most one of/);
  assert.match(refusal("stream=Both"), /^422 stream must be one of/);
  assert.match(refusal("stream=Stdout&tailLines=1"), /^422 tailLines and a specific stream/);
});
