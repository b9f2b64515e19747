import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../../test/support/sources.ts";
import type { Logger } from "../ports/log.ts";
import { UnmeasuredSources } from "./unmeasured-sources.ts";

test("a source that is not measured is logged once, and shown until it is measured again", () => {
  const told: string[] = [];
  const tell = (message: string, fields?: object): void => void told.push(`${message} ${JSON.stringify(fields)}`);
  const log: Logger = { ...silentLog, warn: tell, info: tell };
  const sources = new UnmeasuredSources(log);
  sources.note(new Map([["the file system at /images", "has not answered for 2 s"]]));
  sources.note(new Map([["the file system at /images", "has not answered for 3 s"]]));
  assert.match(sources.health()[0]?.detail ?? "", /^the file system at \/images has not answered for 3 s: /u);
  sources.note(new Map());
  assert.deepEqual(sources.health(), []);
  assert.deepEqual(told, [
    'eviction manager cannot measure a source {"source":"the file system at /images","error":"has not answered for 2 s"}',
    'eviction manager measures a source again {"source":"the file system at /images"}',
  ]);
});
